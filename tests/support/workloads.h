// Kernels that do one thing over and over, on one emulator each: `make bench-emulator` times them, and
// tests/test_shadow.c holds what the hazard checks take to its bound.
#pragma once

#include "emulator/emulator.h"

typedef struct Workload {
  const char *name;
  CounterKind work;                // what it does a lot of
  unsigned blocks, threads;        // of a launch
  int element, elements;           // bytes of an element in memory, and how many a thread has
  enum { NEITHER, OUT, IN } uses;  // global memory: every block its own elements, or all the same
  const char *declarations, *setup;
  const char *body;  // of the loop; # stands for the offset of an element
  int repeats;       // of the body, for a thread's elements one after the other
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
