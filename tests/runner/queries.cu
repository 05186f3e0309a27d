// The device says what an H100 SXM says.
#include <cstring>

#include "check.h"

__constant__ char letters[3];
__constant__ double number;

__global__ void __launch_bounds__(256, 2) bounded(int *out) {
  __shared__ int tile[256];
  tile[threadIdx.x] = threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = tile[255 - threadIdx.x] + letters[0] + (int)number;
}

int main() {
  cudaDeviceProp p;
  int value, blocks;
  CHECK(cudaGetDeviceCount(&value));
  EXPECT(value == 1);
  CHECK(cudaGetDeviceProperties(&p, 0));
  EXPECT(p.major == 9 && p.minor == 0 && p.multiProcessorCount == 132 && p.warpSize == 32);
  EXPECT(p.sharedMemPerBlockOptin == 227 * 1024 && p.sharedMemPerMultiprocessor == 228 * 1024);
  EXPECT(p.maxThreadsPerMultiProcessor == 2048 && p.regsPerBlock == 65536 && p.maxGridSize[1] == 65535);
  EXPECT(p.clusterLaunch == 1 && p.cooperativeLaunch == 1 && p.l2CacheSize == 50 << 20 && p.unifiedFunctionPointers);
  CHECK(cudaDeviceGetAttribute(&value, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
  EXPECT(value == 227 * 1024);
  EXPECT(cudaSetDevice(1) == cudaErrorInvalidDevice && cudaGetLastError() == cudaErrorInvalidDevice);
  cudaFuncAttributes attributes;
  CHECK(cudaFuncGetAttributes(&attributes, bounded));
  EXPECT(attributes.maxThreadsPerBlock == 256 && attributes.sharedSizeBytes == 1024);
  EXPECT(attributes.constSizeBytes >= 11 && attributes.constSizeBytes <= 16);
  EXPECT(attributes.numRegs <= 128 && attributes.ptxVersion == 90);
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, bounded, 256, 100 * 1024));
  EXPECT(blocks == 2);
  EXPECT(!strcmp(cudaGetErrorName(cudaErrorNotSupported), "cudaErrorNotSupported"));
  EXPECT(!strcmp(cudaGetErrorName(cudaErrorStreamCaptureUnsupported), "cudaErrorStreamCaptureUnsupported"));
  printf("%s, %d SMs\n", p.name, p.multiProcessorCount);
}
