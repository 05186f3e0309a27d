// What the files of the runtime API share. Each function is the driver's with another name; the stand-ins for CUDA 12
// and CUDA 13 are made of the same files, compiled for one and for the other (RUNTIME is 12 or 13).
#pragma once

#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <driver_types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <vector_types.h>

#include "../older.h"

// Defines a function of the runtime, and its variants for a default stream of each thread.
#define API(name, parameters)                                                                                          \
  cudaError_t name parameters;                                                                                         \
  cudaError_t name##_ptsz parameters __attribute__((alias(#name)));                                                    \
  cudaError_t name##_ptds parameters __attribute__((alias(#name)));                                                    \
  cudaError_t name parameters

// Makes the primary context current on this thread, as the first call of a thread does.
cudaError_t runtime_ready(void);
// Keeps an error for cudaGetLastError, and returns it.
cudaError_t runtime_result(cudaError_t error);
// The runtime's number of a driver's error: the same, with few exceptions.
cudaError_t runtime_error(CUresult status);

// return DO(cuMemAlloc(...)): makes ready, calls, keeps the error.
#define DO(call)                                                                                                       \
  __extension__({                                                                                                      \
    cudaError_t ready = runtime_ready();                                                                               \
    runtime_result(ready != cudaSuccess ? ready : runtime_error(call));                                                \
  })

// The driver's function for a kernel: a host function's address, or a cudaKernel_t or cudaFunction_t.
cudaError_t runtime_function(CUfunction *function, const void *symbol);

// What libcuda's stand-in has for this one.
void core_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
void core_say_once(const char *format, ...) __attribute__((format(printf, 1, 2)));
CUresult core_missing(const char *function);
CUresult core_device(int device);
const char *core_readable(const char *name);
