// Every hazard: the kernels of tests/hazards, faulty and repaired. A faulty kernel must be reported by the hazard's
// name and at its line in every schedule, for hazards are found by rule and not by luck; its repaired twin must run
// without a report and give the same result in every schedule. tests/hazards/kernels.h tells how the kernels are
// marked.
//
// HAZARD_PTX_DIR is a folder of PTX made from tests/hazards: NAME.faulty.ptx and NAME.repaired.ptx. If HAZARD_RECORD is
// a folder, each run leaves a file there, and has one host thread: make test-web compares those of two machines.
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emulator/emulator.h"
#include "support/program.h"
#include "support/ptx_files.h"
#include "support/sanitized.h"

TestSuite(hazards, .timeout = 120);

// Under sanitizers one schedule on each number of host threads: more take the same paths of the C code.
enum {
  SCHEDULES = SANITIZED ? 1 : 5,
  STEP_LIMIT = 16 << 20,
  MAX_BUFFERS = 12,
  MAX_MARKERS = 16,
  MAX_ADVICE = 4,
  MAX_CASES = 400
};

// ---- what the comments of a kernel say ----

typedef enum Content { RAMP, ZERO, ONE, FRESH, FREED } Content;
typedef enum ElementType { INT, FLOAT, DOUBLE, HALF, BYTE } ElementType;

typedef struct Argument {
  enum { BUFFER, NUMBER, BYTES, NULL_POINTER, MAP } kind;
  ElementType type;
  Content content;
  int count;                 // elements of a buffer, bytes of BYTES
  int number;                // of MAP: the argument that is its buffer
  unsigned size[3], box[3];  // of MAP
  EmulatorTensorSwizzle swizzle;
} Argument;

typedef struct Marker {
  enum { EXPECTED, OTHER_SIDE, ALLOWED } role;
  int line;
  HazardKind kind;  // but of OTHER_SIDE
  HazardGrade grade;
} Marker;

typedef struct Script {
  char family[40], kernel[56];
  unsigned grid[3], block[3], cluster[3];
  size_t shared;
  uint64_t steps;
  int argument_count, marker_count;
  Argument arguments[MAX_BUFFERS];
  Marker markers[MAX_MARKERS];
  int advice_count;
  char advice[MAX_ADVICE][200];  // texts that the report must have
} Script;

static void bad_comment(const Script *script, const char *what) {
  cr_assert_fail("tests/hazards/%s.cu, kernel %s: %s", script->family, script->kernel, what);
}

static void read_shape(const char *word, unsigned shape[3]) {
  shape[0] = shape[1] = shape[2] = 1;
  cr_assert(sscanf(word, "%ux%ux%u", &shape[0], &shape[1], &shape[2]) >= 1, "%s is no shape", word);
}

// "map:1:64x32:16x8:128B"
static Argument read_map(const Script *script, const char *word) {
  static const char *const swizzles[] = {"none", "32B", "64B", "128B"};
  Argument argument = {.kind = MAP};
  char size[24], box[24], swizzle[8] = "none";
  if (sscanf(word, "map:%d:%23[0-9x]:%23[0-9x]:%7s", &argument.number, size, box, swizzle) < 3)
    bad_comment(script, word);
  read_shape(size, argument.size);
  read_shape(box, argument.box);
  for (int i = 0; i < 4; i++)
    if (!strcmp(swizzle, swizzles[i])) argument.swizzle = (EmulatorTensorSwizzle)i;
  return argument;
}

// "float[200]=zero", "map:...", "bytes16", "null" or "200".
static Argument read_argument(const Script *script, const char *word) {
  static const char *const types[] = {"int", "float", "double", "half", "byte"};
  static const char *const contents[] = {"ramp", "zero", "one", "fresh", "freed"};
  Argument argument = {.kind = BUFFER};
  char type[16], content[16] = "ramp";
  if (!strcmp(word, "null")) return (Argument){.kind = NULL_POINTER};
  if (!strncmp(word, "map:", 4)) return read_map(script, word);
  if (sscanf(word, "bytes%d", &argument.count) == 1) return (Argument){.kind = BYTES, .count = argument.count};
  if (sscanf(word, "%15[a-z][%d]=%15s", type, &argument.count, content) < 2) {
    char *end;
    argument = (Argument){.kind = NUMBER, .number = (int)strtol(word, &end, 10)};
    if (*end) bad_comment(script, word);
    return argument;
  }
  bool known = false;
  for (int i = 0; i < 5; i++)
    if (!strcmp(type, types[i])) argument.type = (ElementType)i, known = true;
  for (int i = 0; known && i < 5; i++)
    if (!strcmp(content, contents[i])) {
      argument.content = (Content)i;
      return argument;
    }
  bad_comment(script, word);
  return argument;
}

// "grid 2 block 128 shared 0 cluster 1 args ..."
static void read_launch(Script *script, const char *text) {
  char line[400];
  snprintf(line, sizeof line, "%.*s", (int)strcspn(text, "\n"), text);
  bool in_arguments = false;
  for (char *rest = line, *word; (word = strtok_r(rest, " ", &rest));) {
    if (in_arguments) {
      script->arguments[script->argument_count++] = read_argument(script, word);
      continue;
    }
    char *value = !strcmp(word, "args") ? NULL : strtok_r(rest, " ", &rest);
    if (!value)
      in_arguments = true;
    else if (!strcmp(word, "grid"))
      read_shape(value, script->grid);
    else if (!strcmp(word, "block"))
      read_shape(value, script->block);
    else if (!strcmp(word, "cluster"))
      read_shape(value, script->cluster);
    else if (!strcmp(word, "shared"))
      script->shared = (size_t)atoi(value);
    else if (!strcmp(word, "steps"))
      script->steps = (uint64_t)atoi(value);
    else
      bad_comment(script, word);
  }
}

// "shared-memory race", "formal barrier misuse"
static HazardKind read_kind(const Script *script, const char *text, HazardGrade *grade) {
  *grade = !strncmp(text, "formal ", 7) ? HAZARD_FORMAL : !strncmp(text, "note ", 5) ? HAZARD_NOTE : HAZARD_FAULT;
  if (*grade != HAZARD_FAULT) text = strchr(text, ' ') + 1;
  for (int kind = 0; kind < HAZARD_KIND_COUNT; kind++) {
    size_t length = strlen(hazard_name((HazardKind)kind));
    if (!strncmp(text, hazard_name((HazardKind)kind), length) && strchr(" ,\n", text[length])) return (HazardKind)kind;
  }
  bad_comment(script, "a marker names no hazard");
  return HAZARD_KIND_COUNT;
}

static void read_markers(Script *script, const char *source) {
  static const char *const roles[] = {"HAZARD", "OTHER", "ALSO"};
  char text[3][80];
  int line = 1, length[3];
  for (int role = 0; role < 3; role++)
    length[role] = snprintf(text[role], sizeof text[role], " %s(%s)", roles[role], script->kernel);
  for (const char *at = source; *at; at++) {
    line += *at == '\n';
    for (int role = 0; role < 3; role++) {
      if (strncmp(at, text[role], (size_t)length[role])) continue;
      Marker marker = {.role = (int)role, .line = line};
      if (role != OTHER_SIDE) marker.kind = read_kind(script, at + length[role] + 2, &marker.grade);
      if (script->marker_count == MAX_MARKERS) bad_comment(script, "too many markers");
      script->markers[script->marker_count++] = marker;
    }
  }
}

static int line_of(const Script *script, int role) {
  for (int i = 0; i < script->marker_count; i++)
    if ((int)script->markers[i].role == role) return script->markers[i].line;
  bad_comment(script, "the advice names a line that is not marked");
  return 0;
}

// "Put a barrier after line {OTHER}": the lines are those of the first markers.
static void read_advice(Script *script, const char *source) {
  char start[80];
  size_t length = (size_t)snprintf(start, sizeof start, "// ADVICE(%s): ", script->kernel);
  for (const char *at = source; (at = strstr(at, start));) {
    if (script->advice_count == MAX_ADVICE) bad_comment(script, "too much advice");
    char *text = script->advice[script->advice_count++];
    size_t used = 0;
    for (at += length; *at != '\n' && used + 12 < sizeof script->advice[0];) {
      bool other = !strncmp(at, "{OTHER}", 7), here = !strncmp(at, "{HAZARD}", 8);
      if (other || here)
        used += (size_t)sprintf(text + used, "%d", line_of(script, other ? OTHER_SIDE : EXPECTED));
      else
        text[used++] = *at;
      at += other ? 7 : here ? 8 : 1;
    }
    text[used] = 0;
  }
}

static char *read_source(const char *family) {
  char path[600];
  snprintf(path, sizeof path, "%s/tests/hazards/%s.cu", root_path(), family);
  return read_text(path).bytes;
}

static Script read_script(const char *family, const char *kernel) {
  Script script = {.steps = STEP_LIMIT};
  char *source = read_source(family), start[80];
  snprintf(script.family, sizeof script.family, "%s", family);
  snprintf(script.kernel, sizeof script.kernel, "%s", kernel);
  snprintf(start, sizeof start, "// launch %s: ", kernel);
  const char *launch = strstr(source, start);
  if (!launch) bad_comment(&script, "no launch");
  read_launch(&script, launch + strlen(start));
  read_markers(&script, source);
  read_advice(&script, source);
  free(source);
  return script;
}

static bool expects_hazard(const Script *script) {
  for (int i = 0; i < script->marker_count; i++)
    if (script->markers[i].role == EXPECTED) return true;
  return false;
}

// ---- a run ----

typedef struct Run {
  Emulator *emulator;
  EmulatorStatus status;
  const Hazard *hazards;
  int hazard_count;
  char *report;     // the hazards as text
  uint8_t *memory;  // all buffers, one after the other
  size_t memory_size;
  bool changed;  // whether the kernel wrote anything
} Run;

static uint16_t half_bits(int value) {  // of 0 to 2048
  if (value == 0) return 0;
  int exponent = 31 - __builtin_clz((unsigned)value);
  return (uint16_t)((exponent + 15) << 10 | ((value << 10 >> exponent) & 0x3ff));
}

static size_t element_size(ElementType type) {
  static const size_t sizes[] = {4, 4, 8, 2, 1};
  return sizes[type];
}

static void put_element(uint8_t *at, ElementType type, int value) {
  float single = (float)value;
  double twice = value;
  uint16_t half = half_bits(value);
  uint8_t byte = (uint8_t)value;
  const void *const bits[] = {&value, &single, &twice, &half, &byte};
  memcpy(at, bits[type], element_size(type));
}

static uint64_t make_buffer(Emulator *emulator, const Argument *argument, uint8_t *bytes) {
  size_t element = element_size(argument->type), size = (size_t)argument->count * element;
  uint64_t address = emulator_alloc(emulator, size);
  cr_assert(address);
  memset(bytes, 0, size);
  for (int i = 0; i < argument->count; i++) {
    if (argument->content == RAMP) put_element(bytes + (size_t)i * element, argument->type, i);
    if (argument->content == ONE) put_element(bytes + (size_t)i * element, argument->type, 1);
  }
  if (argument->content == FREED)
    emulator_free(emulator, address);
  else if (argument->content == FRESH)
    cr_assert(emulator_read(emulator, bytes, address, size));
  else
    cr_assert(emulator_write(emulator, address, bytes, size));
  return address;
}

// A map of the whole buffer at an address: packed rows, and as many dimensions as the script gives sizes.
static void make_map(const Argument *argument, const Argument *buffer, uint64_t address,
                     uint8_t map[EMULATOR_TENSOR_MAP_BYTES]) {
  static const EmulatorTensorType types[] = {EMULATOR_TENSOR_S32, EMULATOR_TENSOR_F32, EMULATOR_TENSOR_F64,
                                             EMULATOR_TENSOR_F16, EMULATOR_TENSOR_U8};
  EmulatorTensorSpec spec = {.type = types[buffer->type], .rank = 3, .address = address, .swizzle = argument->swizzle};
  while (spec.rank > 1 && argument->size[spec.rank - 1] == 1) spec.rank--;
  for (int d = 0; d < spec.rank; d++) {
    spec.size[d] = argument->size[d];
    spec.box[d] = argument->box[d];
    spec.stride[d] = d ? spec.stride[d - 1] * spec.size[d - 1] : element_size(buffer->type);
  }
  EmulatorError error;
  cr_assert(emulator_tensor_map(&spec, map, &error), "%s", error.message);
}

static EmulatorModule *load_ptx(Emulator *emulator, const Script *script, bool repaired) {
  char path[600];
  cr_assert(getenv("HAZARD_PTX_DIR"), "HAZARD_PTX_DIR is not set");
  snprintf(path, sizeof path, "%s/%s.%s.ptx", getenv("HAZARD_PTX_DIR"), script->family,
           repaired ? "repaired" : "faulty");
  Text ptx = read_text(path);
  EmulatorError error;
  EmulatorModule *module = emulator_load(emulator, ptx.bytes, ptx.length, &error);
  cr_assert(module, "%s: line %d: %s", path, error.line, error.message);
  free(ptx.bytes);
  return module;
}

static char *print_hazards(const Hazard *hazards, int count) {
  char *text = NULL;
  size_t size;
  FILE *file = open_memstream(&text, &size);
  for (int i = 0; i < count; i++) emulator_print_hazard(file, &hazards[i]);
  if (count == 0) fputs("(no hazard)\n", file);
  fclose(file);
  return text;
}

// All that a run gives: reports, counters of each line, memory.
static void record_run(const Script *script, const Run *run, const char *variant) {
  char path[600];
  snprintf(path, sizeof path, "%s/%s-%s-%s.txt", getenv("HAZARD_RECORD"), script->family, script->kernel, variant);
  FILE *file = fopen(path, "w");
  cr_assert(file, "%s cannot be written", path);
  fprintf(file, "status %d\n%s", (int)run->status, run->report);
  int count;
  const LineCounters *lines = emulator_line_counters(run->emulator, &count);
  for (int i = 0; i < count; i++)
    for (int kind = 0; kind < COUNTER_KIND_COUNT; kind++)
      if (lines[i].counters.value[kind])
        fprintf(file, "%s:%d %s %llu\n", lines[i].file ? lines[i].file : "", lines[i].line,
                counter_name((CounterKind)kind),
                (unsigned long long)lines[i].counters.value[kind]);
  for (size_t i = 0; i < run->memory_size; i++) fprintf(file, i % 32 ? "%02x" : "\n%02x", run->memory[i]);
  fclose(file);
}

// Launches the kernel as its comment says, in one schedule: on one host thread or two.
static Run run_kernel(const Script *script, bool repaired, int schedule, bool hazards) {
  bool is_recorded = getenv("HAZARD_RECORD") != NULL;  // with more threads a launch that stops does not repeat
  EmulatorOptions options = {.hazards = hazards,
                             .schedule = (uint64_t)schedule,
                             .threads = is_recorded ? 1 : 1 + schedule % 2,
                             .step_limit = script->steps};
  Run run = {.emulator = emulator_open(&options)};
  EmulatorModule *module = load_ptx(run.emulator, script, repaired);
  uint64_t addresses[MAX_BUFFERS] = {0};
  uint8_t *initial[MAX_BUFFERS] = {0};
  const void *arguments[MAX_BUFFERS];
  for (int i = 0; i < script->argument_count; i++) {
    const Argument *argument = &script->arguments[i];
    initial[i] = calloc((size_t)argument->count + EMULATOR_TENSOR_MAP_BYTES, 8);
    if (argument->kind == BUFFER) addresses[i] = make_buffer(run.emulator, argument, initial[i]);
    for (int b = 0; argument->kind == BYTES && b < argument->count / 4; b++) put_element(initial[i] + 4 * b, FLOAT, b);
    bool by_value = argument->kind == BYTES || argument->kind == MAP;
    arguments[i] = by_value ? initial[i] : argument->kind == NUMBER ? (const void *)&argument->number : &addresses[i];
  }
  for (int i = 0; i < script->argument_count; i++) {
    const Argument *argument = &script->arguments[i];
    if (argument->kind == MAP)
      make_map(argument, &script->arguments[argument->number], addresses[argument->number], initial[i]);
  }
  EmulatorLaunch launch = {.kernel = script->kernel,
                           .dynamic_shared = script->shared,
                           .arguments = arguments,
                           .argument_count = script->argument_count};
  memcpy(launch.grid, script->grid, sizeof launch.grid);
  memcpy(launch.block, script->block, sizeof launch.block);
  memcpy(launch.cluster, script->cluster, sizeof launch.cluster);
  EmulatorError error;
  run.status = emulator_launch(run.emulator, module, &launch, &error);
  cr_assert(run.status != EMULATOR_INVALID, "%s: %s", script->kernel, error.message);
  run.hazards = emulator_hazards(run.emulator, &run.hazard_count);
  run.report = print_hazards(run.hazards, run.hazard_count);

  for (int i = 0; i < script->argument_count; i++) {
    const Argument *argument = &script->arguments[i];
    size_t size = (size_t)argument->count * element_size(argument->type);
    if (argument->kind == BUFFER && argument->content != FREED) {
      run.memory = realloc(run.memory, run.memory_size + size);
      uint8_t *now = run.memory + run.memory_size;
      cr_assert(emulator_read(run.emulator, now, addresses[i], size));
      run.memory_size += size;
      run.changed |= memcmp(now, initial[i], size) != 0;
    }
    free(initial[i]);
  }
  char variant[40];
  snprintf(variant, sizeof variant, "%s-%d%s", repaired ? "repaired" : "faulty", schedule, hazards ? "" : "-unchecked");
  if (is_recorded) record_run(script, &run, variant);
  return run;
}

static void end_run(Run *run) {
  emulator_close(run->emulator);
  free(run->report);
  free(run->memory);
}

// ---- the verdict on a faulty kernel ----

static bool in_family(const Script *script, const HazardPlace *place) {
  char name[60];
  snprintf(name, sizeof name, "/%s.cu", script->family);
  const char *slash = place->file ? strrchr(place->file, '/') : NULL;
  return slash ? !strcmp(slash, name) : place->file && !strcmp(place->file, name + 1);
}

static bool is_marked(const Script *script, const HazardPlace *place) {
  for (int i = 0; i < script->marker_count; i++)
    if (script->markers[i].line == place->line) return in_family(script, place);
  return false;
}

static bool is_kind_of_marker(const Script *script, const Hazard *hazard) {
  for (int i = 0; i < script->marker_count; i++) {
    const Marker *marker = &script->markers[i];
    if (marker->role != OTHER_SIDE && marker->kind == hazard->kind && marker->grade == hazard->grade) return true;
  }
  return false;
}

static bool has_line(const char *words, int line) {
  char text[24];
  size_t length = (size_t)snprintf(text, sizeof text, "line %d", line);
  bool found = false;
  for (const char *at = words; at && (at = strstr(at, text)); at++) found |= !isdigit((unsigned char)at[length]);
  return found;
}

// Whether a hazard names a line: as a place, or in its sentences ("... at line 48").
static bool names_line(const Hazard *hazard, int line) {
  return hazard->here.line == line || (hazard->has_other && hazard->other.line == line) ||
         has_line(hazard->detail, line) || has_line(hazard->lines, line);
}

// Whether the hazard is the marker's: of its kind, and naming its line and one of those on the other side.
static bool answers(const Script *script, const Marker *marker, const Hazard *hazard) {
  bool has_other_side = false, found = false;
  for (int i = 0; i < script->marker_count; i++) {
    if (script->markers[i].role != OTHER_SIDE) continue;
    has_other_side = true;
    found |= names_line(hazard, script->markers[i].line);
  }
  return hazard->kind == marker->kind && hazard->grade == marker->grade && names_line(hazard, marker->line) &&
         (found || !has_other_side);
}

static void judge_faulty(const Script *script, const Run *run, int schedule) {
  for (int m = 0; m < script->marker_count; m++) {
    const Marker *marker = &script->markers[m];
    bool answered = marker->role != EXPECTED;
    for (int h = 0; h < run->hazard_count; h++) answered |= answers(script, marker, &run->hazards[h]);
    cr_expect(answered, "%s, schedule %d: no %s at %s.cu:%d, but\n%s", script->kernel, schedule,
              hazard_name(marker->kind), script->family, marker->line, run->report);
  }
  for (int i = 0; i < script->advice_count; i++)
    cr_expect(strstr(run->report, script->advice[i]), "%s, schedule %d: no \"%s\", but\n%s", script->kernel, schedule,
              script->advice[i], run->report);
  for (int h = 0; h < run->hazard_count; h++) {
    const Hazard *hazard = &run->hazards[h];
    bool expected = is_kind_of_marker(script, hazard) && is_marked(script, &hazard->here) &&
                    (!hazard->has_other || is_marked(script, &hazard->other));
    cr_expect(expected, "%s, schedule %d: a hazard that is not marked:\n%s", script->kernel, schedule, run->report);
    if (!expected) return;
  }
}

// ---- the list of kernels ----

typedef struct Case {
  char family[40], kernel[56];
} Case;

static Case cases[MAX_CASES];
static int case_count;

static void add_cases(const char *path) {
  char family[40];
  snprintf(family, sizeof family, "%.*s", (int)strcspn(strrchr(path, '/') + 1, "."), strrchr(path, '/') + 1);
  char *source = read_source(family);
  for (const char *at = source; (at = strstr(at, "\n// launch ")); at++) {
    Case *one = &cases[case_count++];
    cr_assert(case_count < MAX_CASES);
    snprintf(one->family, sizeof one->family, "%s", family);
    cr_assert(sscanf(at, "\n// launch %55[a-z0-9_]:", one->kernel) == 1, "%s: %.40s", path, at);
  }
  free(source);
}

static void list_cases(void) {
  char folder[600];
  snprintf(folder, sizeof folder, "%s/tests/hazards", root_path());
  case_count = 0;
  for_each_file(folder, ".cu", add_cases);
}

// All kernels; those without a fault count as repaired ones alone.
static struct criterion_test_params list_kernels(bool only_faulty) {
  list_cases();
  Case *list = cr_malloc(sizeof cases);
  size_t count = 0;
  for (int i = 0; i < case_count; i++) {
    Script script = read_script(cases[i].family, cases[i].kernel);
    if (!only_faulty || expects_hazard(&script)) list[count++] = cases[i];
  }
  return cr_make_param_array(Case, list, count);
}

// ---- tests ----

ParameterizedTestParameters(hazards, faulty) { return list_kernels(true); }

ParameterizedTest(Case *kernel, hazards, faulty, .timeout = 120) {
  Script script = read_script(kernel->family, kernel->kernel);
  for (int schedule = 0; schedule < SCHEDULES; schedule++) {
    Run run = run_kernel(&script, false, schedule, true);
    judge_faulty(&script, &run, schedule);
    end_run(&run);
  }
}

ParameterizedTestParameters(hazards, repaired) { return list_kernels(false); }

ParameterizedTest(Case *kernel, hazards, repaired, .timeout = 120) {
  Script script = read_script(kernel->family, kernel->kernel);
  Run first = {0};
  for (int schedule = 0; schedule < SCHEDULES; schedule++) {
    Run run = run_kernel(&script, true, schedule, true);
    cr_expect(run.status == EMULATOR_OK && run.hazard_count == 0, "%s, schedule %d: a false alarm:\n%s", script.kernel,
              schedule, run.report);
    cr_expect(run.changed, "%s, schedule %d: wrote nothing", script.kernel, schedule);
    bool same = schedule == 0 || !memcmp(run.memory, first.memory, run.memory_size);
    cr_expect(same, "%s: schedule %d gives another result than schedule 0", script.kernel, schedule);
    if (schedule == 0)
      first = run;
    else
      end_run(&run);
  }
  end_run(&first);
}

// A seed stands for a schedule: on one host thread it leads to the same report, to the letter.
Test(hazards, a_seed_repeats) {
  list_cases();
  for (int i = 0; i < case_count; i++) {
    Script script = read_script(cases[i].family, cases[i].kernel);
    if (!expects_hazard(&script)) continue;
    Run first = run_kernel(&script, false, 2, true), second = run_kernel(&script, false, 2, true);
    cr_expect_str_eq(first.report, second.report, "%s", script.kernel);
    end_run(&first);
    end_run(&second);
  }
}

// Without the checks races are not looked for, but what stops a kernel is still told.
Test(hazards, faults_are_told_without_the_checks) {
  list_cases();
  int faults = 0;
  for (int i = 0; i < case_count; i++) {
    Script script = read_script(cases[i].family, cases[i].kernel);
    if (!expects_hazard(&script)) continue;
    Run run = run_kernel(&script, false, 0, false);
    cr_expect_eq(run.status == EMULATOR_FAULT, run.hazard_count > 0, "%s:\n%s", script.kernel, run.report);
    faults += run.status == EMULATOR_FAULT;
    end_run(&run);
  }
  cr_expect_geq(faults, 30);
}

Test(hazards, each_kind_has_kernels) {
  list_cases();
  int count[HAZARD_KIND_COUNT] = {0};
  for (int i = 0; i < case_count; i++) {
    Script script = read_script(cases[i].family, cases[i].kernel);
    for (int m = 0; m < script.marker_count; m++)
      if (script.markers[m].role == EXPECTED) count[script.markers[m].kind]++;
  }
  for (int kind = 0; kind <= HAZARD_SETMAXNREG; kind++)
    cr_expect_geq(count[kind], 3, "%s", hazard_name((HazardKind)kind));
}
