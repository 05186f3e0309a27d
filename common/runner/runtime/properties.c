// cudaDeviceProp, whose members are not the same in CUDA 12 and 13. Both versions are written down here, so that each
// stand-in can be built with the headers of the other.
#include <string.h>

#include "runtime.h"

#if RUNTIME == 12
#define ONLY_12(member) member;
#define ONLY_13(member)
#else
#define ONLY_12(member)
#define ONLY_13(member) member;
#endif

typedef struct Properties {
  char name[256];
  unsigned char uuid[16];
  char luid[8];
  unsigned luid_mask;
  size_t memory, shared;
  int registers, warp;
  size_t pitch;
  int threads, block[3], grid[3];
  ONLY_12(int clock_rate)
  size_t constant;
  int major, minor;
  size_t texture_alignment, texture_pitch_alignment;
  ONLY_12(int overlap)
  int multiprocessors;
  ONLY_12(int timeout)
  int integrated, maps_host;
  ONLY_12(int compute_mode)
  int texture_1d[2];
  ONLY_12(int texture_1d_linear)
  int texture_2d[9], texture_3d[6], texture_cube, texture_layered[7];
  int surfaces[14];
  size_t surface_alignment;
  int concurrent_kernels, ecc, pci[3], tcc, async_engines, unified_addressing;
  ONLY_12(int memory_clock_rate)
  int bus_width, l2, persisting_l2, threads_of_sm, priorities, global_l1, local_l1;
  size_t shared_of_sm;
  int registers_of_sm, managed, boards[2], host_atomics;
  ONLY_12(int double_ratio)
  int pageable, concurrent_managed, preemption, registered_pointers, cooperative;
  ONLY_12(int cooperative_multi_device)
  size_t shared_optin;
  int host_page_tables, direct_managed, blocks_of_sm, policy_window;
  size_t reserved_shared;
  int host_register, sparse, host_register_read_only, semaphores, pools, rdma;
  unsigned rdma_options;
  int rdma_ordering;
  unsigned pool_handles;
  int deferred, ipc_events, clusters, unified_pointers;
  ONLY_13(int later[7])
  int reserved[RUNTIME == 12 ? 63 : 56];
} Properties;

#if CUDA_VERSION / 1000 == RUNTIME
_Static_assert(sizeof(Properties) == sizeof(struct cudaDeviceProp), "cudaDeviceProp is laid out otherwise");
#endif

static int get(CUdevice_attribute attribute) {
  int value = 0;
  cuDeviceGetAttribute(&value, attribute, 0);
  return value;
}

#define GET(attribute) get(CU_DEVICE_ATTRIBUTE_##attribute)

static void fill_memory(Properties *p) {
  cuDeviceTotalMem_v2(&p->memory, 0);
  p->shared = (size_t)GET(MAX_SHARED_MEMORY_PER_BLOCK);
  p->shared_of_sm = (size_t)GET(MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
  p->shared_optin = (size_t)GET(MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  p->reserved_shared = (size_t)GET(RESERVED_SHARED_MEMORY_PER_BLOCK);
  p->constant = (size_t)GET(TOTAL_CONSTANT_MEMORY);
  p->pitch = (size_t)GET(MAX_PITCH);
  p->l2 = GET(L2_CACHE_SIZE);
  p->persisting_l2 = GET(MAX_PERSISTING_L2_CACHE_SIZE);
  p->policy_window = GET(MAX_ACCESS_POLICY_WINDOW_SIZE);
  p->bus_width = GET(GLOBAL_MEMORY_BUS_WIDTH);
  p->managed = GET(MANAGED_MEMORY);
  p->concurrent_managed = GET(CONCURRENT_MANAGED_ACCESS);
  p->maps_host = GET(CAN_MAP_HOST_MEMORY);
  p->registered_pointers = GET(CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM);
  p->host_register = GET(HOST_REGISTER_SUPPORTED);
  p->unified_addressing = GET(UNIFIED_ADDRESSING);
  p->pools = GET(MEMORY_POOLS_SUPPORTED);
  p->global_l1 = GET(GLOBAL_L1_CACHE_SUPPORTED);
  p->local_l1 = GET(LOCAL_L1_CACHE_SUPPORTED);
}

static void fill_launch(Properties *p) {
  p->registers = GET(MAX_REGISTERS_PER_BLOCK);
  p->registers_of_sm = GET(MAX_REGISTERS_PER_MULTIPROCESSOR);
  p->warp = GET(WARP_SIZE);
  p->threads = GET(MAX_THREADS_PER_BLOCK);
  p->threads_of_sm = GET(MAX_THREADS_PER_MULTIPROCESSOR);
  p->blocks_of_sm = GET(MAX_BLOCKS_PER_MULTIPROCESSOR);
  for (int axis = 0; axis < 3; axis++) {
    p->block[axis] = get((CUdevice_attribute)(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + axis));
    p->grid[axis] = get((CUdevice_attribute)(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + axis));
  }
  p->multiprocessors = GET(MULTIPROCESSOR_COUNT);
  p->major = GET(COMPUTE_CAPABILITY_MAJOR);
  p->minor = GET(COMPUTE_CAPABILITY_MINOR);
  p->concurrent_kernels = GET(CONCURRENT_KERNELS);
  p->async_engines = GET(ASYNC_ENGINE_COUNT);
  p->priorities = GET(STREAM_PRIORITIES_SUPPORTED);
  p->cooperative = GET(COOPERATIVE_LAUNCH);
  p->clusters = GET(CLUSTER_LAUNCH);
  p->preemption = GET(COMPUTE_PREEMPTION_SUPPORTED);
  p->unified_pointers = GET(UNIFIED_FUNCTION_POINTERS);
  p->ecc = GET(ECC_ENABLED);
  p->texture_alignment = (size_t)GET(TEXTURE_ALIGNMENT);
  p->texture_pitch_alignment = (size_t)GET(TEXTURE_PITCH_ALIGNMENT);
  p->surface_alignment = (size_t)GET(SURFACE_ALIGNMENT);
}

static cudaError_t properties(Properties *p, int device) {
  cudaError_t ready = runtime_ready();
  if (ready != cudaSuccess) return runtime_result(ready);
  if (core_device(device) != CUDA_SUCCESS) return runtime_result(cudaErrorInvalidDevice);
  memset(p, 0, sizeof *p);
  cuDeviceGetName(p->name, sizeof p->name, 0);
  fill_memory(p);
  fill_launch(p);
#if RUNTIME == 12
  p->clock_rate = GET(CLOCK_RATE);
  p->memory_clock_rate = GET(MEMORY_CLOCK_RATE);
  p->overlap = GET(GPU_OVERLAP);
  p->double_ratio = GET(SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO);
#endif
  return cudaSuccess;
}

// In CUDA 12 the header calls the newer one by the old name.
#if RUNTIME == 12
API(cudaGetDeviceProperties_v2, (Properties * result, int device)) { return properties(result, device); }
#else
API(cudaGetDeviceProperties, (Properties * result, int device)) { return properties(result, device); }
#endif
