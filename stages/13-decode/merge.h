// The warps of a block have each read a part of the keys. What they have of a query is combined here:
//
//   max = largest of the warps' max_w       weight_w = 2^(max_w - max)
//   sum = sum of weight_w sum_w             o = (sum of weight_w o_w) / sum
//
// in the order of the warps, so that the bits are the same each time.
#pragma once

#include "reader.h"

// A block's shared memory: a ring for each warp. When a warp's loads have all been used, its O lies in its ring; a row
// has 4 floats more than columns, so that the lanes' rows begin in different banks.
struct Shared {
  char rings[WARPS][RING_BYTES];
  float max[WARPS][16], sum[WARPS][16];  // of each query
  uint64_t full[WARPS][SLOTS];
};
static_assert(sizeof(Shared) == WARPS * (RING_BYTES + 2 * 4 * 16 + 8 * SLOTS), "see launch.h");

template <int HEAD_DIM> constexpr int PITCH = HEAD_DIM + 4;
static_assert(16 * PITCH<128> * sizeof(float) <= RING_BYTES, "O of 16 queries lies in a warp's ring");

// Writes what the warp has.
template <int HEAD_DIM, int QUERIES>
__device__ void put(Shared &shared, int warp, const Reader<HEAD_DIM, QUERIES> &reader) {
  int lane = threadIdx.x % WARP;
  float *o = (float *)shared.rings[warp];
#pragma unroll
  for (int c = 0; c < QUERIES / 8; c++)
#pragma unroll
    for (int m = 0; m < HEAD_DIM / 16; m++)
#pragma unroll
      for (int i = 0; i < 4; i++)
        o[(8 * c + lane % 4 * 2 + i % 2) * PITCH<HEAD_DIM> + 16 * m + lane / 4 + i / 2 * 8] = reader.o[c][m][i];
  if (lane < 4)
#pragma unroll
    for (int c = 0; c < QUERIES / 8; c++)
#pragma unroll
      for (int h = 0; h < 2; h++) {
        shared.max[warp][8 * c + lane * 2 + h] = reader.max[c][h];
        shared.sum[warp][8 * c + lane * 2 + h] = reader.sum[c][h];
      }
}

// Two neighbouring columns of a query's O over all keys of the block, and the logarithm to base 2 of the sum of
// 2^score.
struct Merged {
  float2 o;
  float lse;
};

template <int HEAD_DIM> __device__ Merged merge(const Shared &shared, int query, int column) {
  float max = -INFINITY, sum = 0;
  float2 o = {0, 0};
#pragma unroll
  for (int w = 0; w < WARPS; w++) max = fmaxf(max, shared.max[w][query]);
#pragma unroll
  for (int w = 0; w < WARPS; w++) {
    float weight = power_of_two(shared.max[w][query] - max);  // of a warp without keys 2^-infinity, 0
    float2 part = *(const float2 *)((const float *)shared.rings[w] + query * PITCH<HEAD_DIM> + column);
    sum += weight * shared.sum[w][query];
    o.x += weight * part.x;
    o.y += weight * part.y;
  }
  float inverse = 1 / sum;
  return {{o.x * inverse, o.y * inverse}, max + log2f(sum)};
}

// All that a block does with its tiles, until each thread may call merge.
template <int HEAD_DIM, int QUERIES>
__device__ void read_tiles(Shared &shared, const Maps &maps, const Problem &problem, int batch, int head, int first,
                           int end) {
  int warp = __shfl_sync(0xffffffff, threadIdx.x / WARP, 0);  // tells ptxas that all lanes have the same
  Reader<HEAD_DIM, QUERIES> reader(maps, problem, batch, head, shared_address(shared.rings[warp]),
                                   shared_address(shared.full[warp]));
  reader.run({first + warp, end});
  put(shared, warp, reader);
  __syncthreads();
}
