// What the files of the stand-in for libcuda.so.1 share: one emulator, its lock, its errors, and the report.
//
//   hopper_run.c   the command: reads the program's ELF, starts it with the stand-ins, prints what they report
//   core.c         the emulator and the options           report.c   what a run found, for the end
//   fatbin.c       finds the PTX in what nvcc puts into a program
//   driver/        libcuda.so.1, the driver API: everything is done here
//   runtime/       libcudart.so.12 and .13, the runtime API on top of the driver API, as NVIDIA's own is
//
// Each call does its work at once: a launch has ended when its call returns. So streams and events are always in order,
// and nothing runs at the same time.
#pragma once

#define __CUDA_API_VERSION_INTERNAL  // cuda.h declares cuMemAlloc_v2 by this name, and older versions too
#include <cuda.h>

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "../emulator/emulator.h"
#include "older.h"

// Defines a function of the API, and its variants for a default stream of each thread: they do the same here. The
// version script exports those variants that the real library has.
#define API(name, parameters)                                                                                          \
  CUresult CUDAAPI name parameters;                                                                                    \
  CUresult CUDAAPI name##_ptsz parameters __attribute__((alias(#name)));                                               \
  CUresult CUDAAPI name##_ptds parameters __attribute__((alias(#name)));                                               \
  CUresult CUDAAPI name parameters

typedef struct Core {
  pthread_mutex_t lock;  // recursive: a host function in a stream may call back
  bool initialised;      // cuInit
  pid_t process;         // which has called it
  Emulator *emulator;
  CUresult sticky;    // what stopped a launch: every later call returns it
  char stopped[600];  // in words, for cuGetErrorString
  uint64_t launches;
  bool strict, counters;
  bool incomplete;  // a kernel that a GPU may run did not run here
  bool refused;  // the program has loaded a cubin, and no module since that could be loaded: one may replace the other
  // What a library read although nothing had written it.
  struct {
    uint64_t count, address;  // places, the first
    char detail[160];
  } unwritten;
} Core;

extern Core core;

// Holds the lock to the end of the block.
#define LOCK() __attribute__((cleanup(core_unlock))) Core *locked = core_lock()
Core *core_lock(void);
void core_unlock(Core **locked);

// For the functions that need a context, which are most: returns an error if there is none, or if a launch was stopped.
#define ENTER()                                                                                                        \
  LOCK();                                                                                                              \
  CUresult entered = core_enter();                                                                                     \
  (void)locked;                                                                                                        \
  if (entered != CUDA_SUCCESS) return entered
CUresult core_enter(void);
// cuInit: opens the emulator with the options that hopper-run has left in the environment.
CUresult core_init(void);
// Called when a context is destroyed: clears its error, and frees all device memory of the process.
void core_reset(void);

// One line on standard error, "hopper-run: ...".
void core_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
// The same, but each text only once: for messages that a loop would repeat.
void core_say_once(const char *format, ...) __attribute__((format(printf, 1, 2)));
// Reports that a function, or the part of it that a text names, is missing. Always returns CUDA_ERROR_NOT_SUPPORTED.
CUresult core_missing(const char *function);

// Success for device 0. Another one does not exist: the first time, a line says so.
CUresult core_device(int device);

// A C++ name as it is written in the source, where there is a libstdc++. The text lives until the next call.
const char *core_readable(const char *name);

// Called when a library, whose kernels are not emulated, reads these bytes: a fault if nothing has written them. what:
// "cublasSgemm reads A, 64 x 64".
void core_library_reads(const void *address, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// The same of a number that is known to be unwritten.
void core_unwritten(uint64_t address, const char *what);

// For PyTorch: from now on cuMemFree succeeds after a launch was stopped, and does nothing. PyTorch frees tensors in
// destructors, where an error ends the program with abort(). The stand-in for libcuda.so.1 exports it; in memory.c.
void hopper_run_free_after_fault(void);

// ---- report.c ----

// For pytest: the findings since the last call of this function, as text that ends with a 0, cut where the size ends.
// Returns how many of them are faults. The stand-in for libcuda.so.1 exports it.
int hopper_run_new_findings(char *text, size_t size);

// Updates the report in hopper-run's folder, if there is one, because the program may end at any time.
void report_update(void);
// Called when the program ends.
void report_finish(void);
// Prints what stopped the last launch, and keeps it in core.stopped. error is emulator_launch's.
void report_stop(const char *kernel, const EmulatorError *error);
