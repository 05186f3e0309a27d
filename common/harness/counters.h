// Printing counters, for the stages and for hopper-run.
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "../emulator/emulator.h"

// The ending of a noun: none for one thing.
static inline const char *plural(uint64_t count) { return count == 1 ? "" : "s"; }
// "1,234,567"
const char *format_count(char text[32], uint64_t count);
// The totals of a run in a few lines.
void print_counters(FILE *out, const EmulatorCounters *counters);
// Prints the lines that execute most instructions, then the source with each line's counters. lines: sorted, most
// first.
void print_line_counters(FILE *out, const EmulatorCounters *totals, const LineCounters *lines, int count);
