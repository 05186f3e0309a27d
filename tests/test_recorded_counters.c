// plots/data/counters.csv, from which the roofline is drawn: what the stages do now is what they did when it was
// recorded. The rows of short sequences are counted again.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/program.h"
#include "support/sanitized.h"
#include "support/scratch.h"

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
  const char *program = program_of(row->stage);
  char options[200];
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
  if (SANITIZED) cr_skip_test("a sanitizer changes no count, and the suite stages runs every stage");
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
// does at most as many times as much (with a mask, a tile is a smaller part of the triangle; tiles of 192 rows have 384
// for the 256).
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
      cr_expect(longer.flops <= row.flops * growth && longer.flops >= row.flops * growth / 2.5,
                "%s, %d: %g FLOP of %d keys, %g of %d", row.stage, row.head_dim, longer.flops, LONG, row.flops, SHORT);
      found++;
    }
    cr_expect_eq(found, 1, "%s, %d, %d: %d long rows", row.stage, row.head_dim, row.causal, found);
  }
  free(text);
}

// ---- the script that records them, on made-up stages ----

TestSuite(counters_script, .init = scratch_enter, .fini = scratch_leave);

// A stage that counts seqlen * head_dim, notes its runs, and fails on long sequences when there is a file "broken".
static const char fake_stage[] = "for o in \"$@\"; do case $o in\n"
                                 "--help) echo '  --seqlen=N'; exit;;\n"
                                 "--seqlen=*) s=${o#*=};; --head-dim=*) d=${o#*=};; --causal) c=1;; esac; done\n"
                                 "echo \"$s $d ${c:-0}\" >>runs\n"
                                 "[ -f broken ] && [ $s = 4096 ] && { echo \"$0: no memory\" >&2; exit 2; }\n"
                                 "echo stage,batch,heads,seqlen,head_dim,causal,work\n"
                                 "echo \"99-fake,1,1,$s,$d,${c:-0},$((s * d))\"\n";

static int record(void) { return scratch_run("sh \"$ROOT\"/common/build/counters.sh ./stage-98 ./stage-99"); }

Test(counters_script, records_and_keeps) {
  scratch_write_script("stage-98", "echo no options");  // no attention kernel
  scratch_write_script("stage-99", fake_stage);
  cr_expect_eq(record(), 0, "%s", scratch_output);
  cr_expect(scratch_has_line("./stage-98 is not an attention kernel: not counted"), "%s", scratch_output);
  size_t size;
  char *first = scratch_read("plots/data/counters.csv", &size);
  cr_expect_str_eq(first, "stage,batch,heads,seqlen,head_dim,causal,work\n"
                          "99-fake,1,1,256,64,0,16384\n99-fake,1,1,256,64,1,16384\n"
                          "99-fake,1,1,256,128,0,32768\n99-fake,1,1,256,128,1,32768\n"
                          "99-fake,1,1,4096,64,0,262144\n99-fake,1,1,4096,64,1,262144\n"
                          "99-fake,1,1,4096,128,0,524288\n99-fake,1,1,4096,128,1,524288\n");
  // The same short rows: the long ones stay, and are not counted again.
  cr_expect_eq(scratch_run("rm runs"), 0);
  cr_expect_eq(record(), 0, "%s", scratch_output);
  cr_expect(scratch_has_line("./stage-99 is as recorded"), "%s", scratch_output);
  char *second = scratch_read("plots/data/counters.csv", &size), *runs = scratch_read("runs", &size);
  cr_expect_str_eq(second, first);
  cr_expect_str_eq(runs, "256 64 0\n256 64 1\n256 128 0\n256 128 1\n");
  free(first);
  free(second);
  free(runs);
}

// A recording that lacks a long row, or has one twice, is made again.
Test(counters_script, counts_again_what_is_not_whole) {
  static const char *const damages[] = {"$d", "$p"};
  scratch_write_script("stage-98", "echo no options");
  scratch_write_script("stage-99", fake_stage);
  cr_expect_eq(record(), 0, "%s", scratch_output);
  size_t size;
  char *whole = scratch_read("plots/data/counters.csv", &size);
  for (int i = 0; i < 2; i++) {
    char command[100];
    snprintf(command, sizeof command, "sed -i '%s' plots/data/counters.csv", damages[i]);
    cr_expect_eq(scratch_run(command), 0);
    cr_expect_eq(record(), 0, "%s", scratch_output);
    cr_expect(scratch_has_line("./stage-99, seqlen 4096: counting"), "%s", scratch_output);
    char *again = scratch_read("plots/data/counters.csv", &size);
    cr_expect_str_eq(again, whole);
    free(again);
  }
  free(whole);
}

Test(counters_script, a_failure_leaves_the_file) {
  scratch_write_script("stage-98", fake_stage);
  scratch_write_script("stage-99", fake_stage);
  cr_expect_eq(scratch_run("touch broken; mkdir -p plots/data; echo old >plots/data/counters.csv"), 0);
  cr_expect_eq(record(), 2);
  cr_expect(strstr(scratch_output, "./stage-98: no memory"), "%s", scratch_output);
  size_t size;
  char *text = scratch_read("plots/data/counters.csv", &size);
  cr_expect_str_eq(text, "old\n");
  free(text);
}
