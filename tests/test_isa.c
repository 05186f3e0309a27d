// Which instructions of the PTX ISA the emulator has: notes/instructions.md is this test's table, and is compared with
// what happens. WRITE_INSTRUCTIONS=1 writes it.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emulator/emulator.h"
#include "support/isa.h"
#include "support/program.h"
#include "support/sanitized.h"
#include "support/scratch.h"

TestSuite(isa, .timeout = 120);

enum { TEXT_SIZE = 1 << 13, BUFFER = 1 << 16 };

// ---- on the emulator ----

typedef struct Device {
  Emulator *emulator;
  uint64_t buffer;
  _Alignas(64) uint8_t map[EMULATOR_TENSOR_MAP_BYTES];
} Device;

static Device open_device(void) {
  Device device = {.emulator = emulator_open(&(EmulatorOptions){.threads = 1, .step_limit = 1 << 22})};
  EmulatorError error;
  device.buffer = emulator_alloc(device.emulator, BUFFER);
  emulator_fill(device.emulator, device.buffer, 0, BUFFER);
  const EmulatorTensorSpec spec = {.type = EMULATOR_TENSOR_U32,
                                   .rank = 2,
                                   .address = device.buffer,
                                   .size = {32, 32},
                                   .stride = {0, 128},
                                   .box = {32, 4}};
  cr_assert(emulator_tensor_map(&spec, device.map, &error), "%s", error.message);
  emulator_write(device.emulator, device.buffer, device.map, sizeof device.map);
  return device;
}

// Runs a probe. What the emulator refuses to launch it for, "" when it does not: a static string. A module that holds
// it is loaded all the same: a program may never launch the kernel.
static const char *refusal(const char *probe) {
  static EmulatorError error;
  char kernel[TEXT_SIZE], text[2 * TEXT_SIZE];
  isa_kernel(kernel, sizeof kernel, "probe", probe);
  int length = snprintf(text, sizeof text, "%s%s", isa_module, kernel);
  Device device = open_device();
  EmulatorModule *module = emulator_load(device.emulator, text, (size_t)length, &error);
  cr_expect(module, "a module with %s is not loaded: %s", probe, error.message);
  EmulatorLaunch launch = {.kernel = "probe",
                           .grid = {2, 1, 1},
                           .block = {128, 1, 1},
                           .cluster = {2, 1, 1},
                           .arguments = (const void *[]){&device.buffer, device.map},
                           .argument_count = 2};
  bool ok = module && emulator_launch(device.emulator, module, &launch, &error) == EMULATOR_OK;
  emulator_close(device.emulator);
  return ok ? "" : error.message;
}

// ---- the table ----

typedef struct Table {
  char text[1 << 17];
  size_t used;
} Table;

static void add(Table *table, const char *text) {
  for (; *text; text++) table->text[table->used++] = *text;
  cr_assert(table->used < sizeof table->text - 1000);
}

// A form as the table shows it: "add.<1:u16|s16>" is add.{u16,s16}.
static void add_form(Table *table, const char *form) {
  add(table, "`");
  for (; *form; form++) {
    char one[2] = {*form == '<' ? '{' : *form == '>' ? '}' : *form == '|' ? ',' : *form, 0};
    add(table, one);
    if (*form == '<' && form[1] >= '1' && form[1] <= '9' && form[2] == ':') form += 2;
  }
  add(table, "`");
}

// Whether what the emulator says of a probe begins with the name of one of its instructions.
static bool names_instruction(const char *reason, const char *probe) {
  char opcode[40];
  snprintf(opcode, sizeof opcode, "%.*s", (int)strcspn(reason, ".: "), reason);
  return *opcode && strchr(".:", reason[strlen(opcode)]) && strstr(probe, opcode);
}

// What is refused of a line: the line's form, or the forms of some of its probes. Returns how many probes.
static int add_refused(Table *table, const IsaRow *row, const ProbeLine *line, bool *any) {
  bool *refused = calloc((size_t)line->count, sizeof *refused);
  int count = 0;
  for (int i = 0; i < line->count; i++) {
    const char *reason = refusal(line->probes[i]);
    refused[i] = *reason;
    count += refused[i];
    cr_expect(!*reason || names_instruction(reason, line->probes[i]), "%s fails with '%s'", line->probes[i], reason);
    cr_expect(*reason || !line->foreign, "%s is no instruction of sm_90a, and runs", line->probes[i]);
  }
  for (int i = 0; i < (count == line->count ? 1 : line->count) && !line->foreign; i++) {
    if (!refused[i]) continue;
    add(table, *any ? ", " : "; not ");
    add_form(table, isa_form(row, count == line->count ? line->text : line->probes[i]));
    *any = true;
  }
  free(refused);
  return count;
}

static void add_row(Table *table, const IsaRow *row) {
  static Table refused;
  int probes = 0, count = 0;
  bool any = false;
  refused.used = 0;
  for (int i = 0; i < row->count; i++) {
    int without = add_refused(&refused, row, &row->lines[i], &any);
    if (!row->lines[i].foreign) probes += row->lines[i].count, count += without;
  }
  refused.text[refused.used] = 0;
  char start[300];
  const char *state = !probes ? "not on sm_90a" : count == probes ? "no" : "yes";
  snprintf(start, sizeof start, "| %s | `%s` | %s", row->section, row->name, state);
  add(table, start);
  if (count < probes) add(table, refused.text);
  add(table, " |\n");
}

// A heading and a table for each chapter of instructions.
static void make_table(Table *table) {
  int count;
  const IsaRow *rows = isa_rows(&count);
  const char *chapter = "";
  for (int i = 0; i < count; i++) {
    if (strcmp(chapter, rows[i].chapter)) {
      chapter = rows[i].chapter;
      add(table, "\n## ");
      add(table, chapter);
      add(table, "\n\n| section | instruction | on the emulator |\n|---|---|---|\n");
    }
    add_row(table, &rows[i]);
  }
  table->text[table->used] = 0;
}

Test(isa, the_note_says_what_the_emulator_has) {
  static Table table;
  char path[400];
  size_t size;
  snprintf(path, sizeof path, "%s/notes/instructions.md", root_path());
  char *note = read_whole(path, &size);
  cr_assert(note, "cannot read %s", path);
  char *shown = strstr(note, "\n## ");
  make_table(&table);
  if (getenv("WRITE_INSTRUCTIONS")) {
    FILE *file = fopen(path, "w");
    cr_assert(file);
    fprintf(file, "%.*s%s", shown ? (int)(shown - note) : (int)size, note, table.text);
    fclose(file);
    return;
  }
  cr_expect(shown && !strcmp(shown, table.text),
            "notes/instructions.md is not what the emulator does. See what WRITE_INSTRUCTIONS=1 make test "
            "TESTS='isa/the_note*' changes in it");
}

// ---- in ptxas ----

static bool assembles(const char *name) {
  char command[200];
  snprintf(command, sizeof command, "ptxas -arch=sm_90a -O0 -o /dev/null %s", name);
  return scratch_run(command) == 0;
}

// Of probes that must be accepted all are in one file; each other one has its own.
Test(isa, ptxas_has_every_form, .init = scratch_enter, .fini = scratch_leave, .timeout = 300) {
  if (SANITIZED) cr_skip_test("ptxas runs, and no C code of ours");
  if (scratch_run("command -v ptxas") != 0) cr_skip_test("no ptxas");
  int count, number = 0;
  const IsaRow *rows = isa_rows(&count);
  static char all[1 << 24];
  size_t used = (size_t)snprintf(all, sizeof all, "%s", isa_module);
  for (int i = 0; i < count; i++)
    for (int l = 0; l < rows[i].count; l++)
      for (int p = 0; p < rows[i].lines[l].count; p++) {
        char name[20], kernel[TEXT_SIZE], text[2 * TEXT_SIZE];
        snprintf(name, sizeof name, "probe%d", number++);
        isa_kernel(kernel, sizeof kernel, name, rows[i].lines[l].probes[p]);
        if (!rows[i].lines[l].foreign) {
          used += (size_t)snprintf(all + used, sizeof all - used, "%s", kernel);
          cr_assert(used < sizeof all);
          continue;
        }
        snprintf(text, sizeof text, "%s%s", isa_module, kernel);
        scratch_write("foreign.ptx", text);
        cr_expect(!assembles("foreign.ptx"), "ptxas has %s", rows[i].lines[l].probes[p]);
      }
  scratch_write("all.ptx", all);
  cr_expect(assembles("all.ptx"), "%s", scratch_output);
  cr_expect_gt(number, 2000);
}
