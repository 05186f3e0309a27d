// Four queries of different lengths share tiles of values. A producer warp loads the tiles into a ring by bulk copies,
// and warp w adds up the first lengths[w] values.
#pragma once
#include "ptx/fence.h"
#include "ptx/mbarrier.h"
#include "ptx/tma.h"

enum { CONSUMERS = 4, SLOTS = 2, TILE = 256 };

static __device__ uint32_t in_shared(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }

__global__ void ragged_sums(const float *values, const int *lengths, float *sums, int tiles) {
  __shared__ alignas(128) float ring[SLOTS][TILE];
  __shared__ alignas(8) uint64_t full[SLOTS], empty[SLOTS];
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (threadIdx.x == 0) {
    for (int s = 0; s < SLOTS; s++) {
      mbarrier_init(in_shared(&full[s]), 1);
      mbarrier_init(in_shared(&empty[s]), CONSUMERS);
    }
    mbarrier_fence_init();
  }
  __syncthreads();
  if (warp == CONSUMERS) {
    for (int i = 0; lane == 0 && i < tiles; i++) {
      int s = i % SLOTS, round = i / SLOTS;
      mbarrier_wait(in_shared(&empty[s]), (round & 1) ^ 1);
      mbarrier_arrive_expect(in_shared(&full[s]), sizeof ring[s]);
      bulk_load(in_shared(ring[s]), values + i * TILE, in_shared(&full[s]), sizeof ring[s]);
    }
    return;
  }
  float sum = 0;
  for (int i = 0; i < tiles; i++) {
    int s = i % SLOTS, round = i / SLOTS;
    if (i * TILE >= lengths[warp]) break;  // no more values for this query
    mbarrier_wait(in_shared(&full[s]), round & 1);
    for (int j = lane; j < TILE; j += 32)
      if (i * TILE + j < lengths[warp]) sum += ring[s][j];
    __syncwarp();
    if (lane == 0) mbarrier_arrive(in_shared(&empty[s]));
  }
  for (int step = 16; step; step /= 2) sum += __shfl_xor_sync(0xffffffff, sum, step);
  if (lane == 0) sums[warp] = sum;
}

void run_ragged_sums(const float *values, const int *lengths, float *sums, int tiles) {
  ragged_sums<<<1, 32 * (CONSUMERS + 1)>>>(values, lengths, sums, tiles);
}
