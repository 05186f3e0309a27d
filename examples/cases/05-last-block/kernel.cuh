// The sum of a vector in one launch: each block leaves a partial sum, and the block that finishes last adds them up.
#pragma once

enum { THREADS = 128 };

static __device__ float sum_of_block(float x) {
  __shared__ float sums[THREADS / 32];
  for (int step = 16; step; step /= 2) x += __shfl_xor_sync(0xffffffff, x, step);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = x;
  __syncthreads();
  x = 0;
  for (int warp = 0; warp < THREADS / 32; warp++) x += sums[warp];
  __syncthreads();
  return x;
}

__global__ void sum(const float *x, int count, float *partial, unsigned *done, float *result) {
  __shared__ bool last;
  float mine = 0;
  for (int i = blockIdx.x * THREADS + threadIdx.x; i < count; i += gridDim.x * THREADS) mine += x[i];
  mine = sum_of_block(mine);
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = mine;
    last = atomicAdd(done, 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (!last) return;
  float all = 0;
  for (int block = threadIdx.x; block < gridDim.x; block += THREADS) all += partial[block];
  all = sum_of_block(all);
  if (threadIdx.x == 0) *result = all;
}

void run_sum(const float *x, int count, int blocks, float *partial, unsigned *done, float *result) {
  sum<<<blocks, THREADS>>>(x, count, partial, done, result);
}
