// The emulator's own state, behind the Emulator of emulator.h: memory, modules, hazards and counters.
#pragma once

#include <pthread.h>

#include "decoder.h"
#include "warp.h"

struct EmulatorModule {
  EmulatorModule *next;
  PtxModule *ptx;
  Place *variables;  // module level: global and const ones have addresses, shared ones get theirs from each program
  int variable_count;
  Program **programs;  // one per entry
  int program_count;
};

// Counts of the launches so far, by source line.
typedef struct LineTable {
  LineCounters *items;
  int count, capacity;
} LineTable;

struct Emulator {
  EmulatorOptions options;
  RegionTable global;
  RegionUsage usage;  // of global, shared and local memory
  size_t most_order;  // bytes that vector clocks and sets of reads have taken in a launch
  EmulatorModule *modules;
  uint32_t launches;
  pthread_mutex_t hazard_lock;
  Hazard *hazards;
  int hazard_count, hazard_capacity;
  EmulatorCounters counters;
  LineTable lines;
};

// ---- counters.c ----

// Adds what the workers of a launch counted, and empties them.
void counters_collect(Emulator *emulator, const Program *program, Worker *workers, int worker_count);

// ---- hazard.c ----

void hazards_free(Emulator *emulator);

// ---- sources ----

// The line that an instruction belongs to: the innermost one in the kernel's own file, so that a helper defined there is told
// by its own lines and one from a header by the line that calls it. False when unknown.
bool instruction_line(const PtxModule *module, const PtxInstruction *source, const char **file, int *line);
