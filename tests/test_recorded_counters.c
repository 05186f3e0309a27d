// plots/data/counters.csv, from which the roofline is drawn: what the stages do now is what they did when it was
// recorded. The rows of short sequences are counted again.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/program.h"

enum { SHORT = 256, LONG = 4096 };  // as in common/build/counters.sh

TestSuite(recorded_counters, .timeout = 120);

typedef struct Row {
  char stage[40];
  int batch, heads, seqlen, head_dim, causal;
  double flops;
} Row;

static char *read_counters(void) {
  char path[1000];
  size_t size;
  snprintf(path, sizeof path, "%s/plots/data/counters.csv", root_path());
  char *text = read_whole(path, &size);
  cr_assert(text, "%s cannot be read", path);
  return text;
}

// The value of a column in a line; NULL when the header has no such column. The caller frees it.
static char *value_of(const char *header, const char *line, const char *column) {
  for (;; header++, line++) {
    size_t name = strcspn(header, ",\n"), value = strcspn(line, ",\n");
    if (name == strlen(column) && !strncmp(header, column, name)) return strndup(line, value);
    header += name;
    line += value;
    if (*header != ',' || *line != ',') return NULL;
  }
}

static Row parse_row(const char *header, const char *line) {
  Row row;
  cr_assert_eq(sscanf(line, "%39[^,],%d,%d,%d,%d,%d", row.stage, &row.batch, &row.heads, &row.seqlen, &row.head_dim,
                      &row.causal),
               6, "%.80s", line);
  char *flops = value_of(header, line, "tensor_flops");
  cr_assert(flops, "no column tensor_flops");
  row.flops = atof(flops);
  free(flops);
  return row;
}

// Runs the stage on the row's problem and compares each column.
static void count_again(const char *header, const char *line, const Row *row) {
  char program[32], options[200];
  snprintf(program, sizeof program, "stage-%.2s", row->stage);
  snprintf(options, sizeof options,
           "--device=emulator --hazards=off --batch=1 --heads=1 --seqlen=%d --head-dim=%d --counters-csv=-%s", SHORT,
           row->head_dim, row->causal ? " --causal" : "");
  Output *output = run_line(program, options);
  cr_assert_eq(output->code, 0, "%s %s: %s", program, options, output->err);
  const char *now = strchr(output->out, '\n');
  cr_assert(now, "%s %s printed no row", program, options);
  for (const char *name = header; *name && *name != '\n'; name += strcspn(name, ",\n"), name += *name == ',') {
    char column[80];
    snprintf(column, sizeof column, "%.*s", (int)strcspn(name, ",\n"), name);
    char *recorded = value_of(header, line, column), *counted = value_of(output->out, now + 1, column);
    cr_expect(recorded && counted && !strcmp(recorded, counted),
              "%s, %d, %s: %s was %s and is %s; `make counters` records it", row->stage, row->head_dim,
              row->causal ? "causal" : "no mask", column, recorded, counted ? counted : "no more counted");
    free(recorded);
    free(counted);
  }
  free(output);
}

Test(recorded_counters, short_rows_are_counted_again) {
  char *text = read_counters();
  int rows = 0;
  for (const char *line = text; (line = strchr(line, '\n')) && *++line;) {
    Row row = parse_row(text, line);
    cr_expect(row.batch == 1 && row.heads == 1, "%s: one head is enough", row.stage);
    if (row.seqlen != SHORT) continue;
    count_again(text, line, &row);
    rows++;
  }
  cr_expect(rows > 0 && rows % 4 == 0, "%d short rows", rows);
  free(text);
}

// Each short row has a long one, of the same kernel: with S/256 times the rows, and about as many times the columns, it
// does at most as many times as much (with a mask, a tile is a smaller part of the triangle).
Test(recorded_counters, long_rows_belong_to_short_ones) {
  char *text = read_counters();
  for (const char *line = text; (line = strchr(line, '\n')) && *++line;) {
    Row row = parse_row(text, line);
    if (row.seqlen != SHORT) continue;
    double growth = (double)LONG / SHORT * LONG / SHORT;
    int found = 0;
    for (const char *other = text; (other = strchr(other, '\n')) && *++other;) {
      Row longer = parse_row(text, other);
      if (longer.seqlen != LONG || strcmp(longer.stage, row.stage) || longer.head_dim != row.head_dim ||
          longer.causal != row.causal)
        continue;
      cr_expect(longer.flops <= row.flops * growth && longer.flops >= row.flops * growth / 2,
                "%s, %d: %g FLOP of %d keys, %g of %d", row.stage, row.head_dim, longer.flops, LONG, row.flops, SHORT);
      found++;
    }
    cr_expect_eq(found, 1, "%s, %d, %d: %d long rows", row.stage, row.head_dim, row.causal, found);
  }
  free(text);
}
