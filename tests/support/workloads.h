// Kernels that do one thing over and over, on one emulator each: `make bench-emulator` times them, and tests/test_memory.c
// holds what the hazard checks take to its bound.
#pragma once

#include "emulator/emulator.h"

typedef struct Workload {
  const char *name;
  CounterKind work;                // what it does a lot of
  unsigned blocks, threads;        // of a launch
  int element;                     // bytes of the elements in memory
  enum { OUT, IN, NEITHER } uses;  // global memory: every thread its own elements, or every block the same
  const char *declarations, *setup, *body;
  int repeats;    // of the body, inside the loop
  bool exchange;  // in the body a %d stands for the offset of a thread's next element
} Workload;

extern const Workload workloads[];
extern const int workload_count;

typedef struct WorkloadRun {
  double seconds;
  uint64_t work;
  int hazards;  // reported
  EmulatorMemory memory;
} WorkloadRun;

// Runs the workload's loop so many times. Prints what went wrong and exits when it does not run.
WorkloadRun workload_run(const Workload *workload, const EmulatorOptions *options, int steps);
