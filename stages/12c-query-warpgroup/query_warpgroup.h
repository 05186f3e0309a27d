// The one pass with three warpgroups. Two own keys: they compute scores, dP, dS, dV and dK. The third owns no rows: it loads
// the tiles, takes dS from the others through a ring, and computes and adds dQ. Its additions block a warp when the memory
// system is busy; the key warpgroups go on meanwhile.
#pragma once

// own_full is for K alone and v_full for V: the scores of the first tile need not wait for V. ds_full completes when all warps
// of both key warpgroups have put their part of dS into the slot, ds_empty when all warps of the query warpgroup are done with
// it.
template <int HEAD_DIM> struct BlockShared : Shared<HEAD_DIM, PAIR_SLOTS> {
  unsigned own_tile;
  uint64_t v_full, ds_full[DS_SLOTS], ds_empty[DS_SLOTS];
  alignas(1024) half ds[DS_SLOTS][ROWS * COLUMNS_OF(HEAD_DIM)];  // [query][key], a panel for each warpgroup's keys

  __device__ void init() {
    for (int i = 0; i < DS_SLOTS; i++) {
      mbarrier_init(shared_address(ds_full + i), WARPGROUPS * 4);
      mbarrier_init(shared_address(ds_empty + i), 4);
    }
    mbarrier_init(shared_address(&v_full), 1);
    Shared<HEAD_DIM, PAIR_SLOTS>::init(THREADS);
  }
};
static_assert(sizeof(BlockShared<64>) == BLOCK_SHARED_BYTES(64), "see tiles.h");
static_assert(sizeof(BlockShared<128>) == BLOCK_SHARED_BYTES(128), "see tiles.h");

// Named barriers. TURNS and V_FREE are the first of two, one for each key warpgroup; K_FREE is one for the block.
enum { TURNS = 1, V_FREE = 3, K_FREE = 5 };

// ---- the warpgroups that own keys ----

template <int HEAD_DIM, bool CAUSAL> struct KeyWarpgroup : OnePass<HEAD_DIM, CAUSAL, BlockShared<HEAD_DIM>> {
  using Base = OnePass<HEAD_DIM, CAUSAL, BlockShared<HEAD_DIM>>;
  using Base::COLUMNS, Base::shared, Base::problem, Base::tensors, Base::warpgroup, Base::lane, Base::row, Base::ring;
  using Base::s, Base::dp, Base::d0, Base::d1;
  using typename Base::Factors;
  using Tile = float[COLUMNS / 2];
  // Where HEAD_DIM is 64, the tensor cores do half as much for each score, and the other work is the same: there one
  // warpgroup's weights should meet the other's products. Where it is 128, turns cost more than they bring.
  static constexpr bool TAKE_TURNS = HEAD_DIM == 64;
  Ring<DS_SLOTS> ds;  // the slot for the next dS
  Factors a;          // dS of the tile before: the A of its dK, which runs in the next step

  // Products write to tiles that live for one step, and are copied. With the members s and dp in their place ptxas sees arrays
  // that live for the whole loop: it serialises the products and spills.
  __device__ void copy(Tile &to, const Tile &from) {
#pragma unroll
    for (int i = 0; i < COLUMNS / 2; i++) to[i] = from[i];
  }

  // A turn is the right to issue S and dK: see stage 08b. All threads of both key warpgroups count, the ones that wait and the
  // ones that pass.
  __device__ void take_turn() {
    if (TAKE_TURNS) barrier_sync(TURNS + warpgroup, THREADS);
  }
  __device__ void pass_turn() {
    if (TAKE_TURNS) barrier_arrive(TURNS + (1 - warpgroup), THREADS);
  }

  // dS in the place of dP: p is 2^15 P and delta is 2^-15 of what it was, so 2^-15 dP - delta is one multiply-add, and the
  // powers cancel. p is what dV has as its A: the registers of fp32 weights are dP's by now.
  __device__ void score_gradients(const Factors &p, int slot) {
    const float p_scale = 1.0f / (1 << WEIGHT_EXPONENT);
#pragma unroll
    for (int i = 0; i < COLUMNS / 2; i++) {
      float2 pair = __half22float2(*(half2 *)&p[i / 8][i / 2 % 4]);
      dp[i] = (i % 2 ? pair.y : pair.x) * (dp[i] * p_scale - this->of_query(this->delta, shared.delta[slot], i));
    }
  }

  // Hands dS to the query warpgroup. Each lane fences its own stores; __syncwarp orders them before lane 0's arrival.
  __device__ void put() {
    mbarrier_wait(shared_address(shared.ds_empty + ds.slot), ds.parity ^ 1);
    this->put_score_gradients(a, shared_address(shared.ds[ds.slot]));
    fence_async_proxy();
    __syncwarp();
    if (lane == 0) mbarrier_arrive(shared_address(shared.ds_full + ds.slot));
    ds.advance();
  }

  // One pair of streamed tiles; `last` is the slot of the one before. dK is one tile late: it runs under this tile's weights,
  // and dV under this tile's dS. In the first step a is 0, so dK adds zeros, and there is one copy of the loop's body.
  __device__ void step(int t, int &last, bool first) {
    mbarrier_wait(shared_address(shared.full + ring.slot), ring.parity);
    int slot = __shfl_sync(0xffffffff, ring.slot, 0);  // the same in all lanes: ptxas sees it and drops the shuffle
    take_turn();
    Tile scores;
    this->product(scores, shared.own[0], shared.streamed[slot][0]);
    this->accumulate(d0, a, shared.streamed[last][0]);
    pass_turn();
    wgmma_wait<1>();  // S is complete, and dK runs on
    wgmma_results(scores);
    wgmma_results(d1);
    copy(s, scores);
    if (this->needs_mask(t * COLUMNS)) this->mask(t * COLUMNS);
    this->weights();
    Factors p;
    this->pack_factors(p, s);
    wgmma_wait<0>();
    wgmma_results(d0);
    if (!first) mbarrier_arrive(shared_address(shared.empty + last));  // each lane: it has read shift and delta
    Tile x;
    if (first) mbarrier_wait(shared_address(&shared.v_full), 0);
    this->product(x, shared.own[1], shared.streamed[slot][1]);
    this->accumulate(d1, p, shared.streamed[slot][1]);
    wgmma_wait<1>();  // dP is complete, and dV runs on
    wgmma_results(x);
    copy(dp, x);
    score_gradients(p, slot);
    if (!CAUSAL && row + WARPGROUP_ROWS > problem.seqlen) this->hide_missing_keys();  // a causal mask has hidden them
    wgmma_wait<0>();
    wgmma_results(d1);
    wgmma_results(dp);
    this->pack_factors(a, dp);
    put();
    last = slot;
    ring.advance();
  }

  // All steps, then dK of the last tile, and the stores over the block's own tiles. dV goes over V, of which each key
  // warpgroup reads only its own rows; dK goes over K, which the query warpgroup reads, too.
  __device__ void run(int first, int tiles) {
    this->Warpgroup<HEAD_DIM, KEYS, CAUSAL, BlockShared<HEAD_DIM>>::start();
#pragma unroll
    for (int n = 0; n < COLUMNS / 16; n++)
      for (int j = 0; j < 4; j++) a[n][j] = 0;
    int last = 0;
    mbarrier_wait(shared_address(&shared.own_full), 0);
    if (warpgroup == 1) pass_turn();  // the first turn is warpgroup 0's
#pragma unroll 1
    for (int t = first; t < tiles; t++) step(t, last, t == first);
    if (warpgroup == 0) take_turn();  // the last one that warpgroup 1 passes: no arrival may be left over
    this->accumulate(d0, a, shared.streamed[last][0]);
    wgmma_wait<0>();
    wgmma_results(d0);
    barrier_sync(V_FREE + warpgroup, WARPGROUP);
    this->store(d1, 1.0f / (1 << WEIGHT_EXPONENT), shared.own[1], &tensors.out[1]);
    barrier_sync(K_FREE, BLOCK_THREADS);
    this->store(d0, problem.scale, shared.own[0], &tensors.out[0]);
    if (lane == 0) tma_store_wait_read<0>();  // until then the block's shared memory must stay
  }
};

// ---- the warpgroup for queries ----

template <int HEAD_DIM, bool CAUSAL> struct QueryWarpgroup : OnePass<HEAD_DIM, CAUSAL, BlockShared<HEAD_DIM>> {
  using Base = OnePass<HEAD_DIM, CAUSAL, BlockShared<HEAD_DIM>>;
  using Base::shared, Base::tensors, Base::lane, Base::warp, Base::head, Base::row, Base::dq;
  Ring<DS_SLOTS> ds;  // the slot of the next dS

  // Starts loading the block's own tile of K (0) or V (1).
  __device__ void load_own(int i, uint64_t &full) {
    mbarrier_arrive_expect(shared_address(&full), sizeof shared.own[i]);
    load<HEAD_DIM>(shared.own[i], full, tensors.own[i], row, head);
  }

  // One thread loads the block's own tiles and then, always PAIR_SLOTS - 1 pairs ahead, the streamed ones. Both parts of dQ are
  // computed one after the other, because their sums together would need twice the registers.
  __device__ void run(int first, int tiles) {
    bool loads = threadIdx.x == THREADS;
    if (loads) {
      load_own(0, shared.own_full);
      this->load_streamed(first);
      load_own(1, shared.v_full);
      for (int t = first + 1; t < min(first + PAIR_SLOTS - 1, tiles); t++) this->load_streamed(t);
    }
    __syncwarp();
    mbarrier_wait(shared_address(&shared.own_full), 0);
#pragma unroll 1
    for (int t = first; t < tiles; t++) {
      if (loads && t + PAIR_SLOTS - 1 < tiles) this->load_streamed(t + PAIR_SLOTS - 1);
      __syncwarp();
      mbarrier_wait(shared_address(shared.ds_full + ds.slot), ds.parity);
      int slot = __shfl_sync(0xffffffff, ds.slot, 0);
#pragma unroll
      for (int part = 0; part < 2; part++) {
        this->query_gradient(shared_address(shared.ds[slot]), part);
        wgmma_wait<0>();
        wgmma_results(dq);
        // The slot is released before the addition: dQ is in registers.
        if (part == 1 && lane == 0) mbarrier_arrive(shared_address(shared.ds_empty + slot));
        this->add(t, part);
      }
      ds.advance();
    }
    barrier_arrive(K_FREE, BLOCK_THREADS);  // K is read no more
  }
};

// ---- the kernel ----

// The block's own tile. Causal: all first tiles of some heads, then all second ones, and so on, because the first have the most
// queries. With head after head, the last head's long tiles would keep a few SMs busy alone. But blocks that run at the same
// time should find what they share in the L2 cache: Q, dO and the sums of dQ, 8 bytes an element.
template <int HEAD_DIM, bool CAUSAL>
__device__ void find_tile(const Problem &problem, int number, int &head, int &tile) {
  int heads_in_l2 = min(16, max(1, (32 << 20) / (8 * HEAD_DIM * problem.seqlen)));
  int first_head = CAUSAL ? number / (heads_in_l2 * problem.head_tiles) * heads_in_l2 : number / problem.head_tiles;
  int heads = CAUSAL ? min(heads_in_l2, (int)gridDim.x / problem.head_tiles - first_head) : 1;
  int rest = number - first_head * problem.head_tiles;
  head = first_head + rest % heads;
  tile = rest / heads;
}

// Grid: own tiles, in the order of find_tile. Block: 384.
template <int HEAD_DIM, bool CAUSAL>
__device__ void backward(const Tensors &tensors, const Problem &problem, const QuerySums &sums) {
  extern __shared__ __align__(1024) char memory[];  // the pattern of a 128-byte swizzle begins at multiples of 1024
  BlockShared<HEAD_DIM> &shared = *(BlockShared<HEAD_DIM> *)memory;
  const int COLUMNS = COLUMNS_OF(HEAD_DIM);
  unsigned number = QueryWarpgroup<HEAD_DIM, CAUSAL>::own_tile(shared, sums);
  int head, tile;
  find_tile<HEAD_DIM, CAUSAL>(problem, number, head, tile);
  int block_row = tile * ROWS, first = CAUSAL ? block_row / COLUMNS : 0,
      tiles = (problem.seqlen + COLUMNS - 1) / COLUMNS;
  int warpgroup = __shfl_sync(0xffffffff, threadIdx.x / WARPGROUP, 0);  // the shuffle tells ptxas that it is uniform
  int thread = threadIdx.x % WARPGROUP, row = block_row + warpgroup % WARPGROUPS * WARPGROUP_ROWS;
  if (threadIdx.x == 0) shared.init();
  __syncthreads();  // the mbarriers are initialised
  if (warpgroup == WARPGROUPS) {
    registers_decrease<QUERY_REGISTERS_OF(HEAD_DIM)>();
    QueryWarpgroup<HEAD_DIM, CAUSAL> part{{{shared, tensors, problem, 0, thread / WARP, thread % WARP, head, row}}};
    part.sums = &sums;
    part.run(first, tiles);
  } else {
    registers_increase<KEY_REGISTERS_OF(HEAD_DIM)>();
    KeyWarpgroup<HEAD_DIM, CAUSAL> part{
        {{shared, tensors, problem, warpgroup, thread / WARP, thread % WARP, head, row}}};
    part.run(first, tiles);
  }
}
