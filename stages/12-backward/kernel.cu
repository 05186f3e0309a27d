// Stage 12: the backward pass. From Q, K, V, O, dO and the forward pass's log-sum-exp it computes dQ, dK and dV:
//
//   P  = exp(scores - lse)           scores = Q K^T / sqrt(HEAD_DIM), computed again
//   dV = P^T dO
//   dS = P * (dP - delta)            dP = dO V^T, and delta = the sum over d of dO O, one number for each query
//   dQ = dS K / sqrt(HEAD_DIM)
//   dK = dS^T Q / sqrt(HEAD_DIM)
//
// The products leave out 1 / sqrt(HEAD_DIM): weights() multiplies Q K^T by it, and store() multiplies dQ and dK.
//
// dQ is a sum over keys; dK and dV are sums over queries. So there are two passes, and no block adds to another block's
// sums. In each pass a block owns a tile of two tensors and streams the tiles of two others. For each pair of streamed
// tiles a warpgroup computes
//
//                               pass over queries     pass over keys
//   own, streamed               Q, dO; K, V           K, V; Q, dO
//   product(s)                  Q K^T                 K Q^T             own and streamed tile from shared memory
//   product(dp)                 dP = dO V^T           dP^T = V dO^T
//   weights, score_gradients    P, dS                 P^T, dS^T         in registers
//   accumulate                  dQ += dS K            dK += dS^T Q      streamed tile from shared memory
//   accumulate                                        dV += P^T dO
#include <cuda_fp16.h>
#include <stdint.h>

#include "tiles.h"

#include "ptx/barrier.h"
#include "ptx/fence.h"
#include "ptx/math.h"
#include "ptx/mbarrier.h"
#include "ptx/quad.h"
#include "ptx/ring.h"
#include "ptx/stmatrix.h"
#include "ptx/tile.h"
#include "ptx/tma.h"
#include "ptx/wgmma.h"

enum Pass { QUERIES, KEYS };

// A block's shared memory: its own tiles, and slots for streamed ones. In the pass over keys the columns of a product are
// queries, and their shift and delta come with the tile. full completes when TMA has filled the slot, empty when all warps
// have released it.
template <int HEAD_DIM> struct Shared {
  enum { COLUMNS = COLUMNS_OF(HEAD_DIM) };
  half own[2][ROWS * HEAD_DIM];
  half streamed[SLOTS][2][COLUMNS * HEAD_DIM];
  float shift[SLOTS][COLUMNS], delta[SLOTS][COLUMNS];
  uint64_t own_full, full[SLOTS], empty[SLOTS];

  __device__ void init() {
    mbarrier_init(shared_address(&own_full), 1);
    for (int i = 0; i < SLOTS; i++) {
      mbarrier_init(shared_address(full + i), 1);
      mbarrier_init(shared_address(empty + i), WARPGROUPS * 4);  // one arrival of each warp
    }
    mbarrier_fence_init();
  }
};
static_assert(sizeof(Shared<64>) == SHARED_BYTES(64) && sizeof(Shared<128>) == SHARED_BYTES(128), "see tiles.h");

// ---- the thread that loads ----

// Starts loading the same rows of two tensors, in panels of 64 columns. The caller has announced the bytes.
template <int HEAD_DIM, int SIZE>
__device__ void load(half (&to)[2][SIZE], uint64_t &full, const TensorMap (&maps)[2], int row, int head) {
  const int panel_bytes = SIZE / HEAD_DIM * ROW_BYTES;
#pragma unroll
  for (int i = 0; i < 2; i++)
    for (int panel = 0; panel < HEAD_DIM / PANEL; panel++)
      tma_load(shared_address(to[i]) + panel * panel_bytes, &maps[i], shared_address(&full), panel * PANEL, row, head);
}

// ---- a warpgroup's part ----

template <int HEAD_DIM, Pass PASS, bool CAUSAL> struct Warpgroup {
  using Memory = Shared<HEAD_DIM>;
  static constexpr int COLUMNS = Memory::COLUMNS;
  Memory &shared;
  const Tensors &tensors;
  const Problem &problem;
  int warpgroup, warp, lane;
  int head, row;        // the tensors' head, and the warpgroup's first own row in it
  Ring<SLOTS> ring;     // the slot of the next tile to compute on
  Ring<SLOTS> loading;  // thread 0 of the block: the slot of the next tile to load

  // Element i of a product is row l / 4 + 8 (i / 2 % 2) of the warp's sixteen, column 8 (i / 4) + 2 (l % 4) + i % 2, where l
  // is the lane. The pass over keys has the transposes of Q K^T, P, dP and dS here.
  float s[COLUMNS / 2];      // Q K^T, then weights P
  float dp[COLUMNS / 2];     // dP, then dS
  float d0[HEAD_DIM / 2];    // the gradient of the first own tensor: dQ or dK
  float d1[HEAD_DIM / 2];    // pass over keys: the gradient of the second, dV
  float shift[2], delta[2];  // pass over queries: of this thread's two rows

  __device__ void start() {
#pragma unroll
    for (int i = 0; i < HEAD_DIM / 2; i++) d0[i] = d1[i] = 0;
    size_t first = (size_t)head * problem.head_tiles * ROWS + row + 16 * warp + lane / 4;
#pragma unroll
    for (int h = 0; h < 2 && PASS == QUERIES; h++) {
      shift[h] = problem.shift[first + 8 * h];
      delta[h] = problem.delta[first + 8 * h];
    }
  }

  // Starts to = own streamed^T, for the warpgroup's rows. Ordinary instructions have read and written the registers of `to`
  // since the last product; wgmma_fence orders these accesses before the new product's writes.
  __device__ void product(float (&to)[COLUMNS / 2], const half *own, const half *streamed) {
    uint64_t a = k_major(shared_address(own) + warpgroup * WARPGROUP_ROWS * ROW_BYTES);
    uint64_t b = k_major(shared_address(streamed));
    wgmma_fence();
#pragma unroll
    for (int d = 0; d < HEAD_DIM / 16; d++)
      wgmma<COLUMNS>(to, columns_16(a, ROWS, d), columns_16(b, COLUMNS, d), d > 0);
    wgmma_commit();
  }

  // Starts sum += factors streamed. The factors, P or dS, are packed as fp16. A thread holds the same elements of A as of the
  // accumulator that they were computed in, so they never leave the thread. wgmma_fence orders the writes of `a` before the
  // product's reads.
  __device__ void accumulate(float (&sum)[HEAD_DIM / 2], const float (&factors)[COLUMNS / 2], const half *streamed) {
    uint32_t a[COLUMNS / 16][4];
#pragma unroll
    for (int n = 0; n < COLUMNS / 16; n++)
      for (int j = 0; j < 4; j++) a[n][j] = pack(factors[8 * n + 2 * j], factors[8 * n + 2 * j + 1]);
    uint64_t b = mn_major(shared_address(streamed), COLUMNS);
    wgmma_fence();
#pragma unroll
    for (int n = 0; n < COLUMNS / 16; n++) wgmma<HEAD_DIM, true>(sum, a[n], rows_16(b, n), true);
    wgmma_commit();
  }

  // Whether the streamed tile that begins at `column` has hidden scores in the warpgroup's rows. One corner decides: where
  // rows are queries, the first row and the last column; where they are keys, the last row and the first column. Queries past
  // the last one need no mask: their shift is minus infinity.
  __device__ bool needs_mask(int column) {
    if (PASS == QUERIES) return column + COLUMNS > (CAUSAL ? min(row + 1, problem.seqlen) : problem.seqlen);
    return CAUSAL && column < row + WARPGROUP_ROWS - 1;
  }

  // Hidden scores become minus infinity, which makes P 0. Hidden are keys past the last one (pass over queries; in the pass
  // over keys they are own rows, which are not stored) and, with a causal mask, keys after the query.
  __device__ void mask(int column) {
    int first_row = row + 16 * warp + lane / 4, first_column = column + lane % 4 * 2;  // this thread's
#pragma unroll
    for (int i = 0; i < COLUMNS / 2; i++) {
      int own = first_row + i / 2 % 2 * 8, streamed = first_column + i / 4 * 8 + i % 2;
      bool hidden =
          PASS == KEYS ? streamed < own : streamed >= (CAUSAL ? min(own + 1, problem.seqlen) : problem.seqlen);
      if (hidden) s[i] = -INFINITY;
    }
  }

  // shift or delta of the query that s[i] belongs to: one of this thread's two rows, or the column.
  __device__ float of_query(const float (&own)[2], const float (&streamed)[COLUMNS], int i) {
    return PASS == QUERIES ? own[i / 2 % 2] : streamed[i / 4 * 8 + lane % 4 * 2 + i % 2];
  }

  // P in the place of Q K^T: exp(score - lse), as a power of 2.
  __device__ void weights() {
#pragma unroll
    for (int i = 0; i < COLUMNS / 2; i++)
      s[i] = power_of_two(s[i] * problem.log2e_scale + of_query(shift, shared.shift[ring.slot], i));
  }

  // dS in the place of dP.
  __device__ void score_gradients() {
#pragma unroll
    for (int i = 0; i < COLUMNS / 2; i++) dp[i] = s[i] * (dp[i] - of_query(delta, shared.delta[ring.slot], i));
  }

  // Starts loading the pair of streamed tiles t into the next slot, once all warps have released it.
  __device__ void load_streamed(int t) {
    int slot = loading.slot;
    uint32_t full = shared_address(shared.full + slot);
    mbarrier_wait(shared_address(shared.empty + slot), loading.parity ^ 1);
    mbarrier_arrive_expect(full, sizeof shared.streamed[slot] + (PASS == KEYS ? 2 * sizeof shared.shift[slot] : 0));
    load<HEAD_DIM>(shared.streamed[slot], shared.full[slot], tensors.streamed, t * COLUMNS, head);
    if (PASS == KEYS) {
      size_t first = (size_t)head * problem.head_tiles * ROWS + t * COLUMNS;
      bulk_load(shared_address(shared.shift[slot]), problem.shift + first, full, sizeof shared.shift[slot]);
      bulk_load(shared_address(shared.delta[slot]), problem.delta + first, full, sizeof shared.delta[slot]);
    }
    loading.advance();
  }

  // One pair of streamed tiles. While the tensor cores compute, the thread that loads gives the next pair to TMA: it passes
  // `next`, and all others -1. That pair's slot is the one of the step before, so this thread waits until all warps have
  // ended that step.
  __device__ void step(int t, int next) {
    mbarrier_wait(shared_address(shared.full + ring.slot), ring.parity);
    int slot = __shfl_sync(0xffffffff, ring.slot, 0);  // the same in all lanes: ptxas sees it and drops the shuffle
    const half *first = shared.streamed[slot][0], *second = shared.streamed[slot][1];
    product(s, shared.own[0], first);
    product(dp, shared.own[1], second);
    if (next >= 0) load_streamed(next);
    wgmma_wait<1>();
    wgmma_results(s);
    if (needs_mask(t * COLUMNS)) mask(t * COLUMNS);
    weights();
    if (PASS == KEYS) accumulate(d1, s, second);
    wgmma_wait<PASS == KEYS ? 1 : 0>();
    wgmma_results(dp);
    score_gradients();
    accumulate(d0, dp, first);
    wgmma_wait<0>();
    wgmma_results(d0);
    if (PASS == KEYS) wgmma_results(d1);
    release();
  }

  // Releases the slot for this warp. __syncwarp orders the lanes' reads of shift and delta before lane 0's arrival.
  __device__ void release() {
    __syncwarp();
    if (lane == 0) mbarrier_arrive(shared_address(shared.empty + ring.slot));
    ring.advance();
  }

  // Stores scale times a gradient, for this warp's sixteen rows: as fp16 over the same rows of the own tile, then with TMA,
  // which leaves out rows past the last one.
  __device__ void store(const float (&d)[HEAD_DIM / 2], float scale, const half *own, const TensorMap *map) {
    uint32_t tile = shared_address(own) + (warpgroup * WARPGROUP_ROWS + warp * STORE_ROWS) * ROW_BYTES;
#pragma unroll
    for (int i = 0; i < HEAD_DIM / 16; i++) {
      const float *x = d + 8 * i;
      stmatrix(tile + swizzled(ROWS, lane % 16, 2 * i + lane / 16), pack(x[0] * scale, x[1] * scale),
               pack(x[2] * scale, x[3] * scale), pack(x[4] * scale, x[5] * scale), pack(x[6] * scale, x[7] * scale));
    }
    fence_async_proxy();
    __syncwarp();
    if (lane > 0) return;
#pragma unroll
    for (int panel = 0; panel < HEAD_DIM / PANEL; panel++)
      tma_store(map, tile + panel * ROWS * ROW_BYTES, panel * PANEL, row + warp * STORE_ROWS, head);
    tma_store_commit();
  }

  __device__ void store() {
    barrier_sync(1 + warpgroup, WARPGROUP);  // until now, products of the other three warps may read the own tiles
    store(d0, problem.scale, shared.own[0], &tensors.out[0]);
    if (PASS == KEYS) store(d1, 1, shared.own[1], &tensors.out[1]);
    if (lane == 0) tma_store_wait<0>();
  }
};

// ---- the kernels ----

// shift and delta of a tile of queries; a warp does one query after another. Past the last query, shift is minus infinity,
// which makes weights 0, and delta is 0.
//
// Grid: tiles of queries, head after head. Block: 256.
template <int HEAD_DIM> __device__ void backward_terms(const Problem &problem) {
  int head = blockIdx.x / problem.head_tiles, first = blockIdx.x % problem.head_tiles * ROWS, lane = threadIdx.x % WARP;
  for (int row = first + threadIdx.x / WARP; row < first + ROWS; row += THREADS / WARP) {
    size_t query = (size_t)head * problem.seqlen + row, padded = (size_t)head * problem.head_tiles * ROWS + row;
    bool exists = row < problem.seqlen;
    float delta = 0;
    for (int d = 2 * lane; d < HEAD_DIM && exists; d += 2 * WARP) {
      float2 o = __half22float2(*(half2 *)(problem.o + query * HEAD_DIM + d));
      float2 d_o = __half22float2(*(half2 *)(problem.d_o + query * HEAD_DIM + d));
      delta += o.x * d_o.x + o.y * d_o.y;
    }
    for (int distance = 1; distance < WARP; distance *= 2) delta += __shfl_xor_sync(0xffffffff, delta, distance);
    if (lane > 0) continue;
    problem.shift[padded] = exists ? -problem.lse[query] * 1.44269504f : -INFINITY;
    problem.delta[padded] = delta;
  }
}

// One pass, for one block's own tile. Part is what a warpgroup does: a Warpgroup, or forward.h's Forward, which has a start,
// step and store of its own.
//
// Grid: own tiles, head after head. Block: 256.
template <int HEAD_DIM, Pass PASS, bool CAUSAL, class Part = Warpgroup<HEAD_DIM, PASS, CAUSAL>>
__device__ void run_pass(const Tensors &tensors, const Problem &problem) {
  const int COLUMNS = COLUMNS_OF(HEAD_DIM);
  extern __shared__ __align__(1024) char memory[];  // the pattern of a 128-byte swizzle begins at multiples of 1024
  Shared<HEAD_DIM> &shared = *(Shared<HEAD_DIM> *)memory;
  int head = blockIdx.x / problem.head_tiles, tile = blockIdx.x % problem.head_tiles;
  // Causal: the longest tile first. In the pass over keys that is tile 0 already.
  if (PASS == QUERIES) tile = problem.head_tiles - 1 - tile;
  int block_row = tile * ROWS;
  int begin = CAUSAL && PASS == KEYS ? block_row : 0;  // of the streamed rows
  int end = CAUSAL && PASS == QUERIES ? min(block_row + ROWS, problem.seqlen) : problem.seqlen;
  int first = begin / COLUMNS, tiles = (end + COLUMNS - 1) / COLUMNS;

  int warpgroup = __shfl_sync(0xffffffff, threadIdx.x / WARPGROUP, 0);  // the shuffle tells ptxas that it is uniform
  int thread = threadIdx.x % WARPGROUP, row = block_row + warpgroup * WARPGROUP_ROWS;
  Part part{shared, tensors, problem, warpgroup, thread / WARP, thread % WARP, head, row};
  part.start();
  if (threadIdx.x == 0) {
    shared.init();
    mbarrier_arrive_expect(shared_address(&shared.own_full), sizeof shared.own);
    load<HEAD_DIM>(shared.own, shared.own_full, tensors.own, block_row, head);
    part.load_streamed(first);
  }
  __syncthreads();  // the mbarriers are initialised
  mbarrier_wait(shared_address(&shared.own_full), 0);
  for (int t = first; t < tiles; t++) part.step(t, threadIdx.x == 0 && t + 1 < tiles ? t + 1 : -1);
  part.store();
}

// The harness's forward pass, which is made of the parts above. Its kernels must be in this module, because a stage has one.
#include "forward.h"

// ---- the entry points. Each mask has kernels of its own, without the registers and instructions that only the other needs ----

extern "C" __global__ void backward_terms_64(const Problem problem) { backward_terms<64>(problem); }
extern "C" __global__ void backward_terms_128(const Problem problem) { backward_terms<128>(problem); }

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    backward_queries_64(const __grid_constant__ Tensors tensors, const Problem problem) {
  run_pass<64, QUERIES, false>(tensors, problem);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    backward_queries_64_causal(const __grid_constant__ Tensors tensors, const Problem problem) {
  run_pass<64, QUERIES, true>(tensors, problem);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    backward_keys_64(const __grid_constant__ Tensors tensors, const Problem problem) {
  run_pass<64, KEYS, false>(tensors, problem);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    backward_keys_64_causal(const __grid_constant__ Tensors tensors, const Problem problem) {
  run_pass<64, KEYS, true>(tensors, problem);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    backward_queries_128(const __grid_constant__ Tensors tensors, const Problem problem) {
  run_pass<128, QUERIES, false>(tensors, problem);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    backward_queries_128_causal(const __grid_constant__ Tensors tensors, const Problem problem) {
  run_pass<128, QUERIES, true>(tensors, problem);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    backward_keys_128(const __grid_constant__ Tensors tensors, const Problem problem) {
  run_pass<128, KEYS, false>(tensors, problem);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    backward_keys_128_causal(const __grid_constant__ Tensors tensors, const Problem problem) {
  run_pass<128, KEYS, true>(tensors, problem);
}
