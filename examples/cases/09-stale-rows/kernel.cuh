// Multiplies a vector by a factor. A block takes tiles of 256 numbers in turn, computes them into shared memory, and
// lets a bulk copy store them.
#pragma once
#include "ptx/fence.h"
#include "ptx/tma.h"

enum { TILE = 256 };

static __device__ void bulk_store(float *to, uint32_t from, int bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(from), "r"(bytes)
               : "memory");
}

__global__ void scale(const float *x, float *y, float factor, int tiles) {
  __shared__ alignas(128) float tile[TILE];
  int t = threadIdx.x;
  for (int i = blockIdx.x; i < tiles; i += gridDim.x) {
    tile[t] = x[i * TILE + t] * factor;
    __syncthreads();
    if (t == 0) {
      bulk_store(y + i * TILE, (uint32_t)__cvta_generic_to_shared(tile), sizeof tile);
      tma_store_commit();
      tma_store_wait_read<0>();  // the tile has been read, and may be overwritten
    }
    __syncthreads();
  }
  if (t == 0) tma_store_wait<0>();
}

void run_scale(const float *x, float *y, float factor, int tiles) { scale<<<2, TILE>>>(x, y, factor, tiles); }
