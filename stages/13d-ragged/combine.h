// Heads whose tiles several workers have had. And sequences without keys, whose O is 0.
#pragma once

#include "../13-decode/reader.h"
#include "ptx/dependent.h"

#include "list.h"
#include "rows.h"

static constexpr float LN_2 = 0.693147181f;

// Grid: rows, key heads, sequences. Block: WARPS warps. A warp adds up every WARPS-th part. lse: where the caller wants
// the log-sum-exp, [batch][key head][row].
template <int HEAD_DIM, int KEYS>
__device__ void combine(const Work &work, const Leftovers &leftovers, float *lse = nullptr) {
  constexpr int PAIRS = HEAD_DIM / 2 / WARP;  // of columns, of each lane
  __shared__ float2 o[WARPS][HEAD_DIM / 2];
  __shared__ float sums[WARPS];
  int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, row = blockIdx.x, head = blockIdx.y, batch = blockIdx.z;
  int tiles = tiles_of<KEYS>(keys_of(work, batch));
  long long total = tiles_before<KEYS>(work, work.batch), busy = busy_workers(total, leftovers.workers);
  long long start = tiles_before<KEYS>(work, batch) + (long long)head * tiles;
  uint32_t *to = (uint32_t *)(work.problem.o + row_offset(work, work.o, batch, head, row));
  if (lse) lse += (size_t)(batch * work.problem.kv_heads + head) * rows_of(work) + row;
  wait_for_kernel_in_front();
  if (lse && threadIdx.x == 0 && tiles == 0) *lse = -INFINITY;
  if (tiles == 0) {
    if (threadIdx.x < HEAD_DIM / 2) to[threadIdx.x] = 0;
    return;
  }
  int first = worker_of(start, total, busy), parts = worker_of(start + tiles - 1, total, busy) - first + 1;
  if (parts == 1) return;  // the worker has written O

  // The first of the workers has left the head before its end. All others have come to it in its middle.
  auto place = [&](int part) { return (size_t)(2 * (first + part) + (part == 0)) * rows_of(work) + row; };
  float max = -INFINITY, sum = 0;
  for (int i = lane; i < parts; i += WARP) max = fmaxf(max, leftovers.lse[place(i)]);
#pragma unroll
  for (int distance = 1; distance < WARP; distance *= 2) max = fmaxf(max, __shfl_xor_sync(ALL_LANES, max, distance));

  if (max == -INFINITY) max = 0;  // a query that sees no keys, in stage 13f: all weights are 0

  float2 mine[PAIRS] = {};
#pragma unroll 4
  for (int i = warp; i < parts; i += WARPS) {
    float weight = power_of_two(leftovers.lse[place(i)] - max);
    const float2 *part = (const float2 *)(leftovers.o + place(i) * HEAD_DIM);
    sum += weight;
#pragma unroll
    for (int p = 0; p < PAIRS; p++) {
      float2 x = part[p * WARP + lane];
      mine[p].x += weight * x.x;
      mine[p].y += weight * x.y;
    }
  }
#pragma unroll
  for (int p = 0; p < PAIRS; p++) o[warp][p * WARP + lane] = mine[p];
  if (lane == 0) sums[warp] = sum;
  __syncthreads();

  if (threadIdx.x >= HEAD_DIM / 2) return;
  float2 all = {0, 0};
  sum = 0;
#pragma unroll
  for (int w = 0; w < WARPS; w++) {
    sum += sums[w];
    all.x += o[w][threadIdx.x].x;
    all.y += o[w][threadIdx.x].y;
  }
  if (lse && threadIdx.x == 0) *lse = logf(sum) + max * LN_2;
  float inverse = sum > 0 ? 1 / sum : 0;
  to[threadIdx.x] = pack_bf16(all.x * inverse, all.y * inverse);
}
