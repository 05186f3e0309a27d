// Copies and fills between memory of any kind.
#include <stdlib.h>
#include <string.h>

#include "driver.h"

// ---- bytes in a row ----

static void say_outside(const char *function, const char *what, uint64_t address, size_t size) {
  EmulatorRange range;
  if (!emulator_find(core.emulator, address, &range)) {
    core_say("%s: %s of %zu bytes at 0x%llx, where there is no device memory (any more)", function, what, size,
             (unsigned long long)address);
    return;
  }
  core_say("%s: %s of %zu bytes at byte %llu of %s of %zu bytes", function, what, size,
           (unsigned long long)(address - range.base), range.name ? range.name : "an allocation", range.size);
}

// Whether the range begins in the emulator's own memory, which the host cannot reach.
static bool is_device_only(uint64_t address) {
  EmulatorRange range;
  return emulator_owns(core.emulator, address) || (emulator_find(core.emulator, address, &range) && !range.is_host);
}

// Pinned and managed memory has bounds, too. The bounds of the host's other memory are not known.
static bool inside(uint64_t address, size_t size) {
  const Allocation *allocation = memory_at(address);
  return !allocation || allocation->base + allocation->size - address >= size;
}

static bool copy_on_device(uint64_t to, uint64_t from, size_t size, bool *read) {
  enum { CHUNK = 1 << 20 };
  static uint8_t chunk[CHUNK];  // the lock is held
  for (size_t done = 0; done < size;) {
    size_t part = size - done < CHUNK ? size - done : CHUNK;
    *read = emulator_read(core.emulator, chunk, from + done, part);
    if (!*read || !emulator_write(core.emulator, to + done, chunk, part)) return false;
    done += part;
  }
  return true;
}

CUresult memory_copy(uint64_t to, uint64_t from, size_t size, const char *function) {
  if (size == 0) return CUDA_SUCCESS;
  if (!to || !from) {
    core_say("%s: a copy of %zu bytes %s a null pointer", function, size, to ? "from" : "to");
    return CUDA_ERROR_INVALID_VALUE;
  }
  bool to_device = is_device_only(to), from_device = is_device_only(from), read = true, done = true;
  void *to_host = (void *)(uintptr_t)to;
  const void *from_host = (const void *)(uintptr_t)from;
  if (!to_device && !inside(to, size)) {
    done = false;
  } else if (!from_device && !inside(from, size)) {
    done = read = false;
  } else if (to_device && from_device) {
    done = copy_on_device(to, from, size, &read);
  } else if (to_device) {
    done = emulator_write(core.emulator, to, from_host, size);
  } else if (from_device) {
    done = read = emulator_read(core.emulator, to_host, from, size);
  } else {
    memmove(to_host, from_host, size);
  }
  if (done) return CUDA_SUCCESS;
  say_outside(function, read ? "a write" : "a read", read ? to : from, size);
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult memory_fill(uint64_t to, uint32_t value, int size, size_t count, const char *function) {
  size_t bytes = count * (size_t)size;
  if (bytes == 0) return CUDA_SUCCESS;
  if (to % (unsigned)size) return CUDA_ERROR_INVALID_VALUE;
  bool done;
  if (size == 1) {
    done = emulator_fill(core.emulator, to, (uint8_t)value, bytes);
  } else {
    uint8_t *pattern = malloc(bytes);
    if (!pattern) return CUDA_ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; i < count; i++) memcpy(pattern + i * (size_t)size, &value, (size_t)size);
    done = emulator_write(core.emulator, to, pattern, bytes);
    free(pattern);
  }
  if (!done) say_outside(function, "a write", to, bytes);
  return done ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// ---- two and three dimensions ----

// The address of one end of a copy, from the fields that its kind of memory makes valid.
static uint64_t address_of_end(CUmemorytype type, const void *host, CUdeviceptr device) {
  return type == CU_MEMORYTYPE_HOST ? (uint64_t)(uintptr_t)host : device;
}

CUresult copy_run(const CUDA_MEMCPY3D *copy, const char *function) {
  if (copy->srcMemoryType == CU_MEMORYTYPE_ARRAY || copy->dstMemoryType == CU_MEMORYTYPE_ARRAY)
    return core_missing("a copy with a CUDA array");
  uint64_t from = address_of_end(copy->srcMemoryType, copy->srcHost, copy->srcDevice) + copy->srcXInBytes;
  uint64_t to = address_of_end(copy->dstMemoryType, copy->dstHost, copy->dstDevice) + copy->dstXInBytes;
  size_t from_height = copy->srcHeight ? copy->srcHeight : copy->Height;
  size_t to_height = copy->dstHeight ? copy->dstHeight : copy->Height;
  size_t from_pitch = copy->srcPitch ? copy->srcPitch : copy->WidthInBytes;
  size_t to_pitch = copy->dstPitch ? copy->dstPitch : copy->WidthInBytes;
  if (from_pitch < copy->WidthInBytes || to_pitch < copy->WidthInBytes) return CUDA_ERROR_INVALID_VALUE;
  bool rows = copy->Height * copy->Depth > 1;
  if (!rows && copy->Height && copy->Depth)
    return memory_copy(to + copy->dstY * to_pitch + copy->dstZ * to_height * to_pitch,
                       from + copy->srcY * from_pitch + copy->srcZ * from_height * from_pitch, copy->WidthInBytes,
                       function);
  for (size_t z = 0; z < copy->Depth; z++)
    for (size_t y = 0; y < copy->Height; y++) {
      CUresult status = memory_copy(to + ((copy->dstZ + z) * to_height + copy->dstY + y) * to_pitch,
                                    from + ((copy->srcZ + z) * from_height + copy->srcY + y) * from_pitch,
                                    copy->WidthInBytes, function);
      if (status != CUDA_SUCCESS) return status;
    }
  return CUDA_SUCCESS;
}

static CUresult do_copy(CUstream stream, const CUDA_MEMCPY3D *copy, const char *function) {
  Operation operation = {.kind = OPERATION_COPY, .function = function, .as.copy = *copy};
  return stream_do(stream, &operation);
}

// Bytes in a row between any two addresses.
static CUresult do_row(CUstream stream, uint64_t to, uint64_t from, size_t size, const char *function) {
  return do_copy(stream,
                 &(CUDA_MEMCPY3D){.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
                                  .srcDevice = from,
                                  .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
                                  .dstDevice = to,
                                  .WidthInBytes = size,
                                  .Height = 1,
                                  .Depth = 1},
                 function);
}

static CUDA_MEMCPY3D from_2d(const CUDA_MEMCPY2D *copy) {
  return (CUDA_MEMCPY3D){.srcMemoryType = copy->srcMemoryType,
                         .srcHost = copy->srcHost,
                         .srcDevice = copy->srcDevice,
                         .srcArray = copy->srcArray,
                         .srcXInBytes = copy->srcXInBytes,
                         .srcY = copy->srcY,
                         .srcPitch = copy->srcPitch,
                         .dstMemoryType = copy->dstMemoryType,
                         .dstHost = copy->dstHost,
                         .dstDevice = copy->dstDevice,
                         .dstArray = copy->dstArray,
                         .dstXInBytes = copy->dstXInBytes,
                         .dstY = copy->dstY,
                         .dstPitch = copy->dstPitch,
                         .WidthInBytes = copy->WidthInBytes,
                         .Height = copy->Height,
                         .Depth = 1};
}

#define POINTER(p) ((uint64_t)(uintptr_t)(p))

API(cuMemcpy, (CUdeviceptr to, CUdeviceptr from, size_t size)) {
  ENTER();
  return do_row(NULL, to, from, size, "memcpy");
}

API(cuMemcpyAsync, (CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream)) {
  ENTER();
  return do_row(stream, to, from, size, "memcpy");
}

API(cuMemcpyHtoD_v2, (CUdeviceptr to, const void *from, size_t size)) {
  ENTER();
  return do_row(NULL, to, POINTER(from), size, "memcpy");
}

API(cuMemcpyDtoH_v2, (void *to, CUdeviceptr from, size_t size)) {
  ENTER();
  return do_row(NULL, POINTER(to), from, size, "memcpy");
}

API(cuMemcpyDtoD_v2, (CUdeviceptr to, CUdeviceptr from, size_t size)) {
  ENTER();
  return do_row(NULL, to, from, size, "memcpy");
}

API(cuMemcpyHtoDAsync_v2, (CUdeviceptr to, const void *from, size_t size, CUstream stream)) {
  ENTER();
  return do_row(stream, to, POINTER(from), size, "memcpy");
}

API(cuMemcpyDtoHAsync_v2, (void *to, CUdeviceptr from, size_t size, CUstream stream)) {
  ENTER();
  return do_row(stream, POINTER(to), from, size, "memcpy");
}

API(cuMemcpyDtoDAsync_v2, (CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream)) {
  ENTER();
  return do_row(stream, to, from, size, "memcpy");
}

API(cuMemcpy3DPeerAsync, (const CUDA_MEMCPY3D_PEER *p, CUstream stream)) {
  ENTER();
  CUDA_MEMCPY3D copy = {.srcXInBytes = p->srcXInBytes,
                        .srcY = p->srcY,
                        .srcZ = p->srcZ,
                        .srcMemoryType = p->srcMemoryType,
                        .srcHost = p->srcHost,
                        .srcDevice = p->srcDevice,
                        .srcArray = p->srcArray,
                        .srcPitch = p->srcPitch,
                        .srcHeight = p->srcHeight,
                        .dstXInBytes = p->dstXInBytes,
                        .dstY = p->dstY,
                        .dstZ = p->dstZ,
                        .dstMemoryType = p->dstMemoryType,
                        .dstHost = p->dstHost,
                        .dstDevice = p->dstDevice,
                        .dstArray = p->dstArray,
                        .dstPitch = p->dstPitch,
                        .dstHeight = p->dstHeight,
                        .WidthInBytes = p->WidthInBytes,
                        .Height = p->Height,
                        .Depth = p->Depth};
  return do_copy(stream, &copy, "memcpy");
}

API(cuMemcpyPeer, (CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t size)) {
  ENTER();
  (void)to_context, (void)from_context;
  return do_row(NULL, to, from, size, "memcpy");
}

API(cuMemcpyPeerAsync,
    (CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t size, CUstream stream)) {
  ENTER();
  (void)to_context, (void)from_context;
  return do_row(stream, to, from, size, "memcpy");
}

// Between contexts, which share one memory.
API(cuMemcpy3DPeer, (const CUDA_MEMCPY3D_PEER *copy)) { return cuMemcpy3DPeerAsync(copy, NULL); }

API(cuMemcpy2D_v2, (const CUDA_MEMCPY2D *copy)) {
  ENTER();
  CUDA_MEMCPY3D whole = from_2d(copy);
  return do_copy(NULL, &whole, "memcpy");
}

API(cuMemcpy2DUnaligned_v2, (const CUDA_MEMCPY2D *copy)) { return cuMemcpy2D_v2(copy); }

API(cuMemcpy2DAsync_v2, (const CUDA_MEMCPY2D *copy, CUstream stream)) {
  ENTER();
  CUDA_MEMCPY3D whole = from_2d(copy);
  return do_copy(stream, &whole, "memcpy");
}

API(cuMemcpy3D_v2, (const CUDA_MEMCPY3D *copy)) {
  ENTER();
  return do_copy(NULL, copy, "memcpy");
}

API(cuMemcpy3DAsync_v2, (const CUDA_MEMCPY3D *copy, CUstream stream)) {
  ENTER();
  return do_copy(stream, copy, "memcpy");
}

// ---- fills ----

static CUresult do_fill(CUstream stream, const Fill *fill, const char *function) {
  Operation operation = {.kind = OPERATION_FILL, .function = function, .as.fill = *fill};
  return stream_do(stream, &operation);
}

#define FILLS(bits, type)                                                                                              \
  API(cuMemsetD##bits##Async, (CUdeviceptr to, type value, size_t count, CUstream stream)) {                           \
    ENTER();                                                                                                           \
    return do_fill(stream, &(Fill){to, value, bits / 8, count, 1, 0}, "memset");                                       \
  }                                                                                                                    \
  API(cuMemsetD##bits##_v2, (CUdeviceptr to, type value, size_t count)) {                                              \
    return cuMemsetD##bits##Async(to, value, count, NULL);                                                             \
  }                                                                                                                    \
  API(cuMemsetD2D##bits##Async,                                                                                        \
      (CUdeviceptr to, size_t pitch, type value, size_t width, size_t height, CUstream stream)) {                      \
    ENTER();                                                                                                           \
    return do_fill(stream, &(Fill){to, value, bits / 8, width, height, pitch}, "memset");                              \
  }                                                                                                                    \
  API(cuMemsetD2D##bits##_v2, (CUdeviceptr to, size_t pitch, type value, size_t width, size_t height)) {               \
    return cuMemsetD2D##bits##Async(to, pitch, value, width, height, NULL);                                            \
  }

FILLS(8, unsigned char)
FILLS(16, unsigned short)
FILLS(32, unsigned)
