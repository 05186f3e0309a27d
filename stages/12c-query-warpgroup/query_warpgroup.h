// The one pass with three warpgroups. Two own keys: they compute scores, dP, dS, dV and dK. The third owns no rows: it
// loads the tiles, takes dS from the others through a ring, and computes and adds dQ.
#pragma once

// ds_full completes when all key warps have put their part of dS into the slot, ds_empty when the query warps are done
// with it.
template <int HEAD_DIM, class Pairs = Shared<HEAD_DIM>> struct BlockShared : Pairs {
  unsigned own_tile;
  uint64_t ds_full[DS_SLOTS], ds_empty[DS_SLOTS];
  alignas(1024) half ds[DS_SLOTS][ROWS * COLUMNS_OF(HEAD_DIM)];  // [query][key], a panel for each warpgroup's keys

  __device__ void init() {
    for (int i = 0; i < DS_SLOTS; i++) {
      mbarrier_init(shared_address(ds_full + i), THREADS);
      mbarrier_init(shared_address(ds_empty + i), 4);
    }
    Pairs::init();
  }
};
static_assert(sizeof(BlockShared<64>) == ONE_PASS_SHARED_BYTES(64, SLOTS, DS_SLOTS), "see tiles.h");

template <int HEAD_DIM, bool CAUSAL> struct KeyWarpgroup : OnePass<HEAD_DIM, CAUSAL, BlockShared<HEAD_DIM>> {
  using Base = OnePass<HEAD_DIM, CAUSAL, BlockShared<HEAD_DIM>>;
  using Base::COLUMNS, Base::shared, Base::problem, Base::lane, Base::row, Base::s, Base::dp, Base::d0, Base::d1;
  Ring<DS_SLOTS> ds;  // the slot for the next dS

  // Hands dS to the query warpgroup. Each lane fences its own stores, and arrives.
  __device__ void put(const typename Base::Factors &a) {
    mbarrier_wait(shared_address(shared.ds_empty + ds.slot), ds.parity ^ 1);
    this->put_score_gradients(a, shared_address(shared.ds[ds.slot]));
    fence_async_proxy();
    mbarrier_arrive(shared_address(shared.ds_full + ds.slot));
    ds.advance();
  }

  __device__ void step(int t) {
    int slot = this->wait_for_pair();
    wgmma_unread(s);
    this->product(s, shared.own[0], shared.streamed[slot][0]);
    wgmma_wait<0>();
    wgmma_results(s);
    if (this->needs_mask(t * COLUMNS)) this->mask(t * COLUMNS);
    this->weights();
    wgmma_unread(dp);
    this->product(dp, shared.own[1], shared.streamed[slot][1]);
    wgmma_wait<0>();
    wgmma_results(dp);
    this->score_gradients();
    if (!CAUSAL && row + WARPGROUP_ROWS > problem.seqlen) this->hide_missing_keys();  // a causal mask has hidden them
    this->accumulate(d1, s, shared.streamed[slot][1]);
    typename Base::Factors a;
    this->pack_factors(a, dp);
    put(a);  // while the tensor cores compute dV
    this->accumulate(d0, a, shared.streamed[slot][0]);
    wgmma_wait<0>();
    wgmma_results(d1);
    wgmma_results(d0);
    this->release();
  }

  __device__ void run(int first, int tiles) {
    Base::Base::start();
    mbarrier_wait(shared_address(&shared.own_full), 0);
#pragma unroll 1
    for (int t = first; t < tiles; t++) step(t);
    barrier_sync(K_FREE, BLOCK_THREADS);  // dK overwrites K, which the query warpgroup also reads
    Base::Base::store();
  }
};

template <int HEAD_DIM, bool CAUSAL, class MEMORY = BlockShared<HEAD_DIM>>
struct QueryWarpgroup : OnePass<HEAD_DIM, CAUSAL, MEMORY> {
  using Base = OnePass<HEAD_DIM, CAUSAL, MEMORY>;
  using Base::SLOTS, Base::shared, Base::tensors, Base::lane, Base::head, Base::row, Base::dq;
  Ring<DS_SLOTS> ds;  // the slot of the next dS

  __device__ void load_first(int first, int tiles) {  // by one thread: the block's own tiles and the first pair
    mbarrier_arrive_expect(shared_address(&shared.own_full), sizeof shared.own);
    load<HEAD_DIM>(shared.own, shared.own_full, tensors.own, row, head);
    this->load_streamed(first);
  }

  // The same thread loads the other pairs, SLOTS - 1 steps ahead. Both parts of dQ together would need twice the
  // registers.
  __device__ void run(int first, int tiles) {
    __syncwarp();
    mbarrier_wait(shared_address(&shared.own_full), 0);
#pragma unroll 1
    for (int t = first; t < tiles; t++) {
      if (threadIdx.x == THREADS && t + SLOTS - 1 < tiles) this->load_streamed(t + SLOTS - 1);
      __syncwarp();
      mbarrier_wait(shared_address(shared.ds_full + ds.slot), ds.parity);
      int slot = __shfl_sync(0xffffffff, ds.slot, 0);
#pragma unroll
      for (int part = 0; part < 2; part++) {
        this->query_gradient(shared_address(shared.ds[slot]), part);
        wgmma_wait<0>();
        wgmma_results(dq);
        if (part == 1 && lane == 0) mbarrier_arrive(shared_address(shared.ds_empty + slot));  // dQ is in registers
        this->add(t, part);
      }
      ds.advance();
    }
    barrier_arrive(K_FREE, BLOCK_THREADS);  // K is read no more
  }
};

// The kernel: what Keys and Queries do, for one block. Grid: own tiles, in the order of Keys::find_tile. Block: 384.
template <int HEAD_DIM, bool CAUSAL, class Keys, class Queries>
__device__ void run_roles(const Tensors &tensors, const Problem &problem, const QuerySums &sums) {
  extern __shared__ __align__(1024) char memory[];  // the pattern of a 128-byte swizzle begins at multiples of 1024
  typename Keys::Memory &shared = *(typename Keys::Memory *)memory;
  Work work = find_work<HEAD_DIM, OVER_KEYS, CAUSAL, Keys>(problem, Keys::own_tile(shared, sums));
  int warpgroup = __shfl_sync(0xffffffff, threadIdx.x / WARPGROUP, 0);  // tells ptxas that all lanes have the same
  int thread = threadIdx.x % WARPGROUP, row = work.row + warpgroup % WARPGROUPS * WARPGROUP_ROWS;
  if (threadIdx.x == THREADS) {  // the thread that loads does both: so its first loads wait for no barrier
    shared.init();
    Queries{shared, tensors, problem, 0, 0, 0, work.head, row}.load_first(work.first, work.tiles);
  }
  __syncthreads();  // the mbarriers are initialised
  if (warpgroup == WARPGROUPS) {
    registers_decrease<QUERY_REGISTERS_OF(HEAD_DIM)>();
    Queries part{shared, tensors, problem, 0, thread / WARP, thread % WARP, work.head, row};
    part.sums = &sums;
    part.loading.slot = Queries::SLOTS - 1;  // the slots before have the first pairs
    part.run(work.first, work.tiles);
  } else {
    registers_increase<KEY_REGISTERS_OF(HEAD_DIM)>();
    Keys{shared, tensors, problem, warpgroup, thread / WARP, thread % WARP, work.head, row}.run(work.first, work.tiles);
  }
}
