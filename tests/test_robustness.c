// The emulator survives whatever it is given: every text that fuzzing found worth keeping, launches that ask for too
// much, kernels that never end, and emulators side by side. See tests/fuzz for the fuzzers themselves.
#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/launch_text.h"
#include "support/program.h"
#include "support/ptx_files.h"

TestSuite(robustness, .timeout = 60);

#define HEADER ".version 8.0\n.target sm_90a\n.address_size 64\n"

// ---- texts ----

static LaunchCounts totals;

static void launch_file(const char *path) {
  Text text = read_text(path);
  LaunchCounts counts = launch_text(text.bytes, text.length);
  totals.refused += counts.refused;
  for (int status = 0; status <= EMULATOR_INVALID; status++) totals.of_status[status] += counts.of_status[status];
  free(text.bytes);
}

// One of the kernels prints.
Test(robustness, every_kept_text_is_refused_or_runs, .init = cr_redirect_stdout) {
  char folder[512];
  snprintf(folder, sizeof folder, "%s/tests/fuzz/corpus_launch", root_path());
  cr_expect_geq(for_each_file(folder, ".ptx", launch_file), 30);
  cr_expect_geq(totals.of_status[EMULATOR_OK], 19, "the seeds themselves run to their end");
  cr_expect_geq(for_each_in_corpus("valid", ".ptx", launch_file), 9);
  cr_expect_geq(for_each_in_corpus("malformed", ".ptx", launch_file), 190);
  cr_expect_geq(totals.refused, 190);
}

Test(robustness, every_prefix_of_a_kernel_is_refused_or_runs) {
  char path[512];
  snprintf(path, sizeof path, "%s/tests/fuzz/corpus_launch/memory.ptx", root_path());
  Text text = read_text(path);
  for (size_t length = 0; length < text.length; length += 3) {
    char *copy = malloc(length ? length : 1);  // exactly as long, so that a checker of memory sees a read behind it
    memcpy(copy, text.bytes, length);
    launch_text(copy, length);
    free(copy);
  }
  free(text.bytes);
}

// ---- launches that ask for too much ----

static EmulatorOptions options = {.hazards = true, .threads = 1, .step_limit = LAUNCH_STEPS};

static EmulatorModule *load(Emulator *emulator, const char *text) {
  EmulatorError error = {0};
  EmulatorModule *module = load_checked(emulator, text, strlen(text), &error);
  cr_assert(module, "line %d: %s", error.line, error.message);
  return module;
}

static void expect_refused(const char *text, int line, const char *reason) {
  Emulator *emulator = emulator_open(&options);
  EmulatorError error = {0};
  cr_expect(!load_checked(emulator, text, strlen(text), &error), "accepted: %.200s", text);
  cr_expect_eq(error.line, line, "line %d, not %d: %s", error.line, line, error.message);
  cr_expect(strstr(error.message, reason), "'%s' does not say '%s'", error.message, reason);
  emulator_close(emulator);
}

// A kernel with instructions that name so many registers of 1 KB in each warp, behind the text before. The emulator
// gives no room to registers that nothing names.
static char *kernel_of_registers(const char *before, const char *name, int count) {
  char *text = malloc(strlen(before) + 100 + 32 * (size_t)count), *end = text;
  end += sprintf(end, "%s.entry %s() {\n.reg .v4 .b64 %%r<%d>;\n", before, name, count);
  for (int i = 0; i < count; i++) end += sprintf(end, "mov.b64 %%r%d.x, 0;", i);
  strcpy(end, "ret; }\n");
  return text;
}

Test(robustness, texts_that_need_too_much_are_refused) {
  expect_refused("", 1, "version");
  expect_refused(HEADER ".entry k() {\n.local .b8 a[600000];\nret; }", 5, "local memory");
  expect_refused(HEADER
                 ".func f() {\n.local .b8 a[300000];\nret; }\n.entry k() {\n.local .b8 b[300000];\ncall f; ret; }",
                 7, "local memory");
  expect_refused(HEADER ".entry k(.param .b8 a[1000],\n.param .b8 b[40000]) { ret; }", 5, "parameters");
  expect_refused(HEADER ".entry k() { .reg .u32 %r;\n.shared .b8 a[30000000];\nmov.u32 %r, a; ret; }", 5, "too large");
  expect_refused(HEADER ".shared .b8 a[0x8000000000];\n.shared .b8 b[0x8000000000];\n.entry k() { .reg .u32 %r; "
                        "mov.u32 %r, a; mov.u32 %r, b; ret; }",
                 4, "too large");
  expect_refused(HEADER ".global .b8 a[200000000];\n.global .b8 b[200000000];\n", 5, "268435456 bytes");
  expect_refused(HEADER ".const .b8 a[0x8000000000];\n", 4, "268435456 bytes");
  expect_refused(HEADER ".entry k() {\n.reg .b32 %r<1000000>;\nret; }", 5, "registers");
  char *registers = kernel_of_registers(HEADER, "k", 262144);
  expect_refused(registers, 0, "too many registers");
  free(registers);
  expect_refused(HEADER
                 ".func f(.param .b8 a[100000]) { ret; }\n.entry k() {\n.param .b8 a[100000]; call f, (a); ret; }",
                 6, "too large");
}

Test(robustness, a_kernel_calls_a_bounded_number_of_functions) {
  enum { FUNCTIONS = 1200 };
  char *text = malloc(FUNCTIONS * 64 + 200);
  int used = sprintf(text, HEADER);
  for (int i = 0; i < FUNCTIONS; i++)
    used += sprintf(text + used, ".func f%d() { %s%.0d%s ret; }\n", i, i ? "call f" : "", i ? i - 1 : 0,
                    i == 1 ? "0;"
                    : i    ? ";"
                           : "");
  sprintf(text + used, ".entry k() { call f%d; ret; }\n", FUNCTIONS - 1);
  expect_refused(text, 4 + FUNCTIONS, "functions");
  free(text);
}

// A thousand functions, each of which calls the one before twenty times, and fifty kernels that call the last: loading
// takes time in proportion to what the kernels reach. It once took the third power of the number of functions, which is
// an hour.
Test(robustness, loading_takes_no_longer_than_the_text_is, .timeout = 30) {
  enum { FUNCTIONS = 1000, CALLS = 20, KERNELS = 50 };
  char *text = malloc(FUNCTIONS * (CALLS * 12 + 40) + KERNELS * 60);
  int used = sprintf(text, HEADER ".func f0() { ret; }\n");
  for (int i = 1; i < FUNCTIONS; i++) {
    used += sprintf(text + used, ".func f%d() { ", i);
    for (int c = 0; c < CALLS; c++) used += sprintf(text + used, "call f%d; ", i - 1);
    used += sprintf(text + used, "ret; }\n");
  }
  for (int i = 0; i < KERNELS; i++) used += sprintf(text + used, ".entry k%d() { call f%d; ret; }\n", i, FUNCTIONS - 1);
  Emulator *emulator = emulator_open(&options);
  load(emulator, text);
  emulator_close(emulator);
  free(text);
}

// As many loops around one place, of up to as many blocks: to count for each block the loops that it is in would take
// hours.
Test(robustness, loops_in_loops_load, .timeout = 30) {
  enum { LOOPS = 200000 };
  char *text = malloc(LOOPS * 12 + 200);
  int used = sprintf(text, HEADER ".entry k() { .reg .pred %%p;\nL:\n");
  for (int i = 0; i < LOOPS; i++) used += sprintf(text + used, "@%%p bra L;\n");
  sprintf(text + used, "ret; }\n");
  Emulator *emulator = emulator_open(&options);
  load(emulator, text);
  emulator_close(emulator);
  free(text);
}

typedef struct Shape {
  const char *kernel;
  unsigned grid[3], block[3], cluster[3];
  size_t shared;
  int arguments;
  const char *reason;
} Shape;

static const char shaped[] = HEADER ".entry k(.param .u64 p, .param .u32 n) { ret; }\n"
                                    ".entry bounded() .maxntid 64 { ret; }\n"
                                    ".entry exact() .reqntid 32, 2 { ret; }\n"
                                    ".entry stack() { .local .b8 a[400000]; ret; }\n"
                                    ".entry tile() { .shared .b8 a[240000]; ret; }\n"
                                    ".entry pairs() .reqnctapercluster 2 { ret; }\n"
                                    ".entry few() .maxclusterrank 4 { ret; }\n";

Test(robustness, launches_that_cannot_be_are_refused) {
  static const Shape shapes[] = {
      {"none", {1, 1, 1}, {1, 1, 1}, {0}, 0, 0, "no kernel none"},
      {"k", {1, 1, 1}, {1, 1, 1}, {0}, 0, 1, "takes 2 arguments, not 1"},
      {"k", {1, 1, 1}, {1, 1, 1}, {0}, 0, 3, "takes 2 arguments, not 3"},
      {"k", {0, 1, 1}, {1, 1, 1}, {0}, 0, 2, "dimension is 0"},
      {"k", {1, 1, 1}, {32, 0, 1}, {0}, 0, 2, "dimension is 0"},
      {"k", {1, 65536, 1}, {1, 1, 1}, {0}, 0, 2, "at most 65535"},
      {"k", {0xffffffff, 65535, 65535}, {1, 1, 1}, {0}, 0, 2, "more blocks"},
      {"k", {1, 1, 1}, {1025, 1, 1}, {0}, 0, 2, "at most 1024"},
      {"k", {1, 1, 1}, {32, 32, 2}, {0}, 0, 2, "at most 1024"},
      {"k", {1, 1, 1}, {1, 1, 65}, {0}, 0, 2, "64 along z"},
      {"k", {1, 1, 1}, {0x80000000, 0x80000000, 4}, {0}, 0, 2, "at most 1024"},
      {"k", {6, 1, 1}, {1, 1, 1}, {4, 1, 1}, 0, 2, "not a multiple"},
      {"k", {32, 1, 1}, {1, 1, 1}, {32, 1, 1}, 0, 2, "at most 16 blocks"},
      {"k", {1, 1, 1}, {1, 1, 1}, {0}, 232449, 2, "at most 232448"},
      {"k", {1, 1, 1}, {1, 1, 1}, {0}, (size_t)-1, 2, "at most 232448"},
      {"tile", {1, 1, 1}, {1, 1, 1}, {0}, 0, 0, "at most 232448"},
      {"bounded", {1, 1, 1}, {65, 1, 1}, {0}, 0, 0, "allow 64 threads"},
      {"exact", {1, 1, 1}, {64, 1, 1}, {0}, 0, 0, "needs blocks of (32,2,1)"},
      {"stack", {16, 1, 1}, {1024, 1, 1}, {16, 1, 1}, 0, 0, "registers and local memory"},
      {"wide", {16, 1, 1}, {1024, 1, 1}, {16, 1, 1}, 0, 0, "registers and local memory"},
      {"pairs", {8, 1, 1}, {32, 1, 1}, {4, 1, 1}, 0, 0, "needs clusters of (2,1,1)"},
      {"pairs", {3, 1, 1}, {32, 1, 1}, {0}, 0, 0, "not a multiple"},
      {"few", {8, 1, 1}, {32, 1, 1}, {8, 1, 1}, 0, 0, "allow 4 blocks a cluster, not 8"},
  };
  Emulator *emulator = emulator_open(&options);
  char *text = kernel_of_registers(shaped, "wide", 10000);
  EmulatorModule *module = load(emulator, text);
  free(text);
  uint64_t zero = 0;
  const void *arguments[] = {&zero, &zero, &zero};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    const Shape *s = &shapes[i];
    EmulatorError error = {0};
    EmulatorLaunch launch = {
        .kernel = s->kernel, .dynamic_shared = s->shared, .arguments = arguments, .argument_count = s->arguments};
    memcpy(launch.grid, s->grid, sizeof s->grid);
    memcpy(launch.block, s->block, sizeof s->block);
    memcpy(launch.cluster, s->cluster, sizeof s->cluster);
    cr_expect_eq(emulator_launch(emulator, module, &launch, &error), EMULATOR_INVALID, "%s, %s", s->kernel, s->reason);
    cr_expect(strstr(error.message, s->reason), "'%s' does not say '%s'", error.message, s->reason);
  }
  emulator_close(emulator);
}

Test(robustness, an_argument_that_is_missing_is_named) {
  Emulator *emulator = emulator_open(&options);
  EmulatorModule *module = load(emulator, shaped);
  EmulatorError error = {0};
  uint64_t zero = 0;
  EmulatorLaunch launch = {.kernel = "k", .grid = {1, 1, 1}, .block = {1, 1, 1}, .argument_count = 2};
  cr_expect_eq(emulator_launch(emulator, module, &launch, &error), EMULATOR_INVALID);
  cr_expect_str_eq(error.message, "k: argument 0 is missing");
  launch.arguments = (const void *[]){&zero, NULL};
  cr_expect_eq(emulator_launch(emulator, module, &launch, &error), EMULATOR_INVALID);
  cr_expect_str_eq(error.message, "k: argument 1 is missing");
  emulator_close(emulator);
}

// ---- small things that must work ----

static EmulatorStatus launch_one(Emulator *emulator, EmulatorModule *module, unsigned blocks, unsigned threads,
                                 uint64_t buffer) {
  EmulatorError error = {0};
  const void *arguments[] = {&buffer};
  EmulatorLaunch launch = {
      .kernel = "k", .grid = {blocks, 1, 1}, .block = {threads, 1, 1}, .arguments = arguments, .argument_count = 1};
  EmulatorStatus status = emulator_launch(emulator, module, &launch, &error);
  cr_expect_neq(status, EMULATOR_INVALID, "%s", error.message);
  return status;
}

Test(robustness, declarations_alone_are_a_module_without_kernels) {
  Emulator *emulator = emulator_open(&options);
  EmulatorModule *module =
      load(emulator, HEADER ".extern .func f(.param .b32 a);\n.global .u32 g;\n.visible .entry later();\n");
  EmulatorError error = {0};
  EmulatorLaunch launch = {.kernel = "later", .grid = {1, 1, 1}, .block = {1, 1, 1}};
  cr_expect_eq(emulator_launch(emulator, module, &launch, &error), EMULATOR_INVALID);
  cr_expect(strstr(error.message, "no kernel later"), "%s", error.message);
  emulator_close(emulator);
}

Test(robustness, a_kernel_may_exit_at_once) {
  Emulator *emulator = emulator_open(&options);
  EmulatorModule *module = load(emulator, HEADER ".entry k(.param .u64 p) { exit; }\n");
  cr_expect_eq(launch_one(emulator, module, 3, 1024, 0), EMULATOR_OK);
  cr_expect_eq(emulator_counters(emulator).value[COUNTER_INST_EXECUTED], 96);
  cr_expect_eq(emulator_counters(emulator).value[COUNTER_THREAD_INST_EXECUTED], 3072);
  emulator_close(emulator);
}

Test(robustness, a_body_without_instructions_returns) {
  Emulator *emulator = emulator_open(&options);
  EmulatorModule *module = load(emulator, HEADER ".entry k(.param .u64 p) { }\n");
  cr_expect_eq(launch_one(emulator, module, 1, 33, 0), EMULATOR_OK);
  emulator_close(emulator);
}

// ---- kernels that never end ----

static void expect_step_limit(const char *text, int line, unsigned blocks, unsigned threads) {
  Emulator *emulator = emulator_open(&options);
  EmulatorModule *module = load(emulator, text);
  uint64_t buffer = emulator_alloc(emulator, LAUNCH_BUFFER);
  emulator_fill(emulator, buffer, 0, LAUNCH_BUFFER);
  cr_expect_eq(launch_one(emulator, module, blocks, threads, buffer), EMULATOR_FAULT);
  int count;
  const Hazard *hazards = emulator_hazards(emulator, &count);
  cr_assert_eq(count, 1);
  cr_expect_str_eq(hazard_name(hazards[0].kind), "step limit", "%s: %s", hazard_name(hazards[0].kind),
                   hazards[0].detail);
  cr_expect_eq(hazards[0].here.ptx_line, line);
  cr_expect(strstr(hazards[0].detail, "5000"));
  emulator_close(emulator);
}

// Every turn changes a register: a state that came back would be seen as spinning, with or without a limit.
Test(robustness, a_loop_without_end_reaches_the_step_limit) {
  static const char counting[] = HEADER ".entry k(.param .u64 p) {\n.reg .u64 %n;\nL: add.u64 %n, %n, 1; bra L;\n}\n";
  expect_step_limit(counting, 6, 1, 1);
  expect_step_limit(counting, 6, 4, 256);
}

Test(robustness, a_loop_that_counts_while_it_polls_reaches_the_step_limit) {
  expect_step_limit(HEADER ".entry k(.param .u64 p) { .reg .u64 %a, %n; .reg .u32 %v; .reg .pred %q;\n"
                           "ld.param.u64 %a, [p];\nL: add.u64 %n, %n, 1; ld.volatile.global.u32 %v, [%a];"
                           " setp.eq.u32 %q, %v, 0; @%q bra L; ret; }\n",
                    6, 1, 64);
}

Test(robustness, calls_without_end_overflow_the_stack) {
  Emulator *emulator = emulator_open(&options);
  EmulatorModule *module =
      load(emulator, HEADER ".func f() {\n  call f;\n  ret;\n}\n.entry k(.param .u64 p) { call f; ret; }\n");
  cr_expect_eq(launch_one(emulator, module, 1, 32, 0), EMULATOR_FAULT);
  int count;
  const Hazard *hazards = emulator_hazards(emulator, &count);
  cr_assert_eq(count, 1);
  cr_expect_eq(hazards[0].kind, HAZARD_TRAP);
  cr_expect(strstr(hazards[0].detail, "stack overflow"), "%s", hazards[0].detail);
  emulator_close(emulator);
}

#define MUTUAL(name, other)                                                                                            \
  ".func (.param .b32 r) " name "(.param .b32 a) { .reg .u32 %x, %y; .reg .pred %p; .param .b32 q; .param .b32 s;\n"   \
  ".local .b32 l; ld.param.u32 %x, [a]; mov.u32 %y, 0; setp.eq.u32 %p, %x, 0; @%p bra E;\n"                            \
  "sub.u32 %y, %x, 1; st.local.u32 [l], %x; st.param.b32 [q], %y; call (s), " other ", (q); ld.param.u32 %y, [s];\n"   \
  "ld.local.u32 %x, [l]; mad.lo.u32 %y, %y, 2, %x;\nE: st.param.b32 [r], %y; ret; }\n"

// Two functions that call each other, each of which needs its local memory after the call: f(x) = 2 f(x - 1) + x. A
// third one calls the two and is not called again.
Test(robustness, functions_that_call_each_other_have_memory_of_their_own) {
  Emulator *emulator = emulator_open(&options);
  EmulatorModule *module =
      load(emulator,
           HEADER ".func (.param .b32 r) g(.param .b32 a);\n" MUTUAL("f", "g") MUTUAL("g", "f")
               MUTUAL("h", "g") ".entry k(.param .u64 p) { .reg .u64 %b; .reg .u32 %v; .param .b32 q; .param .b32 s;\n"
                                "ld.param.u64 %b, [p]; mov.u32 %v, 5; st.param.b32 [q], %v; call (s), h, (q);\n"
                                "ld.param.u32 %v, [s]; st.global.u32 [%b], %v; ret; }\n");
  uint64_t buffer = emulator_alloc(emulator, 4);
  cr_expect_eq(launch_one(emulator, module, 1, 1, buffer), EMULATOR_OK);
  uint32_t result = 0;
  emulator_read(emulator, &result, buffer, 4);
  cr_expect_eq(result, 57, "%u", result);  // 1, 4, 11, 26, 57
  emulator_close(emulator);
}

// Two hundred stores race with each other, in up to forty thousand pairs of lines.
Test(robustness, a_thousand_hazards_are_told_and_a_fault_besides) {
  char text[16384];
  int used = snprintf(text, sizeof text, "%s", HEADER ".shared .u32 s;\n.entry k(.param .u64 p) { .reg .u32 %t;\n");
  for (int i = 0; i < 200; i++)
    used += snprintf(text + used, sizeof text - (size_t)used,
                     "mad.lo.u32 %%t, %%tid.x, 1000, %d; st.shared.u32 [s], %%t;\n", i);
  snprintf(text + used, sizeof text - (size_t)used, "ret; }\n");
  EmulatorOptions seeded = {.hazards = true, .threads = 1, .schedule = 1};
  Emulator *emulator = emulator_open(&seeded);
  cr_expect_eq(launch_one(emulator, load(emulator, text), 48, 256, 0), EMULATOR_OK);
  int count;
  emulator_hazards(emulator, &count);
  cr_expect_eq(count, 1000, "%d hazards", count);
  cr_expect_eq(launch_one(emulator, load(emulator, HEADER ".entry k(.param .u64 p) { trap; }"), 1, 1, 0),
               EMULATOR_FAULT);
  emulator_hazards(emulator, &count);
  cr_expect_eq(count, 1001, "%d hazards", count);
  emulator_close(emulator);
}

// A warp reads words, each in a line of its own and far from the next in a long kernel, and another warp overwrites
// them. Each report names the line that has read the word.
Test(robustness, each_of_many_reads_has_its_line) {
  enum { READS = 40, APART = 64 };
  char text[1 << 16];
  int used = snprintf(text, sizeof text, "%s",
                      HEADER ".entry k(.param .u64 p) { .reg .u64 %g; .reg .u32 %t, %r; .reg .pred %q;\n"
                             "ld.param.u64 %g, [p]; mov.u32 %t, %tid.x; setp.ge.u32 %q, %t, 32; @%q bra W;\n");
  for (int i = 0; i < READS; i++) {
    used += snprintf(text + used, sizeof text - (size_t)used, "ld.global.u32 %%r, [%%g+%d];", 4 * i);
    for (int n = 1; n < APART; n++) used += snprintf(text + used, sizeof text - (size_t)used, " not.b32 %%r, %%r;");
    text[used++] = '\n';
  }
  used += snprintf(text + used, sizeof text - (size_t)used, "ret; W:\n");
  for (int i = 0; i < READS; i++)
    used += snprintf(text + used, sizeof text - (size_t)used, "st.global.u32 [%%g+%d], %%t;\n", 4 * i);
  snprintf(text + used, sizeof text - (size_t)used, "ret; }\n");
  Emulator *emulator = emulator_open(&(EmulatorOptions){.hazards = true, .threads = 1});
  uint64_t buffer = emulator_alloc(emulator, 4 * READS);
  emulator_fill(emulator, buffer, 0, 4 * READS);
  cr_expect_eq(launch_one(emulator, load(emulator, text), 1, 33, buffer), EMULATOR_OK);
  int count;
  const Hazard *hazards = emulator_hazards(emulator, &count);
  cr_expect_eq(count, READS, "%d hazards", count);
  for (int i = 0; i < count; i++)
    cr_expect_eq(hazards[i].other.ptx_line - hazards[i].here.ptx_line, READS + 1, "line %d reads what line %d writes",
                 hazards[i].here.ptx_line, hazards[i].other.ptx_line);
  emulator_close(emulator);
}

// D = A B and then D -= A B, with the same B: what is kept of B for the four warps of one wgmma is not that of the
// next.
Test(robustness, wgmma_of_the_same_b_negated) {
  Emulator *emulator = emulator_open(&(EmulatorOptions){.hazards = true, .threads = 1});
  EmulatorModule *module =
      load(emulator,
           HEADER ".entry k(.param .u64 p) { .reg .u64 %g, %d, %x; .reg .u32 %a, %b, %v; .reg .f32 %f<4>;\n"
                  ".shared .align 128 .b8 t[2048];\n"
                  "ld.param.u64 %g, [p]; mov.u32 %b, t; mad.lo.u32 %a, %tid.x, 16, %b; mov.u32 %v, 0x3c003c00;\n"
                  "st.shared.v4.u32 [%a], {%v, %v, %v, %v}; fence.proxy.async; bar.sync 0;\n"
                  "shr.u32 %b, %b, 4; cvt.u64.u32 %d, %b; mov.u64 %x, 0x1000080000; or.b64 %d, %d, %x;\n"
                  "wgmma.fence.sync.aligned;\n"
                  "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %d, %d, 0, 1, 1, 0, 0;\n"
                  "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %d, %d, 1, 1, -1, 0, 0;\n"
                  "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;\n"
                  "mul.wide.u32 %x, %tid.x, 4; add.u64 %g, %g, %x; st.global.f32 [%g], %f1; ret; }\n");
  float d[128];
  uint64_t buffer = emulator_alloc(emulator, sizeof d);
  cr_expect_eq(launch_one(emulator, module, 1, 128, buffer), EMULATOR_OK);
  int count;
  emulator_hazards(emulator, &count);
  cr_expect_eq(count, 0);
  cr_assert(emulator_read(emulator, d, buffer, sizeof d));
  for (int i = 0; i < 128; i++) cr_expect_eq(d[i], 0, "thread %d: %g", i, d[i]);
  emulator_close(emulator);
}

// A copy that nobody waits for stays under way, while more bulk copies come and go than the race check tells apart:
// what is learnt of those must not pass for having waited for the first. In the schedule that completes it at its wait
// alone.
Test(robustness, a_copy_under_way_keeps_its_name) {
  Emulator *emulator = emulator_open(&(EmulatorOptions){.hazards = true, .threads = 1});
  EmulatorModule *module = load(
      emulator, HEADER ".entry k(.param .u64 p) { .reg .u64 %g; .reg .u32 %t, %b, %i, %q; .reg .pred %d;\n"
                       ".shared .align 16 .b8 tile[16]; .shared .align 16 .b8 other[16]; .shared .align 8 .b64 bar;\n"
                       "ld.param.u64 %g, [p]; mov.u32 %b, bar; mov.u32 %t, tile; mov.u32 %i, 0;\n"
                       "mbarrier.init.shared.b64 [%b], 1; fence.mbarrier_init.release.cluster;\n"
                       "cp.async.cg.shared.global [%t], [%g], 16; cp.async.commit_group;\n"
                       "L: mbarrier.arrive.expect_tx.shared.b64 _, [%b], 16; mov.u32 %t, other;\n"
                       "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%t], [%g], 16, [%b];\n"
                       "and.b32 %q, %i, 1;\n"
                       "W: mbarrier.try_wait.parity.shared.b64 %d, [%b], %q; @!%d bra W;\n"
                       "add.u32 %i, %i, 1; setp.lt.u32 %d, %i, 600; @%d bra L;\n"
                       "ld.shared.u32 %q, [tile];\ncp.async.wait_group 0; ret; }\n");
  uint64_t buffer = emulator_alloc(emulator, 16);
  emulator_fill(emulator, buffer, 0, 16);
  cr_expect_eq(launch_one(emulator, module, 1, 1, buffer), EMULATOR_OK);
  int count;
  const Hazard *hazards = emulator_hazards(emulator, &count);
  bool found = false;
  for (int i = 0; i < count; i++) found |= hazards[i].kind == HAZARD_READ_BEFORE_WAIT && hazards[i].here.ptx_line == 14;
  cr_expect(found, "%d hazards", count);
  emulator_close(emulator);
}

// ---- many launches, many emulators ----

static const char adding[] = HEADER ".entry k(.param .u64 p) { .reg .u64 %a; .reg .u32 %t; .shared .u32 s;\n"
                                    "ld.param.u64 %a, [p]; mov.u32 %t, %tid.x; red.global.add.u32 [%a], %t;\n"
                                    "bar.sync 0; cp.async.wait_all; ret; }\n";

static uint32_t sum_of_launches(int launches, int threads) {
  EmulatorOptions own = options;
  own.threads = threads;
  Emulator *emulator = emulator_open(&own);
  EmulatorModule *module = load(emulator, adding);
  uint64_t buffer = emulator_alloc(emulator, 4);
  emulator_fill(emulator, buffer, 0, 4);
  for (int i = 0; i < launches; i++) cr_assert_eq(launch_one(emulator, module, 4, 64, buffer), EMULATOR_OK);
  uint32_t sum = 0;
  emulator_read(emulator, &sum, buffer, 4);
  emulator_close(emulator);
  return sum;
}

enum { SUM_OF_ONE = 4 * 63 * 64 / 2 };

// Bytes that malloc has given out. (A checker of leaks has a malloc of its own, and finds what this would.)
static size_t heap_bytes(void) { return mallinfo2().uordblks; }

Test(robustness, thousands_of_launches_leave_nothing_behind) {
  sum_of_launches(10, 1);
  size_t before = heap_bytes();
  cr_expect_eq(sum_of_launches(3000, 1), 3000 * SUM_OF_ONE);
  cr_expect_leq(heap_bytes(), before + (64 << 10), "%zu bytes before, %zu after", before, heap_bytes());
}

static void *sum_in_thread(void *result) {
  *(uint32_t *)result = sum_of_launches(200, 2);
  return NULL;
}

Test(robustness, emulators_in_several_host_threads_do_not_meet) {
  pthread_t threads[2];
  uint32_t sums[2];
  for (int i = 0; i < 2; i++) cr_assert_eq(pthread_create(&threads[i], NULL, sum_in_thread, &sums[i]), 0);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < 2; i++) cr_expect_eq(sums[i], 200 * SUM_OF_ONE);
}

Test(robustness, thousands_of_modules_can_be_loaded_and_refused) {
  Emulator *emulator = emulator_open(&options);
  for (int i = 0; i < 1000; i++) {
    EmulatorError error;
    load(emulator, adding);
    cr_assert(!load_checked(emulator, HEADER ".global .b8 g[4096];\n.entry k() { nothing; }", 76, &error));
  }
  emulator_close(emulator);
}
