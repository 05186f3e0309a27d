// The GPU behind the device interface. It loads the CUDA driver API from libcuda.so.1 at run time, so that the same
// program also starts on a machine without a driver. <cuda.h> gives types and names; no CUDA library is linked.
#include <cuda.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../emulator/emulator.h"
#include "backend.h"

// ---- the driver's functions ----

// clang-format off
#define DRIVER_FUNCTIONS(X)                                                                                       \
  X(cuInit) X(cuDriverGetVersion) X(cuGetErrorName) X(cuGetErrorString)                                           \
  X(cuDeviceGetCount) X(cuDeviceGet) X(cuDeviceGetName) X(cuDeviceGetAttribute) X(cuDeviceTotalMem)               \
  X(cuDevicePrimaryCtxRetain) X(cuDevicePrimaryCtxRelease) X(cuCtxSetCurrent) X(cuCtxSynchronize) X(cuMemGetInfo) \
  X(cuCtxGetCurrent) X(cuCtxGetId) X(cuCtxGetDevice) X(cuStreamGetId) X(cuStreamIsCapturing)                      \
  X(cuMemAlloc) X(cuMemFree) X(cuMemcpyHtoD) X(cuMemcpyDtoH) X(cuMemsetD8Async)                                   \
  X(cuModuleLoadData) X(cuModuleUnload) X(cuModuleGetFunction) X(cuFuncSetAttribute) X(cuLaunchKernelEx)          \
  X(cuTensorMapEncodeTiled)                                                                                       \
  X(cuEventCreate) X(cuEventRecord) X(cuEventSynchronize) X(cuEventElapsedTime) X(cuEventDestroy)
// clang-format on

// cuda.h renames functions to a version: cuMemAlloc is a macro for cuMemAlloc_v2. The names below go through that
// macro, so that the member, its type and the symbol looked up are all the version that the header declares.
#define MEMBER(name) __typeof__(&name) name;
typedef struct Driver {
  DRIVER_FUNCTIONS(MEMBER)
} Driver;

#define TEXT(name) #name
#define SYMBOL(name) {TEXT(name), offsetof(Driver, name)},
static const struct {
  const char *name;
  size_t offset;
} driver_symbols[] = {DRIVER_FUNCTIONS(SYMBOL)};

typedef struct Gpu {
  void *library;
  Driver driver;
  CUdevice device;
  CUcontext context;              // the GPU's primary one, retained; NULL when the context is the caller's
  unsigned long long context_id;  // of the caller's context
  CUstream stream;                // what launches and fills are queued on; NULL: the default stream
  CUevent start, stop;
} Gpu;

static bool load_driver(Gpu *gpu, DeviceError *error) {
  gpu->library = dlopen("libcuda.so.1", RTLD_NOW);
  if (!gpu->library) return device_set_error(error, DEVICE_ABSENT, "no CUDA driver: libcuda.so.1 cannot be loaded");
  for (size_t i = 0; i < sizeof driver_symbols / sizeof *driver_symbols; i++) {
    void *function = dlsym(gpu->library, driver_symbols[i].name);
    if (!function)
      return device_set_error(error, DEVICE_ABSENT, "the CUDA driver is too old: it has no %s", driver_symbols[i].name);
    memcpy((char *)&gpu->driver + driver_symbols[i].offset, &function, sizeof function);
  }
  return true;
}

// ---- errors ----

// "cuMemAlloc_v2: CUDA_ERROR_OUT_OF_MEMORY, out of memory"
static const char *result_text(const Gpu *gpu, const char *call, CUresult result, char text[256]) {
  const char *name = NULL, *sentence = NULL;
  gpu->driver.cuGetErrorName(result, &name);
  gpu->driver.cuGetErrorString(result, &sentence);
  snprintf(text, 256, "%s: %s, %s", call, name ? name : "unknown error", sentence ? sentence : "no text");
  return text;
}

static DeviceErrorCode code_of(CUresult result) {
  switch (result) {
  case CUDA_ERROR_OUT_OF_MEMORY: return DEVICE_OUT_OF_MEMORY;
  case CUDA_ERROR_INVALID_VALUE:
  case CUDA_ERROR_INVALID_IMAGE:
  case CUDA_ERROR_INVALID_PTX:
  case CUDA_ERROR_NOT_FOUND: return DEVICE_INVALID;
  case CUDA_ERROR_NO_BINARY_FOR_GPU: return DEVICE_UNSUPPORTED;
  case CUDA_ERROR_ILLEGAL_ADDRESS:
  case CUDA_ERROR_MISALIGNED_ADDRESS:
  case CUDA_ERROR_INVALID_ADDRESS_SPACE:
  case CUDA_ERROR_INVALID_PC:
  case CUDA_ERROR_ILLEGAL_INSTRUCTION:
  case CUDA_ERROR_HARDWARE_STACK_ERROR:
  case CUDA_ERROR_LAUNCH_TIMEOUT:
  case CUDA_ERROR_ASSERT:
  case CUDA_ERROR_LAUNCH_FAILED: return DEVICE_FAULT;
  default: return DEVICE_FAILED;
  }
}

// True on success; otherwise keeps the error under the name of the call.
static bool check_call(Device *device, const char *call, CUresult result) {
  if (result == CUDA_SUCCESS) return true;
  char text[256];
  return device_fail(device, code_of(result), "%s", result_text(device->state, call, result, text));
}

// Calls a driver function of `gpu` and checks it: CALL(device, cuMemFree, address) is true on success.
#define CALL(device, function, ...)                                                                                    \
  check_call(device, TEXT(function), ((Gpu *)(device)->state)->driver.function(__VA_ARGS__))

// ---- memory ----

static DeviceAddress gpu_alloc(Device *device, size_t size) {
  Gpu *gpu = device->state;
  CUdeviceptr address = 0;
  CUresult result = gpu->driver.cuMemAlloc(&address, size);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    size_t available = 0, total = 0;
    gpu->driver.cuMemGetInfo(&available, &total);
    device_fail(device, DEVICE_OUT_OF_MEMORY, "the GPU has no room for %zu bytes: %zu of %zu are free", size, available,
                total);
    return 0;
  }
  return check_call(device, "cuMemAlloc", result) ? address : 0;
}

static bool gpu_free(Device *device, DeviceAddress address) { return CALL(device, cuMemFree, address); }

static bool gpu_upload(Device *device, DeviceAddress destination, const void *source, size_t size) {
  return CALL(device, cuMemcpyHtoD, destination, source, size);
}

static bool gpu_download(Device *device, void *destination, DeviceAddress source, size_t size) {
  return CALL(device, cuMemcpyDtoH, destination, source, size);
}

static bool gpu_fill(Device *device, DeviceAddress address, uint8_t byte, size_t size) {
  return CALL(device, cuMemsetD8Async, address, byte, size, ((Gpu *)device->state)->stream);
}

// ---- kernels ----

// The stand-in for the driver that hopper-run preloads takes no cubin, only PTX.
static bool wants_ptx(CUresult result, const DeviceImage *image) {
  return result == CUDA_ERROR_NO_BINARY_FOR_GPU && image->ptx;
}

static void *gpu_load(Device *device, const DeviceImage *image) {
  const Driver *driver = &((Gpu *)device->state)->driver;
  CUmodule module = NULL;
  if (!image->cubin) device_fail(device, DEVICE_INVALID, "the GPU runs a cubin, and the image has none");
  if (!image->cubin) return NULL;
  CUresult result = driver->cuModuleLoadData(&module, image->cubin);
  if (wants_ptx(result, image)) result = driver->cuModuleLoadData(&module, image->ptx);
  return check_call(device, "cuModuleLoadData", result) ? module : NULL;
}

static void *gpu_kernel(Device *device, void *module, const char *name) {
  CUfunction function = NULL;
  CUresult result = ((Gpu *)device->state)->driver.cuModuleGetFunction(&function, module, name);
  if (result == CUDA_ERROR_NOT_FOUND) device_fail(device, DEVICE_INVALID, "the module has no kernel '%s'", name);
  return check_call(device, "cuModuleGetFunction", result) ? function : NULL;
}

// A kernel must opt in to more than 48 KiB of dynamic shared memory, and to clusters of more than 8 blocks.
static bool opt_in(Device *device, const DeviceLaunch *launch) {
  DeviceKernel *kernel = launch->kernel;
  if (launch->dynamic_shared > kernel->shared_limit) {
    if (!CALL(device, cuFuncSetAttribute, kernel->handle, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
              (int)launch->dynamic_shared))
      return false;
    kernel->shared_limit = launch->dynamic_shared;
  }
  if (launch->cluster[0] * launch->cluster[1] * launch->cluster[2] > 8 && !kernel->large_clusters) {
    if (!CALL(device, cuFuncSetAttribute, kernel->handle, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1))
      return false;
    kernel->large_clusters = true;
  }
  return true;
}

static bool gpu_launch(Device *device, const DeviceLaunch *launch, int argument_count) {
  (void)argument_count;
  if (!opt_in(device, launch)) return false;
  CUlaunchAttribute attributes[2];
  unsigned count = 0;
  if (launch->cluster[0])
    attributes[count++] = (CUlaunchAttribute){
        .id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
        .value.clusterDim = {launch->cluster[0], launch->cluster[1], launch->cluster[2]},
    };
  if (launch->early)
    attributes[count++] = (CUlaunchAttribute){
        .id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
        .value.programmaticStreamSerializationAllowed = 1,
    };
  Gpu *gpu = device->state;
  CUlaunchConfig config = {
      .gridDimX = launch->grid[0],
      .gridDimY = launch->grid[1],
      .gridDimZ = launch->grid[2],
      .blockDimX = launch->block[0],
      .blockDimY = launch->block[1],
      .blockDimZ = launch->block[2],
      .sharedMemBytes = (unsigned)launch->dynamic_shared,
      .hStream = gpu->stream,
      .attrs = attributes,
      .numAttrs = count,
  };
  CUresult result = gpu->driver.cuLaunchKernelEx(&config, launch->kernel->handle, (void **)launch->arguments, NULL);
  return check_call(device, launch->kernel->name, result);
}

static bool gpu_synchronise(Device *device) { return CALL(device, cuCtxSynchronize); }

// ---- tensor maps ----

static const CUtensorMapDataType tensor_types[] = {
    [TENSOR_MAP_U8] = CU_TENSOR_MAP_DATA_TYPE_UINT8,      [TENSOR_MAP_U16] = CU_TENSOR_MAP_DATA_TYPE_UINT16,
    [TENSOR_MAP_U32] = CU_TENSOR_MAP_DATA_TYPE_UINT32,    [TENSOR_MAP_F16] = CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
    [TENSOR_MAP_BF16] = CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, [TENSOR_MAP_F32] = CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
};

static const CUtensorMapSwizzle tensor_swizzles[] = {
    [TENSOR_SWIZZLE_NONE] = CU_TENSOR_MAP_SWIZZLE_NONE,
    [TENSOR_SWIZZLE_32B] = CU_TENSOR_MAP_SWIZZLE_32B,
    [TENSOR_SWIZZLE_64B] = CU_TENSOR_MAP_SWIZZLE_64B,
    [TENSOR_SWIZZLE_128B] = CU_TENSOR_MAP_SWIZZLE_128B,
};

static const CUtensorMapL2promotion tensor_promotions[] = {
    [TENSOR_L2_NONE] = CU_TENSOR_MAP_L2_PROMOTION_NONE,
    [TENSOR_L2_64B] = CU_TENSOR_MAP_L2_PROMOTION_L2_64B,
    [TENSOR_L2_128B] = CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
    [TENSOR_L2_256B] = CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
};

static bool gpu_tensor_map(Device *device, const TensorMapSpec *spec, TensorMap *map) {
  _Static_assert(sizeof(TensorMap) == sizeof(CUtensorMap), "a tensor map has 128 bytes");
  _Static_assert(alignof(TensorMap) >= alignof(CUtensorMap), "what holds one is as long here as in a kernel");
  cuuint64_t size[TENSOR_MAX_RANK], stride[TENSOR_MAX_RANK] = {0};
  cuuint32_t element_stride[TENSOR_MAX_RANK];
  for (int i = 0; i < spec->rank; i++) {
    size[i] = spec->size[i];
    element_stride[i] = spec->element_stride[i] ? spec->element_stride[i] : 1;
    if (i > 0) stride[i - 1] = spec->stride[i];
  }
  return CALL(device, cuTensorMapEncodeTiled, (CUtensorMap *)map, tensor_types[spec->type], (cuuint32_t)spec->rank,
              (void *)(uintptr_t)spec->address, size, stride, spec->box, element_stride, CU_TENSOR_MAP_INTERLEAVE_NONE,
              tensor_swizzles[spec->swizzle], tensor_promotions[spec->l2_promotion],
              spec->fill_nan ? CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA : CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

// ---- time ----

static bool time_work(Device *device, DeviceWork *work, void *context, double *milliseconds) {
  Gpu *gpu = device->state;
  float elapsed = 0;
  if (!CALL(device, cuEventRecord, gpu->start, NULL)) return false;
  if (!work(device, context)) return device_fail(device, DEVICE_FAILED, "the work to be timed failed");
  if (!CALL(device, cuEventRecord, gpu->stop, NULL) || !CALL(device, cuEventSynchronize, gpu->stop) ||
      !CALL(device, cuEventElapsedTime, &elapsed, gpu->start, gpu->stop))
    return false;
  *milliseconds = elapsed;
  return true;
}

// ---- what only the emulator has ----

static const Hazard *no_hazards(const Device *device, int *count) {
  (void)device;
  *count = 0;
  return NULL;
}

static bool no_counters(const Device *device, EmulatorCounters *counters) {
  return (void)device, (void)counters, false;
}

static const LineCounters *no_line_counters(const Device *device, int *count) {
  (void)device;
  *count = 0;
  return NULL;
}

static void clear_no_counters(Device *device) { (void)device; }

// ---- opening and closing ----

static void close_driver(Gpu *gpu) {
  if (gpu->start) gpu->driver.cuEventDestroy(gpu->start);
  if (gpu->stop) gpu->driver.cuEventDestroy(gpu->stop);
  if (gpu->context) gpu->driver.cuDevicePrimaryCtxRelease(gpu->device);
  if (gpu->library) dlclose(gpu->library);
  free(gpu);
}

// The driver frees remaining memory and modules with the context.
static void close_gpu(Device *device) {
  Gpu *gpu = device->state;
  for (DeviceModule *module = device->modules; module; module = module->next)
    gpu->driver.cuModuleUnload(module->handle);
  close_driver(gpu);
}

static const DeviceOperations gpu_operations = {
    .close = close_gpu,
    .alloc = gpu_alloc,
    .free = gpu_free,
    .upload = gpu_upload,
    .download = gpu_download,
    .fill = gpu_fill,
    .load = gpu_load,
    .kernel = gpu_kernel,
    .launch = gpu_launch,
    .synchronise = gpu_synchronise,
    .tensor_map = gpu_tensor_map,
    .time = time_work,
    .hazards = no_hazards,
    .counters = no_counters,
    .line_counters = no_line_counters,
    .clear_counters = clear_no_counters,
};

static int attribute(const Gpu *gpu, CUdevice device, CUdevice_attribute which) {
  int value = 0;
  gpu->driver.cuDeviceGetAttribute(&value, which, device);
  return value;
}

// sm_90a code runs only on compute capability 9.0.
static bool runs_sm_90a(const Gpu *gpu, CUdevice device) {
  return attribute(gpu, device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) == 9 &&
         attribute(gpu, device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR) == 0;
}

// The first GPU of compute capability 9.0.
static bool find_gpu(Gpu *gpu, DeviceError *error) {
  char text[256];
  CUresult result = gpu->driver.cuInit(0);
  int count = 0;
  if (result == CUDA_SUCCESS) result = gpu->driver.cuDeviceGetCount(&count);
  if (result != CUDA_SUCCESS)
    return device_set_error(error, DEVICE_ABSENT, "no GPU: %s", result_text(gpu, "cuInit", result, text));
  for (int i = 0; i < count; i++) {
    CUdevice device;
    if (gpu->driver.cuDeviceGet(&device, i) != CUDA_SUCCESS) continue;
    if (runs_sm_90a(gpu, device)) {
      gpu->device = device;
      return true;
    }
  }
  return device_set_error(error, DEVICE_ABSENT, "this machine has %d GPU%s, none of compute capability 9.0", count,
                          count == 1 ? "" : "s");
}

static bool make_current(Gpu *gpu, DeviceError *error) {
  char text[256];
  CUresult result = gpu->driver.cuDevicePrimaryCtxRetain(&gpu->context, gpu->device);
  if (result == CUDA_SUCCESS) result = gpu->driver.cuCtxSetCurrent(gpu->context);
  if (result == CUDA_SUCCESS) result = gpu->driver.cuEventCreate(&gpu->start, CU_EVENT_DEFAULT);
  if (result == CUDA_SUCCESS) result = gpu->driver.cuEventCreate(&gpu->stop, CU_EVENT_DEFAULT);
  return result == CUDA_SUCCESS ||
         device_set_error(error, code_of(result), "%s", result_text(gpu, "opening the GPU", result, text));
}

// The kernel driver's version, which the driver API does not report: the first word like "580.159.03" in the version
// line of the kernel module; "unknown" when that file is missing.
static void read_driver_version(char *version, size_t size) {
  char line[256] = "";
  FILE *file = fopen("/proc/driver/nvidia/version", "r");
  if (file) {
    if (!fgets(line, sizeof line, file)) line[0] = 0;
    fclose(file);
  }
  snprintf(version, size, "unknown");
  for (char *rest = line, *word; (word = strtok_r(rest, " \n", &rest));) {
    if (strspn(word, "0123456789.") == strlen(word) && strchr(word, '.')) {
      snprintf(version, size, "%.*s", (int)size - 1, word);
      return;
    }
  }
}

static void describe(const Gpu *gpu, DeviceInfo *info) {
  int cuda = 0;
  *info = (DeviceInfo){
      .kind = DEVICE_GPU,
      .sm_count = attribute(gpu, gpu->device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
      .sm_clock_mhz = attribute(gpu, gpu->device, CU_DEVICE_ATTRIBUTE_CLOCK_RATE) / 1000,
      .l2_size = (size_t)attribute(gpu, gpu->device, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE),
  };
  gpu->driver.cuDeviceGetName(info->name, sizeof info->name, gpu->device);
  gpu->driver.cuDeviceTotalMem(&info->memory, gpu->device);
  gpu->driver.cuDriverGetVersion(&cuda);
  snprintf(info->cuda, sizeof info->cuda, "%d.%d", cuda / 1000, cuda % 1000 / 10);
  read_driver_version(info->driver, sizeof info->driver);
}

// Makes the device's state; find says which GPU and which context it is.
static bool open_with(Device *device, bool (*find)(Gpu *gpu, DeviceError *error), DeviceError *error) {
  Gpu *gpu = calloc(1, sizeof *gpu);
  if (!gpu) return device_set_error(error, DEVICE_OUT_OF_MEMORY, "out of host memory");
  if (!load_driver(gpu, error) || !find(gpu, error)) {
    close_driver(gpu);
    return false;
  }
  device->operations = &gpu_operations;
  device->state = gpu;
  describe(gpu, &device->info);
  return true;
}

static bool enter_own_context(Gpu *gpu, DeviceError *error) { return find_gpu(gpu, error) && make_current(gpu, error); }

bool gpu_open(Device *device, DeviceError *error) { return open_with(device, enter_own_context, error); }

// ---- the caller's context ----

// The id of the current context; 0 when there is none.
static unsigned long long current_context(const Gpu *gpu) {
  CUcontext context = NULL;
  unsigned long long id = 0;
  if (gpu->driver.cuCtxGetCurrent(&context) != CUDA_SUCCESS || !context) return 0;
  return gpu->driver.cuCtxGetId(context, &id) == CUDA_SUCCESS ? id : 0;
}

static bool find_current_context(Gpu *gpu, DeviceError *error) {
  char text[256], name[96] = "GPU";
  CUresult result = gpu->driver.cuInit(0);
  if (result != CUDA_SUCCESS)
    return device_set_error(error, DEVICE_ABSENT, "no GPU: %s", result_text(gpu, "cuInit", result, text));
  gpu->context_id = current_context(gpu);
  if (!gpu->context_id) return device_set_error(error, DEVICE_INVALID, "no CUDA context is current on this thread");
  result = gpu->driver.cuCtxGetDevice(&gpu->device);
  if (result != CUDA_SUCCESS)
    return device_set_error(error, code_of(result), "%s", result_text(gpu, "cuCtxGetDevice", result, text));
  if (runs_sm_90a(gpu, gpu->device)) return true;
  gpu->driver.cuDeviceGetName(name, sizeof name, gpu->device);
  return device_set_error(error, DEVICE_ABSENT,
                          "the current context is on a %s, which does not have compute capability 9.0", name);
}

bool gpu_attach(Device *device, DeviceError *error) { return open_with(device, find_current_context, error); }

bool device_is_current(const Device *device) {
  const Gpu *gpu = device->state;
  return current_context(gpu) == gpu->context_id;
}

void device_use_stream(Device *device, void *stream) { ((Gpu *)device->state)->stream = stream; }

bool device_is_capturing(Device *device, bool *capturing) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  bool known = CALL(device, cuStreamIsCapturing, ((Gpu *)device->state)->stream, &status);
  *capturing = status != CU_STREAM_CAPTURE_STATUS_NONE;
  return known;
}

bool device_stream_id(Device *device, uint64_t *id) {
  unsigned long long number = 0;
  bool known = CALL(device, cuStreamGetId, ((Gpu *)device->state)->stream, &number);
  *id = number;
  return known;
}
