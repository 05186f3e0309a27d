#include "run_kernel.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program.h"
#include "ptx_files.h"

// ---- machines ----

Machine machine_open(const char *text, uint64_t schedule) {
  EmulatorOptions options = {.hazards = true, .schedule = schedule, .threads = 1, .step_limit = 1 << 24};
  Machine machine = {.text = text, .emulator = emulator_open(&options)};
  EmulatorError error = {0};
  cr_assert(machine.emulator);
  machine.module = emulator_load(machine.emulator, text, strlen(text), &error);
  cr_assert(machine.module, "line %d: %s\n%s", error.line, error.message, text);
  return machine;
}

void machine_close(Machine *machine) { emulator_close(machine->emulator); }

uint64_t machine_upload(Machine *machine, const void *bytes, size_t size) {
  uint64_t address = emulator_alloc(machine->emulator, size);
  cr_assert(address);
  if (bytes) cr_assert(emulator_write(machine->emulator, address, bytes, size));
  return address;
}

void machine_download(Machine *machine, void *bytes, uint64_t address, size_t size) {
  cr_assert(emulator_read(machine->emulator, bytes, address, size));
}

EmulatorStatus machine_launch(Machine *machine, Shape shape, const void *const *arguments, int count) {
  EmulatorError error = {0};
  unsigned one = shape.cluster ? 1 : 0;
  EmulatorLaunch launch = {.kernel = "test",
                           .grid = {shape.grid, 1, 1},
                           .block = {shape.block, 1, 1},
                           .cluster = {shape.cluster, one, one},
                           .arguments = arguments,
                           .argument_count = count};
  EmulatorStatus status = emulator_launch(machine->emulator, machine->module, &launch, &error);
  cr_assert_neq(status, EMULATOR_INVALID, "%s", error.message);
  return status;
}

static void print_hazards(const Machine *machine) {
  int count;
  const Hazard *hazards = emulator_hazards(machine->emulator, &count);
  for (int i = 0; i < count; i++) emulator_print_hazard(stderr, &hazards[i]);
}

bool expect_clean(Machine *machine) {
  int count;
  emulator_hazards(machine->emulator, &count);
  if (count) print_hazards(machine);
  cr_expect_eq(count, 0, "%d hazards in a kernel that has none\n%s", count, machine->text);
  return count == 0;
}

Map make_map(const EmulatorTensorSpec *spec) {
  Map map;
  EmulatorError error = {0};
  cr_assert(emulator_tensor_map(spec, map.bytes, &error), "%s", error.message);
  return map;
}

// ---- the language of tests/pairs ----

typedef enum Variant { REPAIRED, FAULTY, VARIANTS } Variant;
enum { TEXT_SIZE = 1 << 14, MAX_OPERANDS = 4, NAME_SIZE = 80 };

static const char prologue[] = PTX_HEADER
    ".visible .entry test(.param .align 64 .b8 map[128], .param .u64 in, .param .u64 out) {\n"
    ".reg .b64 %m, %i, %o, %s, %s1;\n.reg .b32 %t, %a, %v, %n, %c;\n.reg .b16 %h;\n.reg .pred %p, %q, %w0, %w1, %x;\n"
    ".shared .align 1024 .b8 tile[8192];\n.shared .align 8 .b64 bar[4];\n"
    "mov.b64 %m, map;\ncvta.param.u64 %m, %m;\nld.param.u64 %i, [in];\nld.param.u64 %o, [out];\n"
    "mov.u32 %t, %tid.x;\nsetp.eq.u32 %p, %t, 0;\nsetp.lt.u32 %w0, %t, 32;\nnot.pred %w1, %w0;\n";

// $1 to $4 are the operands, $L a number that is new each time.
static const struct {
  const char *name, *text;
} abbreviations[] = {
    // An mbarrier, made by the first thread and known to all the block, or all the cluster.
    {"INIT", "@%p mbarrier.init.shared::cta.b64 [$1], $2;\n@%p fence.mbarrier_init.release.cluster;\nbar.sync 0;"},
    {"INIT_CLUSTER", "@%p mbarrier.init.shared::cta.b64 [$1], $2;\n@%p fence.mbarrier_init.release.cluster;\n"
                     "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;"},
    {"ARRIVE", "mbarrier.arrive.shared::cta.b64 _, [$1];"},
    {"EXPECT", "@%p mbarrier.arrive.expect_tx.shared::cta.b64 _, [$1], $2;"},
    {"WAIT", "WAIT_$L: mbarrier.try_wait.parity.shared::cta.b64 %q, [$1], $2;\n@!%q bra WAIT_$L;"},
    // LOAD to, x, y, mbarrier; STORE from, x, y; COPY to, from, bytes, mbarrier
    {"LOAD",
     "@%p cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [$1], [%m, {$2, $3}], [$4];"},
    {"STORE", "@%p cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%m, {$2, $3}], [$1];"},
    {"COPY", "@%p cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [$1], [$2], $3, [$4];"},
    {"COMMIT", "@%p cp.async.bulk.commit_group;"},
    {"SYNC_CLUSTER", "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;"},
    // %c is the rank in the cluster, %o from here on that of the block's own 64 words.
    {"RANK", "mov.u32 %c, %cluster_ctarank;\nmov.u32 %v, %clusterid.x;\nmov.u32 %n, %cluster_nctarank;\n"
             "mad.lo.u32 %v, %v, %n, %c;\nmul.wide.u32 %s, %v, 256;\nadd.u64 %o, %o, %s;"},
    // A flag of the block behind its tile, and waits for the other block's and for its own. $1: ld and its order.
    {"FLAG", "@%p st.shared.u32 [tile+4096], 0;\n@%p st.shared.u32 [tile+4100], 0;\n"
             "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;"},
    {"WAIT_FLAG", "xor.b32 %n, %c, 1; mapa.shared::cluster.u32 %n, tile, %n;\n"
                  "FLAG_$L: $1.shared::cluster.u32 %v, [%n+4096];\nsetp.eq.u32 %q, %v, 0;\n@%q bra FLAG_$L;"},
    {"WAIT_OWN_FLAG", "FLAG_$L: $1.shared.u32 %v, [tile+4096];\nsetp.eq.u32 %q, %v, 0;\n@%q bra FLAG_$L;"},
    // %a is the address of the thread's word of the tile.
    {"ADDRESS", "mov.u32 %a, tile;\nshl.b32 %v, %t, 2;\nadd.u32 %a, %a, %v;"},
    {"PUT", "mov.u32 %a, tile;\nshl.b32 %v, %t, 2;\nadd.u32 %a, %a, %v;\nadd.u32 %v, %t, 7;\nst.shared.u32 [%a], %v;"},
    {"PUT_TWICE",
     "mov.u32 %a, tile;\nshl.b32 %v, %t, 2;\nadd.u32 %a, %a, %v;\nadd.u32 %v, %t, 7;\nst.shared.u32 [%a], %v;\n"
     "st.shared.u32 [%a+512], %v;"},
    {"PUT_RANK", "mov.u32 %a, tile;\nshl.b32 %v, %t, 2;\nadd.u32 %a, %a, %v;\nshl.b32 %v, %c, 8;\nadd.u32 %v, %v, %t;\n"
                 "st.shared.u32 [%a], %v;"},
    // Reads what the same lane of the other warp, or of the block with rank %c ^ 1, has put there.
    {"READ_OTHER_WARP",
     "mov.u32 %a, tile; xor.b32 %n, %t, 32; shl.b32 %v, %n, 2; add.u32 %a, %a, %v; ld.shared.u32 %v, [%a];"},
    {"READ_NEIGHBOUR", "xor.b32 %n, %c, 1; mapa.shared::cluster.u32 %v, %a, %n; ld.shared::cluster.u32 %v, [%v];"},
    {"OUT", "mad.wide.u32 %s, %t, 4, %o;\nst.global.u32 [%s], %v;"},
    {"OUTPUT", "mov.u32 %a, $1;\nshl.b32 %v, %t, 2;\nadd.u32 %a, %a, %v;\nld.shared.u32 %v, [%a];\n"
               "mad.wide.u32 %s, %t, 4, %o;\nst.global.u32 [%s], %v;"},
};

typedef struct Kernel {
  char name[NAME_SIZE];
  HazardKind kind;  // HAZARD_KIND_COUNT: none
  HazardGrade grade;
  char word[NAME_SIZE];  // of the report's sentence
  Shape shape;
  char text[VARIANTS][TEXT_SIZE];
} Kernel;

typedef struct Writer {
  char *text;
  size_t used;
  int labels;
} Writer;

static void write_bytes(Writer *writer, const char *bytes, size_t length) {
  cr_assert(writer->used + length < TEXT_SIZE);
  memcpy(writer->text + writer->used, bytes, length);
  writer->used += length;
  writer->text[writer->used] = 0;
}

static void write_string(Writer *writer, const char *string) { write_bytes(writer, string, strlen(string)); }

// Splits "tile+512, 0, 4" at its commas.
static int split_operands(char *line, char *operands[MAX_OPERANDS]) {
  int count = 0;
  for (char *word = strtok(line, ","); word && count < MAX_OPERANDS; word = strtok(NULL, ","))
    operands[count++] = word + strspn(word, " ");
  return count;
}

// Writes what an abbreviation stands for; the mark of the reported line goes to its first line.
static void expand(Writer *writer, const char *text, char *operands[MAX_OPERANDS], bool marked) {
  int label = writer->labels++;
  for (const char *at = text; *at; at++) {
    char number[16];
    snprintf(number, sizeof number, "%d", label);
    if (*at == '\n' && marked) write_string(writer, " // here"), marked = false;
    if (*at != '$')
      write_bytes(writer, at, 1);
    else if (*++at == 'L')
      write_string(writer, number);
    else
      write_string(writer, operands[*at - '1']);
  }
  write_string(writer, marked ? " // here\n" : "\n");
}

static void write_line(Writer *writer, const char *line) {
  char copy[400];
  size_t length = strcspn(line, " ");
  snprintf(copy, sizeof copy, "%s", line);
  char *mark = strstr(copy, " // here");
  if (mark) *mark = 0;
  if (length > strlen(copy)) length = strlen(copy);
  for (size_t i = 0; i < sizeof abbreviations / sizeof abbreviations[0]; i++) {
    if (strlen(abbreviations[i].name) != length || strncmp(abbreviations[i].name, copy, length)) continue;
    char *operands[MAX_OPERANDS] = {0};
    split_operands(copy + length, operands);
    expand(writer, abbreviations[i].text, operands, mark != NULL);
    return;
  }
  write_string(writer, line);
  write_string(writer, "\n");
}

static HazardKind find_hazard(const char *name, size_t length) {
  for (int kind = 0; kind < HAZARD_KIND_COUNT; kind++)
    if (strlen(hazard_name((HazardKind)kind)) == length && !strncmp(hazard_name((HazardKind)kind), name, length))
      return (HazardKind)kind;
  cr_assert_fail("no hazard is called \"%.*s\"", (int)length, name);
  return HAZARD_KIND_COUNT;
}

// NAME: HAZARD, "word"; grid 2 cluster 2. "formal " or "note " before the hazard is its grade.
static void read_heading(Kernel *kernel, const char *line) {
  *kernel = (Kernel){.kind = HAZARD_KIND_COUNT, .shape = {1, 64, 0}};
  const char *colon = strstr(line, ": "), *shape = strchr(line, ';');
  snprintf(kernel->name, NAME_SIZE, "%.*s", (int)(colon ? (size_t)(colon - line) : strlen(line)), line);
  if (!colon) return;
  const char *hazard = colon + 2, *word = strstr(hazard, ", \"");
  if (!strncmp(hazard, "formal ", 7)) kernel->grade = HAZARD_FORMAL, hazard += 7;
  if (!strncmp(hazard, "note ", 5)) kernel->grade = HAZARD_NOTE, hazard += 5;
  kernel->kind = find_hazard(hazard, strcspn(hazard, ",;"));
  if (word) snprintf(kernel->word, NAME_SIZE, "%.*s", (int)strcspn(word + 3, "\""), word + 3);
  const char *grid = shape ? strstr(shape, "grid ") : NULL, *block = shape ? strstr(shape, "block ") : NULL;
  const char *cluster = shape ? strstr(shape, "cluster ") : NULL;
  if (grid) kernel->shape.grid = (unsigned)atoi(grid + 5);
  if (block) kernel->shape.block = (unsigned)atoi(block + 6);
  if (cluster) kernel->shape.cluster = (unsigned)atoi(cluster + 8);
}

static void begin(Kernel *kernel, Writer writers[VARIANTS]) {
  for (int v = 0; v < VARIANTS; v++) {
    writers[v] = (Writer){.text = kernel->text[v]};
    write_string(&writers[v], prologue);
  }
}

typedef void Visit(Kernel *kernel, void *context);

static void end(Kernel *kernel, Writer writers[VARIANTS], Visit *visit, void *context) {
  for (int v = 0; v < VARIANTS; v++) write_string(&writers[v], "ret;\n}\n");
  visit(kernel, context);
}

// Calls visit for every kernel of a file of tests/pairs; returns how many there are.
static int for_each_kernel(const char *file, Visit *visit, void *context) {
  static Kernel kernel;
  Writer writers[VARIANTS];
  char path[400];
  snprintf(path, sizeof path, "%s/tests/pairs/%s.pairs", root_path(), file);
  Text text = read_text(path);
  int count = 0;
  for (char *line = text.bytes, *next; *line; line = next) {
    size_t length = strcspn(line, "\n");
    next = line + length + (line[length] == '\n');
    line[length] = 0;
    if (!strncmp(line, "== ", 3)) {
      if (count++) end(&kernel, writers, visit, context);
      read_heading(&kernel, line + 3);
      begin(&kernel, writers);
    } else if (count && *line && strncmp(line, "//", 2)) {
      bool marked = !strncmp(line, "F:", 2) || !strncmp(line, "R:", 2);
      for (int v = 0; v < VARIANTS; v++)
        if (!marked || (*line == 'F') == (v == FAULTY)) write_line(&writers[v], line + 2 * marked);
    }
  }
  if (count) end(&kernel, writers, visit, context);
  free(text.bytes);
  return count;
}

// ---- running them ----

enum { WORDS = 1024 };

uint32_t input_word(uint32_t index) { return index * 2654435761u; }

static EmulatorStatus run_words(Machine *machine, Shape shape, uint32_t output[WORDS]) {
  uint32_t input[WORDS];
  for (uint32_t i = 0; i < WORDS; i++) input[i] = input_word(i);
  uint64_t in = machine_upload(machine, input, sizeof input), out = machine_upload(machine, NULL, sizeof input);
  emulator_fill(machine->emulator, out, 0, sizeof input);
  Map map = make_map(&(EmulatorTensorSpec){
      .type = EMULATOR_TENSOR_U32, .rank = 2, .address = in, .size = {32, 32}, .stride = {0, 128}, .box = {32, 4}});
  const void *arguments[] = {&map, &in, &out};
  EmulatorStatus status = machine_launch(machine, shape, arguments, 3);
  machine_download(machine, output, out, sizeof input);
  return status;
}

static int marked_line(const char *text) {
  const char *mark = strstr(text, "// here");
  cr_assert(mark, "no line is marked\n%s", text);
  int line = 1;
  for (const char *at = text; at < mark; at++) line += *at == '\n';
  return line;
}

static bool has_hazard(const Machine *machine, const Kernel *kernel) {
  int count, line = marked_line(machine->text);
  const Hazard *hazards = emulator_hazards(machine->emulator, &count);
  for (int i = 0; i < count; i++) {
    bool there = hazards[i].here.ptx_line == line || (hazards[i].has_other && hazards[i].other.ptx_line == line);
    bool weight = hazards[i].kind == kernel->kind && hazards[i].grade == kernel->grade;
    bool says = strstr(hazards[i].detail, kernel->word) || (hazards[i].lines && strstr(hazards[i].lines, kernel->word));
    if (weight && there && says) return true;
  }
  return false;
}

static bool expect_hazard(const Kernel *kernel, const Machine *machine) {
  if (has_hazard(machine, kernel)) return true;
  print_hazards(machine);
  cr_expect(false, "no %s at line %d that says \"%s\"\n%s", hazard_name(kernel->kind), marked_line(machine->text),
            kernel->word, machine->text);
  return false;
}

// False when the kernel did not do as it should.
static bool run_variant(const Kernel *kernel, Variant variant, uint64_t schedule, uint32_t output[WORDS]) {
  Machine machine = machine_open(kernel->text[variant], schedule);
  EmulatorStatus status = run_words(&machine, kernel->shape, output);
  bool right = variant == FAULTY ? expect_hazard(kernel, &machine) : expect_clean(&machine) && status == EMULATOR_OK;
  machine_close(&machine);
  cr_expect(right, "%s, %s, schedule %d", kernel->name, variant == FAULTY ? "faulty" : "repaired", (int)schedule);
  return right;
}

static void run_pair(Kernel *kernel, void *context) {
  (void)context;
  uint32_t first[WORDS], output[WORDS], faulty[WORDS];
  if (kernel->kind == HAZARD_KIND_COUNT) return;
  for (uint64_t schedule = 0; schedule < SCHEDULES; schedule++) {
    if (!run_variant(kernel, FAULTY, schedule, faulty)) return;
    if (!run_variant(kernel, REPAIRED, schedule, schedule ? output : first)) return;
    cr_expect(!schedule || !memcmp(first, output, sizeof output), "%s: schedule %d gives another result", kernel->name,
              (int)schedule);
  }
}

void run_pairs(const char *file) { cr_assert(for_each_kernel(file, run_pair, NULL) > 0); }

typedef struct Check {
  const char *name;
  Shape shape;
  OutputWord *expect;
  bool found;
} Check;

static void check_kernel(Kernel *kernel, void *context) {
  Check *check = context;
  uint32_t output[WORDS];
  if (strcmp(kernel->name, check->name)) return;
  check->found = true;
  for (uint64_t schedule = 0; schedule < SCHEDULES; schedule++) {
    Machine machine = machine_open(kernel->text[REPAIRED], schedule);
    cr_expect_eq(run_words(&machine, check->shape, output), EMULATOR_OK);
    expect_clean(&machine);
    machine_close(&machine);
    for (unsigned i = 0; i < check->shape.grid * 64; i++) {
      uint32_t expected = check->expect(i / 64, i % 64);
      cr_expect_eq(output[i], expected, "%s, schedule %d: block %u thread %u wrote %#x, expected %#x", check->name,
                   (int)schedule, i / 64, i % 64, output[i], expected);
    }
  }
}

void run_and_check(const char *file, const char *name, unsigned grid, unsigned cluster, OutputWord *expect) {
  Check check = {.name = name, .shape = {grid, 64, cluster}, .expect = expect};
  for_each_kernel(file, check_kernel, &check);
  cr_assert(check.found, "tests/pairs/%s.pairs has no kernel \"%s\"", file, name);
}
