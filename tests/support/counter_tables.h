// The tables of notes/counters.md: the emulator's counters beside Nsight Compute's.
#pragma once

#include <stdio.h>

#include "counter_runs.h"

void print_counter_tables(FILE *out, const CounterRuns *runs);

// Why the machine executes other instructions for this kernel than its PTX has; NULL when the two correspond.
const char *counter_why_sass_differs(const char *kernel);

// What a trip of the kernel's loop brings to ncu's pipe "xu" beside the special functions that the emulator counts.
typedef struct OnPipe {
  const char *kernel;
  int instructions;  // or OPERANDS_DECIDE
  const char *why;
} OnPipe;
enum { OPERANDS_DECIDE = -1 };

// NULL when it is nothing.
const OnPipe *counter_others_on_pipe(const char *kernel);
