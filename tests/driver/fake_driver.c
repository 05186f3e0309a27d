#include "fake_driver.h"

#include <cuda.h>
#include <stdio.h>
#include <string.h>

__attribute__((visibility("default"))) FakeDriver fake_driver = {.context = 1, .capability = 9};

#define TEXT(name) #name
// A function of the driver that fails when the test wants it to, and otherwise does its body.
#define DRIVER(name, parameters, body)                                                                                 \
  __attribute__((visibility("default"))) CUresult name parameters {                                                    \
    if (fake_driver.fails && !strcmp(fake_driver.fails, TEXT(name))) return (CUresult)fake_driver.result;              \
    body;                                                                                                              \
    return CUDA_SUCCESS;                                                                                               \
  }

DRIVER(cuInit, (unsigned flags), (void)flags)
DRIVER(cuDriverGetVersion, (int *version), *version = 13000)
DRIVER(cuGetErrorName, (CUresult result, const char **name), ((void)result, *name = "CUDA_ERROR_MADE_UP"))
DRIVER(cuGetErrorString, (CUresult result, const char **text), ((void)result, *text = "made up"))

// ---- one GPU ----

static CUresult attribute(int *value, CUdevice_attribute which) {
  switch (which) {
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = fake_driver.capability; break;
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *value = fake_driver.minor; break;
  case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = 132; break;
  case CU_DEVICE_ATTRIBUTE_CLOCK_RATE: *value = 1980000; break;  // kHz
  case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE: *value = 50 << 20; break;
  default: *value = 0;
  }
  return CUDA_SUCCESS;
}

DRIVER(cuDeviceGetCount, (int *count), *count = 1)
DRIVER(cuDeviceGet, (CUdevice * device, int index), *device = index)
DRIVER(cuDeviceGetName, (char *name, int size, CUdevice device),
       ((void)device, snprintf(name, (size_t)size, "Fake GPU")))
DRIVER(cuDeviceGetAttribute, (int *value, CUdevice_attribute which, CUdevice device),
       ((void)device, attribute(value, which)))
DRIVER(cuDeviceTotalMem, (size_t * size, CUdevice device), ((void)device, *size = (size_t)1 << 37))

// ---- contexts and streams: a context's handle is its id, and so is a stream's ----

DRIVER(cuDevicePrimaryCtxRetain, (CUcontext * context, CUdevice device), ((void)device, *context = (CUcontext)1))
DRIVER(cuDevicePrimaryCtxRelease, (CUdevice device), (void)device)
DRIVER(cuCtxSetCurrent, (CUcontext context), fake_driver.context = (uintptr_t)context)
DRIVER(cuCtxGetCurrent, (CUcontext * context), *context = (CUcontext)(uintptr_t)fake_driver.context)
DRIVER(cuCtxGetId, (CUcontext context, unsigned long long *id), *id = (uintptr_t)context)
DRIVER(cuCtxGetDevice, (CUdevice * device), *device = 0)
DRIVER(cuCtxSynchronize, (void), (void)0)
DRIVER(cuStreamIsCapturing, (CUstream stream, CUstreamCaptureStatus *status),
       *status = stream && stream == fake_driver.capturing ? CU_STREAM_CAPTURE_STATUS_ACTIVE
                                                           : CU_STREAM_CAPTURE_STATUS_NONE)
DRIVER(cuStreamGetId, (CUstream stream, unsigned long long *id), {
  if (stream && stream == fake_driver.capturing) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  *id = (uintptr_t)stream;
})

// ---- events: a handle is a number from 1 on ----

static CUevent new_event(void) { return (CUevent)(uintptr_t)(fake_driver.events++ % FAKE_EVENTS + 1); }

static float elapsed(CUevent start, CUevent stop) {
  return (float)(fake_driver.time[(uintptr_t)stop] - fake_driver.time[(uintptr_t)start]);
}

DRIVER(cuEventCreate, (CUevent * event, unsigned flags), ((void)flags, *event = new_event()))
DRIVER(cuEventRecord, (CUevent event, CUstream stream),
       ((void)stream, fake_driver.time[(uintptr_t)event] = fake_driver.now))
DRIVER(cuEventSynchronize, (CUevent event), (void)event)
DRIVER(cuEventElapsedTime, (float *time, CUevent start, CUevent stop), *time = elapsed(start, stop))
DRIVER(cuEventDestroy, (CUevent event), (void)event)

// ---- memory: addresses that nothing lies at ----

static CUdeviceptr allocate(size_t size) {
  if (size > fake_driver.largest) fake_driver.largest = size;
  return (CUdeviceptr)++fake_driver.allocated << 40;
}

static void note_fill(FakeFill fill) {
  if (fake_driver.fills < FAKE_FILLS) fake_driver.fill[fake_driver.fills] = fill;
  fake_driver.fills++;
}

DRIVER(cuMemGetInfo, (size_t * available, size_t *total), *available = *total = 1000)
DRIVER(cuMemAlloc, (CUdeviceptr * address, size_t size), *address = allocate(size))
DRIVER(cuMemFree, (CUdeviceptr address), ((void)address, fake_driver.freed++))
DRIVER(cuMemcpyHtoD, (CUdeviceptr to, const void *from, size_t size), ((void)to, (void)from, (void)size))
DRIVER(cuMemcpyDtoH, (void *to, CUdeviceptr from, size_t size), ((void)to, (void)from, (void)size))
DRIVER(cuMemsetD8Async, (CUdeviceptr to, unsigned char byte, size_t size, CUstream stream),
       note_fill((FakeFill){stream, to, size, byte}))

// ---- kernels: a function's handle is its name ----

static CUfunction keep_name(const char *name) {
  static char names[256][32];
  static int count;
  snprintf(names[count % 256], sizeof *names, "%s", name);
  return (CUfunction)names[count++ % 256];
}

// ARGUMENTS ends with NULL. A kernel that has fewer parameters has NULL there.
static const char *parameter_of(void **parameters, int number) {
  for (int i = 0; i < number; i++)
    if (!parameters[i]) return NULL;
  return parameters[number];
}

static void note_launch(const CUlaunchConfig *config, CUfunction function, void **parameters) {
  if (fake_driver.launches < FAKE_LAUNCHES) {
    FakeLaunch *launch = &fake_driver.launch[fake_driver.launches];
    snprintf(launch->kernel, sizeof launch->kernel, "%s", (const char *)function);
    launch->stream = config->hStream;
    memcpy(launch->grid, &config->gridDimX, sizeof launch->grid);
    memcpy(launch->block, &config->blockDimX, sizeof launch->block);
    launch->shared = config->sharedMemBytes;
    if (config->numAttrs) memcpy(launch->cluster, &config->attrs[0].value.clusterDim, sizeof launch->cluster);
    const char *parameter = parameter_of(parameters, fake_driver.parameter);
    launch->taken = 0;
    if (parameter)
      memcpy(&launch->taken, parameter + fake_driver.offset,
             fake_driver.size ? fake_driver.size : sizeof launch->taken);
  }
  const unsigned grid[3] = {config->gridDimX, config->gridDimY, config->gridDimZ};
  for (int axis = 0; axis < 3; axis++)
    if (grid[axis] > fake_driver.largest_grid[axis]) fake_driver.largest_grid[axis] = grid[axis];
  fake_driver.launches++;
}

static void note_attribute(CUfunction_attribute which, int value) {
  fake_driver.attributes++;
  fake_driver.attribute = (int)which;
  fake_driver.attribute_value = value;
}

DRIVER(cuModuleLoadData, (CUmodule * module, const void *image),
       *module = (CUmodule)(uintptr_t)(!memcmp(image, "\177ELF", 4) ? ++fake_driver.loaded : 0))
DRIVER(cuModuleUnload, (CUmodule module), ((void)module, fake_driver.unloaded++))
DRIVER(cuModuleGetFunction, (CUfunction * function, CUmodule module, const char *name),
       ((void)module, *function = keep_name(name)))
DRIVER(cuFuncSetAttribute, (CUfunction function, CUfunction_attribute which, int value),
       ((void)function, note_attribute(which, value)))
DRIVER(cuLaunchKernelEx, (const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra),
       ((void)extra, note_launch(config, function, parameters)))

// ---- tensor maps ----

static void note_map(FakeTensorMap map, const cuuint64_t *size, const cuuint64_t *stride, const cuuint32_t *box,
                     const cuuint32_t *step) {
  memcpy(map.size, size, map.rank * sizeof *size);
  memcpy(map.stride, stride, (map.rank - 1) * sizeof *stride);
  memcpy(map.box, box, map.rank * sizeof *box);
  memcpy(map.step, step, map.rank * sizeof *step);
  fake_driver.map = map;
}

DRIVER(cuTensorMapEncodeTiled,
       (CUtensorMap * map, CUtensorMapDataType type, cuuint32_t rank, void *address, const cuuint64_t *size,
        const cuuint64_t *stride, const cuuint32_t *box, const cuuint32_t *step, CUtensorMapInterleave interleave,
        CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill),
       ((void)interleave, memset(map, 0, sizeof *map),
        note_map((FakeTensorMap){.type = (int)type,
                                 .swizzle = (int)swizzle,
                                 .promotion = (int)promotion,
                                 .fill = (int)fill,
                                 .rank = rank,
                                 .address = (uintptr_t)address},
                 size, stride, box, step)))
