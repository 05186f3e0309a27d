// --counters: the kernel's source with what each line did beside it.
#include <stdlib.h>

#include "../emulator/emulator.h"
#include "harness.h"

enum { MAX_TEXT = 200, CONTEXT = 2 };

static int compare_lines(const void *a, const void *b) {
  const LineCounters *left = a, *right = b;
  const char *left_file = left->file ? left->file : "", *right_file = right->file ? right->file : "";
  int order = strcmp(left_file, right_file);
  return order ? order : left->line - right->line;
}

static uint64_t bank_conflicts(const uint64_t *value) {
  return value[COUNTER_SHARED_LOAD_BANK_CONFLICTS] + value[COUNTER_SHARED_STORE_BANK_CONFLICTS];
}

// The numbers before a line of text; a zero stays blank, so that what happens stands out.
static void print_numbers(FILE *out, const uint64_t *value, uint64_t total) {
  uint64_t requests = value[COUNTER_GLOBAL_LOAD_REQUESTS] + value[COUNTER_GLOBAL_STORE_REQUESTS];
  uint64_t sectors = value[COUNTER_GLOBAL_LOAD_SECTORS] + value[COUNTER_GLOBAL_STORE_SECTORS];
  char text[32];
  fprintf(out, "%15s %5.1f", format_count(text, value[COUNTER_INST_EXECUTED]),
          total ? 100.0 * (double)value[COUNTER_INST_EXECUTED] / (double)total : 0.0);
  fprintf(out, " %15s", requests ? format_count(text, requests) : "");
  if (requests)
    fprintf(out, " %7.1f", (double)sectors / (double)requests);
  else
    fprintf(out, " %7s", "");
  fprintf(out, " %11s", bank_conflicts(value) ? format_count(text, bank_conflicts(value)) : "");
}

// The lines of one file, from counted line to counted line with a little context; without the text when the file cannot
// be read (the program may run far from its source).
static void print_file(FILE *out, const LineCounters *lines, int count, uint64_t total) {
  FILE *source = lines->file ? fopen(lines->file, "r") : NULL;
  fprintf(out, "\n%s%s\n", lines->file ? lines->file : "PTX without a source line",
          lines->file && !source ? " (cannot be read from here: numbers alone)" : "");
  fprintf(out, "%15s %5s %15s %7s %11s\n", "warp inst", "%", "global requests", "sectors", "bank confl.");
  char text[MAX_TEXT];
  int number = 0, next = 0, last_printed = 0;
  while (source && next < count && fgets(text, sizeof text, source)) {
    bool whole = strchr(text, '\n') != NULL;
    text[strcspn(text, "\r\n")] = 0;
    number++;
    for (int c = ' '; !whole && c != '\n' && c != EOF;) c = fgetc(source);
    while (next < count && lines[next].line < number) next++;
    bool counted = next < count && lines[next].line == number;
    bool near = (next < count && lines[next].line - number <= CONTEXT) ||
                (next > 0 && number - lines[next - 1].line <= CONTEXT);
    if (!counted && !near) continue;
    if (last_printed && number > last_printed + 1) fprintf(out, "%57s  ...\n", "");
    if (counted)
      print_numbers(out, lines[next].counters.value, total);
    else
      fprintf(out, "%57s", "");
    fprintf(out, " %5d  %s\n", number, text);
    last_printed = number;
    if (counted) next++;
  }
  for (; next < count; next++) {
    print_numbers(out, lines[next].counters.value, total);
    fprintf(out, " %5d\n", lines[next].line);
  }
  if (source) fclose(source);
}

void report_line_counters(FILE *out, const Device *device) {
  int count;
  const LineCounters *lines = device_line_counters(device, &count);
  EmulatorCounters totals;
  if (count == 0 || !device_counters(device, &totals)) return;
  LineCounters *sorted = malloc((size_t)count * sizeof *sorted);
  if (!sorted) return;
  memcpy(sorted, lines, (size_t)count * sizeof *sorted);
  qsort(sorted, (size_t)count, sizeof *sorted, compare_lines);
  for (int first = 0, end; first < count; first = end) {
    for (end = first + 1; end < count; end++) {
      const char *file = sorted[first].file, *other = sorted[end].file;
      if (file != other && (!file || !other || strcmp(file, other))) break;
    }
    print_file(out, sorted + first, end - first, totals.value[COUNTER_INST_EXECUTED]);
  }
  free(sorted);
}
