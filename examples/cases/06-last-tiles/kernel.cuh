// Sums of the columns of a matrix that comes in tiles of 4 rows, through a ring of three slots.
#pragma once
#include "ptx/cp_async.h"

enum { SLOTS = 3, THREADS = 128, ROWS = 4, COLUMNS = THREADS, TILE = ROWS * COLUMNS };

// Each thread copies 16 bytes; all together one tile.
static __device__ void fetch(float *slot, const float *tile) {
  cp_async((uint32_t)__cvta_generic_to_shared(slot + threadIdx.x * 4), tile + threadIdx.x * 4, 16);
}

__global__ void column_sums(const float *in, float *out, int tiles) {
  __shared__ alignas(16) float ring[SLOTS][TILE];
  for (int i = 0; i < SLOTS - 1 && i < tiles; i++) {
    fetch(ring[i], in + i * TILE);
    cp_async_commit();
  }
  float sum = 0;
  for (int i = 0; i < tiles; i++) {
    int next = i + SLOTS - 1;
    if (next < tiles) {
      fetch(ring[next % SLOTS], in + next * TILE);
      cp_async_commit();
    }
    cp_async_wait<SLOTS - 1>();  // the two newest tiles may still be on their way
    __syncthreads();
    for (int row = 0; row < ROWS; row++) sum += ring[i % SLOTS][row * COLUMNS + threadIdx.x];
    __syncthreads();
  }
  out[threadIdx.x] = sum;
}

void run_column_sums(const float *in, float *out, int tiles) { column_sums<<<1, THREADS>>>(in, out, tiles); }
