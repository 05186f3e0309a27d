// Launches, and what is asked about kernels.
#include <string.h>

#include "runtime.h"

// ---- kernel<<<grid, block, shared, stream>>>(...) ----

enum { DEPTH = 16 };
typedef struct Configuration {
  dim3 grid, block;
  size_t shared;
  cudaStream_t stream;
} Configuration;

static _Thread_local struct {
  Configuration items[DEPTH];
  int count;
} configurations;

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream);
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream) {
  if (configurations.count == DEPTH) return 1;
  configurations.items[configurations.count++] = (Configuration){grid, block, shared, stream};
  return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream);
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream) {
  if (configurations.count == 0) return cudaErrorMissingConfiguration;
  const Configuration *top = &configurations.items[--configurations.count];
  *grid = top->grid;
  *block = top->block;
  *shared = top->shared;
  memcpy(stream, &top->stream, sizeof top->stream);
  return cudaSuccess;
}

static bool is_bad(dim3 size) { return size.x == 0 || size.y == 0 || size.z == 0; }

// The runtime has an error of its own for a shape that no GPU takes.
static cudaError_t shape_error(cudaError_t error, dim3 grid, dim3 block) {
  bool bad = is_bad(grid) || is_bad(block) || (uint64_t)block.x * block.y * block.z > 1024 || block.z > 64 ||
             grid.y > 65535 || grid.z > 65535;
  return error == cudaErrorInvalidValue && bad ? cudaErrorInvalidConfiguration : error;
}

static cudaError_t launch_kernel(const void *kernel, const CUlaunchConfig *config, void **arguments) {
  CUfunction function;
  cudaError_t status = runtime_function(&function, kernel);
  if (status == cudaSuccess) status = runtime_error(cuLaunchKernelEx(config, function, arguments, NULL));
  dim3 grid = {config->gridDimX, config->gridDimY, config->gridDimZ};
  dim3 block = {config->blockDimX, config->blockDimY, config->blockDimZ};
  return runtime_result(shape_error(status, grid, block));
}

static CUlaunchConfig configuration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream) {
  return (CUlaunchConfig){.gridDimX = grid.x,
                          .gridDimY = grid.y,
                          .gridDimZ = grid.z,
                          .blockDimX = block.x,
                          .blockDimY = block.y,
                          .blockDimZ = block.z,
                          .sharedMemBytes = shared > UINT32_MAX ? UINT32_MAX : (unsigned)shared,
                          .hStream = stream};
}

API(cudaLaunchKernel,
    (const void *kernel, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t stream)) {
  CUlaunchConfig config = configuration(grid, block, shared, stream);
  return launch_kernel(kernel, &config, arguments);
}

// What CUDA 13's host code calls. A handle is the host function's address, so that nothing is loaded before main().
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *host);
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *host) {
  *kernel = (cudaKernel_t)(uintptr_t)host;
  return cudaSuccess;
}

API(__cudaLaunchKernel,
    (cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t stream)) {
  return cudaLaunchKernel(kernel, grid, block, arguments, shared, stream);
}

API(cudaLaunchCooperativeKernel,
    (const void *kernel, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t stream)) {
  CUlaunchConfig config = configuration(grid, block, shared, stream);
  config.attrs = &(CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value.cooperative = 1};
  config.numAttrs = 1;
  return launch_kernel(kernel, &config, arguments);
}

static CUlaunchConfig from_runtime(const cudaLaunchConfig_t *config) {
  CUlaunchConfig result = configuration(config->gridDim, config->blockDim, config->dynamicSmemBytes, config->stream);
  result.attrs = (CUlaunchAttribute *)(void *)config->attrs;  // laid out alike, with the same numbers
  result.numAttrs = config->numAttrs;
  return result;
}

_Static_assert(sizeof(cudaLaunchAttribute) == sizeof(CUlaunchAttribute),
               "the attributes of a launch are laid out alike");

API(cudaLaunchKernelExC, (const cudaLaunchConfig_t *config, const void *kernel, void **arguments)) {
  if (!config) return runtime_result(cudaErrorInvalidValue);
  CUlaunchConfig driver_config = from_runtime(config);
  return launch_kernel(kernel, &driver_config, arguments);
}

API(cudaLaunchHostFunc, (cudaStream_t stream, cudaHostFn_t function, void *data)) {
  return DO(cuLaunchHostFunc(stream, function, data));
}

// ---- handles ----

API(cudaGetFuncBySymbol, (cudaFunction_t * function, const void *symbol)) {
  return runtime_result(runtime_function(function, symbol));
}

API(cudaGetKernel, (cudaKernel_t * kernel, const void *symbol)) {
  return runtime_result(runtime_function((CUfunction *)kernel, symbol));
}

// Calls the driver with the function that a symbol stands for.
#define WITH_FUNCTION(kernel, call)                                                                                    \
  __extension__({                                                                                                      \
    CUfunction function;                                                                                               \
    cudaError_t found = runtime_function(&function, kernel);                                                           \
    runtime_result(found ? found : runtime_error(call));                                                               \
  })

API(cudaFuncGetName, (const char **name, const void *kernel)) {
  return WITH_FUNCTION(kernel, cuFuncGetName(name, function));
}

API(cudaFuncGetParamInfo, (const void *kernel, size_t index, size_t *offset, size_t *size)) {
  return WITH_FUNCTION(kernel, cuFuncGetParamInfo(function, index, offset, size));
}

// The attributes' numbers are the driver's.
API(cudaFuncSetAttribute, (const void *kernel, enum cudaFuncAttribute attribute, int value)) {
  return WITH_FUNCTION(kernel, cuFuncSetAttribute(function, (CUfunction_attribute)attribute, value));
}

API(cudaKernelSetAttributeForDevice, (cudaKernel_t kernel, enum cudaFuncAttribute attribute, int value, int device)) {
  (void)device;
  return cudaFuncSetAttribute(kernel, attribute, value);
}

API(cudaFuncSetCacheConfig, (const void *kernel, enum cudaFuncCache config)) {
  return WITH_FUNCTION(kernel, cuFuncSetCacheConfig(function, (CUfunc_cache)config));
}

API(cudaFuncSetSharedMemConfig, (const void *kernel, enum cudaSharedMemConfig config)) {
  return WITH_FUNCTION(kernel, cuFuncSetSharedMemConfig(function, (CUsharedconfig)config));
}

API(cudaFuncGetAttributes, (struct cudaFuncAttributes * result, const void *kernel)) {
  CUfunction function;
  cudaError_t status = runtime_function(&function, kernel);
  if (status != cudaSuccess || !result) return runtime_result(status ? status : cudaErrorInvalidValue);
  memset(result, 0, sizeof *result);
  int value;
#define GET(field, attribute)                                                                                          \
  if (cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_##attribute, function) == CUDA_SUCCESS)                             \
  result->field = (__typeof__(result->field))value
  GET(sharedSizeBytes, SHARED_SIZE_BYTES);
  GET(constSizeBytes, CONST_SIZE_BYTES);
  GET(localSizeBytes, LOCAL_SIZE_BYTES);
  GET(maxThreadsPerBlock, MAX_THREADS_PER_BLOCK);
  GET(numRegs, NUM_REGS);
  GET(ptxVersion, PTX_VERSION);
  GET(binaryVersion, BINARY_VERSION);
  GET(maxDynamicSharedSizeBytes, MAX_DYNAMIC_SHARED_SIZE_BYTES);
  GET(preferredShmemCarveout, PREFERRED_SHARED_MEMORY_CARVEOUT);
  GET(requiredClusterWidth, REQUIRED_CLUSTER_WIDTH);
  GET(requiredClusterHeight, REQUIRED_CLUSTER_HEIGHT);
  GET(requiredClusterDepth, REQUIRED_CLUSTER_DEPTH);
  GET(nonPortableClusterSizeAllowed, NON_PORTABLE_CLUSTER_SIZE_ALLOWED);
#undef GET
  return cudaSuccess;
}

// ---- occupancy ----

API(cudaOccupancyMaxActiveBlocksPerMultiprocessor, (int *blocks, const void *kernel, int threads, size_t shared)) {
  return WITH_FUNCTION(kernel, cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, threads, shared));
}

API(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
    (int *blocks, const void *kernel, int threads, size_t shared, unsigned flags)) {
  (void)flags;
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, kernel, threads, shared);
}

API(cudaOccupancyAvailableDynamicSMemPerBlock, (size_t * bytes, const void *kernel, int blocks, int threads)) {
  return WITH_FUNCTION(kernel, cuOccupancyAvailableDynamicSMemPerBlock(bytes, function, blocks, threads));
}

API(cudaOccupancyMaxPotentialClusterSize, (int *size, const void *kernel, const cudaLaunchConfig_t *config)) {
  CUlaunchConfig driver_config = from_runtime(config);
  return WITH_FUNCTION(kernel, cuOccupancyMaxPotentialClusterSize(size, function, &driver_config));
}

API(cudaOccupancyMaxActiveClusters, (int *clusters, const void *kernel, const cudaLaunchConfig_t *config)) {
  CUlaunchConfig driver_config = from_runtime(config);
  return WITH_FUNCTION(kernel, cuOccupancyMaxActiveClusters(clusters, function, &driver_config));
}

// ---- libraries ----

API(cudaLibraryLoadData, (CUlibrary * library, const void *code, void *jit, void **jit_values, unsigned jit_count,
                          void *options, void **values, unsigned count)) {
  (void)jit, (void)jit_values, (void)jit_count, (void)options, (void)values, (void)count;
  return DO(cuLibraryLoadData(library, code, NULL, NULL, 0, NULL, NULL, 0));
}

API(cudaLibraryLoadFromFile, (CUlibrary * library, const char *path, void *jit, void **jit_values, unsigned jit_count,
                              void *options, void **values, unsigned count)) {
  (void)jit, (void)jit_values, (void)jit_count, (void)options, (void)values, (void)count;
  return DO(cuLibraryLoadFromFile(library, path, NULL, NULL, 0, NULL, NULL, 0));
}

API(cudaLibraryUnload, (CUlibrary library)) { return DO(cuLibraryUnload(library)); }

API(cudaLibraryGetKernel, (cudaKernel_t * kernel, CUlibrary library, const char *name)) {
  return DO(cuLibraryGetKernel((CUkernel *)kernel, library, name));
}

API(cudaLibraryGetGlobal, (void **address, size_t *size, CUlibrary library, const char *name)) {
  return DO(cuLibraryGetGlobal((CUdeviceptr *)address, size, library, name));
}

API(cudaLibraryGetManaged, (void **address, size_t *size, CUlibrary library, const char *name)) {
  return DO(cuLibraryGetManaged((CUdeviceptr *)address, size, library, name));
}

API(cudaLibraryGetKernelCount, (unsigned *count, CUlibrary library)) {
  return DO(cuLibraryGetKernelCount(count, library));
}

API(cudaLibraryEnumerateKernels, (cudaKernel_t * kernels, unsigned count, CUlibrary library)) {
  return DO(cuLibraryEnumerateKernels((CUkernel *)kernels, count, library));
}
