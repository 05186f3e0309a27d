// Heads whose tiles several workers have had. And sequences without keys, whose O is 0.
#pragma once

#include "../13-decode/reader.h"
#include "ptx/dependent.h"

#include "list.h"
#include "rows.h"

static constexpr float LN_2 = 0.693147181f;

// A maximum to subtract. That of no parts, or of a query that sees no keys (stage 13f), is -infinity: then all weights
// are 0 with any number.
static __device__ __forceinline__ float finite(float max) { return max == -INFINITY ? 0 : max; }

// Grid: rows, key heads, sequences. Block: any number of warps up to COMBINE_WARPS. Each warp adds up its share of the
// parts: one after every `warps`. lse: where the caller wants the log-sum-exp, [batch][key head][row].
template <int HEAD_DIM, int KEYS>
__device__ void combine(const Work &work, const Leftovers &leftovers, float *lse = nullptr) {
  constexpr int PAIRS = HEAD_DIM / 2 / WARP;  // of columns, of each lane
  constexpr int AT_ONCE = 4;                  // parts that a warp has under way
  extern __shared__ float2 o[];               // [warp][pair of columns]
  __shared__ float maxima[COMBINE_WARPS], sums[COMBINE_WARPS];
  int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, warps = blockDim.x / WARP;
  int row = blockIdx.x, head = blockIdx.y, batch = blockIdx.z;
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
  for (int i = warp + lane * warps; i < parts; i += WARP * warps) max = fmaxf(max, leftovers.lse[place(i)]);
#pragma unroll
  for (int distance = 1; distance < WARP; distance *= 2) max = fmaxf(max, __shfl_xor_sync(ALL_LANES, max, distance));
  float largest = finite(max);

  float2 mine[PAIRS] = {};
  for (int i = warp; i < parts; i += AT_ONCE * warps) {
    float weight[AT_ONCE];
    float2 part[AT_ONCE][PAIRS];
#pragma unroll
    for (int n = 0; n < AT_ONCE; n++) {
      bool exists = i + n * warps < parts;
      size_t at = place(i + n * warps);
      weight[n] = exists ? leftovers.lse[at] : -INFINITY;
#pragma unroll
      for (int p = 0; p < PAIRS; p++)
        part[n][p] = exists ? ((const float2 *)(leftovers.o + at * HEAD_DIM))[p * WARP + lane] : float2{0, 0};
    }
#pragma unroll
    for (int n = 0; n < AT_ONCE; n++) {
      weight[n] = power_of_two(weight[n] - largest);
      sum += weight[n];
#pragma unroll
      for (int p = 0; p < PAIRS; p++) {
        mine[p].x += weight[n] * part[n][p].x;
        mine[p].y += weight[n] * part[n][p].y;
      }
    }
  }
#pragma unroll
  for (int p = 0; p < PAIRS; p++) o[warp * (HEAD_DIM / 2) + p * WARP + lane] = mine[p];
  if (lane == 0) maxima[warp] = max, sums[warp] = sum;
  __syncthreads();

  if (threadIdx.x >= HEAD_DIM / 2) return;
  max = -INFINITY;
  for (int w = 0; w < warps; w++) max = fmaxf(max, maxima[w]);
  largest = finite(max);
  float2 all = {0, 0};
  sum = 0;
  for (int w = 0; w < warps; w++) {
    float weight = power_of_two(maxima[w] - largest);  // of a warp without parts 0
    sum += weight * sums[w];
    float2 x = o[w * (HEAD_DIM / 2) + threadIdx.x];
    all.x += weight * x.x;
    all.y += weight * x.y;
  }
  if (lse && threadIdx.x == 0) *lse = logf(sum) + largest * LN_2;
  float inverse = sum > 0 ? 1 / sum : 0;
  to[threadIdx.x] = pack_bf16(all.x * inverse, all.y * inverse);
}
