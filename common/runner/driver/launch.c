// Launches. A launch that an H100 would refuse gets the same error here, and a line that says why.
#include <stdlib.h>
#include <string.h>

#include "driver.h"

enum { PORTABLE_CLUSTER = 8, MAX_CLUSTER = 16, DEFAULT_SHARED = 48 * 1024 };

static unsigned volume(const unsigned size[3]) { return size[0] * size[1] * size[2]; }

// ---- arguments ----

// What cuLaunchKernel's extra says: all parameters in one buffer.
static CUresult unpack_extra(void **extra, const void **buffer, size_t *size) {
  *buffer = NULL;
  for (int i = 0; extra[i] != CU_LAUNCH_PARAM_END; i += 2) {
    if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER)
      *buffer = extra[i + 1];
    else if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE)
      *size = *(const size_t *)extra[i + 1];
    else
      return CUDA_ERROR_INVALID_VALUE;
  }
  return *buffer ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult launch_pack(Function *function, void **arguments, void **extra, uint8_t **parameters) {
  const EmulatorModule *module = function->module->loaded;
  size_t bytes = function_info(function)->parameter_bytes;
  if (function->parameter_count && !arguments && !extra) return CUDA_ERROR_INVALID_VALUE;
  *parameters = calloc(bytes + 1, 1);
  if (!*parameters) return CUDA_ERROR_OUT_OF_MEMORY;
  if (extra && !arguments) {
    const void *buffer;
    size_t size = bytes;
    CUresult status = unpack_extra(extra, &buffer, &size);
    if (status == CUDA_SUCCESS) memcpy(*parameters, buffer, size < bytes ? size : bytes);
    return status;
  }
  for (int i = 0; i < function->parameter_count; i++)
    memcpy(*parameters + emulator_parameter_offset(module, function->name, i), arguments[i],
           emulator_parameter_size(module, function->name, i));
  return CUDA_SUCCESS;
}

Launch launch_clone(const Launch *launch) {
  Launch clone = *launch;
  clone.parameters = malloc(function_info(launch->function)->parameter_bytes + 1);
  if (clone.parameters) memcpy(clone.parameters, launch->parameters, function_info(launch->function)->parameter_bytes);
  return clone;
}

// ---- checks ----

static CUresult refuse(const Launch *launch, CUresult status, const char *why) {
  core_say("%s was not launched: %s", core_readable(launch->function->name), why);
  return status;
}

static CUresult check_shared(const Launch *launch) {
  char why[200];
  Function *function = launch->function;
  size_t whole = function_info(function)->static_shared + launch->shared;
  if (whole <= DEFAULT_SHARED) return CUDA_SUCCESS;
  if (whole > MAX_SHARED_BLOCK) {
    snprintf(why, sizeof why, "it asks for %zu bytes of shared memory, and a block has at most %d", whole,
             MAX_SHARED_BLOCK);
    return refuse(launch, CUDA_ERROR_INVALID_VALUE, why);
  }
  if (launch->shared <= function->max_dynamic_shared) return CUDA_SUCCESS;
  snprintf(why, sizeof why,
           "more than 48 KiB of shared memory (%zu bytes) need cudaFuncSetAttribute(kernel, "
           "cudaFuncAttributeMaxDynamicSharedMemorySize, %u) before",
           whole, launch->shared);
  return refuse(launch, CUDA_ERROR_INVALID_VALUE, why);
}

static CUresult check_cluster(const Launch *launch) {
  unsigned blocks = volume(launch->cluster);
  if (blocks <= 1) return CUDA_SUCCESS;
  if (blocks > MAX_CLUSTER || (blocks > PORTABLE_CLUSTER && !launch->function->large_clusters))
    return refuse(launch, CUDA_ERROR_INVALID_CLUSTER_SIZE,
                  "a cluster has at most 8 blocks, or 16 with cudaFuncAttributeNonPortableClusterSizeAllowed");
  for (int axis = 0; axis < 3; axis++)
    if (launch->grid[axis] % launch->cluster[axis])
      return refuse(launch, CUDA_ERROR_INVALID_VALUE, "the grid is not a multiple of the cluster");
  return CUDA_SUCCESS;
}

static CUresult check_launch(const Launch *launch) {
  char why[200];
  const unsigned *block = launch->block;
  uint64_t threads = (uint64_t)block[0] * block[1] * block[2];
  if (!launch->grid[0] || !launch->grid[1] || !launch->grid[2] || threads == 0)
    return refuse(launch, CUDA_ERROR_INVALID_VALUE, "a dimension of the grid or the block is 0");
  if (threads > 1024 || block[0] > 1024 || block[1] > 1024 || block[2] > 64) {
    snprintf(why, sizeof why, "a block of (%u,%u,%u) threads; at most 1024 are allowed, and 64 along z", block[0],
             block[1], block[2]);
    return refuse(launch, CUDA_ERROR_INVALID_VALUE, why);
  }
  if (launch->grid[1] > 65535 || launch->grid[2] > 65535 || launch->grid[0] > 0x7fffffff)
    return refuse(launch, CUDA_ERROR_INVALID_VALUE, "the grid has at most 65535 blocks along y and z");
  CUresult status = check_shared(launch);
  if (status == CUDA_SUCCESS) status = check_cluster(launch);
  if (status != CUDA_SUCCESS || !launch->cooperative) return status;
  uint64_t blocks = (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2];
  uint64_t room = (uint64_t)occupancy_blocks(launch->function, (int)threads, launch->shared) * SM_COUNT;
  if (blocks <= room) return CUDA_SUCCESS;
  snprintf(why, sizeof why, "a cooperative launch of %llu blocks, and only %llu fit on the GPU at a time",
           (unsigned long long)blocks, (unsigned long long)room);
  return refuse(launch, CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, why);
}

// ---- running ----

// What cudaDeviceSynchronize returns after a launch that was stopped by such a hazard.
static CUresult error_of(HazardKind kind, const char *detail) {
  switch (kind) {
  case HAZARD_OUT_OF_BOUNDS: return CUDA_ERROR_ILLEGAL_ADDRESS;
  case HAZARD_MISALIGNED: return CUDA_ERROR_MISALIGNED_ADDRESS;
  case HAZARD_TRAP: return strstr(detail, "assertion failed") ? CUDA_ERROR_ASSERT : CUDA_ERROR_LAUNCH_FAILED;
  case HAZARD_DEADLOCK:
  case HAZARD_STEP_LIMIT: return CUDA_ERROR_LAUNCH_TIMEOUT;
  default: return CUDA_ERROR_LAUNCH_FAILED;
  }
}

// The error of the hazard that stopped this launch: of those that stopped any, the one that the message is about.
static CUresult stopped_by(const EmulatorError *error) {
  int count;
  const Hazard *hazards = emulator_hazards(core.emulator, &count);
  CUresult status = CUDA_ERROR_LAUNCH_FAILED;
  for (int i = 0; i < count; i++)
    if (hazards[i].stopped && strstr(error->message, hazard_name(hazards[i].kind)))
      status = error_of(hazards[i].kind, hazards[i].detail);
  return status;
}

// Returns what the launch itself returns: a kernel that is stopped is an error of the calls that come after it.
CUresult launch_do(const Launch *launch) {
  Function *function = launch->function;
  EmulatorModule *module = function->module->loaded;
  CUresult status = check_launch(launch);
  if (status != CUDA_SUCCESS) return status;
  const void *arguments[function->parameter_count + 1];
  for (int i = 0; i < function->parameter_count; i++)
    arguments[i] = launch->parameters + emulator_parameter_offset(module, function->name, i);
  EmulatorLaunch request = {.kernel = function->name,
                            .dynamic_shared = launch->shared,
                            .arguments = arguments,
                            .argument_count = function->parameter_count,
                            .prerequisite = launch->prerequisite,
                            .cooperative = launch->cooperative};
  memcpy(request.grid, launch->grid, sizeof request.grid);
  memcpy(request.block, launch->block, sizeof request.block);
  memcpy(request.cluster, launch->cluster, sizeof request.cluster);
  EmulatorError error = {0};
  fflush(stdout);
  EmulatorStatus result = emulator_launch(core.emulator, module, &request, &error);
  fflush(stdout);
  core.launches++;
  if (result == EMULATOR_INVALID) {
    core_say("%s was not launched: %s%s", core_readable(function->name), error.message,
             error.line ? " (in its PTX)" : "");
    core.incomplete |= error.line != 0;
    return error.line ? CUDA_ERROR_INVALID_PTX : CUDA_ERROR_INVALID_VALUE;
  }
  if (result == EMULATOR_FAULT) {
    core.sticky = stopped_by(&error);
    report_stop(core_readable(function->name), &error);
  }
  report_update();
  return CUDA_SUCCESS;
}

// ---- the API ----

static CUresult launch_function(CUstream stream, Launch *launch, void **arguments, void **extra, const char *name) {
  if (!launch->function) return CUDA_ERROR_INVALID_HANDLE;
  for (int axis = 0; axis < 3; axis++)
    if (!launch->cluster[axis] && launch->function->cluster[0])
      launch->cluster[axis] = launch->function->cluster[axis] ? launch->function->cluster[axis] : 1;
  if (launch->cluster[0])
    for (int axis = 0; axis < 3; axis++) launch->cluster[axis] += launch->cluster[axis] == 0;
  CUresult status = launch_pack(launch->function, arguments, extra, &launch->parameters);
  if (status != CUDA_SUCCESS) return status;
  Operation operation = {.kind = OPERATION_LAUNCH, .function = name, .as.launch = *launch};
  return stream_do(stream, &operation);
}

#define FUNCTION(handle) ((Function *)(void *)(handle))

API(cuLaunchKernel,
    (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
     unsigned block_z, unsigned shared, CUstream stream, void **arguments, void **extra)) {
  ENTER();
  Launch request = {.function = FUNCTION(function),
                    .grid = {grid_x, grid_y, grid_z},
                    .block = {block_x, block_y, block_z},
                    .shared = shared};
  return launch_function(stream, &request, arguments, extra, "cuLaunchKernel");
}

API(cuLaunchCooperativeKernel,
    (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
     unsigned block_z, unsigned shared, CUstream stream, void **arguments)) {
  ENTER();
  Launch request = {.function = FUNCTION(function),
                    .grid = {grid_x, grid_y, grid_z},
                    .block = {block_x, block_y, block_z},
                    .shared = shared,
                    .cooperative = true};
  return launch_function(stream, &request, arguments, NULL, "cuLaunchCooperativeKernel");
}

// Attributes that only change the speed of a kernel have no effect here.
static void apply(Launch *request, const CUlaunchAttribute *attribute) {
  switch (attribute->id) {
  case CU_LAUNCH_ATTRIBUTE_COOPERATIVE: request->cooperative = attribute->value.cooperative; break;
  case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
    request->cluster[0] = attribute->value.clusterDim.x;
    request->cluster[1] = attribute->value.clusterDim.y;
    request->cluster[2] = attribute->value.clusterDim.z;
    break;
  case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
    request->programmatic = attribute->value.programmaticStreamSerializationAllowed != 0;
    break;
  default: break;
  }
}

static void record_events(const CUlaunchAttribute *attribute) {
  if (attribute->id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT)
    event_record_early(attribute->value.programmaticEvent.event);
}

API(cuLaunchKernelEx, (const CUlaunchConfig *config, CUfunction function, void **arguments, void **extra)) {
  ENTER();
  if (!config) return CUDA_ERROR_INVALID_VALUE;
  Launch request = {.function = FUNCTION(function),
                    .grid = {config->gridDimX, config->gridDimY, config->gridDimZ},
                    .block = {config->blockDimX, config->blockDimY, config->blockDimZ},
                    .shared = config->sharedMemBytes};
  for (unsigned i = 0; i < config->numAttrs; i++) apply(&request, &config->attrs[i]);
  CUresult status = launch_function(config->hStream, &request, arguments, extra, "cuLaunchKernelEx");
  for (unsigned i = 0; i < config->numAttrs && status == CUDA_SUCCESS; i++) record_events(&config->attrs[i]);
  return status;
}

API(cuLaunchHostFunc, (CUstream stream, CUhostFn function, void *data)) {
  ENTER();
  Operation operation = {.kind = OPERATION_HOST, .function = "cuLaunchHostFunc", .as.host = {function, data}};
  return stream_do(stream, &operation);
}
