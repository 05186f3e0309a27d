// The pass over keys, which here also computes dQ. For each query tile dQ = dS K is a sum over the block's keys, and is
// added to sums in global memory. Each warpgroup computes 64 x 64 elements of that dQ: all columns of 64 queries
// where HEAD_DIM is 64, and half the columns of all 64 queries where it is 128.
#pragma once

template <int HEAD_DIM> struct OnePassShared : Shared<HEAD_DIM> {
  unsigned own_tile;
  alignas(1024) half ds[ROWS * COLUMNS_OF(HEAD_DIM)];  // [query][key], a panel for the 64 keys of each warpgroup
};
static_assert(sizeof(OnePassShared<64>) == ONE_PASS_SHARED_BYTES(64, SLOTS, 1), "see tiles.h");

// Where a thread's part of a query tile's sums begins: its dq[0] to dq[3]. The next four are 512 floats further on, and
// so on. So dq[i] to dq[i + 3] of a warp are 512 bytes in a row.
__device__ float *part_of(const QuerySums &sums, int tile, int part, int thread) {
  return sums.sums + (size_t)tile * SUM_FLOATS + part * PART_FLOATS + 4 * thread;
}

template <int HEAD_DIM, bool CAUSAL, class MEMORY = OnePassShared<HEAD_DIM>>
struct OnePass : Warpgroup<HEAD_DIM, OVER_KEYS, CAUSAL, MEMORY> {
  using Base = Warpgroup<HEAD_DIM, OVER_KEYS, CAUSAL, MEMORY>;
  using Base::COLUMNS, Base::shared, Base::problem, Base::warpgroup, Base::warp, Base::lane, Base::head, Base::row;
  using Base::dp, Base::d0, Base::d1, Base::store;
  const QuerySums *sums;
  float dq[PART_FLOATS / WARPGROUP];  // this thread's elements of the streamed tile's dQ

  // With turns, blocks take their tiles in the order in which they begin. So a block waits only for others that have
  // begun.
  static __device__ unsigned own_tile(MEMORY &memory, const QuerySums &query_sums) {
    return query_sums.turns ? ticket(query_sums.begun, memory.own_tile) : blockIdx.x;
  }

  __device__ void start(const QuerySums &query_sums) {
    sums = &query_sums;
    Base::start();
  }

  // Keys past the last one get no dS. Their rows of K are zeros, but their dS may be infinite in fp16, and 0 times that
  // is NaN.
  __device__ void hide_missing_keys() {
#pragma unroll
    for (int i = 0; i < COLUMNS / 2; i++)
      if (row + 16 * warp + lane / 4 + i / 2 % 2 * 8 >= problem.seqlen) dp[i] = 0;
  }

  // Writes dS to a buffer in shared memory, [query][key]. The warpgroup has dS^T: a warp's rows are 16 keys, two chunks
  // of a row in memory. stmatrix transposes each matrix of 8 keys x 8 queries.
  __device__ void put_score_gradients(const typename Base::Factors &a, uint32_t ds) {
#pragma unroll
    for (int n = 0; n < COLUMNS / 16; n++) {
      int query = 16 * n + lane / 16 * 8 + lane % 8, chunk = 8 * warpgroup + 2 * warp + lane / 8 % 2;
      stmatrix_transposed(ds + swizzled(COLUMNS, query, chunk), a[n][0], a[n][1], a[n][2], a[n][3]);
    }
  }

  // Starts dq = dS K for one of the two parts of the query tile, a sum over the block's 128 keys: dS K-major, and K as
  // it lies, MN-major.
  __device__ void query_gradient(uint32_t ds, int part) {
    uint64_t a = k_major(ds + (HEAD_DIM == 64 ? part * 64 * ROW_BYTES : 0));
    uint64_t b = mn_major(shared_address(shared.own[0]) + (HEAD_DIM == 128 ? part * ROWS * ROW_BYTES : 0), ROWS);
    wgmma_fence();
#pragma unroll
    for (int n = 0; n < ROWS / 16; n++) wgmma<64, true>(dq, columns_16(a, COLUMNS, n), rows_16(b, n), n > 0);
    wgmma_commit();
  }

  // Adds dq to a part of the sums of query tile t. With turns, a warp comes after the same warp of all blocks of
  // earlier keys.
  __device__ void add(int t, int part) {
    int tile = head * problem.head_tiles * (ROWS / COLUMNS) + t;
    float *to = part_of(*sums, tile, part, warp * WARP + lane);
    unsigned *turn = sums->turns + (tile * WARPGROUPS + part) * 4 + warp;
    if (sums->turns) wait_for_turn(turn, row / ROWS, lane);
#pragma unroll
    for (int i = 0; i < PART_FLOATS / WARPGROUP; i += 4) add_four(to + i * WARPGROUP, dq + i);
    if (sums->turns) pass_turn(turn, lane);
  }

  __device__ void step(int t, int next) {
    typename Base::Factors a;
    const half *q = this->begin_step(t, next);
    if (!CAUSAL && row + WARPGROUP_ROWS > problem.seqlen) hide_missing_keys();  // a causal mask has hidden them
    this->pack_factors(a, dp);
    this->accumulate(d0, a, q);
    __syncthreads();  // both warpgroups have ended the step before: its dQ no longer reads dS
    put_score_gradients(a, shared_address(shared.ds));
    fence_async_proxy();
    __syncthreads();  // dS is complete
    query_gradient(shared_address(shared.ds), warpgroup);
    wgmma_wait<1>();
    wgmma_results(d0);
    wgmma_results(d1);
    this->release();
    wgmma_wait<0>();
    wgmma_results(dq);
    add(t, warpgroup);
  }

  // dK overwrites K, and for dQ each warpgroup reads all of K.
  __device__ void store() {
    __syncthreads();
    Base::store();
  }
};

// After the pass: makes dQ of the sums, times scale, as fp16. Grid: query tiles, head after head, and the last one
// first: the L2 cache still has the sums that the pass wrote last. Block: 256.
template <int HEAD_DIM>
__device__ void finish_queries(const TensorMap &map, const Problem &problem, const QuerySums &sums) {
  __shared__ __align__(1024) half tile[WARPGROUPS][PART_FLOATS];
  int number = gridDim.x - 1 - blockIdx.x;
  int tiles = problem.head_tiles * (ROWS / COLUMNS_OF(HEAD_DIM)), head = number / tiles;
  int warpgroup = threadIdx.x / WARPGROUP, thread = threadIdx.x % WARPGROUP, first = thread / WARP * STORE_ROWS;
  int row = number % tiles * COLUMNS_OF(HEAD_DIM) + first + (HEAD_DIM == 64 ? warpgroup * 64 : 0);
  const float *part = part_of(sums, number, warpgroup, thread);
  float d[PART_FLOATS / WARPGROUP];
#pragma unroll
  for (int i = 0; i < PART_FLOATS / WARPGROUP; i += 4) *(float4 *)(d + i) = *(float4 *)(part + i * WARPGROUP);
  store_rows<64, 64>(d, problem.scale, shared_address(tile[warpgroup]) + first * ROW_BYTES, &map,
                     HEAD_DIM == 128 ? warpgroup * 64 : 0, row, head, thread % WARP);
  if (thread % WARP == 0) tma_store_wait<0>();
}

extern "C" __global__ void __launch_bounds__(THREADS)
    finish_queries_64(const __grid_constant__ TensorMap map, const Problem problem, const QuerySums sums) {
  finish_queries<64>(map, problem, sums);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    finish_queries_128(const __grid_constant__ TensorMap map, const Problem problem, const QuerySums sums) {
  finish_queries<128>(map, problem, sums);
}
