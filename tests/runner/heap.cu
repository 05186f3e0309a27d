// malloc and free in kernels: memory that outlives a launch, the heap's limit, and what the host may not do with it.
#include <cuda.h>

#include "check.h"

__global__ void allocate(int **pointers) {
  int *own = new int[4];
  own[0] = threadIdx.x + blockIdx.x * blockDim.x;
  pointers[own[0]] = own;
}

__global__ void release(int **pointers, int *values) {
  int index = threadIdx.x + blockIdx.x * blockDim.x;
  values[index] = pointers[index][0];
  delete[] pointers[index];
}

__global__ void fill_heap(size_t bytes, int *count) {
  void *last[64];
  int got = 0;
  while (got < 64 && (last[got] = malloc(bytes))) got++;
  *count = got;
  while (got > 0) free(last[--got]);
}

int main() {
  const int threads = 256;
  int **pointers, *values;
  CHECK(cudaMallocManaged(&pointers, threads * sizeof *pointers));
  CHECK(cudaMallocManaged(&values, threads * sizeof *values));
  allocate<<<4, 64>>>(pointers);
  CHECK(cudaDeviceSynchronize());
  EXPECT((size_t)pointers[5] % 16 == 0 && pointers[5] != pointers[6]);
  EXPECT(cudaFree(pointers[5]) == cudaErrorInvalidValue);
  release<<<4, 64>>>(pointers, values);
  CHECK(cudaDeviceSynchronize());
  for (int i = 0; i < threads; i++) EXPECT(values[i] == i);

  fill_heap<<<1, 1>>>(1 << 20, values);
  CHECK(cudaDeviceSynchronize());
  EXPECT(values[0] == 8);
  CHECK(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 20 << 20));
  fill_heap<<<1, 1>>>(1 << 20, values);
  CHECK(cudaDeviceSynchronize());
  EXPECT(values[0] == 20);
  puts("right");
}
