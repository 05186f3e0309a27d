// The emulator's counters against Nsight Compute's on an H200, for every launch of tests/counters/cases.h. The recorded
// numbers are in tests/counters/h200.csv; notes/counters.md says what they mean and where the two must differ.
#include <criterion/criterion.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/counter_runs.h"
#include "support/counter_tables.h"
#include "support/program.h"

TestSuite(counters, .timeout = 60);

static bool starts_with(const char *text, const char *prefix) { return !strncmp(text, prefix, strlen(prefix)); }

// ---- memory ----

// The sectors that ncu counts for cp.async.cg, which goes past the L1 cache: of each 128-byte line that it reads, the
// sectors that it writes in shared memory. The emulator counts the sectors of global memory.
static uint64_t sectors_of_bypassing_copy(const CounterCase *c) {
  enum { SIZE = 16, LINE = 128, SECTOR = 32 };
  bool gathers = strstr(c->kernel, "gather") != NULL;
  bool seen[MEMORY_BYTES / LINE][SHARED_BYTES / SECTOR] = {{false}};
  uint64_t count = 0;
  for (int lane = 0; lane < WARP_LANES; lane++) {
    int offset = c->offsets.of[0][lane], packed = lane * SIZE;
    if (offset == INACTIVE) continue;
    bool *sector = &seen[(gathers ? offset : packed) / LINE][(gathers ? packed : offset) / SECTOR];
    count += !*sector;
    *sector = true;
  }
  return count;
}

// What the emulator does to shared memory's banks and to global memory's sectors, in every launch.
Test(counters, memory) {
  CounterRuns runs = counter_runs();
  int compared = 0, bypassing = 0, different = 0;
  for (int i = 0; i < runs.count; i++) {
    const CounterRun *run = &runs.items[i];
    bool bypasses = starts_with(run->c.kernel, "cp_async_cg");
    for (int k = COUNTER_SHARED_LOAD_WAVEFRONTS; k <= COUNTER_GLOBAL_COPY_SECTORS; k++) {
      const char *name = counter_name((CounterKind)k);
      uint64_t want = counter_recorded(&runs, run, name), have = run->emulator.value[k];
      if (bypasses && k == COUNTER_GLOBAL_LOAD_SECTORS) {
        cr_expect_eq(want, sectors_of_bypassing_copy(&run->c), "%s: no longer explained", run->c.name);
        different += want != have;
        bypassing++;
        continue;
      }
      cr_expect_eq(have, want, "%s: %s is %llu, ncu says %llu", run->c.name, name, (unsigned long long)have,
                   (unsigned long long)want);
      compared += want != 0;
    }
  }
  cr_expect(compared > 700, "only %d numbers that are not 0", compared);
  cr_expect(bypassing == 12 && different == 6, "%d of %d launches of cp.async.cg differ", different, bypassing);
  counter_runs_free(&runs);
}

// A counter that ncu does not know, or that no launch moves, would be "equal" everywhere.
Test(counters, every_compared_counter_was_recorded) {
  CounterRuns runs = counter_runs();
  for (int k = COUNTER_SHARED_LOAD_WAVEFRONTS; k <= COUNTER_GLOBAL_COPY_SECTORS; k++) {
    bool recorded = false;
    for (int c = 1; c < runs.column_count; c++) recorded |= !strcmp(runs.columns[c], counter_name((CounterKind)k));
    cr_expect(recorded, "h200.csv has no column %s", counter_name((CounterKind)k));
  }
  counter_runs_free(&runs);
}

// ---- instructions ----

// What more trips add to a counter: on the emulator, and as recorded.
static void difference(const CounterRuns *runs, const CounterRun *few, const CounterRun *many, CounterKind kind,
                       uint64_t *emulator, uint64_t *ncu) {
  const char *name = counter_name(kind);
  *emulator = many->emulator.value[kind] - few->emulator.value[kind];
  *ncu = counter_recorded(runs, many, name) - counter_recorded(runs, few, name);
}

// Where PTX and machine code correspond the counts are equal; where not, notes/counters.md says why, and they are not.
Test(counters, instructions) {
  static const CounterKind kinds[] = {COUNTER_INST_EXECUTED, COUNTER_THREAD_INST_EXECUTED,
                                      COUNTER_THREAD_INST_EXECUTED_PRED_ON};
  CounterRuns runs = counter_runs();
  int equal = 0, explained = 0;
  for (int i = 0; i < runs.count; i++) {
    const CounterRun *few = &runs.items[i], *many = counter_run_with_more_trips(&runs, few);
    if (!many) continue;
    bool corresponds = !counter_why_sass_differs(few->c.kernel);
    for (int k = 0; k < 3; k++) {
      uint64_t emulator, ncu;
      difference(&runs, few, many, kinds[k], &emulator, &ncu);
      cr_expect((emulator == ncu) == corresponds, "%s: %s grows by %llu, in ncu by %llu", few->c.kernel,
                counter_name(kinds[k]), (unsigned long long)emulator, (unsigned long long)ncu);
    }
    equal += corresponds;
    explained += !corresponds;
  }
  cr_expect(equal == 22 && explained == 12, "%d kernels equal, %d explained", equal, explained);
  counter_runs_free(&runs);
}

// A wgmma is four instructions of the tensor pipe, one for each warp. ncu counts operations of bf16 alone.
Test(counters, tensor) {
  CounterRuns runs = counter_runs();
  int kernels = 0;
  for (int i = 0; i < runs.count; i++) {
    const CounterRun *few = &runs.items[i], *many = counter_run_with_more_trips(&runs, few);
    bool wgmma = starts_with(few->c.kernel, "repeat_wgmma");
    if (!many || (!wgmma && !starts_with(few->c.kernel, "repeat_mma"))) continue;
    const char *pipe =
        wgmma ? "sm__inst_executed_pipe_tensor_op_gmma.sum" : "sm__inst_executed_pipe_tensor_op_hmma.sum";
    const char *ops = "sm__ops_path_tensor_src_bf16_dst_fp32.sum";
    uint64_t instructions = counter_recorded(&runs, many, pipe) - counter_recorded(&runs, few, pipe);
    uint64_t flops = counter_recorded(&runs, many, ops) - counter_recorded(&runs, few, ops);
    cr_expect(instructions > 0);
    cr_expect_eq(many->emulator.value[COUNTER_INST_TENSOR] - few->emulator.value[COUNTER_INST_TENSOR], instructions);
    uint64_t have = many->emulator.value[COUNTER_TENSOR_FLOPS] - few->emulator.value[COUNTER_TENSOR_FLOPS];
    if (strstr(few->c.kernel, "bf16")) cr_expect(flops > 0 && have == flops);
    if (wgmma) cr_expect_eq(have, instructions / 4 * 2 * 64 * 8 * 16);
    kernels++;
  }
  cr_expect_eq(kernels, 4);
  counter_runs_free(&runs);
}

// ---- --counters ----

static uint64_t leading_count(const char *line) {
  uint64_t count = 0;
  for (line += strspn(line, " "); isdigit(*line) || *line == ','; line++)
    if (*line != ',') count = 10 * count + (uint64_t)(*line - '0');
  return count;
}

// The expensive lines stand first, most instructions first, and their numbers end where the head says.
Test(counters, listing) {
  Output *output = run_line("stage-00", "--device=emulator --counters --seqlen=40");
  cr_assert_eq(output->code, 0, "%s", output->err);
  char *list = strstr(output->out, "The lines that execute most\n"),
       *source = strstr(output->out, "\nstages/00-scalar/kernel.cu\n");
  cr_assert(list && source && list < source, "%s", output->out);
  char *head = strstr(list, " line\n"), *row = head + 6;
  cr_assert(head && head < source);
  while (head[-1] != '\n') head--;
  size_t width = (size_t)(row - head) - 1;
  uint64_t before = UINT64_MAX;
  int rows = 0;
  for (; *row != '\n'; row = strchr(row, '\n') + 1, rows++) {
    cr_expect(isdigit(row[width - 1]) && row[width] == ' ', "not below the head: %.*s", (int)width + 1, row);
    cr_expect(leading_count(row) <= before && leading_count(row) > 0, "not in order: %.60s", row);
    before = leading_count(row);
  }
  cr_expect(rows == 8, "%d rows", rows);
  free(output);
}

// ---- the notes ----

static const char begin_mark[] = "<!-- tables: begin -->\n", end_mark[] = "<!-- tables: end -->";

static void write_notes(const char *path, const char *notes, size_t before, const char *tables, const char *after) {
  FILE *file = fopen(path, "w");
  cr_assert(file, "%s cannot be written", path);
  fprintf(file, "%.*s%s%s", (int)before, notes, tables, after);
  cr_assert_eq(fclose(file), 0);
}

// The tables in notes/counters.md are those that the recording and the emulator give now.
Test(counters, notes_show_these_tables) {
  CounterRuns runs = counter_runs();
  char path[1000], *tables = NULL;
  size_t size = 0;
  snprintf(path, sizeof path, "%s/notes/counters.md", root_path());
  char *notes = read_whole(path, &size);
  cr_assert(notes, "%s is missing", path);
  char *begin = strstr(notes, begin_mark), *end = begin ? strstr(begin, end_mark) : NULL;
  cr_assert(end, "%s has no marks for the tables", path);
  begin += sizeof begin_mark - 1;

  FILE *out = open_memstream(&tables, &size);
  cr_assert(out);
  print_counter_tables(out, &runs);
  cr_assert_eq(fclose(out), 0);
  bool same = size == (size_t)(end - begin) && !memcmp(begin, tables, size);
  if (!same && getenv("WRITE_NOTES"))
    write_notes(path, notes, (size_t)(begin - notes), tables, end);
  else
    cr_expect(same, "the tables of %s are not those of today: WRITE_NOTES=1 make test TESTS='counters/*'", path);
  free(tables);
  free(notes);
  counter_runs_free(&runs);
}
