// --counters: the lines that execute most instructions, then the kernel's source with the counters of each line.
#include <stdlib.h>
#include <string.h>

#include "counters.h"

enum { MAX_TEXT = 200, CONTEXT = 2, EXPENSIVE_LINES = 8, MAX_KINDS = 4, MAX_WIDTH = 32 };

// ---- columns ----

typedef enum Format {
  COUNT,
  SHARE,  // of the whole run, percent
  RATIO,  // to the column `over`
} Format;

typedef struct Column {
  const char *above, *below;  // the head's two lines
  Format format;
  int kind_count;
  CounterKind kinds[MAX_KINDS];  // the column is their sum
  int over;
} Column;

enum {
  INSTRUCTIONS,
  INSTRUCTION_SHARE,
  REQUESTS,
  SECTORS,
  SECTORS_EACH,
  WAVEFRONTS,
  CONFLICTS,
  SHARED_BYTES,
  GLOBAL_BYTES,
  LOCAL_BYTES,
  MUFU,
  FLOPS,
  COLUMNS
};

// Loads, stores and atomic operations together.
#define GLOBAL(what)                                                                                                   \
  {                                                                                                                    \
    COUNTER_GLOBAL_LOAD_##what, COUNTER_GLOBAL_STORE_##what, COUNTER_GLOBAL_ATOMIC_##what,                             \
        COUNTER_GLOBAL_REDUCTION_##what                                                                                \
  }
#define SHARED(what)                                                                                                   \
  { COUNTER_SHARED_LOAD_##what, COUNTER_SHARED_STORE_##what, COUNTER_SHARED_ATOMIC_##what }
// What wgmma and asynchronous copies read and write in shared memory.
#define SHARED_ASYNC                                                                                                   \
  {                                                                                                                    \
    COUNTER_WGMMA_SHARED_READ_BYTES, COUNTER_CP_ASYNC_SHARED_WRITE_BYTES, COUNTER_BULK_SHARED_WRITE_BYTES,             \
        COUNTER_BULK_SHARED_READ_BYTES                                                                                 \
  }
#define GLOBAL_BULK                                                                                                    \
  { COUNTER_BULK_GLOBAL_READ_BYTES, COUNTER_BULK_GLOBAL_WRITE_BYTES }
#define LOCAL                                                                                                          \
  { COUNTER_LOCAL_LOAD_BYTES, COUNTER_LOCAL_STORE_BYTES }

static const Column columns[COLUMNS] = {
    [INSTRUCTIONS] = {"warp", "inst", COUNT, 1, {COUNTER_INST_EXECUTED}, 0},
    [INSTRUCTION_SHARE] = {"", "%", SHARE, 1, {COUNTER_INST_EXECUTED}, 0},
    [REQUESTS] = {"global", "requests", COUNT, 4, GLOBAL(REQUESTS), 0},
    [SECTORS] = {"", "sectors", COUNT, 4, GLOBAL(SECTORS), 0},
    [SECTORS_EACH] = {"", "each", RATIO, 4, GLOBAL(SECTORS), REQUESTS},
    [WAVEFRONTS] = {"shared", "wavefronts", COUNT, 3, SHARED(WAVEFRONTS), 0},
    [CONFLICTS] = {"bank", "conflicts", COUNT, 3, SHARED(BANK_CONFLICTS), 0},
    [SHARED_BYTES] = {"async", "shared B", COUNT, 4, SHARED_ASYNC, 0},
    [GLOBAL_BYTES] = {"bulk", "global B", COUNT, 2, GLOBAL_BULK, 0},
    [LOCAL_BYTES] = {"local", "bytes", COUNT, 2, LOCAL, 0},
    [MUFU] = {"", "MUFU", COUNT, 1, {COUNTER_INST_MUFU}, 0},
    [FLOPS] = {"tensor", "FLOP", COUNT, 1, {COUNTER_TENSOR_FLOPS}, 0},
};

static uint64_t sum(const Column *column, const EmulatorCounters *counters) {
  uint64_t count = 0;
  for (int k = 0; k < column->kind_count; k++) count += counters->value[column->kinds[k]];
  return count;
}

// A cell's text. A zero is left blank, so that the other numbers stand out.
static const char *format_cell(char text[MAX_WIDTH], const Column *column, const EmulatorCounters *counters,
                               const EmulatorCounters *totals) {
  uint64_t count = sum(column, counters);
  text[0] = 0;
  if (!count) return text;
  if (column->format == COUNT) return format_count(text, count);
  double whole =
      column->format == SHARE ? (double)sum(column, totals) / 100 : (double)sum(&columns[column->over], counters);
  snprintf(text, MAX_WIDTH, "%.1f", (double)count / whole);
  return text;
}

// The columns of a run. Columns without a number are left out; each other one is as wide as its longest number.
typedef struct Layout {
  const EmulatorCounters *totals;
  int widths[COLUMNS];  // 0: left out
  int width;            // of all, with the spaces between
} Layout;

static int longest(const char *a, const char *b, const char *c) {
  size_t length = strlen(a) > strlen(b) ? strlen(a) : strlen(b);
  return (int)(strlen(c) > length ? strlen(c) : length);
}

static Layout make_layout(const EmulatorCounters *totals) {
  Layout layout = {.totals = totals};
  for (int c = 0; c < COLUMNS; c++) {
    char text[MAX_WIDTH];
    if (!sum(&columns[c], totals)) continue;
    layout.widths[c] = longest(columns[c].above, columns[c].below, format_cell(text, &columns[c], totals, totals));
    layout.width += layout.widths[c] + 2;
  }
  return layout;
}

static void print_head(FILE *out, const Layout *layout) {
  for (int c = 0; c < COLUMNS; c++)
    if (layout->widths[c]) fprintf(out, "%*s  ", layout->widths[c], columns[c].above);
  fprintf(out, "\n");
  for (int c = 0; c < COLUMNS; c++)
    if (layout->widths[c]) fprintf(out, "%*s  ", layout->widths[c], columns[c].below);
  fprintf(out, " line\n");
}

static void print_numbers(FILE *out, const Layout *layout, const EmulatorCounters *counters) {
  for (int c = 0; c < COLUMNS; c++) {
    char text[MAX_WIDTH];
    if (layout->widths[c])
      fprintf(out, "%*s  ", layout->widths[c], format_cell(text, &columns[c], counters, layout->totals));
  }
}

// ---- source text ----

// Reads the next line, without its end and cut to MAX_TEXT; false at the end of the file.
static bool read_line(FILE *source, char text[MAX_TEXT]) {
  if (!fgets(text, MAX_TEXT, source)) return false;
  bool whole = strchr(text, '\n') != NULL;
  text[strcspn(text, "\r\n")] = 0;
  for (int c = ' '; !whole && c != '\n' && c != EOF;) c = fgetc(source);
  return true;
}

// One line of a file; an empty text when it cannot be read.
static void find_line(const char *path, int number, char text[MAX_TEXT]) {
  FILE *source = path ? fopen(path, "r") : NULL;
  text[0] = 0;
  for (int i = 1; source && i <= number && read_line(source, text);) i++;
  if (source) fclose(source);
}

// ---- the most expensive lines ----

// lines: most instructions first.
static void print_expensive(FILE *out, const Layout *layout, const LineCounters *lines, int count) {
  fprintf(out, "\nThe lines that execute most\n");
  print_head(out, layout);
  for (int i = 0; i < count && i < EXPENSIVE_LINES; i++) {
    char text[MAX_TEXT];
    find_line(lines[i].file, lines[i].line, text);
    print_numbers(out, layout, &lines[i].counters);
    fprintf(out, "%5d  %s\n", lines[i].line, text);
  }
}

// ---- the annotated source ----

static int compare_line_counters(const void *a, const void *b) {
  const LineCounters *left = a, *right = b;
  const char *left_file = left->file ? left->file : "", *right_file = right->file ? right->file : "";
  int order = strcmp(left_file, right_file);
  return order ? order : left->line - right->line;
}

// Prints the counted lines of one file with a little context around each. The text is missing when the file cannot be
// read, as when the program runs on another machine.
static void print_file(FILE *out, const Layout *layout, const LineCounters *lines, int count) {
  FILE *source = lines->file ? fopen(lines->file, "r") : NULL;
  fprintf(out, "\n%s%s\n", lines->file ? lines->file : "PTX without a source line",
          lines->file && !source ? " (cannot be read from here: numbers alone)" : "");
  print_head(out, layout);
  char text[MAX_TEXT];
  int number = 0, next = 0, last_printed = 0;
  while (source && next < count && read_line(source, text)) {
    number++;
    while (next < count && lines[next].line < number) next++;
    bool counted = next < count && lines[next].line == number;
    bool near = (next < count && lines[next].line - number <= CONTEXT) ||
                (next > 0 && number - lines[next - 1].line <= CONTEXT);
    if (!counted && !near) continue;
    if (last_printed && number > last_printed + 1) fprintf(out, "%*s  ...\n", layout->width, "");
    if (counted)
      print_numbers(out, layout, &lines[next].counters);
    else
      fprintf(out, "%*s", layout->width, "");
    fprintf(out, "%5d  %s\n", number, text);
    last_printed = number;
    if (counted) next++;
  }
  for (; next < count; next++) {
    print_numbers(out, layout, &lines[next].counters);
    fprintf(out, "%5d\n", lines[next].line);
  }
  if (source) fclose(source);
}

void print_line_counters(FILE *out, const EmulatorCounters *totals, const LineCounters *lines, int count) {
  if (count == 0) return;
  LineCounters *sorted = malloc((size_t)count * sizeof *sorted);
  if (!sorted) return;
  Layout layout = make_layout(totals);
  print_expensive(out, &layout, lines, count);
  memcpy(sorted, lines, (size_t)count * sizeof *sorted);
  qsort(sorted, (size_t)count, sizeof *sorted, compare_line_counters);
  for (int first = 0, end; first < count; first = end) {
    for (end = first + 1; end < count; end++) {
      const char *file = sorted[first].file, *other = sorted[end].file;
      if (file != other && (!file || !other || strcmp(file, other))) break;
    }
    print_file(out, &layout, sorted + first, end - first);
  }
  free(sorted);
}
