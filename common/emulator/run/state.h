// The emulator's own state, behind the Emulator of emulator.h: memory, modules, hazards and counters.
#pragma once

#include "../check/hazard.h"
#include "../check/overlap.h"
#include "../check/region.h"

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
};
