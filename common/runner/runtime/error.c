// Errors: the last one of each thread, and their names. Also the function that makes a thread ready.
#include "runtime.h"

#include <string.h>

static _Thread_local cudaError_t last;

cudaError_t runtime_result(cudaError_t error) {
  // "Not ready" is an answer, not an error.
  if (error != cudaSuccess && error != cudaErrorNotReady) last = error;
  return error;
}

cudaError_t runtime_error(CUresult status) {
  switch (status) {
  case CUDA_ERROR_INVALID_CONTEXT: return cudaErrorDeviceUninitialized;
  case CUDA_ERROR_NOT_FOUND: return cudaErrorSymbolNotFound;
  default: return (cudaError_t)status;
  }
}

cudaError_t runtime_ready(void) {
  CUcontext context = NULL;
  static _Thread_local bool ready;
  if (ready && cuCtxGetCurrent(&context) == CUDA_SUCCESS && context) return cudaSuccess;
  CUresult status = cuInit(0);
  if (status == CUDA_SUCCESS) status = cuCtxGetCurrent(&context);
  if (status == CUDA_SUCCESS && !context) {
    status = cuDevicePrimaryCtxRetain(&context, 0);
    if (status == CUDA_SUCCESS) status = cuCtxSetCurrent(context);
  }
  ready = status == CUDA_SUCCESS;
  return runtime_error(status);
}

API(cudaGetLastError, (void)) {
  cudaError_t error = last;
  last = cudaSuccess;
  return error;
}

API(cudaPeekAtLastError, (void)) { return last; }

// The runtime's own errors, and those whose name is not the driver's in another spelling.
static const struct {
  cudaError_t code;
  const char *name, *text;
} runtime_errors[] = {
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", NULL},
    {cudaErrorInitializationError, "cudaErrorInitializationError", NULL},
    {cudaErrorCudartUnloading, "cudaErrorCudartUnloading", NULL},
    {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration", "invalid configuration argument"},
    {cudaErrorInvalidPitchValue, "cudaErrorInvalidPitchValue", "invalid pitch argument"},
    {cudaErrorInvalidSymbol, "cudaErrorInvalidSymbol", "invalid device symbol"},
    {cudaErrorInvalidMemcpyDirection, "cudaErrorInvalidMemcpyDirection", "invalid copy direction for memcpy"},
    {cudaErrorInsufficientDriver, "cudaErrorInsufficientDriver",
     "CUDA driver version is insufficient for CUDA runtime version"},
    {cudaErrorInvalidDeviceFunction, "cudaErrorInvalidDeviceFunction", "invalid device function"},
    {cudaErrorInvalidKernelImage, "cudaErrorInvalidKernelImage", NULL},
    {cudaErrorDeviceUninitialized, "cudaErrorDeviceUninitialized", NULL},
    {cudaErrorNoKernelImageForDevice, "cudaErrorNoKernelImageForDevice", NULL},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", NULL},
    {cudaErrorSymbolNotFound, "cudaErrorSymbolNotFound", NULL},
    {cudaErrorIllegalAddress, "cudaErrorIllegalAddress", NULL},
    {cudaErrorLaunchFailure, "cudaErrorLaunchFailure", NULL},
    {cudaErrorUnknown, "cudaErrorUnknown", NULL},
};

static int find_runtime_error(cudaError_t error) {
  for (size_t i = 0; i < sizeof runtime_errors / sizeof *runtime_errors; i++)
    if (runtime_errors[i].code == error) return (int)i;
  return -1;
}

// CUDA_ERROR_NOT_SUPPORTED becomes cudaErrorNotSupported.
static const char *respell(const char *driver_name, char name[80]) {
  size_t used = 0;
  bool upper = true;
  if (!strncmp(driver_name, "CUDA_", 5)) driver_name += 5;
  memcpy(name, "cuda", 4);
  used = 4;
  for (const char *c = driver_name; *c && used + 1 < 80; c++) {
    if (*c == '_') {
      upper = true;
      continue;
    }
    name[used++] = upper || *c < 'A' || *c > 'Z' ? *c : (char)(*c - 'A' + 'a');
    upper = false;
  }
  name[used] = 0;
  return name;
}

const char *cudaGetErrorName(cudaError_t error);
const char *cudaGetErrorName(cudaError_t error) {
  static _Thread_local char name[80];
  const char *driver_name;
  int at = find_runtime_error(error);
  if (at >= 0) return runtime_errors[at].name;
  if (error == cudaSuccess) return "cudaSuccess";
  if (cuGetErrorName((CUresult)error, &driver_name) != CUDA_SUCCESS) return "unrecognized error code";
  return respell(driver_name, name);
}

const char *cudaGetErrorString(cudaError_t error);
const char *cudaGetErrorString(cudaError_t error) {
  const char *text;
  int at = find_runtime_error(error);
  if (at >= 0 && runtime_errors[at].text) return runtime_errors[at].text;
  return cuGetErrorString((CUresult)error, &text) == CUDA_SUCCESS ? text : "unrecognized error code";
}

// What a function that is missing calls.
cudaError_t runtime_missing(const char *function);
cudaError_t runtime_missing(const char *function) { return runtime_result(runtime_error(core_missing(function))); }
