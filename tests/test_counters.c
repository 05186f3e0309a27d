// The emulator's counters against Nsight Compute's on an H200, for every launch of tests/counters/cases.h. The recorded
// numbers are in tests/counters/h200.csv; notes/counters.md says what they mean and where the two must differ.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "counters/cases.h"
#include "emulator/emulator.h"
#include "support/program.h"
#include "support/ptx_files.h"

TestSuite(counters, .timeout = 60);

// ---- what was recorded ----

enum { MAX_COLUMNS = 64 };

typedef struct Recording {
  char *text;
  char *columns[MAX_COLUMNS];
  int column_count;
  char *next_row;
} Recording;

static char *cut_line(char **text) {
  char *line = *text, *end = strchr(line, '\n');
  cr_assert(end, "h200.csv ends in the middle of a line");
  *end = '\0';
  *text = end + 1;
  return line;
}

static Recording open_recording(void) {
  char path[1000];
  snprintf(path, sizeof path, "%s/tests/counters/h200.csv", root_path());
  cr_assert(access(path, R_OK) == 0, "%s is missing: tests/counters/record.sh records it on a Hopper GPU", path);
  Recording recording = {.text = read_text(path).bytes};
  recording.next_row = recording.text;
  char *line = cut_line(&recording.next_row);
  cr_assert(line[0] == '#', "h200.csv does not begin with a comment on the device and the date");
  for (char *name = strtok(cut_line(&recording.next_row), ","); name; name = strtok(NULL, ",")) {
    cr_assert(recording.column_count < MAX_COLUMNS);
    recording.columns[recording.column_count++] = name;
  }
  return recording;
}

// The recorded counters of the next case, by column.
static void read_row(Recording *recording, const CounterCase *c, uint64_t values[MAX_COLUMNS]) {
  char *field = strtok(cut_line(&recording->next_row), ",");
  cr_assert(field && !strcmp(field, c->name), "h200.csv has '%s' where cases.h has '%s': record it again", field, c->name);
  for (int i = 1; i < recording->column_count; i++) {
    field = strtok(NULL, ",");
    cr_assert(field, "h200.csv: the row of '%s' is short", c->name);
    values[i] = strtoull(field, NULL, 10);
  }
}

// The recorder leaves out the columns that are zero in every case.
static uint64_t recorded(const Recording *recording, const uint64_t values[MAX_COLUMNS], const char *name) {
  for (int i = 1; i < recording->column_count; i++)
    if (!strcmp(recording->columns[i], name)) return values[i];
  return 0;
}

// ---- the same on the emulator ----

typedef struct Machine {
  Emulator *emulator;
  EmulatorModule *module;
  uint64_t memory;
} Machine;

// The PTX of patterns.cu: COUNTERS_PTX, or made by nvcc.
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

static Machine open_machine(void) {
  EmulatorError error = {0};
  Text ptx = patterns_ptx();
  // Without hazards: the kernels read shared memory that nobody wrote, and lanes race.
  Machine machine = {.emulator = emulator_open(&(EmulatorOptions){.hazards = false, .threads = 1})};
  machine.module = emulator_load(machine.emulator, ptx.bytes, ptx.length, &error);
  cr_assert(machine.module, "patterns.cu, PTX line %d: %s", error.line, error.message);
  machine.memory = emulator_alloc(machine.emulator, MEMORY_BYTES);
  free(ptx.bytes);
  return machine;
}

static EmulatorCounters emulate(Machine *machine, const CounterCase *c) {
  EmulatorError error = {0};
  const void *arguments[] = {&c->offsets, &machine->memory};
  EmulatorLaunch launch = {.kernel = c->kernel,
                           .grid = {c->blocks, 1, 1},
                           .block = {c->threads, 1, 1},
                           .dynamic_shared = SHARED_BYTES,
                           .arguments = arguments,
                           .argument_count = 2};
  emulator_fill(machine->emulator, machine->memory, 0, MEMORY_BYTES);
  emulator_clear_counters(machine->emulator);
  EmulatorStatus status = emulator_launch(machine->emulator, machine->module, &launch, &error);
  cr_assert_eq(status, EMULATOR_OK, "%s: %s", c->name, error.message);
  return emulator_counters(machine->emulator);
}

// ---- comparison ----

static bool starts_with(const char *text, const char *prefix) { return !strncmp(text, prefix, strlen(prefix)); }

static int compare(const Recording *recording, const uint64_t *values, const CounterCase *c, const EmulatorCounters *got,
                   const CounterKind *kinds, int count) {
  int different = 0;
  for (int k = 0; k < count; k++) {
    const char *name = counter_name(kinds[k]);
    uint64_t want = recorded(recording, values, name), have = got->value[kinds[k]];
    cr_expect_eq(have, want, "%s: %s is %llu, ncu says %llu", c->name, name, (unsigned long long)have,
                 (unsigned long long)want);
    different += have != want;
  }
  return different;
}

// Every case that accesses memory: what it does to shared memory's banks and to global memory's sectors.
Test(counters, memory) {
  static const CounterKind kinds[] = {
      COUNTER_SHARED_LOAD_WAVEFRONTS,      COUNTER_SHARED_STORE_WAVEFRONTS, COUNTER_SHARED_LOAD_BANK_CONFLICTS,
      COUNTER_SHARED_STORE_BANK_CONFLICTS, COUNTER_GLOBAL_LOAD_REQUESTS,    COUNTER_GLOBAL_STORE_REQUESTS,
      COUNTER_GLOBAL_LOAD_SECTORS,         COUNTER_GLOBAL_STORE_SECTORS,
  };
  static CounterCase c;
  Recording recording = open_recording();
  Machine machine = open_machine();
  int compared = 0;
  for (int i = 0; counter_case(i, &c); i++) {
    uint64_t values[MAX_COLUMNS];
    read_row(&recording, &c, values);
    if (starts_with(c.kernel, "repeat_")) continue;
    EmulatorCounters got = emulate(&machine, &c);
    compare(&recording, values, &c, &got, kinds, sizeof kinds / sizeof *kinds);
    compared++;
  }
  cr_expect(compared > 300, "only %d cases", compared);
  emulator_close(machine.emulator);
}
