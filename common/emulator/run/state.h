// The emulator's own state, behind the Emulator of emulator.h: memory, modules, hazards and counters.
#pragma once

#include "../report/hazard.h"
#include "../report/steps.h"
#include "../check/overlap.h"
#include "../check/region.h"
#include "../emulator.h"

struct EmulatorModule {
  EmulatorModule *next;
  Emulator *emulator;
  PtxModule *ptx;
  Place *variables;  // module level: global and const ones have addresses, shared ones get theirs from each program
  int variable_count;
  Program **programs;  // by index of the PTX's functions: those of kernels that were launched or checked
};

// Counts of the launches so far, by source line.
typedef struct LineTable {
  LineCounters *items;
  int count, capacity;
} LineTable;

struct Emulator {
  EmulatorOptions options;
  bool lane_by_lane;  // a test sets it: the checks take each lane's loads and stores by themselves, and find the same
  RegionTable global;
  RegionUsage usage;  // of global, shared and local memory
  size_t most_order;  // bytes that vector clocks and sets of reads have taken in a launch
  EmulatorModule *modules;
  uint32_t launches;
  LaunchHistory history;
  uint64_t grid_workspace;  // address, 0 before the first cooperative launch
  HazardList hazards;
  EmulatorCounters counters;
  LineTable lines;
  StepRecord steps;
};

// ---- the limits of a launch: launch.c ----

// Fills *error with one line. Always EMULATOR_INVALID.
EmulatorStatus launch_invalid(EmulatorError *error, const char *format, ...) __attribute__((format(printf, 2, 3)));
// Whether an H100 could run the launch, whose shape and program are known: EMULATOR_INVALID and *error when not.
EmulatorStatus launch_check(const Launch *launch, EmulatorError *error);
// How many of its clusters an H100 holds at a time, by threads and shared memory; PTX does not tell the registers.
uint32_t launch_resident_clusters(const Launch *launch);

// ---- counters of the launches: counters.c ----

// Adds what the workers of a launch counted, and empties them.
void counters_collect(Emulator *emulator, const Program *program, Worker *workers, int worker_count);

// ---- errors: error.c ----

// Fills *error; line is that of the PTX text, or 0. Always false.
bool run_fail(EmulatorError *error, int line, const char *format, ...) __attribute__((format(printf, 3, 4)));
