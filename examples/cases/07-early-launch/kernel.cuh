// Scales a vector to the range of an 8-bit integer. The second kernel is launched while the first one still runs
// (programmatic dependent launch), so that its blocks are there when the first one ends.
#pragma once
#include <cstdint>

enum { THREADS = 256 };

__global__ void find_amax(const float *x, int count, float *amax) {
  __shared__ int largest;
  cudaTriggerProgrammaticLaunchCompletion();  // the next kernel may begin
  if (threadIdx.x == 0) largest = 0;
  __syncthreads();
  for (int i = threadIdx.x; i < count; i += THREADS) atomicMax(&largest, __float_as_int(fabsf(x[i])));
  __syncthreads();
  if (threadIdx.x == 0) *amax = __int_as_float(largest);
}

__global__ void quantize(const float *x, int count, const float *amax, int8_t *q) {
  int i = blockIdx.x * THREADS + threadIdx.x;
  float scale = 127 / *amax;  // once, before the wait
  cudaGridDependencySynchronize();
  if (i < count) q[i] = (int8_t)rintf(x[i] * scale);
}

void run_quantize(const float *x, int count, float *amax, int8_t *q, cudaStream_t stream) {
  find_amax<<<1, THREADS, 0, stream>>>(x, count, amax);
  cudaLaunchAttribute early = {};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = (count + THREADS - 1) / THREADS;
  config.blockDim = THREADS;
  config.stream = stream;
  config.attrs = &early;
  config.numAttrs = 1;
  cudaLaunchKernelEx(&config, quantize, x, count, (const float *)amax, q);
}
