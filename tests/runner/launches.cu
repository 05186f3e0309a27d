// Clusters by an attribute of the launch, cooperative launches with grid.sync(), and more shared memory than 48 KiB.
#include <cooperative_groups.h>

#include "check.h"

namespace cg = cooperative_groups;

// Each block reads what the next one of its cluster has.
__global__ void exchange(int *out) {
  __shared__ int mine;
  cg::cluster_group cluster = cg::this_cluster();
  if (threadIdx.x == 0) mine = 100 + blockIdx.x;
  cluster.sync();
  int *theirs = cluster.map_shared_rank(&mine, (cluster.block_rank() + 1) % cluster.num_blocks());
  if (threadIdx.x == 0) out[blockIdx.x] = *theirs;
  cluster.sync();
}

// Each block adds what all have written before.
__global__ void sum(int *parts, int *sums, int n) {
  if (threadIdx.x == 0) parts[blockIdx.x] = blockIdx.x;
  cg::this_grid().sync();
  if (threadIdx.x != 0) return;
  int total = 0;
  for (int i = 0; i < n; i++) total += parts[i];
  sums[blockIdx.x] = total;
}

__global__ void reverse(int *values, int n) {
  extern __shared__ int shared[];
  for (int i = threadIdx.x; i < n; i += blockDim.x) shared[i] = values[i];
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) values[i] = shared[n - 1 - i];
}

static void clusters(int *out) {
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim = {4, 1, 1};
  cudaLaunchConfig_t config = {};
  config.gridDim = 8;
  config.blockDim = 32;
  config.attrs = &attribute;
  config.numAttrs = 1;
  int most = 0;
  CHECK(cudaOccupancyMaxPotentialClusterSize(&most, exchange, &config));
  EXPECT(most == 8);
  CHECK(cudaLaunchKernelEx(&config, exchange, out));
  CHECK(cudaDeviceSynchronize());
  for (int i = 0; i < 8; i++) EXPECT(out[i] == 100 + i / 4 * 4 + (i + 1) % 4);
  attribute.val.clusterDim.x = 16;
  config.gridDim = 16;
  EXPECT(cudaLaunchKernelEx(&config, exchange, out) == cudaErrorInvalidClusterSize);
  CHECK(cudaFuncSetAttribute(exchange, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
  cudaGetLastError();
  CHECK(cudaLaunchKernelEx(&config, exchange, out));
  CHECK(cudaDeviceSynchronize());
  EXPECT(out[15] == 100);
}

static void cooperative(int *parts) {
  int n = 20, *sums = parts + n;
  void *arguments[] = {&parts, &sums, &n};
  CHECK(cudaLaunchCooperativeKernel(sum, n, 64, arguments));
  CHECK(cudaDeviceSynchronize());
  for (int i = 0; i < n; i++) EXPECT(sums[i] == n * (n - 1) / 2);
  EXPECT(cudaLaunchCooperativeKernel(sum, 100000, 64, arguments) == cudaErrorCooperativeLaunchTooLarge);
  cudaGetLastError();
}

static void large_shared(int *values) {
  const int n = 20000, bytes = n * sizeof(int);
  for (int i = 0; i < n; i++) values[i] = i;
  reverse<<<1, 256, bytes>>>(values, n);
  EXPECT(cudaPeekAtLastError() == cudaErrorInvalidValue && cudaGetLastError() == cudaErrorInvalidValue);
  EXPECT(cudaGetLastError() == cudaSuccess);
  CHECK(cudaFuncSetAttribute(reverse, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  reverse<<<1, 256, bytes>>>(values, n);
  CHECK(cudaDeviceSynchronize());
  for (int i = 0; i < n; i++) EXPECT(values[i] == n - 1 - i);
  int blocks = 0;
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, reverse, 256, bytes));
  EXPECT(blocks == 2);
  EXPECT(cudaFuncSetAttribute(reverse, cudaFuncAttributeMaxDynamicSharedMemorySize, 227 * 1024 + 1) ==
         cudaErrorInvalidValue);
  cudaGetLastError();
}

int main() {
  int *memory;
  CHECK(cudaMallocManaged(&memory, 20000 * sizeof(int)));
  clusters(memory);
  cooperative(memory);
  large_shared(memory);
  printf("right\n");
}
