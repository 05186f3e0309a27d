// There is one GPU. A program that is written for any number runs with it; calls for others return what CUDA returns
// for a device that does not exist.
#include <cuda.h>

#include "check.h"

enum { SIZE = 64 };

__global__ void add(int *values, int value) { values[threadIdx.x] += value; }

#define REFUSED(call) EXPECT((call) == cudaErrorInvalidDevice && cudaGetLastError() == cudaErrorInvalidDevice)

// Work is divided among all devices, and its parts are exchanged.
static void for_any_number() {
  int count, can, *parts[8];
  CHECK(cudaGetDeviceCount(&count));
  EXPECT(count == 1);
  for (int device = 0; device < count; device++) {
    CHECK(cudaSetDevice(device));
    for (int peer = 0; peer < count; peer++) {
      CHECK(cudaDeviceCanAccessPeer(&can, device, peer));
      EXPECT(!can);
      if (peer != device && can) CHECK(cudaDeviceEnablePeerAccess(peer, 0));
    }
    CHECK(cudaMalloc(&parts[device], SIZE * sizeof(int)));
    CHECK(cudaMemset(parts[device], 0, SIZE * sizeof(int)));
    add<<<1, SIZE>>>(parts[device], device + 7);
  }
  int *all, result[SIZE], next = 1 % count;
  CHECK(cudaMalloc(&all, 2 * SIZE * sizeof(int)));
  CHECK(cudaMemcpyPeer(all, 0, parts[next], next, SIZE * sizeof(int)));
  CHECK(cudaMemcpyPeerAsync(all + SIZE, 0, parts[next], next, SIZE * sizeof(int), nullptr));
  cudaMemcpy3DPeerParms copy = {};
  copy.srcPtr = make_cudaPitchedPtr(parts[next], 32 * sizeof(int), 32, 2);
  copy.dstPtr = make_cudaPitchedPtr(all, 32 * sizeof(int), 32, 2);
  copy.extent = make_cudaExtent(32 * sizeof(int), 2, 1);
  CHECK(cudaMemcpy3DPeer(&copy));
  CHECK(cudaMemcpy(result, all + SIZE, sizeof result, cudaMemcpyDeviceToHost));
  for (int i = 0; i < SIZE; i++) EXPECT(result[i] == 7);
}

static void others_are_refused() {
  int value, *memory, *managed;
  cudaDeviceProp properties;
  cudaMemPool_t pool;
  CHECK(cudaMalloc(&memory, 64));
  CHECK(cudaMallocManaged(&managed, 64));
  REFUSED(cudaSetDevice(1));
  CHECK(cudaGetDevice(&value));
  EXPECT(value == 0);
  REFUSED(cudaSetDevice(-1));
  REFUSED(cudaGetDeviceProperties(&properties, 1));
  REFUSED(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 1));
  REFUSED(cudaDeviceCanAccessPeer(&value, 0, 1));
  REFUSED(cudaDeviceEnablePeerAccess(1, 0));
  REFUSED(cudaDeviceEnablePeerAccess(0, 0));
  EXPECT(cudaDeviceDisablePeerAccess(0) == cudaErrorPeerAccessNotEnabled);
  REFUSED(cudaDeviceGetP2PAttribute(&value, cudaDevP2PAttrNativeAtomicSupported, 0, 1));
  REFUSED(cudaMemcpyPeer(memory, 1, memory, 0, 64));
  REFUSED(cudaMemcpyPeerAsync(memory, 0, memory, 3, 64, nullptr));
  REFUSED(cudaDeviceGetDefaultMemPool(&pool, 1));
  REFUSED(cudaDeviceGetByPCIBusId(&value, "0000:81:00.0"));
#if CUDART_VERSION >= 13000
  REFUSED(cudaMemPrefetchAsync(managed, 64, {cudaMemLocationTypeDevice, 1}, 0));
  REFUSED(cudaMemAdvise(managed, 64, cudaMemAdviseSetPreferredLocation, {cudaMemLocationTypeDevice, 1}));
  CHECK(cudaMemPrefetchAsync(managed, 64, {cudaMemLocationTypeHost, 0}, 0));
  CHECK(cudaMemPrefetchAsync(managed, 64, {cudaMemLocationTypeDevice, 0}, 0));
#else
  REFUSED(cudaMemPrefetchAsync(managed, 64, 1));
  REFUSED(cudaMemAdvise(managed, 64, cudaMemAdviseSetPreferredLocation, 1));
  CHECK(cudaMemPrefetchAsync(managed, 64, cudaCpuDeviceId));
#endif
  cudaGetLastError();
}

static void others_are_refused_by_the_driver() {
  CUdevice device;
  CUcontext context, other;
  int value;
  EXPECT(cuDeviceGetCount(&value) == CUDA_SUCCESS && value == 1);
  EXPECT(cuDeviceGet(&device, 1) == CUDA_ERROR_INVALID_DEVICE);
  EXPECT(cuDeviceTotalMem(nullptr, 1) == CUDA_ERROR_INVALID_DEVICE);
  EXPECT(cuDevicePrimaryCtxRetain(&context, 1) == CUDA_ERROR_INVALID_DEVICE);
  EXPECT(cuDeviceCanAccessPeer(&value, 1, 0) == CUDA_ERROR_INVALID_DEVICE);
  EXPECT(cuDeviceGetP2PAttribute(&value, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 0) == CUDA_ERROR_INVALID_DEVICE);
  // Two contexts of one device share its memory; they are no peers.
  EXPECT(cuCtxGetCurrent(&context) == CUDA_SUCCESS);
#if CUDA_VERSION >= 13000
  EXPECT(cuCtxCreate(&other, nullptr, 0, 0) == CUDA_SUCCESS);
#else
  EXPECT(cuCtxCreate(&other, 0, 0) == CUDA_SUCCESS);
#endif
  EXPECT(cuCtxEnablePeerAccess(context, 0) == CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
  EXPECT(cuCtxEnablePeerAccess(other, 0) == CUDA_ERROR_INVALID_CONTEXT);
  EXPECT(cuCtxDisablePeerAccess(context) == CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
  EXPECT(cuCtxDestroy(other) == CUDA_SUCCESS);
}

int main(int argc, char **) {
  for_any_number();
  if (argc > 1) {
    others_are_refused();
    others_are_refused_by_the_driver();
  }
  printf("right\n");
  return 0;
}
