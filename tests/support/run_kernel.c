#include "run_kernel.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

// The lines of one variant, without the marks.
static char *pick_variant(const char *text, Variant variant) {
  char *picked = malloc(strlen(text) + 1), *to = picked;
  cr_assert(picked);
  while (*text) {
    size_t length = strcspn(text, "\n") + (strchr(text, '\n') != NULL);
    bool marked = text[0] && text[1] == ':' && (text[0] == 'F' || text[0] == 'R');
    bool wanted = !marked || (text[0] == 'F') == (variant == FAULTY);
    if (wanted) {
      memcpy(to, text + 2 * marked, length - 2 * marked);
      to += length - 2 * marked;
    }
    text += length;
  }
  *to = 0;
  return picked;
}

Machine machine_open(const char *text, Variant variant, uint64_t schedule) {
  Machine machine = {.text = pick_variant(text, variant)};
  EmulatorError error = {0};
  machine.emulator = emulator_open(&(EmulatorOptions){.hazards = true, .schedule = schedule, .threads = 1, .step_limit = 1 << 24});
  cr_assert(machine.emulator);
  machine.module = emulator_load(machine.emulator, machine.text, strlen(machine.text), &error);
  cr_assert(machine.module, "line %d: %s\n%s", error.line, error.message, machine.text);
  return machine;
}

void machine_close(Machine *machine) {
  emulator_close(machine->emulator);
  free(machine->text);
}

uint64_t machine_upload(Machine *machine, const void *bytes, size_t size) {
  uint64_t address = emulator_alloc(machine->emulator, size);
  cr_assert(address);
  if (bytes) cr_assert(emulator_write(machine->emulator, address, bytes, size));
  return address;
}

void machine_download(Machine *machine, void *bytes, uint64_t address, size_t size) {
  cr_assert(emulator_read(machine->emulator, bytes, address, size));
}

EmulatorStatus machine_launch(Machine *machine, unsigned grid, unsigned block, unsigned cluster, const void *const *arguments, int count) {
  EmulatorError error = {0};
  EmulatorLaunch launch = {.kernel = "test", .grid = {grid, 1, 1}, .block = {block, 1, 1}, .cluster = {cluster, cluster ? 1 : 0, cluster ? 1 : 0},
                           .arguments = arguments, .argument_count = count};
  EmulatorStatus status = emulator_launch(machine->emulator, machine->module, &launch, &error);
  cr_assert_neq(status, EMULATOR_INVALID, "%s", error.message);
  return status;
}

static void print_hazards(const Hazard *hazards, int count) {
  for (int i = 0; i < count; i++) emulator_print_hazard(stderr, &hazards[i]);
}

bool expect_clean(Machine *machine) {
  int count;
  const Hazard *hazards = emulator_hazards(machine->emulator, &count);
  if (count) print_hazards(hazards, count);
  cr_expect_eq(count, 0, "%d hazards in a kernel that has none, the first: %s at PTX line %d: %s\n%s", count, hazard_name(hazards[0].kind),
               hazards[0].here.ptx_line, hazards[0].detail, machine->text);
  return count == 0;
}

static int marked_line(const char *text) {
  const char *mark = strstr(text, "// here");
  cr_assert(mark, "no line is marked\n%s", text);
  int line = 1;
  for (const char *at = text; at < mark; at++) line += *at == '\n';
  return line;
}

static bool has_hazard(const Machine *machine, HazardKind kind, const char *word) {
  int count, line = marked_line(machine->text);
  const Hazard *hazards = emulator_hazards(machine->emulator, &count);
  for (int i = 0; i < count; i++) {
    bool there = hazards[i].here.ptx_line == line || (hazards[i].has_other && hazards[i].other.ptx_line == line);
    if (hazards[i].kind == kind && there && strstr(hazards[i].detail, word)) return true;
  }
  return false;
}

bool expect_hazard(Machine *machine, HazardKind kind, const char *word) {
  if (has_hazard(machine, kind, word)) return true;
  int count, line = marked_line(machine->text);
  const Hazard *hazards = emulator_hazards(machine->emulator, &count);
  print_hazards(hazards, count);
  cr_expect(false, "no %s at line %d that says \"%s\"\n%s", hazard_name(kind), line, word, machine->text);
  return false;
}

Map make_map(const EmulatorTensorSpec *spec) {
  Map map;
  EmulatorError error = {0};
  cr_assert(emulator_tensor_map(spec, map.bytes, &error), "%s", error.message);
  return map;
}

// ---- pairs ----

enum { PAIR_BYTES = 4096 };

// False when it did not do as it should.
static bool run_variant(const Pair *pair, Variant variant, uint64_t schedule, uint8_t *output) {
  uint32_t input[PAIR_BYTES / 4];
  for (int i = 0; i < PAIR_BYTES / 4; i++) input[i] = (uint32_t)i * 2654435761u;
  Machine machine = machine_open(pair->text, variant, schedule);
  uint64_t in = machine_upload(&machine, input, sizeof input), out = machine_upload(&machine, NULL, PAIR_BYTES);
  emulator_fill(machine.emulator, out, 0, PAIR_BYTES);
  Map map = make_map(&(EmulatorTensorSpec){.type = EMULATOR_TENSOR_U32, .rank = 2, .address = in, .size = {32, 32}, .stride = {0, 128}, .box = {32, 4}});
  const void *arguments[] = {&map, &in, &out};
  EmulatorStatus status = machine_launch(&machine, pair->grid ? pair->grid : 1, pair->block ? pair->block : 64, pair->cluster, arguments, 3);
  bool other = variant == FAULTY && pair->or_kind && has_hazard(&machine, pair->or_kind, "");
  bool right = other || (variant == FAULTY ? expect_hazard(&machine, pair->kind, pair->word) : expect_clean(&machine));
  if (variant == REPAIRED) {
    cr_expect_eq(status, EMULATOR_OK, "%s: the repaired kernel was stopped", pair->name);
    machine_download(&machine, output, out, PAIR_BYTES);
  }
  machine_close(&machine);
  cr_expect(right, "%s, schedule %d", pair->name, (int)schedule);
  return right;
}

void run_pairs(const Pair *pairs, int count) {
  for (int i = 0; i < count; i++) {
    uint8_t first[PAIR_BYTES], output[PAIR_BYTES];
    for (uint64_t schedule = 0; schedule < SCHEDULES; schedule++) {
      if (!run_variant(&pairs[i], FAULTY, schedule, NULL)) break;
      if (!run_variant(&pairs[i], REPAIRED, schedule, schedule ? output : first)) break;
      cr_expect(!schedule || !memcmp(first, output, PAIR_BYTES), "%s: schedule %d gives another result", pairs[i].name, (int)schedule);
    }
  }
}
