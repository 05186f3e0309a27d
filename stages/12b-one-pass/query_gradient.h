// dQ, the gradient that no block of a pass over keys owns. dS goes through shared memory, dQ = dS K is computed for each
// streamed tile, and added to the sums in global memory. At last a kernel makes fp16 of the sums.
//
// A streamed tile has 64 * 128 elements of dQ. Each warpgroup computes 64 x 64 of them: all columns of 64 queries where
// HEAD_DIM is 64, and half the columns of all 64 queries where it is 128.
#pragma once

template <int HEAD_DIM> struct OnePassShared : Shared<HEAD_DIM> {
  unsigned own_tile;
  alignas(1024) half ds[ROWS * COLUMNS_OF(HEAD_DIM)];  // dS, [query][key], in panels of 64 keys: one of each warpgroup
};
static_assert(sizeof(OnePassShared<64>) == ONE_PASS_SHARED_BYTES(64), "see tiles.h");
static_assert(sizeof(OnePassShared<128>) == ONE_PASS_SHARED_BYTES(128), "see tiles.h");

// Where in a tile's sums a thread's 32 elements of dQ begin. Element d[i] is i / 4 * 4 * WARPGROUP + i % 4 floats further on, so
// that a warp's d[i] to d[i + 3] are 512 bytes in a row. Both those who add and those who read use this order.
__device__ float *part_of(const QuerySums &sums, int tile, int warpgroup, int thread) {
  return sums.sums + (size_t)tile * SUM_FLOATS + warpgroup * PART_FLOATS + 4 * thread;
}

// ---- a warpgroup's part of the pass ----

template <int HEAD_DIM, bool CAUSAL> struct QueryGradient : Warpgroup<HEAD_DIM, KEYS, CAUSAL> {
  using Base = Warpgroup<HEAD_DIM, KEYS, CAUSAL>;
  using Memory = OnePassShared<HEAD_DIM>;
  using Base::COLUMNS, Base::shared, Base::problem, Base::warpgroup, Base::warp, Base::lane, Base::head, Base::row;
  using Base::s;
  using typename Base::Factors;
  const QuerySums *sums;
  float dq[PART_FLOATS / WARPGROUP];  // of the streamed tile at hand

  // With turns, the blocks take their tiles in the order in which they begin. So a block waits only for others that have begun.
  static __device__ unsigned own_tile(Memory &memory, const QuerySums &sums) {
    if (!sums.turns) return blockIdx.x;
    if (threadIdx.x == 0) memory.own_tile = atomicAdd(sums.started, 1);
    __syncthreads();
    return memory.own_tile;
  }

  __device__ void start(const QuerySums &query_sums) {
    sums = &query_sums;
    Base::start();
  }

  __device__ uint32_t ds() { return shared_address(static_cast<Memory &>(shared).ds); }

  // Keys past the last one get no weight. Their dS would be multiplied by rows of K that are zeros, but it may be infinite.
  // (With a causal mask they are hidden already.)
  __device__ void hide_missing_keys() {
    int key = row + 16 * warp + lane / 4;
#pragma unroll
    for (int i = 0; i < COLUMNS / 2; i++)
      if (key + i / 2 % 2 * 8 >= problem.seqlen) s[i] = -INFINITY;
  }

  // Writes dS to shared memory, as [query][key]. The warpgroup has its transpose: a warp's rows are 16 keys, which are two
  // chunks of the rows in memory. stmatrix transposes each matrix of 8 keys x 8 queries.
  __device__ void put_score_gradients(const Factors &a) {
#pragma unroll
    for (int n = 0; n < COLUMNS / 16; n++) {
      int query = 16 * n + lane / 16 * 8 + lane % 8, chunk = 8 * warpgroup + 2 * warp + lane / 8 % 2;
      stmatrix_transposed(ds() + swizzled(COLUMNS, query, chunk), a[n][0], a[n][1], a[n][2], a[n][3]);
    }
  }

  // Starts dq = dS K, a sum over the block's 128 keys: dS K-major, and K as it lies, MN-major.
  __device__ void query_gradient() {
    int queries = HEAD_DIM == 64 ? warpgroup * 64 * ROW_BYTES : 0,
        panel = HEAD_DIM == 128 ? warpgroup * ROWS * ROW_BYTES : 0;
    uint64_t a = k_major(ds() + queries), b = mn_major(shared_address(shared.own[0]) + panel, ROWS);
    wgmma_fence();
#pragma unroll
    for (int n = 0; n < ROWS / 16; n++) wgmma<64, true>(dq, columns_16(a, COLUMNS, n), rows_16(b, n), n > 0);
    wgmma_commit();
  }

  // Adds dq to the sums of streamed tile t. With turns, this warp's part comes after those of the same warp of all blocks with
  // earlier keys.
  __device__ void add(int t) {
    int tile = head * problem.head_tiles * (ROWS / COLUMNS) + t;
    float *part = part_of(*sums, tile, warpgroup, warp * WARP + lane);
    unsigned *turn = sums->turns + tile * SUM_WARPS + warpgroup * 4 + warp;
    if (sums->turns) {
      if (lane == 0) acquire_count(turn, (row - warpgroup * WARPGROUP_ROWS) / ROWS);
      __syncwarp();
    }
#pragma unroll
    for (int i = 0; i < PART_FLOATS / WARPGROUP; i += 4) add_four(part + i * WARPGROUP, dq + i);
    if (sums->turns) {
      __syncwarp();
      if (lane == 0) release_count(turn);
    }
  }
};

// ---- the kernel after the pass ----

// Makes dQ of the sums of a streamed tile, times scale, as fp16.
//
// Grid: streamed tiles, head after head. Block: 256.
template <int HEAD_DIM>
__device__ void finish_queries(const TensorMap &map, const Problem &problem, const QuerySums &sums) {
  __shared__ __align__(1024) half tile[WARPGROUPS][PART_FLOATS];
  int query_tiles = problem.head_tiles * (ROWS / COLUMNS_OF(HEAD_DIM));
  int head = blockIdx.x / query_tiles, row = blockIdx.x % query_tiles * COLUMNS_OF(HEAD_DIM);
  int warpgroup = threadIdx.x / WARPGROUP, thread = threadIdx.x % WARPGROUP, first = thread / WARP * STORE_ROWS;
  const float *part = part_of(sums, blockIdx.x, warpgroup, thread);
  float d[PART_FLOATS / WARPGROUP];
#pragma unroll
  for (int i = 0; i < PART_FLOATS / WARPGROUP; i += 4) *(float4 *)(d + i) = *(float4 *)(part + i * WARPGROUP);
  int column = HEAD_DIM == 128 ? warpgroup * 64 : 0;
  row += first + (HEAD_DIM == 64 ? warpgroup * 64 : 0);
  store_rows<64, 64>(d, problem.scale, shared_address(tile[warpgroup]) + first * ROW_BYTES, &map, column, row, head,
                     thread % WARP);
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
