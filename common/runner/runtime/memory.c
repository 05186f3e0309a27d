// Memory and copies.
#include "runtime.h"

#define ADDRESS(pointer) ((CUdeviceptr)(uintptr_t)(pointer))

API(cudaMalloc, (void **pointer, size_t size)) {
  if (!pointer) return runtime_result(cudaErrorInvalidValue);
  *pointer = NULL;
  return size == 0 ? cudaSuccess : DO(cuMemAlloc_v2((CUdeviceptr *)pointer, size));
}

API(cudaMallocManaged, (void **pointer, size_t size, unsigned flags)) {
  if (!pointer) return runtime_result(cudaErrorInvalidValue);
  return DO(cuMemAllocManaged((CUdeviceptr *)pointer, size, flags));
}

API(cudaMallocPitch, (void **pointer, size_t *pitch, size_t width, size_t height)) {
  return DO(cuMemAllocPitch_v2((CUdeviceptr *)pointer, pitch, width, height, 16));
}

API(cudaMalloc3D, (struct cudaPitchedPtr * result, struct cudaExtent extent)) {
  *result = (struct cudaPitchedPtr){.xsize = extent.width, .ysize = extent.height};
  return cudaMallocPitch(&result->ptr, &result->pitch, extent.width, extent.height * extent.depth);
}

API(cudaFree, (void *pointer)) { return DO(cuMemFree_v2(ADDRESS(pointer))); }

API(cudaHostAlloc, (void **pointer, size_t size, unsigned flags)) {
  if (!pointer) return runtime_result(cudaErrorInvalidValue);
  *pointer = NULL;
  return size == 0 ? cudaSuccess : DO(cuMemHostAlloc(pointer, size, flags));
}

API(cudaMallocHost, (void **pointer, size_t size)) { return cudaHostAlloc(pointer, size, 0); }
API(cudaFreeHost, (void *pointer)) { return DO(cuMemFreeHost(pointer)); }

API(cudaHostRegister, (void *pointer, size_t size, unsigned flags)) {
  return DO(cuMemHostRegister_v2(pointer, size, flags));
}

API(cudaHostUnregister, (void *pointer)) { return DO(cuMemHostUnregister(pointer)); }

API(cudaHostGetDevicePointer, (void **device, void *host, unsigned flags)) {
  return DO(cuMemHostGetDevicePointer_v2((CUdeviceptr *)device, host, flags));
}

API(cudaHostGetFlags, (unsigned *flags, void *host)) { return DO(cuMemHostGetFlags(flags, host)); }
API(cudaMemGetInfo, (size_t * left, size_t *total)) { return DO(cuMemGetInfo_v2(left, total)); }

// The kind of memory that a pointer leads to. An unknown pointer is ordinary host memory, and not an error.
API(cudaPointerGetAttributes, (struct cudaPointerAttributes * result, const void *pointer)) {
  unsigned type = 0, managed = 0;
  if (!result) return runtime_result(cudaErrorInvalidValue);
  *result = (struct cudaPointerAttributes){.type = cudaMemoryTypeUnregistered, .device = -2};
  cudaError_t ready = runtime_ready();
  if (ready != cudaSuccess) return runtime_result(ready);
  if (cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, ADDRESS(pointer)) != CUDA_SUCCESS)
    return cudaSuccess;
  cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, ADDRESS(pointer));
  result->device = 0;
  result->devicePointer = (void *)(uintptr_t)pointer;
  if (managed || type == CU_MEMORYTYPE_HOST) result->hostPointer = (void *)(uintptr_t)pointer;
  result->type = managed                      ? cudaMemoryTypeManaged
                 : type == CU_MEMORYTYPE_HOST ? cudaMemoryTypeHost
                                              : cudaMemoryTypeDevice;
  return cudaSuccess;
}

// ---- copies ----

// Of any other error the copy itself reports.
static bool is_known_pointer(const void *pointer) {
  unsigned type = 0;
  return cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, ADDRESS(pointer)) != CUDA_ERROR_INVALID_VALUE;
}

// The direction must fit the pointers, as far as they are known; cudaMemcpyDefault takes what they are.
static cudaError_t check_direction(const void *to, const void *from, size_t size, enum cudaMemcpyKind kind) {
  if ((unsigned)kind > cudaMemcpyDefault) return cudaErrorInvalidMemcpyDirection;
  cudaError_t ready = runtime_ready();
  if (ready != cudaSuccess || size == 0 || kind == cudaMemcpyDefault) return ready;
  bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  if ((to_device && !is_known_pointer(to)) || (from_device && !is_known_pointer(from))) {
    core_say("cudaMemcpy: %s is not device memory, although the direction of the copy says so",
             to_device && !is_known_pointer(to) ? "the destination" : "the source");
    return cudaErrorInvalidValue;
  }
  return cudaSuccess;
}

API(cudaMemcpyAsync, (void *to, const void *from, size_t size, enum cudaMemcpyKind kind, cudaStream_t stream)) {
  cudaError_t status = check_direction(to, from, size, kind);
  if (status != cudaSuccess) return runtime_result(status);
  return DO(cuMemcpyAsync(ADDRESS(to), ADDRESS(from), size, stream));
}

API(cudaMemcpy, (void *to, const void *from, size_t size, enum cudaMemcpyKind kind)) {
  return cudaMemcpyAsync(to, from, size, kind, NULL);
}

static bool no_devices(int to, int from) {
  return core_device(to) != CUDA_SUCCESS || core_device(from) != CUDA_SUCCESS;
}

API(cudaMemcpyPeer, (void *to, int to_device, const void *from, int from_device, size_t size)) {
  if (no_devices(to_device, from_device)) return runtime_result(cudaErrorInvalidDevice);
  return DO(cuMemcpy(ADDRESS(to), ADDRESS(from), size));
}

API(cudaMemcpyPeerAsync,
    (void *to, int to_device, const void *from, int from_device, size_t size, cudaStream_t stream)) {
  if (no_devices(to_device, from_device)) return runtime_result(cudaErrorInvalidDevice);
  return DO(cuMemcpyAsync(ADDRESS(to), ADDRESS(from), size, stream));
}

API(cudaMemcpy2DAsync, (void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                        enum cudaMemcpyKind kind, cudaStream_t stream)) {
  cudaError_t status = check_direction(to, from, width * height, kind);
  if (status != cudaSuccess) return runtime_result(status);
  if (width > to_pitch || width > from_pitch) return runtime_result(cudaErrorInvalidPitchValue);
  CUDA_MEMCPY2D copy = {.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
                        .srcDevice = ADDRESS(from),
                        .srcPitch = from_pitch,
                        .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
                        .dstDevice = ADDRESS(to),
                        .dstPitch = to_pitch,
                        .WidthInBytes = width,
                        .Height = height};
  return DO(cuMemcpy2DAsync_v2(&copy, stream));
}

API(cudaMemcpy2D, (void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                   enum cudaMemcpyKind kind)) {
  return cudaMemcpy2DAsync(to, to_pitch, from, from_pitch, width, height, kind, NULL);
}

API(cudaMemcpy3DAsync, (const struct cudaMemcpy3DParms *p, cudaStream_t stream)) {
  if (!p || p->srcArray || p->dstArray)
    return runtime_result(runtime_error(core_missing("cudaMemcpy3D with an array")));
  CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
                        .srcDevice = ADDRESS(p->srcPtr.ptr),
                        .srcPitch = p->srcPtr.pitch,
                        .srcHeight = p->srcPtr.ysize,
                        .srcXInBytes = p->srcPos.x,
                        .srcY = p->srcPos.y,
                        .srcZ = p->srcPos.z,
                        .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
                        .dstDevice = ADDRESS(p->dstPtr.ptr),
                        .dstPitch = p->dstPtr.pitch,
                        .dstHeight = p->dstPtr.ysize,
                        .dstXInBytes = p->dstPos.x,
                        .dstY = p->dstPos.y,
                        .dstZ = p->dstPos.z,
                        .WidthInBytes = p->extent.width,
                        .Height = p->extent.height,
                        .Depth = p->extent.depth};
  return DO(cuMemcpy3DAsync_v2(&copy, stream));
}

API(cudaMemcpy3D, (const struct cudaMemcpy3DParms *parameters)) { return cudaMemcpy3DAsync(parameters, NULL); }

API(cudaMemcpy3DPeerAsync, (const struct cudaMemcpy3DPeerParms *p, cudaStream_t stream)) {
  if (no_devices(p->dstDevice, p->srcDevice)) return runtime_result(cudaErrorInvalidDevice);
  struct cudaMemcpy3DParms copy = {.srcArray = p->srcArray,
                                   .srcPos = p->srcPos,
                                   .srcPtr = p->srcPtr,
                                   .dstArray = p->dstArray,
                                   .dstPos = p->dstPos,
                                   .dstPtr = p->dstPtr,
                                   .extent = p->extent};
  return cudaMemcpy3DAsync(&copy, stream);
}

API(cudaMemcpy3DPeer, (const struct cudaMemcpy3DPeerParms *parameters)) {
  return cudaMemcpy3DPeerAsync(parameters, NULL);
}

// ---- fills ----

API(cudaMemsetAsync, (void *pointer, int value, size_t size, cudaStream_t stream)) {
  return DO(cuMemsetD8Async(ADDRESS(pointer), (unsigned char)value, size, stream));
}

API(cudaMemset, (void *pointer, int value, size_t size)) { return cudaMemsetAsync(pointer, value, size, NULL); }

API(cudaMemset2DAsync, (void *pointer, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream)) {
  return DO(cuMemsetD2D8Async(ADDRESS(pointer), pitch, (unsigned char)value, width, height, stream));
}

API(cudaMemset2D, (void *pointer, size_t pitch, int value, size_t width, size_t height)) {
  return cudaMemset2DAsync(pointer, pitch, value, width, height, NULL);
}

API(cudaMemset3DAsync, (struct cudaPitchedPtr pointer, int value, struct cudaExtent extent, cudaStream_t stream)) {
  cudaError_t status = cudaSuccess;
  for (size_t z = 0; z < extent.depth && status == cudaSuccess; z++)
    status = cudaMemset2DAsync((char *)pointer.ptr + z * pointer.ysize * pointer.pitch, pointer.pitch, value,
                               extent.width, extent.height, stream);
  return status;
}

API(cudaMemset3D, (struct cudaPitchedPtr pointer, int value, struct cudaExtent extent)) {
  return cudaMemset3DAsync(pointer, value, extent, NULL);
}

// ---- hints. CUDA 13 names a place where CUDA 12 names a device ----

#define ADVISE (const void *pointer, size_t size, enum cudaMemoryAdvise advice, struct cudaMemLocation location)
#define CALL_ADVISE                                                                                                    \
  DO(cuMemAdvise_v2(ADDRESS(pointer), size, (CUmem_advise)advice, *(CUmemLocation *)(void *)&location))
#define PREFETCH                                                                                                       \
  (const void *pointer, size_t size, struct cudaMemLocation location, unsigned flags, cudaStream_t stream)
#define CALL_PREFETCH                                                                                                  \
  DO(cuMemPrefetchAsync_v2(ADDRESS(pointer), size, *(CUmemLocation *)(void *)&location, flags, stream))

#if RUNTIME == 12
API(cudaMemAdvise, (const void *pointer, size_t size, enum cudaMemoryAdvise advice, int device)) {
  return DO(cuMemAdvise(ADDRESS(pointer), size, (CUmem_advise)advice, device));
}

API(cudaMemPrefetchAsync, (const void *pointer, size_t size, int device, cudaStream_t stream)) {
  return DO(cuMemPrefetchAsync(ADDRESS(pointer), size, device, stream));
}

API(cudaMemAdvise_v2, ADVISE) { return CALL_ADVISE; }
API(cudaMemPrefetchAsync_v2, PREFETCH) { return CALL_PREFETCH; }
#else
API(cudaMemAdvise, ADVISE) { return CALL_ADVISE; }
API(cudaMemPrefetchAsync, PREFETCH) { return CALL_PREFETCH; }
#endif

API(cudaStreamAttachMemAsync, (cudaStream_t stream, void *pointer, size_t size, unsigned flags)) {
  return DO(cuStreamAttachMemAsync(stream, ADDRESS(pointer), size, flags));
}

// ---- arrays are missing; what only describes one is not ----

struct cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, enum cudaChannelFormatKind kind);
struct cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, enum cudaChannelFormatKind kind) {
  return (struct cudaChannelFormatDesc){x, y, z, w, kind};
}
