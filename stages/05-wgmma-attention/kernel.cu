// Stage 05: the fused kernel on Hopper's own tensor-core instruction. A warpgroup, four warps, multiplies 64 queries by a
// whole tile of keys at once, and the tensor cores fetch Q, K and V from shared memory by themselves.
//
// For each tile of keys a warpgroup does
//
//   scores   S = Q K^T                   wgmma: Q and K from shared memory
//   softmax  P = exp(S - max), sum += P  in registers, as in stage 03
//   output   O += P V                    wgmma: P from the registers where S was, V from shared memory
#include <cuda_fp16.h>
#include <float.h>
#include <stdint.h>

#include "ptx/barrier.h"
#include "ptx/cp_async.h"
#include "ptx/fence.h"
#include "ptx/math.h"
#include "ptx/quad.h"
#include "ptx/tile.h"
#include "ptx/trace.h"
#include "ptx/wgmma.h"

enum { WARP = 32, WARPGROUP = 128, WARPGROUP_ROWS = 64, STAGES = 2 };

// ---- tiles in shared memory ----

// Starts the copy of a tile from a matrix that has only `left` more rows: zeros stand in for the others. THREADS threads
// copy together; each of them one chunk of every few rows.
template <int HEAD_DIM, int TILE_ROWS, int THREADS>
__device__ void copy_tile(uint32_t tile, const half *matrix, int left) {
  const int chunks = HEAD_DIM / 8, step = THREADS / chunks;
  static_assert(step % 8 == 0 && TILE_ROWS % step == 0, "all chunks of a thread are swizzled alike");
  int chunk = threadIdx.x % chunks, row = threadIdx.x / chunks;
  const half *from = matrix + threadIdx.x * 8;
  uint32_t to = tile + swizzled(TILE_ROWS, row, chunk);
#pragma unroll
  for (int i = 0; i < TILE_ROWS; i += step) cp_async(to + i * ROW_BYTES, from + i * HEAD_DIM, row + i < left ? 16 : 0);
}

// ---- a warpgroup's part ----

// What a warpgroup keeps for its 64 queries from tile to tile. A thread has two rows, l / 4 and l / 4 + 8 of its warp's
// sixteen, and of the output of each, for every 8 columns, two neighbours: o[4 n + 2 h + e], row h.
template <int HEAD_DIM> struct Rows {
  float o[HEAD_DIM / 2];
  float max[2], sum[2];  // sum: of this thread's columns only, until the end
};

// S = Q K^T. The fence is for s, which ordinary instructions have used since the last product.
template <int HEAD_DIM, int ROWS, int KEYS>
__device__ void scores(float (&s)[KEYS / 2], uint32_t q_tile, uint32_t k_tile) {
  uint64_t q = k_major(q_tile), k = k_major(k_tile);
  wgmma_fence();
#pragma unroll
  for (int d = 0; d < HEAD_DIM / 16; d++) wgmma<KEYS>(s, columns_16(q, ROWS, d), columns_16(k, KEYS, d), d > 0);
  wgmma_commit();
  wgmma_wait<0>();
  wgmma_results(s);
}

// Scores that must not count become minus infinity: of keys past the last one, and in causal attention of keys past the
// query. row and key: the warpgroup's first query, the tile's first key.
template <int KEYS> __device__ void mask(float (&s)[KEYS / 2], int row, int key, int seqlen, int causal) {
  int warp = threadIdx.x % WARPGROUP / WARP, lane = threadIdx.x % WARP;
  for (int h = 0; h < 2; h++) {
    int i = row + 16 * warp + 8 * h + lane / 4, keys = causal ? min(i + 1, seqlen) : seqlen;
    int left = keys - (key + lane % 4 * 2);  // what this thread's row may see from this thread's first column on
#pragma unroll
    for (int n = 0; n < KEYS / 8; n++)
      for (int e = 0; e < 2; e++)
        if (8 * n + e >= left) s[4 * n + 2 * h + e] = -INFINITY;
  }
}

// The largest of a row's scores.
template <int COUNT> __device__ float row_max(const float (&s)[COUNT], int h) {
  float max = fmaxf(s[2 * h], s[2 * h + 1]);
#pragma unroll
  for (int i = 4; i < COUNT; i += 4) max = fmaxf(fmaxf(max, s[i + 2 * h]), s[i + 2 * h + 1]);
  return quad_max(max);
}

// Looks for larger maxima in the scores; when there are some, everything older shrinks. As in stage 03, `max` may stay
// behind the true maximum by a factor of 2^8 in the weights.
template <int HEAD_DIM, int COUNT>
__device__ void raise_max(Rows<HEAD_DIM> &rows, const float (&s)[COUNT], float scale) {
  float max[2];
  bool grew = false;
  for (int h = 0; h < 2; h++) {
    max[h] = fmaxf(rows.max[h], row_max(s, h));
    grew |= (max[h] - rows.max[h]) * scale > 8;
  }
  if (!__any_sync(0xffffffff, grew)) return;
  for (int h = 0; h < 2; h++) {
    float factor = power_of_two((rows.max[h] - max[h]) * scale);
    rows.max[h] = max[h];
    rows.sum[h] *= factor;
#pragma unroll
    for (int i = 0; i < HEAD_DIM / 2; i += 4)
      for (int e = 0; e < 2; e++) rows.o[i + 2 * h + e] *= factor;
  }
}

// P = exp(S - max), in the place of S, as 2^(S * scale - max * scale): one multiply-add and one power a score.
template <int HEAD_DIM, int COUNT> __device__ void weights(Rows<HEAD_DIM> &rows, float (&s)[COUNT], float scale) {
  for (int h = 0; h < 2; h++) {
    float shift = -rows.max[h] * scale, sum[2] = {rows.sum[h], 0};
#pragma unroll
    for (int i = 0; i < COUNT; i += 4)
      for (int e = 0; e < 2; e++) {
        s[i + 2 * h + e] = power_of_two(s[i + 2 * h + e] * scale + shift);
        sum[e] += s[i + 2 * h + e];
      }
    rows.sum[h] = sum[0] + sum[1];
  }
}

// O += P V. The accumulators of eight columns of S are, packed in pairs, half of an A of 64 x 16: P never leaves the
// thread.
template <int HEAD_DIM, int KEYS>
__device__ void output(Rows<HEAD_DIM> &state, const float (&p)[KEYS / 2], uint32_t v_tile) {
  uint64_t v = mn_major(v_tile, KEYS);
  uint32_t a[KEYS / 16][4];
#pragma unroll
  for (int n = 0; n < KEYS / 16; n++)
    for (int j = 0; j < 4; j++) a[n][j] = pack(p[8 * n + 2 * j], p[8 * n + 2 * j + 1]);
  wgmma_fence();
#pragma unroll
  for (int n = 0; n < KEYS / 16; n++) wgmma<HEAD_DIM, true>(state.o, a[n], rows_16(v, n), true);
  wgmma_commit();
  wgmma_wait<0>();
  wgmma_results(state.o);
}

// Writes O / sum for this warp's queries, of which `count` exist. It passes through the shared memory that held them, so
// that 16 bytes a lane and whole rows leave. row: the warp's first in the tile.
template <int HEAD_DIM, int ROWS>
__device__ void store_rows(half *o, const Rows<HEAD_DIM> &rows, char *q_tile, int row, int count) {
  int lane = threadIdx.x % WARP, chunks = HEAD_DIM / 8;
  for (int h = 0; h < 2; h++) {
    float factor = 1 / quad_sum(rows.sum[h]);
#pragma unroll
    for (int n = 0; n < HEAD_DIM / 8; n++)
      *(uint32_t *)(q_tile + swizzled(ROWS, row + 8 * h + lane / 4, n) + lane % 4 * 4) =
          pack(rows.o[4 * n + 2 * h] * factor, rows.o[4 * n + 2 * h + 1] * factor);
  }
  __syncwarp();
  for (int i = lane; i < 16 * chunks; i += WARP)
    if (i / chunks < count) *(uint4 *)(o + i * 8) = *(uint4 *)(q_tile + swizzled(ROWS, row + i / chunks, i % chunks));
}

// ---- the kernel ----

// Starts the copies of tile t of K and V into buffer t % 2.
template <int HEAD_DIM, int KEYS, int THREADS>
__device__ void copy_keys(uint32_t k_tiles, const half *k, const half *v, int t, int seqlen) {
  const int bytes = KEYS * HEAD_DIM * 2;
  uint32_t k_tile = k_tiles + t % STAGES * 2 * bytes;
  size_t offset = (size_t)t * KEYS * HEAD_DIM;
  copy_tile<HEAD_DIM, KEYS, THREADS>(k_tile, k + offset, seqlen - t * KEYS);
  copy_tile<HEAD_DIM, KEYS, THREADS>(k_tile + bytes, v + offset, seqlen - t * KEYS);
  cp_async_commit();
}

// One block: WARPGROUPS warpgroups with 64 queries each, all of one head. Shared memory: Q, then K and V of even tiles,
// K and V of odd tiles.
//
// Grid: tiles of queries, head after head. Block: 128 * WARPGROUPS.
template <int HEAD_DIM, int WARPGROUPS, int KEYS>
__device__ void attention(const half *q, const half *k, const half *v, half *o, int seqlen, float scale, int causal) {
  const int ROWS = WARPGROUPS * WARPGROUP_ROWS, THREADS = WARPGROUPS * WARPGROUP, BYTES = KEYS * HEAD_DIM * 2;
  extern __shared__ __align__(1024) char shared[];  // where a swizzle of 128 bytes begins anew
  uint32_t q_tile = shared_address(shared), k_tiles = q_tile + ROWS * HEAD_DIM * 2;
  int blocks = (seqlen + ROWS - 1) / ROWS;
  int block_row = (blocks - 1 - blockIdx.x % blocks) * ROWS;  // causal: those with most keys first
  int warpgroup = __shfl_sync(0xffffffff, threadIdx.x / WARPGROUP, 0), warp = threadIdx.x % WARPGROUP / WARP;
  int row = block_row + warpgroup * WARPGROUP_ROWS;  // the warpgroup's first
  size_t head = blockIdx.x / blocks * (size_t)seqlen * HEAD_DIM;
  k += head;
  v += head;

  trace_begin(ALL);
  trace(COPY, 0);
  copy_tile<HEAD_DIM, ROWS, THREADS>(q_tile, q + head + (size_t)block_row * HEAD_DIM, seqlen - block_row);
  copy_keys<HEAD_DIM, KEYS, THREADS>(k_tiles, k, v, 0, seqlen);

  Rows<HEAD_DIM> rows;
  for (int h = 0; h < 2; h++) {
    rows.max[h] = -FLT_MAX;
    rows.sum[h] = 0;
  }
#pragma unroll
  for (int i = 0; i < HEAD_DIM / 2; i++) rows.o[i] = 0;
  scale *= 1.44269504f;  // log2 e: exp(x) is computed as 2^(x log2 e)

  int keys = causal ? min(block_row + ROWS, seqlen) : seqlen;  // that any row may see
  int tiles = (keys + KEYS - 1) / KEYS;
  int full_tiles = (causal ? min(row + 1, seqlen) : seqlen) / KEYS;  // that all of the warpgroup's rows may see
  for (int t = 0; t < tiles; t++) {
    trace(WAIT_K, t);
    cp_async_wait<0>();   // tile t has landed: this thread's copies,
    fence_async_proxy();  // and wgmma will see them,
    trace_done(COPY, t);
    trace(BARRIER, t);
    __syncthreads();  // and all others'; and all are done with tile t - 1, into whose place t + 1 goes
    trace(COPY, t + 1);
    if (t + 1 < tiles) copy_keys<HEAD_DIM, KEYS, THREADS>(k_tiles, k, v, t + 1, seqlen);
    if (causal && t * KEYS >= row + WARPGROUP_ROWS) continue;  // all masked for this warpgroup

    uint32_t k_tile = k_tiles + t % STAGES * 2 * BYTES;
    float s[KEYS / 2];
    trace(QK, t);
    scores<HEAD_DIM, ROWS, KEYS>(s, q_tile + warpgroup * WARPGROUP_ROWS * ROW_BYTES, k_tile);
    trace(SOFTMAX, t);
    if (t >= full_tiles) mask<KEYS>(s, row, t * KEYS, seqlen, causal);
    raise_max(rows, s, scale);
    weights(rows, s, scale);
    trace(PV, t);
    output<HEAD_DIM, KEYS>(rows, s, k_tile + BYTES);
  }
  trace(STORE, tiles - 1);
  barrier_sync(1 + warpgroup, WARPGROUP);  // the whole warpgroup's products have read Q
  store_rows<HEAD_DIM, ROWS>(o + head + (size_t)(row + warp * 16) * HEAD_DIM, rows, shared,
                             warpgroup * WARPGROUP_ROWS + warp * 16, seqlen - row - warp * 16);
  trace_end();
}

// The entry points: two warpgroups each. For D = 64 a thread needs fewer than 128 registers, so that two blocks fit on an
// SM; for D = 128 one block with all of its registers and longer tiles is better.
extern "C" __global__ void __launch_bounds__(2 * WARPGROUP, 2)
    attention_64(const half *q, const half *k, const half *v, half *o, int seqlen, float scale, int causal) {
  attention<64, 2, 64>(q, k, v, o, seqlen, scale, causal);
}

extern "C" __global__ void __launch_bounds__(2 * WARPGROUP, 1)
    attention_128(const half *q, const half *k, const half *v, half *o, int seqlen, float scale, int causal) {
  attention<128, 2, 128>(q, k, v, o, seqlen, scale, causal);
}
