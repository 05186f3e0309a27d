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
  *value = which == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? fake_driver.capability : 0;
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
DRIVER(cuStreamGetId, (CUstream stream, unsigned long long *id), *id = (uintptr_t)stream)
DRIVER(cuEventCreate, (CUevent * event, unsigned flags), ((void)flags, *event = (CUevent)1))
DRIVER(cuEventRecord, (CUevent event, CUstream stream), ((void)event, (void)stream))
DRIVER(cuEventSynchronize, (CUevent event), (void)event)
DRIVER(cuEventElapsedTime, (float *time, CUevent start, CUevent stop), ((void)start, (void)stop, *time = 1))
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

static void note_launch(const CUlaunchConfig *config, CUfunction function, void **parameters) {
  if (fake_driver.launches < FAKE_LAUNCHES) {
    FakeLaunch *launch = &fake_driver.launch[fake_driver.launches];
    snprintf(launch->kernel, sizeof launch->kernel, "%s", (const char *)function);
    launch->stream = config->hStream;
    memcpy(&launch->first, (const char *)parameters[0] + fake_driver.offset, sizeof launch->first);
  }
  fake_driver.launches++;
}

DRIVER(cuModuleLoadData, (CUmodule * module, const void *image),
       *module = (CUmodule)(uintptr_t)(!memcmp(image, "\177ELF", 4) ? ++fake_driver.loaded : 0))
DRIVER(cuModuleUnload, (CUmodule module), ((void)module, fake_driver.unloaded++))
DRIVER(cuModuleGetFunction, (CUfunction * function, CUmodule module, const char *name),
       ((void)module, *function = keep_name(name)))
DRIVER(cuFuncSetAttribute, (CUfunction function, CUfunction_attribute which, int value),
       ((void)function, (void)which, (void)value))
DRIVER(cuLaunchKernelEx, (const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra),
       ((void)extra, note_launch(config, function, parameters)))
DRIVER(cuTensorMapEncodeTiled,
       (CUtensorMap * map, CUtensorMapDataType type, cuuint32_t rank, void *address, const cuuint64_t *size,
        const cuuint64_t *stride, const cuuint32_t *box, const cuuint32_t *step, CUtensorMapInterleave interleave,
        CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill),
       ((void)type, (void)rank, (void)address, (void)size, (void)stride, (void)box, (void)step, (void)interleave,
        (void)swizzle, (void)promotion, (void)fill, memset(map, 0, sizeof *map)))
