// Printing counters, for the stages and for hopper-run.
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "../emulator/emulator.h"

// "1,234,567"
const char *format_count(char text[32], uint64_t count);
// The totals of a run in a few lines.
void print_counters(FILE *out, const EmulatorCounters *counters);
// The lines that execute most, then the source with what each line did beside it. lines: most instructions first.
void print_line_counters(FILE *out, const EmulatorCounters *totals, const LineCounters *lines, int count);
