// The tables of notes/counters.md: the emulator's counters beside Nsight Compute's.
#pragma once

#include <stdio.h>

#include "counter_runs.h"

void print_counter_tables(FILE *out, const CounterRuns *runs);

// Why the machine executes other instructions for this kernel than its PTX has; NULL when the two correspond.
const char *counter_why_sass_differs(const char *kernel);
