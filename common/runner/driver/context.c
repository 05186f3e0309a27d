// Contexts: one device, whose primary context and any others share one memory. A thread has a stack of them.
#include <stdlib.h>
#include <string.h>

#include "driver.h"

enum { DEPTH = 64 };

struct CUctx_st {
  unsigned flags;
  bool is_primary;
  uint64_t id;
  unsigned attached;  // by cuCtxAttach
};

static struct CUctx_st primary = {.is_primary = true, .id = 1};
static unsigned primary_users;
static _Thread_local struct {
  CUcontext items[DEPTH];
  int count;
} context_stack;

CUcontext context_current(void) { return context_stack.count ? context_stack.items[context_stack.count - 1] : NULL; }

static CUresult push(CUcontext context) {
  if (!context) return CUDA_ERROR_INVALID_CONTEXT;
  if (context_stack.count == DEPTH) return CUDA_ERROR_OUT_OF_MEMORY;
  context_stack.items[context_stack.count++] = context;
  return CUDA_SUCCESS;
}

API(cuInit, (unsigned flags)) {
  LOCK();
  (void)locked;
  return flags ? CUDA_ERROR_INVALID_VALUE : core_init();
}

API(cuDriverGetVersion, (int *version)) {
  if (!version) return CUDA_ERROR_INVALID_VALUE;
  *version = 13000;
  return CUDA_SUCCESS;
}

// ---- contexts of the program's own ----

static CUresult create_context(CUcontext *context, unsigned flags, CUdevice device) {
  static uint64_t last_id = 1;
  LOCK();
  if (!locked->initialised) return CUDA_ERROR_NOT_INITIALIZED;
  if (!context) return CUDA_ERROR_INVALID_VALUE;
  if (core_device(device) != CUDA_SUCCESS) return CUDA_ERROR_INVALID_DEVICE;
  *context = calloc(1, sizeof **context);
  if (!*context) return CUDA_ERROR_OUT_OF_MEMORY;
  **context = (struct CUctx_st){.flags = flags, .id = ++last_id};
  return push(*context);
}

API(cuCtxCreate_v2, (CUcontext * context, unsigned flags, CUdevice device)) {
  return create_context(context, flags, device);
}

CUresult cuCtxCreate_v3(CUcontext *context, CUexecAffinityParam *affinity, int count, unsigned flags, CUdevice device) {
  (void)affinity;
  return count ? core_missing("cuCtxCreate with an affinity") : create_context(context, flags, device);
}

struct CUctxCreateParams_st;
CUresult cuCtxCreate_v4(CUcontext *context, struct CUctxCreateParams_st *parameters, unsigned flags, CUdevice device) {
  (void)parameters;
  return create_context(context, flags, device);
}

API(cuCtxDestroy_v2, (CUcontext context)) {
  LOCK();
  if (!locked->initialised) return CUDA_ERROR_NOT_INITIALIZED;
  if (!context || context->is_primary) return CUDA_ERROR_INVALID_CONTEXT;
  if (context_stack.count && context_stack.items[context_stack.count - 1] == context) context_stack.count--;
  locked->sticky = CUDA_SUCCESS;
  free(context);
  return CUDA_SUCCESS;
}

// The context counts its uses, as programs of CUDA 3 and PyCUDA let it do.
API(cuCtxAttach, (CUcontext * context, unsigned flags)) {
  ENTER();
  if (!context || flags) return CUDA_ERROR_INVALID_VALUE;
  *context = context_current();
  (*context)->attached++;
  return CUDA_SUCCESS;
}

API(cuCtxDetach, (CUcontext context)) {
  if (!context || !context->attached) return cuCtxDestroy_v2(context);
  context->attached--;
  return CUDA_SUCCESS;
}

API(cuCtxPushCurrent_v2, (CUcontext context)) { return push(context); }

API(cuCtxPopCurrent_v2, (CUcontext * context)) {
  if (!context_stack.count) return CUDA_ERROR_INVALID_CONTEXT;
  context_stack.count--;
  if (context) *context = context_stack.items[context_stack.count];
  return CUDA_SUCCESS;
}

API(cuCtxSetCurrent, (CUcontext context)) {
  if (context_stack.count) context_stack.count--;
  return context ? push(context) : CUDA_SUCCESS;
}

API(cuCtxGetCurrent, (CUcontext * context)) {
  if (!core.initialised) return CUDA_ERROR_NOT_INITIALIZED;
  if (!context) return CUDA_ERROR_INVALID_VALUE;
  *context = context_current();
  return CUDA_SUCCESS;
}

API(cuCtxGetDevice, (CUdevice * device)) {
  if (!context_current()) return CUDA_ERROR_INVALID_CONTEXT;
  *device = 0;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice_v2(CUdevice *device, CUcontext context) {
  if (!context) return cuCtxGetDevice(device);
  *device = 0;
  return CUDA_SUCCESS;
}

API(cuCtxGetFlags, (unsigned *flags)) {
  if (!context_current()) return CUDA_ERROR_INVALID_CONTEXT;
  *flags = context_current()->flags;
  return CUDA_SUCCESS;
}

API(cuCtxGetId, (CUcontext context, unsigned long long *id)) {
  if (!context) context = context_current();
  if (!context) return CUDA_ERROR_INVALID_CONTEXT;
  *id = context->id;
  return CUDA_SUCCESS;
}

API(cuCtxGetApiVersion, (CUcontext context, unsigned *version)) {
  (void)context;
  *version = 3020;
  return CUDA_SUCCESS;
}

API(cuCtxSynchronize, (void)) {
  ENTER();
  stream_settle();
  return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize_v2(CUcontext context) {
  (void)context;
  return cuCtxSynchronize();
}

// ---- other devices, of which there is none ----

API(cuCtxEnablePeerAccess, (CUcontext peer, unsigned flags)) {
  ENTER();
  if (flags) return CUDA_ERROR_INVALID_VALUE;
  return !peer || peer == context_current() ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
}

API(cuCtxDisablePeerAccess, (CUcontext peer)) {
  ENTER();
  return peer ? CUDA_ERROR_PEER_ACCESS_NOT_ENABLED : CUDA_ERROR_INVALID_CONTEXT;
}

// ---- the primary context ----

API(cuDevicePrimaryCtxRetain, (CUcontext * context, CUdevice device)) {
  LOCK();
  if (!locked->initialised) return CUDA_ERROR_NOT_INITIALIZED;
  if (core_device(device) != CUDA_SUCCESS) return CUDA_ERROR_INVALID_DEVICE;
  primary_users++;
  *context = &primary;
  return CUDA_SUCCESS;
}

API(cuDevicePrimaryCtxReset_v2, (CUdevice device)) {
  LOCK();
  (void)locked;
  if (core_device(device) != CUDA_SUCCESS) return CUDA_ERROR_INVALID_DEVICE;
  core_reset();
  return CUDA_SUCCESS;
}

API(cuDevicePrimaryCtxRelease_v2, (CUdevice device)) {
  LOCK();
  (void)locked;
  if (core_device(device) != CUDA_SUCCESS) return CUDA_ERROR_INVALID_DEVICE;
  if (primary_users == 0) return CUDA_ERROR_INVALID_CONTEXT;
  primary_users--;
  return CUDA_SUCCESS;
}

API(cuDevicePrimaryCtxSetFlags_v2, (CUdevice device, unsigned flags)) {
  if (core_device(device) != CUDA_SUCCESS) return CUDA_ERROR_INVALID_DEVICE;
  primary.flags = flags;
  return CUDA_SUCCESS;
}

API(cuDevicePrimaryCtxGetState, (CUdevice device, unsigned *flags, int *active)) {
  if (core_device(device) != CUDA_SUCCESS) return CUDA_ERROR_INVALID_DEVICE;
  *flags = primary.flags;
  *active = primary_users > 0;
  return CUDA_SUCCESS;
}

// ---- limits, of which only that of the heap changes anything here, and preferences, which change nothing ----

static size_t limits[] = {[CU_LIMIT_STACK_SIZE] = 1024,
                          [CU_LIMIT_PRINTF_FIFO_SIZE] = 1 << 20,
                          [CU_LIMIT_MALLOC_HEAP_SIZE] = 8 << 20,
                          [CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH] = 2,
                          [CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = 2048,
                          [CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 64,
                          [CU_LIMIT_PERSISTING_L2_CACHE_SIZE] = 0};

static bool known_limit(CUlimit limit) { return (unsigned)limit < sizeof limits / sizeof *limits; }

API(cuCtxSetLimit, (CUlimit limit, size_t value)) {
  ENTER();
  if (!known_limit(limit)) return CUDA_ERROR_UNSUPPORTED_LIMIT;
  limits[limit] = value;
  if (limit == CU_LIMIT_MALLOC_HEAP_SIZE) emulator_set_heap(core.emulator, value);
  return CUDA_SUCCESS;
}

API(cuCtxGetLimit, (size_t * value, CUlimit limit)) {
  ENTER();
  if (!known_limit(limit)) return CUDA_ERROR_UNSUPPORTED_LIMIT;
  *value = limits[limit];
  return CUDA_SUCCESS;
}

API(cuCtxGetCacheConfig, (CUfunc_cache * config)) {
  ENTER();
  *config = CU_FUNC_CACHE_PREFER_NONE;
  return CUDA_SUCCESS;
}

API(cuCtxSetCacheConfig, (CUfunc_cache config)) {
  ENTER();
  (void)config;
  return CUDA_SUCCESS;
}

API(cuCtxGetSharedMemConfig, (CUsharedconfig * config)) {
  ENTER();
  *config = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
  return CUDA_SUCCESS;
}

API(cuCtxSetSharedMemConfig, (CUsharedconfig config)) {
  ENTER();
  (void)config;
  return CUDA_SUCCESS;
}

API(cuCtxGetStreamPriorityRange, (int *least, int *greatest)) {
  ENTER();
  if (least) *least = 0;
  if (greatest) *greatest = -5;
  return CUDA_SUCCESS;
}

API(cuCtxResetPersistingL2Cache, (void)) {
  ENTER();
  return CUDA_SUCCESS;
}

API(cuProfilerStart, (void)) { return CUDA_SUCCESS; }
API(cuProfilerStop, (void)) { return CUDA_SUCCESS; }
