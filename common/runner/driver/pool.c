// Allocation in the order of a stream, and its memory pools. Memory is available at once; pools have only attributes.
#include <stdlib.h>
#include <string.h>

#include "driver.h"

enum { ATTRIBUTES = 16 };

struct CUmemPoolHandle_st {
  uint64_t attributes[ATTRIBUTES];
};

static struct CUmemPoolHandle_st default_pool;
static CUmemoryPool current = &default_pool;

// ---- allocation ----

static CUresult allocate_ordered(CUdeviceptr *address, size_t size, CUstream stream) {
  uint64_t result = 0;
  if (!stream_of(stream)) return CUDA_ERROR_INVALID_HANDLE;
  if (stream_captures(stream)) return graph_memory_capture(stream, address, size);
  CUresult status = memory_allocate(MEMORY_DEVICE, size, 0, &result);
  if (status == CUDA_SUCCESS) *address = result;
  return status;
}

API(cuMemAllocAsync, (CUdeviceptr * address, size_t size, CUstream stream)) {
  ENTER();
  return allocate_ordered(address, size, stream);
}

API(cuMemAllocFromPoolAsync, (CUdeviceptr * address, size_t size, CUmemoryPool pool, CUstream stream)) {
  ENTER();
  (void)pool;
  return allocate_ordered(address, size, stream);
}

API(cuMemFreeAsync, (CUdeviceptr address, CUstream stream)) {
  ENTER();
  if (!stream_of(stream)) return CUDA_ERROR_INVALID_HANDLE;
  if (!address) return CUDA_SUCCESS;
  return stream_captures(stream) ? graph_memory_capture_free(stream, address) : memory_release(address, "free");
}

// ---- pools ----

API(cuDeviceGetDefaultMemPool, (CUmemoryPool * pool, CUdevice device)) {
  if (core_device(device) != CUDA_SUCCESS) return CUDA_ERROR_INVALID_DEVICE;
  *pool = &default_pool;
  return CUDA_SUCCESS;
}

API(cuDeviceGetMemPool, (CUmemoryPool * pool, CUdevice device)) {
  if (core_device(device) != CUDA_SUCCESS) return CUDA_ERROR_INVALID_DEVICE;
  *pool = current;
  return CUDA_SUCCESS;
}

API(cuDeviceSetMemPool, (CUdevice device, CUmemoryPool pool)) {
  if (core_device(device) != CUDA_SUCCESS) return CUDA_ERROR_INVALID_DEVICE;
  if (!pool) return CUDA_ERROR_INVALID_VALUE;
  current = pool;
  return CUDA_SUCCESS;
}

API(cuMemPoolCreate, (CUmemoryPool * pool, const CUmemPoolProps *properties)) {
  ENTER();
  (void)properties;
  *pool = calloc(1, sizeof **pool);
  return *pool ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

API(cuMemPoolDestroy, (CUmemoryPool pool)) {
  ENTER();
  if (pool == &default_pool) return CUDA_ERROR_INVALID_VALUE;
  if (current == pool) current = &default_pool;
  free(pool);
  return CUDA_SUCCESS;
}

API(cuMemPoolTrimTo, (CUmemoryPool pool, size_t size)) {
  ENTER();
  (void)pool, (void)size;
  return CUDA_SUCCESS;
}

// The first three attributes are an int, the others 64 bits.
static size_t attribute_size(CUmemPool_attribute attribute) {
  return attribute <= CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES ? sizeof(int) : sizeof(uint64_t);
}

API(cuMemPoolSetAttribute, (CUmemoryPool pool, CUmemPool_attribute attribute, void *value)) {
  ENTER();
  if ((unsigned)attribute >= ATTRIBUTES) return CUDA_ERROR_INVALID_VALUE;
  memcpy(&pool->attributes[attribute], value, attribute_size(attribute));
  return CUDA_SUCCESS;
}

API(cuMemPoolGetAttribute, (CUmemoryPool pool, CUmemPool_attribute attribute, void *value)) {
  ENTER();
  if ((unsigned)attribute >= ATTRIBUTES) return CUDA_ERROR_INVALID_VALUE;
  bool counts_use = attribute == CU_MEMPOOL_ATTR_USED_MEM_CURRENT || attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT;
  if (counts_use) pool->attributes[attribute] = memory_used();
  memcpy(value, &pool->attributes[attribute], attribute_size(attribute));
  return CUDA_SUCCESS;
}

API(cuMemPoolSetAccess, (CUmemoryPool pool, const CUmemAccessDesc *accesses, size_t count)) {
  ENTER();
  (void)pool, (void)accesses, (void)count;
  return CUDA_SUCCESS;
}

API(cuMemPoolGetAccess, (CUmemAccess_flags * flags, CUmemoryPool pool, CUmemLocation *location)) {
  ENTER();
  (void)pool, (void)location;
  *flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return CUDA_SUCCESS;
}
