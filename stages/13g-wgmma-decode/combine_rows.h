// Heads whose tiles several blocks have had, as in stage 13d. There are up to 128 rows of a head here, and mostly two or
// three parts of each. So a warp combines a row, and a block four rows; where the parts are many, the whole block
// combines one row after another, and each warp adds up every fourth part.
#pragma once

#include "../13-decode/reader.h"
#include "ptx/dependent.h"

#include "../13d-ragged/list.h"
#include "../13d-ragged/rows.h"

#include "block_tiles.h"

// Where the parts of a row lie: the first of the workers has left the head before its end. All others have come to it in
// its middle.
struct Parts {
  const Leftovers &leftovers;
  int first, count, rows;

  __device__ size_t place(int part, int row) const { return (size_t)(2 * (first + part) + (part == 0)) * rows + row; }
};

// Of a row, over all its parts: the maximum, or 0 where the row sees no keys. All weights are 0 then.
static __device__ __forceinline__ float max_of_parts(const Parts &parts, int row) {
  float max = -INFINITY;
  for (int i = threadIdx.x % WARP; i < parts.count; i += WARP)
    max = fmaxf(max, parts.leftovers.lse[parts.place(i, row)]);
#pragma unroll
  for (int distance = 1; distance < WARP; distance *= 2) max = fmaxf(max, __shfl_xor_sync(ALL_LANES, max, distance));
  return max == -INFINITY ? 0 : max;
}

// Adds up every `step`-th part from `i` on. A lane has PAIRS pairs of columns.
template <int PAIRS>
__device__ void add_parts(const Parts &parts, int row, float max, int i, int step, float2 (&o)[PAIRS], float &sum) {
#pragma unroll 4
  for (; i < parts.count; i += step) {
    size_t place = parts.place(i, row);
    float weight = power_of_two(parts.leftovers.lse[place] - max);
    const float2 *part = (const float2 *)(parts.leftovers.o + place * (PAIRS * 2 * WARP));
    sum += weight;
#pragma unroll
    for (int p = 0; p < PAIRS; p++) {
      float2 x = part[p * WARP + threadIdx.x % WARP];
      o[p].x += weight * x.x;
      o[p].y += weight * x.y;
    }
  }
}

// Grid: groups of WARPS rows, key heads, sequences. Block: WARPS warps. lse: where the caller wants the log-sum-exp,
// [batch][key head][row].
template <int HEAD_DIM> __device__ void combine_rows(const Work &work, const Leftovers &leftovers, float *lse) {
  constexpr int KEYS = BLOCK_KEYS_OF(HEAD_DIM), PAIRS = HEAD_DIM / 2 / WARP, FEW = 8;
  __shared__ float2 others[WARPS][PAIRS * WARP];
  __shared__ float sums[WARPS];
  int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, head = blockIdx.y, batch = blockIdx.z;
  int tiles = tiles_of<KEYS>(keys_of(work, batch)), rows = rows_of(work);
  long long total = tiles_before<KEYS>(work, work.batch), busy = busy_blocks(total, leftovers.workers);
  long long start = tiles_before<KEYS>(work, batch) + (long long)head * tiles;
  if (lse) lse += (size_t)(batch * work.problem.kv_heads + head) * rows;
  wait_for_kernel_in_front();

  Parts parts = {leftovers, 0, 0, rows};
  if (tiles) {
    parts.first = worker_of(start, total, busy);
    parts.count = worker_of(start + tiles - 1, total, busy) - parts.first + 1;
    if (parts.count == 1) return;  // the worker has written O
  }
  bool together = parts.count > FEW;
  for (int i = 0; i < (together ? WARPS : 1); i++) {
    int row = blockIdx.x * WARPS + (together ? i : warp);
    if (row >= rows) return;
    float max = max_of_parts(parts, row), sum = 0;
    float2 o[PAIRS] = {};
    add_parts(parts, row, max, together ? warp : 0, together ? WARPS : 1, o, sum);
    if (together) {
#pragma unroll
      for (int p = 0; p < PAIRS; p++) others[warp][p * WARP + lane] = o[p];
      if (lane == 0) sums[warp] = sum;
      __syncthreads();
      if (warp == 0)
        for (int w = 1; w < WARPS; w++) {
          sum += sums[w];
#pragma unroll
          for (int p = 0; p < PAIRS; p++)
            o[p].x += others[w][p * WARP + lane].x, o[p].y += others[w][p * WARP + lane].y;
        }
      __syncthreads();
      if (warp) continue;
    }
    uint32_t *to = (uint32_t *)(work.problem.o + row_offset(work, work.o, batch, head, row));
    float inverse = sum > 0 ? 1 / sum : 0;
#pragma unroll
    for (int p = 0; p < PAIRS; p++) to[p * WARP + lane] = pack_bf16(o[p].x * inverse, o[p].y * inverse);
    if (lse && lane == 0) lse[row] = logf(sum) + max * LN_2;
  }
}
