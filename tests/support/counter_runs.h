// The launches of tests/counters/cases.h: what Nsight Compute counted on an H200 and what the emulator counts now.
#pragma once

#include "../counters/cases.h"
#include "emulator/emulator.h"

enum { MAX_COLUMNS = 64 };
#define NOT_ASKED UINT64_MAX

typedef struct CounterRun {
  CounterCase c;
  uint64_t ncu[MAX_COLUMNS];  // counter_recorded() finds them by name; NOT_ASKED where a field is empty
  EmulatorCounters emulator;
} CounterRun;

typedef struct CounterRuns {
  char *text;          // of tests/counters/h200.csv
  const char *origin;  // device, versions and date of the recording
  char *columns[MAX_COLUMNS];
  int column_count;
  CounterRun *items;
  int count;
} CounterRuns;

// Reads the recording and runs the emulator. The PTX of patterns.cu: COUNTERS_PTX, or made by nvcc. A recording that is
// missing, or not of these launches, fails the test that asks.
CounterRuns counter_runs(void);
void counter_runs_free(CounterRuns *runs);

// What Nsight Compute counted; 0 when it was not asked of this launch, or has no column, as those that are 0
// everywhere.
uint64_t counter_recorded(const CounterRuns *runs, const CounterRun *run, const char *name);
bool counter_was_asked(const CounterRuns *runs, const CounterRun *run, const char *name);

// Whether the emulator names a counter as Nsight Compute does, and it is of memory: the two can be compared as they
// are.
bool counter_is_of_memory(CounterKind kind);

// Repeated instructions: the run with twice the trips of this one, NULL when `run` is none with 8 trips. All but the
// repeated instructions cancels in the difference of the two.
const CounterRun *counter_run_with_more_trips(const CounterRuns *runs, const CounterRun *run);
