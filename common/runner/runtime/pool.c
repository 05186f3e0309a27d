// Allocation in the order of a stream, and pools.
#include "runtime.h"

API(cudaMallocAsync, (void **pointer, size_t size, cudaStream_t stream)) {
  *pointer = NULL;
  return size == 0 ? cudaSuccess : DO(cuMemAllocAsync((CUdeviceptr *)pointer, size, stream));
}

API(cudaMallocFromPoolAsync, (void **pointer, size_t size, cudaMemPool_t pool, cudaStream_t stream)) {
  *pointer = NULL;
  return size == 0 ? cudaSuccess : DO(cuMemAllocFromPoolAsync((CUdeviceptr *)pointer, size, pool, stream));
}

API(cudaFreeAsync, (void *pointer, cudaStream_t stream)) {
  return DO(cuMemFreeAsync((CUdeviceptr)(uintptr_t)pointer, stream));
}

API(cudaDeviceGetDefaultMemPool, (cudaMemPool_t * pool, int device)) {
  return DO(cuDeviceGetDefaultMemPool(pool, device));
}

API(cudaDeviceGetMemPool, (cudaMemPool_t * pool, int device)) { return DO(cuDeviceGetMemPool(pool, device)); }
API(cudaDeviceSetMemPool, (int device, cudaMemPool_t pool)) { return DO(cuDeviceSetMemPool(device, pool)); }

API(cudaMemPoolCreate, (cudaMemPool_t * pool, const struct cudaMemPoolProps *properties)) {
  return DO(cuMemPoolCreate(pool, (const CUmemPoolProps *)(const void *)properties));
}

API(cudaMemPoolDestroy, (cudaMemPool_t pool)) { return DO(cuMemPoolDestroy(pool)); }
API(cudaMemPoolTrimTo, (cudaMemPool_t pool, size_t size)) { return DO(cuMemPoolTrimTo(pool, size)); }

API(cudaMemPoolSetAttribute, (cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value)) {
  return DO(cuMemPoolSetAttribute(pool, (CUmemPool_attribute)attribute, value));
}

API(cudaMemPoolGetAttribute, (cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value)) {
  return DO(cuMemPoolGetAttribute(pool, (CUmemPool_attribute)attribute, value));
}

API(cudaMemPoolSetAccess, (cudaMemPool_t pool, const struct cudaMemAccessDesc *accesses, size_t count)) {
  return DO(cuMemPoolSetAccess(pool, (const CUmemAccessDesc *)(const void *)accesses, count));
}

API(cudaMemPoolGetAccess, (enum cudaMemAccessFlags * flags, cudaMemPool_t pool, struct cudaMemLocation *location)) {
  return DO(cuMemPoolGetAccess((CUmemAccess_flags *)flags, pool, (CUmemLocation *)(void *)location));
}
