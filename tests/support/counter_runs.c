#include "counter_runs.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "program.h"
#include "ptx_files.h"
#include "run_kernel.h"

// ---- what was recorded ----

static char *cut_line(char **text) {
  char *line = *text, *end = strchr(line, '\n');
  cr_assert(end, "h200.csv ends in the middle of a line");
  *end = '\0';
  *text = end + 1;
  return line;
}

// Reads the two lines of the head; returns where the first row begins.
static char *read_head(CounterRuns *runs) {
  char path[1000];
  snprintf(path, sizeof path, "%s/tests/counters/h200.csv", root_path());
  cr_assert(access(path, R_OK) == 0, "%s is missing: tests/counters/record.sh records it on a Hopper GPU", path);
  char *next = runs->text = read_text(path).bytes;
  char *line = cut_line(&next);
  cr_assert(line[0] == '#', "h200.csv does not begin with a comment on the device and the date");
  runs->origin = line + 1 + strspn(line + 1, " ");
  for (char *name = strtok(cut_line(&next), ","); name; name = strtok(NULL, ",")) {
    cr_assert(runs->column_count < MAX_COLUMNS);
    runs->columns[runs->column_count++] = name;
  }
  return next;
}

// Whether the row that begins here is of this case.
static bool is_row_of(const char *row, const CounterCase *c) {
  size_t length = strlen(c->name);
  return !strncmp(row, c->name, length) && row[length] == ',';
}

static void read_row(const CounterRuns *runs, char *line, CounterRun *run) {
  strsep(&line, ",");
  for (int i = 1; i < runs->column_count; i++) {
    char *field = strsep(&line, ",");
    cr_assert(field, "h200.csv: the row of '%s' is short", run->c.name);
    run->ncu[i] = *field ? strtoull(field, NULL, 10) : NOT_ASKED;
  }
}

// ---- the same on the emulator ----

typedef struct CounterMachine {
  Emulator *emulator;
  EmulatorModule *module;
  uint64_t memory;
} CounterMachine;

static Text patterns_ptx(void) {
  const char *given = getenv("COUNTERS_PTX"), *nvcc = getenv("NVCC");
  if (given) return read_text(given);
  char made[] = "/tmp/counters-XXXXXX", command[2000];
  int file = mkstemp(made);
  cr_assert(file >= 0, "no temporary file");
  close(file);
  snprintf(command, sizeof command,
           "%s -O3 -gencode arch=compute_90a,code=compute_90a -ptx '%s/tests/counters/patterns.cu' -o %s",
           nvcc ? nvcc : "nvcc", root_path(), made);
  cr_assert_eq(system(command), 0, "%s: failed", command);
  Text ptx = read_text(made);
  unlink(made);
  return ptx;
}

static CounterMachine open_machine(void) {
  EmulatorError error = {0};
  Text ptx = patterns_ptx();
  // Without hazards: the kernels read shared memory that nobody wrote, and lanes race.
  CounterMachine machine = {.emulator = emulator_open(&(EmulatorOptions){.hazards = false, .threads = 1})};
  machine.module = emulator_load(machine.emulator, ptx.bytes, ptx.length, &error);
  cr_assert(machine.module, "patterns.cu, PTX line %d: %s", error.line, error.message);
  machine.memory = emulator_alloc(machine.emulator, MEMORY_BYTES);
  free(ptx.bytes);
  return machine;
}

static Map case_map(const CaseTensor *t, uint64_t memory) {
  EmulatorTensorSpec spec = {.type = t->element_bytes == 2 ? EMULATOR_TENSOR_F16 : EMULATOR_TENSOR_F32,
                             .rank = 2,
                             .address = memory,
                             .size = {(uint64_t)t->width, (uint64_t)t->height},
                             .stride = {0, (uint64_t)t->pitch},
                             .box = {(uint32_t)t->box_width, (uint32_t)t->box_height},
                             .swizzle = t->swizzle == 128  ? EMULATOR_SWIZZLE_128B
                                        : t->swizzle == 64 ? EMULATOR_SWIZZLE_64B
                                        : t->swizzle == 32 ? EMULATOR_SWIZZLE_32B
                                                           : EMULATOR_SWIZZLE_NONE};
  return make_map(&spec);
}

static EmulatorCounters emulate(CounterMachine *machine, const CounterCase *c) {
  EmulatorError error = {0};
  bool has_map = c->tensor.width > 0;
  Map map = has_map ? case_map(&c->tensor, machine->memory) : (Map){0};
  const void *arguments[] = {&c->offsets, &machine->memory, &map};
  EmulatorLaunch launch = {.kernel = c->kernel,
                           .grid = {c->blocks, 1, 1},
                           .block = {c->threads, 1, 1},
                           .dynamic_shared = SHARED_BYTES,
                           .arguments = arguments,
                           .argument_count = has_map ? 3 : 2};
  emulator_fill(machine->emulator, machine->memory, 0, MEMORY_BYTES);
  emulator_clear_counters(machine->emulator);
  EmulatorStatus status = emulator_launch(machine->emulator, machine->module, &launch, &error);
  cr_assert_eq(status, EMULATOR_OK, "%s: %s", c->name, error.message);
  return emulator_counters(machine->emulator);
}

// ---- both ----

static int case_count(void) {
  static CounterCase c;
  int count = 0;
  while (counter_case(count, &c)) count++;
  return count;
}

CounterRuns counter_runs(void) {
  CounterRuns runs = {0};
  char *next = read_head(&runs);
  CounterMachine machine = open_machine();
  int cases = case_count();
  runs.items = calloc((size_t)cases, sizeof *runs.items);
  cr_assert(runs.items, "no memory");
  for (int i = 0; i < cases; i++) {
    CounterRun *run = &runs.items[runs.count];
    counter_case(i, &run->c);
    cr_assert(is_row_of(next, &run->c), "h200.csv: '%.60s' stands where the row of '%s' belongs. Record it again", next,
              run->c.name);
    read_row(&runs, cut_line(&next), run);
    run->emulator = emulate(&machine, &run->c);
    runs.count++;
  }
  cr_assert_eq(*next, '\0', "h200.csv has a row that cases.h has not: '%.60s'. Record it again", next);
  emulator_close(machine.emulator);
  return runs;
}

void counter_runs_free(CounterRuns *runs) {
  free(runs->items);
  free(runs->text);
}

static uint64_t find_field(const CounterRuns *runs, const CounterRun *run, const char *name) {
  for (int i = 1; i < runs->column_count; i++)
    if (!strcmp(runs->columns[i], name)) return run->ncu[i];
  return NOT_ASKED;
}

uint64_t counter_recorded(const CounterRuns *runs, const CounterRun *run, const char *name) {
  uint64_t field = find_field(runs, run, name);
  return field == NOT_ASKED ? 0 : field;
}

bool counter_was_asked(const CounterRuns *runs, const CounterRun *run, const char *name) {
  return find_field(runs, run, name) != NOT_ASKED;
}

bool counter_is_of_memory(CounterKind kind) { return !strncmp(counter_name(kind), "l1tex__", 7); }

const CounterRun *counter_run_with_more_trips(const CounterRuns *runs, const CounterRun *run) {
  const CounterRun *next = run + 1;
  bool fewer = strstr(run->c.name, " 8 trips") && next < runs->items + runs->count;
  return fewer && !strcmp(next->c.kernel, run->c.kernel) ? next : NULL;
}
