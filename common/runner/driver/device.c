// The device: programs get the answers of an H100 SXM with 80 GB, because their kernels are written for it. The
// emulator itself does not use these numbers. CUDA C++ programming guide, compute capability 9.0; the data sheet.
#include <string.h>

#include "driver.h"

static CUresult check_device(CUdevice device) {
  if (!core.initialised) return CUDA_ERROR_NOT_INITIALIZED;
  return core_device(device);
}

#define CHECK(device)                                                                                                  \
  do {                                                                                                                 \
    CUresult checked = check_device(device);                                                                           \
    if (checked != CUDA_SUCCESS) return checked;                                                                       \
  } while (0)

API(cuDeviceGetCount, (int *count)) {
  if (!core.initialised) return CUDA_ERROR_NOT_INITIALIZED;
  *count = 1;
  return CUDA_SUCCESS;
}

API(cuDeviceGet, (CUdevice * device, int ordinal)) {
  CHECK(ordinal);
  *device = 0;
  return CUDA_SUCCESS;
}

API(cuDeviceGetName, (char *name, int size, CUdevice device)) {
  CHECK(device);
  snprintf(name, (size_t)size, "%s", DEVICE_NAME);
  return CUDA_SUCCESS;
}

API(cuDeviceGetUuid, (CUuuid * uuid, CUdevice device)) {
  CHECK(device);
  memcpy(uuid->bytes, "hopper-emulator", 16);
  return CUDA_SUCCESS;
}

API(cuDeviceGetUuid_v2, (CUuuid * uuid, CUdevice device)) { return cuDeviceGetUuid(uuid, device); }

API(cuDeviceTotalMem_v2, (size_t * bytes, CUdevice device)) {
  CHECK(device);
  *bytes = DEVICE_MEMORY;
  return CUDA_SUCCESS;
}

API(cuDeviceComputeCapability, (int *major, int *minor, CUdevice device)) {
  CHECK(device);
  *major = 9;
  *minor = 0;
  return CUDA_SUCCESS;
}

API(cuDeviceGetPCIBusId, (char *id, int size, CUdevice device)) {
  CHECK(device);
  snprintf(id, (size_t)size, "00000000:00:00.0");
  return CUDA_SUCCESS;
}

// "0000:00:00.0", with or without the domain.
API(cuDeviceGetByPCIBusId, (CUdevice * device, const char *id)) {
  CHECK(0);
  if (!device || !id) return CUDA_ERROR_INVALID_VALUE;
  if (strspn(id, "0:.") != strlen(id)) return CUDA_ERROR_INVALID_DEVICE;
  *device = 0;
  return CUDA_SUCCESS;
}

API(cuDeviceCanAccessPeer, (int *can, CUdevice device, CUdevice peer)) {
  CHECK(device);
  CHECK(peer);
  *can = 0;
  return CUDA_SUCCESS;
}

// A device has no such attributes with itself.
API(cuDeviceGetP2PAttribute, (int *value, CUdevice_P2PAttribute attribute, CUdevice device, CUdevice peer)) {
  CHECK(device);
  CHECK(peer);
  (void)attribute;
  return value ? CUDA_ERROR_INVALID_DEVICE : CUDA_ERROR_INVALID_VALUE;
}

// Attributes by number; those that are not here are 0, as what an H100 lacks or the emulator does not do.
static const struct {
  CUdevice_attribute attribute;
  int value;
} attributes[] = {
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 0x7fffffff},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 48 * 1024},
    {CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 65536},
    {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
    {CU_DEVICE_ATTRIBUTE_MAX_PITCH, 0x7fffffff},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 65536},
    {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1980000},
    {CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 512},
    {CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT, 32},
    {CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT, 512},
    {CU_DEVICE_ATTRIBUTE_GPU_OVERLAP, 1},
    {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, SM_COUNT},
    {CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1},
    {CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1},
    {CU_DEVICE_ATTRIBUTE_ECC_ENABLED, 1},
    {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 2619000},
    {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 5120},
    {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 50 << 20},
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048},
    {CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 3},
    {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0},
    {CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, MAX_SHARED_SM},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536},
    {CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 1},
    {CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED, 0},
    {CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO, 2},
    {CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 1},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 1},
    {CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 1},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, MAX_SHARED_BLOCK},
    {CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 32},
    {CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE, 32768000},
    {CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE, 128 << 20},
    {CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, RESERVED_SHARED},
    {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, 1},
    {CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS, 1},
};

API(cuDeviceGetAttribute, (int *value, CUdevice_attribute attribute, CUdevice device)) {
  CHECK(device);
  if (!value || attribute < 1 || attribute > 200) return CUDA_ERROR_INVALID_VALUE;
  *value = 0;
  for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++)
    if (attributes[i].attribute == attribute) *value = attributes[i].value;
  return CUDA_SUCCESS;
}
