// The launches of tests/counters/cases.h that were recorded: what Nsight Compute counted on an H200 and what the
// emulator counts now.
#pragma once

#include "../counters/cases.h"
#include "emulator/emulator.h"

enum { MAX_COLUMNS = 192 };

typedef struct CounterRun {
  CounterCase c;
  uint64_t ncu[MAX_COLUMNS];  // counter_recorded() finds them by name
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

// Reads the recording and runs the emulator; also the launches that are not recorded, but their counts are dropped. The
// PTX of patterns.cu: COUNTERS_PTX, or made by nvcc. A missing or misfit recording fails the test that asks.
CounterRuns counter_runs(void);
void counter_runs_free(CounterRuns *runs);

// What Nsight Compute counted; 0 when the counter has no column, as those that are 0 everywhere.
uint64_t counter_recorded(const CounterRuns *runs, const CounterRun *run, const char *name);

// Repeated instructions: the run with twice the trips of this one, NULL when `run` is none with 8 trips. All but the
// repeated instructions cancels in the difference of the two.
const CounterRun *counter_run_with_more_trips(const CounterRuns *runs, const CounterRun *run);
