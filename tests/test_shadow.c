// Shadow memory: it gives back what was put in, to the bit. Of a program that accesses elements of four bytes or more
// it takes at most two and a half bytes for a byte of memory, of one that accesses single bytes at most seven.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <string.h>

#include "emulator/emulator.h"
#include "emulator/check/shadow.h"
#include "support/ptx_files.h"
#include "support/run_kernel.h"
#include "support/workloads.h"

TestSuite(shadow, .timeout = 60);

// ---- against one cell a byte ----

enum { SIZE = 5 * SHADOW_PAGE - 13, STEPS = 100000 };

typedef struct Model {
  Shadow shadow;
  Usage usage;
  Cell cells[SIZE];
  uint32_t launch;
  uint64_t random;
} Model;

static uint64_t draw(Model *model, uint64_t below) {
  model->random = model->random * 6364136223846793005ull + 1442695040888963407ull;
  return (model->random >> 33) % below;
}

// One of so many events, with a lane: a single access, or a set of reads.
static Epoch draw_epoch(Model *model, uint64_t events, bool set) {
  return EPOCH_KERNEL | (set ? EPOCH_SET : 0) | (draw(model, events) + 1) << LANE_BITS | draw(model, 32);
}

static bool same_cell(const Cell *a, const Cell *b) {
  return a->write == b->write && a->read == b->read && a->foreign == b->foreign;
}

static void set_cells(Model *model, int offset, int size, Cell cell) {
  for (int i = 0; i < size; i++) model->cells[offset + i] = cell;
}

// A later launch: what was written before it the host has written.
static void next_launch(Model *model) {
  model->launch++;
  for (int i = 0; i < SIZE; i++) model->cells[i] = (Cell){.write = model->cells[i].write ? EPOCH_HOST : EPOCH_NONE};
}

static void write_bytes(Model *model, int offset, int size, Epoch write) {
  shadow_write(&model->shadow, (uint64_t)offset, size, model->launch, write);
  set_cells(model, offset, size, (Cell){.write = write});
}

// Reads the bytes, each run of equal ones by itself, as race.c does.
static void read_bytes(Model *model, int offset, int size, Epoch read, bool foreign) {
  for (int run; size > 0; size -= run, offset += run) {
    Cell cell, *expected = &model->cells[offset];
    run = shadow_run(&model->shadow, (uint64_t)offset, size, model->launch, &cell);
    if (foreign) cell.foreign = cell.read;
    shadow_read(&model->shadow, (uint64_t)offset, run, model->launch, read, cell.foreign);
    set_cells(model, offset, run, (Cell){expected->write, read, foreign ? expected->read : expected->foreign});
  }
}

// The next run of bytes from the offset on has the cells that it should have, and is as long as it can be.
static int check_run(Model *model, int offset, int size) {
  Cell cell;
  int run = shadow_run(&model->shadow, (uint64_t)offset, size, model->launch, &cell), expected = 1;
  while (expected < size && same_cell(&model->cells[offset], &model->cells[offset + expected])) expected++;
  cr_assert_eq(run, expected, "at byte %d of %d: a run of %d, not %d", offset, size, run, expected);
  cr_assert(same_cell(&cell, &model->cells[offset]), "the cell at byte %d is another one", offset);
  return run;
}

// Random accesses, small and large, in several launches and by the host, with so many different events. All but a few
// begin and end at multiples of `unit`.
static void compare_with_model(uint64_t events, int unit, uint64_t seed) {
  static Model model;
  model = (Model){.launch = 1, .random = seed};
  cr_assert(shadow_init(&model.shadow, SIZE, &model.usage));
  for (int step = 0; step < STEPS; step++) {
    int size = 1 << draw(&model, draw(&model, 8) ? 5 : 11), offset = (int)draw(&model, SIZE);
    if (draw(&model, 2000)) {
      offset = offset / unit * unit;
      size = (size + unit - 1) / unit * unit;
    }
    if (size > SIZE - offset) size = SIZE - offset;
    switch (draw(&model, 1000) ? draw(&model, 4) : 4) {
    case 0: write_bytes(&model, offset, size, draw_epoch(&model, events, false)); break;
    case 1: read_bytes(&model, offset, size, draw_epoch(&model, events, draw(&model, 2)), false); break;
    case 2: read_bytes(&model, offset, size, draw_epoch(&model, events, draw(&model, 2)), draw(&model, 4) == 0); break;
    case 3: check_run(&model, offset, size); break;
    default:
      next_launch(&model);
      shadow_host_write(&model.shadow, (uint64_t)offset, (uint64_t)size);
      set_cells(&model, offset, size, (Cell){.write = EPOCH_HOST});
    }
  }
  for (int offset = 0; offset < SIZE;) offset += check_run(&model, offset, SIZE - offset);
  shadow_destroy(&model.shadow);
  cr_expect_eq(model.usage.now, 0, "%zu bytes were not given back", (size_t)model.usage.now);
  cr_expect_leq(usage_most(&model.usage), 38 * SIZE);
}

Test(shadow, gives_back_what_was_put_in) {
  for (uint64_t seed = 1; seed <= 4; seed++) compare_with_model(6, 1, seed);
}

// Pages have cells of four bytes, or of two, until an access is narrower.
Test(shadow, gives_back_what_narrower_accesses_have_split) {
  for (int unit = 2; unit <= 8; unit *= 2) {
    compare_with_model(6, unit, 7);
    compare_with_model(1 << 20, unit, 8);
  }
}

// More events than a page's table begins with, up to one for each access of each byte.
Test(shadow, gives_back_what_many_have_put_in) {
  compare_with_model(100, 1, 5);
  compare_with_model(1 << 20, 1, 6);
}

// ---- sets of reads ----

// Warps 0 and 1 read 64 words, each word twice, in so many rounds with a barrier between: each round makes sets of
// reads that nobody remembers after the next. Warps 2 and 3 read another word, which warp 0 writes in the end: a race
// with a set that was made before all those.
static const char rounds[] = PTX_HEADER
    ".visible .entry test() {\n.reg .b32 %t, %w, %a, %b, %v, %i;\n.reg .pred %p, %q;\n.shared .align 4 .b8 s[512];\n"
    "mov.u32 %t, %tid.x;\nshr.u32 %w, %t, 5;\nshl.b32 %a, %t, 2;\nmov.u32 %v, s;\nadd.u32 %a, %a, %v;\n"
    "xor.b32 %b, %t, 32;\nshl.b32 %b, %b, 2;\nadd.u32 %b, %b, %v;\nst.shared.u32 [%a], %t;\nbar.sync 0;\n"
    "setp.ge.u32 %p, %w, 2;\n@%p bra other;\nmov.u32 %i, 0;\nround:\nld.shared.u32 %v, [%a];\n"
    "ld.shared.u32 %v, [%b];\nbar.sync 1, 64;\nadd.u32 %i, %i, 1;\nsetp.lt.u32 %p, %i, 500;\n@%p bra round;\n"
    "setp.eq.u32 %q, %t, 0;\n@%q st.shared.u32 [s+256], %t; // the write\nret;\n"
    "other:\nld.shared.u32 %v, [s+256]; // the read\nret;\n}\n";

static int line_of(const char *text, const char *words) {
  int line = 1;
  for (const char *at = text, *end = strstr(text, words); at < end; at++) line += *at == '\n';
  return line;
}

Test(shadow, remembers_a_set_of_reads_while_others_come_and_go) {
  Machine machine = machine_open(rounds, 0);
  cr_expect_eq(machine_launch(&machine, (Shape){1, 128, 0}, NULL, 0), EMULATOR_OK);
  int count;
  const Hazard *hazards = emulator_hazards(machine.emulator, &count);
  cr_assert_eq(count, 1, "%d hazards", count);
  cr_expect_eq(hazards[0].kind, HAZARD_SHARED_RACE);
  cr_expect_eq(hazards[0].here.ptx_line, line_of(rounds, "// the read"));
  cr_expect_eq(hazards[0].other.ptx_line, line_of(rounds, "// the write"));
  size_t order = emulator_memory(machine.emulator).order;
  cr_expect_leq(order, 300000, "%zu bytes: those that nobody remembers are not given back", order);
  machine_close(&machine);
}

// ---- how many bytes a byte ----

static void expect_bound(const char *name, const EmulatorMemory *memory, int element) {
  double each = (double)memory->shadow / (double)memory->program, most = element == 1 ? 7 : element == 2 ? 4 : 2.5;
  cr_expect_leq(each, most, "%s: %.2f bytes a byte", name, each);
}

// Elements of every size, that one thread writes and another one reads, or that many read.
Test(shadow, takes_few_bytes_a_byte) {
  for (int i = 0; i < workload_count; i++)
    for (int threads = 1; threads <= 2; threads++) {
      WorkloadRun run = workload_run(&workloads[i], &(EmulatorOptions){.hazards = true, .threads = threads}, 4);
      cr_expect_eq(run.hazards, 0, "%s: %d hazards in a kernel that has none", workloads[i].name, run.hazards);
      expect_bound(workloads[i].name, &run.memory, workloads[i].element);
      // Every cell is accessed, and two accesses of it take two marks. (Two blocks side by side need not do so at
      // once.)
      size_t cell = workloads[i].element < 4 ? (size_t)workloads[i].element : 4;
      if (workloads[i].elements > 1 && threads == 1)
        cr_expect_geq(run.memory.shadow, 4 * run.memory.program / cell, "%s", workloads[i].name);
    }
}

Test(shadow, takes_nothing_without_hazard_checks) {
  for (int i = 0; i < workload_count; i++) {
    WorkloadRun run = workload_run(&workloads[i], &(EmulatorOptions){.threads = 1}, 1);
    cr_expect_eq(run.memory.shadow, 0, "%s: %zu bytes", workloads[i].name, run.memory.shadow);
    cr_expect_gt(run.memory.program, 0);
  }
}

Test(shadow, takes_next_to_nothing_for_memory_that_only_the_host_has_touched) {
  enum { BYTES = 64 << 20 };
  Emulator *emulator = emulator_open(&(EmulatorOptions){.hazards = true});
  uint64_t address = emulator_alloc(emulator, BYTES);
  cr_assert(emulator_fill(emulator, address, 0, BYTES));
  EmulatorMemory memory = emulator_memory(emulator);
  cr_expect_eq(memory.program, BYTES);
  cr_expect_leq(memory.shadow, BYTES / 16);
  emulator_close(emulator);
}

// What a stage's launch gives its kernel, for one head of dimension 64.
typedef struct Attention {
  const char *stage;
  int threads, rows;  // of a block
  size_t shared;
} Attention;

// Attention of `seqlen` queries and keys, all fp16 zeros.
static EmulatorMemory run_attention(const Attention *attention, int seqlen) {
  char path[600];
  snprintf(path, sizeof path, "%s/kernels/%s.ptx", getenv("BUILT") ? getenv("BUILT") : "build", attention->stage);
  Text ptx = read_text(path);
  EmulatorError error = {0};
  Emulator *emulator = emulator_open(&(EmulatorOptions){.hazards = true, .threads = 2});
  EmulatorModule *module = emulator_load(emulator, ptx.bytes, ptx.length, &error);
  cr_assert(module, "%s: %s", path, error.message);
  uint64_t tensors[4];  // Q, K, V, O
  for (int i = 0; i < 4; i++) {
    size_t bytes = (size_t)seqlen * 64 * 2;
    tensors[i] = emulator_alloc(emulator, bytes);
    cr_assert(emulator_fill(emulator, tensors[i], 0, bytes));
  }
  float scale = 0.125f;
  int causal = 0;
  const EmulatorLaunch launch = {
      .kernel = "attention_64",
      .grid = {(unsigned)((seqlen + attention->rows - 1) / attention->rows), 1, 1},
      .block = {(unsigned)attention->threads, 1, 1},
      .dynamic_shared = attention->shared,
      .arguments = (const void *const[]){&tensors[0], &tensors[1], &tensors[2], &tensors[3], &seqlen, &scale, &causal},
      .argument_count = 7};
  cr_expect_eq(emulator_launch(emulator, module, &launch, &error), EMULATOR_OK, "%s", error.message);
  int hazards;
  emulator_hazards(emulator, &hazards);
  cr_expect_eq(hazards, 0);
  EmulatorMemory memory = emulator_memory(emulator);
  emulator_close(emulator);
  free(ptx.bytes);
  return memory;
}

Test(shadow, takes_few_bytes_a_byte_of_a_stage) {
  static const Attention stages[] = {
      {"02-online-softmax", 128, 64, 3 * 2 * 64 * (64 + 8) + 6 * 64 * (64 + 8)},
      {"03-cp-async", 128, 128, 2 * 64 * (128 + 2 * 2 * 64)},
      {"05-wgmma-attention", 256, 128, 2 * 64 * (128 + 2 * 2 * 64)},
  };
  for (size_t i = 0; i < sizeof stages / sizeof *stages; i++)
    for (int seqlen = 100; seqlen <= 800; seqlen *= 8) {
      EmulatorMemory memory = run_attention(&stages[i], seqlen);
      expect_bound(stages[i].stage, &memory, 4);
      cr_expect_geq(memory.shadow, memory.program / 2, "%s: it does access its memory", stages[i].stage);
      // What is remembered of threads does not grow with what they do.
      cr_expect_leq(memory.order, 2 << 20, "%s: %zu bytes of vector clocks and sets", stages[i].stage, memory.order);
    }
}

// ---- large allocations ----

// As with a small one, what nothing has written is poison, on both sides of the pieces that are mapped (region.c).
Test(shadow, a_large_allocation_is_poisoned_and_untouched) {
  const size_t size = ((size_t)6 << 30) + 5;
  struct rusage before, after;
  getrusage(RUSAGE_SELF, &before);
  Emulator *emulator = emulator_open(&(EmulatorOptions){.hazards = true});
  uint64_t address = emulator_alloc(emulator, size);
  cr_assert(address);
  for (size_t at = 0; at < size; at += (size_t)8 << 20) {
    uint8_t bytes[3] = {0};
    cr_assert(emulator_read(emulator, bytes, address + (at ? at - 1 : 0), sizeof bytes));
    cr_assert(bytes[0] == 0xcb && bytes[1] == 0xcb && bytes[2] == 0xcb, "at %zu", at);
  }
  uint8_t last = 7;
  cr_expect(emulator_write(emulator, address + size - 1, &last, 1));
  last = 0;
  cr_expect(emulator_read(emulator, &last, address + size - 1, 1) && last == 7);
  cr_expect(!emulator_read(emulator, &last, address + size, 1));
  cr_expect(emulator_free(emulator, address));
  emulator_close(emulator);
  getrusage(RUSAGE_SELF, &after);
  cr_expect(after.ru_maxrss - before.ru_maxrss < 1 << 20, "%ld kB", after.ru_maxrss - before.ru_maxrss);
}
