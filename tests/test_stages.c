// Every stage that is built, on the emulator: right, and no hazard; attention kernels over shapes, inputs and
// schedules. And that this means something: kernels that were broken on purpose must not pass. The suite gpu_stages
// does the same on a GPU (make test-gpu).
#define _GNU_SOURCE  // memmem, mempcpy
#include <criterion/criterion.h>
#include <ctype.h>
#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/program.h"
#include "support/sanitized.h"

TestSuite(stages, .timeout = 900);
TestSuite(gpu_stages, .timeout = 600);

// Calls body with the name of every program stage-NN in the root, of which there must be one: stage-02, stage-02b.
static void for_each_stage(void (*body)(const char *stage)) {
  char pattern[1000];
  glob_t found;
  snprintf(pattern, sizeof pattern, "%s/stage-[0-9][0-9]*", root_path());
  cr_assert_eq(glob(pattern, 0, NULL, &found), 0, "no stage is built in %s", root_path());
  for (size_t i = 0; i < found.gl_pathc; i++) body(strrchr(found.gl_pathv[i], '/') + 1);
  globfree(&found);
}

// Whether --help shows the option --name=VALUE.
static bool has_option(const char *stage, const char *name) {
  char line[100];
  snprintf(line, sizeof line, "\n  --%s=", name);
  Output *output = run_line(stage, "--help");
  cr_assert_eq(output->code, 0, "%s --help: exit code %d", stage, output->code);
  bool result = strstr(output->out, line);
  free(output);
  return result;
}

// An attention kernel has a sequence. One with a window has other shapes: tests/test_window.c.
static bool is_attention(const char *stage) { return has_option(stage, "seqlen") && !has_option(stage, "window"); }

static void (*attention_body)(const char *stage);

static void if_attention(const char *stage) {
  if (is_attention(stage)) attention_body(stage);
}

// Calls body with those that are attention kernels.
static void for_each_attention(void (*body)(const char *stage)) {
  attention_body = body;
  for_each_stage(if_attention);
}

// The options of a small problem.
static const char *small(const char *stage) { return is_attention(stage) ? "--seqlen=40" : ""; }

// Runs one problem and expects it to be right, every element compared, without a hazard.
static void expect_right(const char *stage, const char *options) {
  char line[300];
  snprintf(line, sizeof line, "--device=emulator %s", options);
  Output *output = run_line(stage, line);
  cr_expect_eq(output->code, 0, "%s %s: exit code %d\n%s%s", stage, line, output->code, output->out, output->err);
  cr_expect(strstr(output->out, "\nresult    right: all "), "%s %s:\n%s", stage, line, output->out);
  cr_expect(strstr(output->out, "\nhazards   none\n"), "%s %s:\n%s", stage, line, output->out);
  cr_expect_str_empty(output->err, "%s %s: %s", stage, line, output->err);
  free(output);
}

// How many runs of a list a build has. Sanitizers look for mistakes in the C code of emulator and harness, in which
// more shapes of a kernel take the same paths; a run takes four times as long.
static int runs_of(int all, int under_sanitizers) { return SANITIZED ? under_sanitizers : all; }

// Whether the stage runs what is for the host's code alone: one stage of each kind stands for all, forward, e4m3,
// backward.
static bool tests_host_code(const char *stage) {
  static const char *const kinds[] = {"stage-05", "stage-11", "stage-12b"};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (!strcmp(stage, kinds[i])) return true;
  return false;
}

// Around the edges of tiles of 32, 64 and 128 rows and keys, and numbers that divide by nothing. The first few will do
// where the other head dimension or mask has all. Every second one runs in the adversarial order, the others in an
// order of their own; the shortest have several batches.
static const int seqlens[] = {97, 1, 33, 64, 129, 193, 2, 31, 32, 63, 65, 127, 128};
enum { SEQLENS = sizeof seqlens / sizeof *seqlens, FEW_SEQLENS = 6 };

static void run_shapes(const char *stage, int head_dim, bool causal) {
  char options[200];
  int count = runs_of(causal == (head_dim == 128) ? SEQLENS : FEW_SEQLENS, 2);
  for (int i = 0; i < count; i++) {
    snprintf(options, sizeof options, "--seqlen=%d --head-dim=%d%s%s --schedule=%d", seqlens[i], head_dim,
             causal ? " --causal" : "", seqlens[i] < 40 ? " --batch=2 --heads=3" : "", i % 2 ? i : 0);
    expect_right(stage, options);
  }
}

static void head_dim_64(const char *stage) { run_shapes(stage, 64, false); }
static void head_dim_64_causal(const char *stage) { run_shapes(stage, 64, true); }
static void head_dim_128(const char *stage) { run_shapes(stage, 128, false); }
static void head_dim_128_causal(const char *stage) { run_shapes(stage, 128, true); }

Test(stages, head_dim_64) { for_each_attention(head_dim_64); }
Test(stages, head_dim_64_causal) { for_each_attention(head_dim_64_causal); }
Test(stages, head_dim_128) { for_each_attention(head_dim_128); }
Test(stages, head_dim_128_causal) { for_each_attention(head_dim_128_causal); }

static const char *const input_names[] = {"normal", "ones",    "arange",   "large",   "identity",
                                          "waves",  "cliff",   "outliers", "mean",    "negative",
                                          "rows",   "columns", "vanish",   "explode", "places"};
enum { INPUTS = sizeof input_names / sizeof *input_names, FOR_GRADIENTS = 3 };

// How many of these inputs the stage needs: the last ones are hard for a backward pass alone.
static int inputs_of(const char *stage) {
  Output *output = run_line(stage, "--device=emulator --seqlen=1");
  bool backward = strstr(output->out, "; backward\n");
  free(output);
  return backward ? INPUTS : INPUTS - FOR_GRADIENTS;
}

// Each stage has each input once: with a mask and D = 128, or in three blocks of keys. The next stage has it the other
// way.
static void inputs(const char *stage) {
  static const char *const problems[] = {"--seqlen=67 --head-dim=128 --causal --seed=12345", "--seqlen=300 --heads=1"};
  static int first;
  char options[200];
  if (SANITIZED && !tests_host_code(stage)) return;
  for (int i = 0, count = inputs_of(stage); i < count; i++) {
    snprintf(options, sizeof options, "--input=%s %s", input_names[i], problems[SANITIZED ? 0 : (first + i) % 2]);
    expect_right(stage, options);
  }
  first++;
}

// A row's sum of 2^127 and more. And from stage 06 on more blocks of keys than the ring has places, while maxima rise:
// a place given back too early or never.
static void inputs_of_many_blocks(const char *stage) {
  if (SANITIZED || strcmp(stage, "stage-06") < 0) return expect_right(stage, "--input=cliff --seqlen=512 --heads=1");
  expect_right(stage, "--input=cliff --seqlen=520 --head-dim=128 --heads=1");
  if (strcmp(stage, "stage-12") >= 0) return;  // a backward pass knows all maxima before
  expect_right(stage, "--input=large --seqlen=520 --head-dim=128 --heads=1");
}

// Tests of their own, which run at the same time.
Test(stages, inputs) { for_each_attention(inputs); }
Test(stages, inputs_of_many_blocks) { for_each_attention(inputs_of_many_blocks); }

// Scales that differ from head to head, and rotated queries and keys, where the inputs are e4m3.
static void scales(const char *stage) {
  if (!has_option(stage, "scales")) return;
  expect_right(stage, "--scales=head --batch=2 --heads=3 --seqlen=70 --input=outliers");
  expect_right(stage, "--scales=head --rotate --heads=3 --seqlen=130 --head-dim=128 --causal --input=outliers");
  expect_right(stage, "--rotate --seqlen=300 --heads=1 --input=large");
}

Test(stages, scales) { for_each_attention(scales); }

// A problem that nobody has thought of, the same in every run: up to max_heads heads of up to max_seqlen.
static void random_problem(char *options, size_t size, unsigned *state, int max_heads, int max_seqlen) {
  int heads = 1 + rand_r(state) % max_heads, seqlen = 1 + rand_r(state) % max_seqlen;
  int head_dim = rand_r(state) % 2 ? 64 : 128, causal = rand_r(state) % 2, seed = 1 + rand_r(state) % 1000;
  snprintf(options, size, "--batch=1 --heads=%d --seqlen=%d --head-dim=%d --seed=%d%s", heads, seqlen, head_dim, seed,
           causal ? " --causal" : "");
}

static void random_shapes(const char *stage) {
  unsigned state = 2026;
  char problem[200], options[260];
  for (int i = 0; i < runs_of(5, 1); i++) {
    random_problem(problem, sizeof problem, &state, 3, 300);
    snprintf(options, sizeof options, "--schedule=%d %s", i, problem);
    expect_right(stage, options);
  }
}

Test(stages, random_shapes) { for_each_attention(random_shapes); }

// Whether a part of the report, which begins with the name of a file in the folder, has a line with a count. A line
// without one begins with more spaces, and then has its number.
enum { COUNT_WIDTH = 6 };
static bool counts_lines_of(const char *report, const char *folder) {
  for (const char *part = report; (part = strstr(part, folder)); part++) {
    const char *end = strstr(part, "\n\n"), *line = part;
    while ((line = strchr(line, '\n')) && (!end || line < end)) {
      size_t spaces = strspn(++line, " ");
      if (spaces < COUNT_WIDTH && isdigit(line[spaces])) return true;
    }
  }
  return false;
}

// The counters come with the lines of the stage's own folder, if not of kernel.cu: that of 11b includes all its code.
static void counters(const char *stage) {
  char line[100];
  snprintf(line, sizeof line, "--counters %s", is_attention(stage) ? "--seqlen=130 --heads=1" : small(stage));
  Output *output = run_line(stage, line);
  cr_expect_eq(output->code, 0);
  cr_expect(strstr(output->out, "\ncounters  ") && strstr(output->out, "warp instructions"), "%s", output->out);
  snprintf(line, sizeof line, "\nstages/%s-", stage + strlen("stage-"));
  cr_expect(counts_lines_of(output->out, line), "%s has no counts of%s...\n%s", stage, line, output->out);
  cr_expect(!strstr(output->out, "\ntime "), "the emulator gives a time: %s", output->out);
  free(output);
}

Test(stages, counters) { for_each_stage(counters); }

// Seven products of 128 x 128 x 64 terms in two heads: without those of the forward pass before.
Test(stages, counters_of_a_backward_pass) {
  Output *output = run_line("stage-12", "--device=emulator");
  cr_expect(strstr(output->out, "tensor cores: 29,360,128 FLOP\n"), "%s", output->out);
}

// Five products where stage 12 has seven.
Test(stages, counters_of_one_pass) {
  Output *output = run_line("stage-12b", "--device=emulator");
  cr_expect(strstr(output->out, "tensor cores: 20,971,520 FLOP\n"), "%s", output->out);
  cr_expect(strstr(output->out, "128 atomics of 16.0 sectors, 65,536 bytes\n"), "%s", output->out);
  free(output);
}

// The same five.
Test(stages, counters_of_a_query_warpgroup) {
  Output *output = run_line("stage-12c", "--device=emulator");
  cr_expect(strstr(output->out, "tensor cores: 20,971,520 FLOP\n"), "%s", output->out);
  cr_expect(strstr(output->out, "128 atomics of 16.0 sectors, 65,536 bytes\n"), "%s", output->out);
  free(output);
}

// The same five, and in each block one with zeros: here as much as a whole product, because a block has one step.
Test(stages, counters_of_a_late_product) {
  static const char *const programs[] = {"stage-12d", "stage-12e"};
  for (int i = 0; i < 2; i++) {
    Output *output = run_line(programs[i], "--device=emulator");
    cr_expect(strstr(output->out, "tensor cores: 25,165,824 FLOP\n"), "%s", output->out);
    cr_expect(strstr(output->out, "128 atomics of 16.0 sectors, 65,536 bytes\n"), "%s", output->out);
    free(output);
  }
}

// ---- sums in a fixed order ----

// The line of a report that has the gradients' checksums.
static void checksum_line(const char *stage, const char *options, int schedule, char line[100]) {
  char all[300];
  snprintf(all, sizeof all, "--device=emulator --schedule=%d %s", schedule, options);
  Output *output = run_line(stage, all);
  const char *found = strstr(output->out, "\nchecksum  dQ ");
  cr_assert(output->code == 0 && found, "%s %s: exit code %d\n%s%s", stage, all, output->code, output->out,
            output->err);
  snprintf(line, 100, "%.*s", (int)strcspn(found + 1, "\n"), found + 1);
  free(output);
}

// Whether the checksums are the same under so many schedules.
static bool same_bits(const char *stage, const char *options, int schedules) {
  char first[100], other[100];
  checksum_line(stage, options, 0, first);
  for (int schedule = 1; schedule < schedules; schedule++) {
    checksum_line(stage, options, schedule, other);
    if (strcmp(first, other)) return false;
  }
  return true;
}

// Without --deterministic, six schedules give four or five results at each, with a mask two or three. So three
// schedules agree at all three in less than one case in a thousand. With a mask, the blocks of stage 12d that run at
// the same time have the same tile of several heads: of one head, two of them add to one tile of dQ.
static const char *const of_many_blocks[] = {"--seqlen=550 --heads=1", "--seqlen=640 --head-dim=128 --heads=1",
                                             "--seqlen=500 --head-dim=128 --heads=1 --causal"};
enum { SHAPES_OF_MANY_BLOCKS = sizeof of_many_blocks / sizeof *of_many_blocks, ORDERS = 3 };

static void same_bits_of_many_blocks(const char *stage) {
  char options[200];
  for (int i = 0; i < runs_of(SHAPES_OF_MANY_BLOCKS, 1); i++) {
    snprintf(options, sizeof options, "--deterministic --hazards=off %s", of_many_blocks[i]);
    cr_expect(same_bits(stage, options, runs_of(ORDERS, 2)), "%s: %s", stage, options);
  }
  expect_right(stage, "--deterministic --seqlen=300 --schedule=3 --strict");
}

Test(stages, deterministic_runs_give_the_same_bits) {
  cr_expect(same_bits("stage-12", "--deterministic --seqlen=300", 4));
  same_bits_of_many_blocks("stage-12b");
}

Test(stages, deterministic_runs_give_the_same_bits_with_a_query_warpgroup) { same_bits_of_many_blocks("stage-12c"); }

// Its blocks have another order: with a causal mask, the same tile of several heads.
Test(stages, deterministic_runs_give_the_same_bits_in_another_order) { same_bits_of_many_blocks("stage-12d"); }

// No mbarrier says here that a pair may be overwritten.
Test(stages, deterministic_runs_give_the_same_bits_in_a_lean_loop) { same_bits_of_many_blocks("stage-12e"); }

// Without the option the order changes where blocks run at the same time: on a host with several cores.
Test(stages, other_runs_need_not) {
  if (sysconf(_SC_NPROCESSORS_ONLN) < 2) cr_skip_test("one core: blocks run one after another");
  static const char *const stages[] = {"stage-12b", "stage-12c", "stage-12d", "stage-12e"};
  char options[200];
  for (int s = 0; s < 4; s++) {
    snprintf(options, sizeof options, "--hazards=off %s", of_many_blocks[s % runs_of(SHAPES_OF_MANY_BLOCKS, 1)]);
    cr_expect(!same_bits(stages[s], options, 40), "%s: %s tests nothing", stages[s], options);
  }
}

Test(stages, deterministic_is_an_option_of_the_backward_pass) {
  Output *output = run_line("stage-11", "--deterministic");
  cr_expect(output->code == 2 && strstr(output->err, "stage 11-fp8 is not one of the backward pass"), "%s",
            output->err);
  free(output);
}

// ---- kernels that were broken on purpose ----

// The PTX inside a stage's program, which begins as nvcc begins it. The caller frees it.
static char *embedded_ptx(const char *stage) {
  static const char beginning[] = "//\n// Generated by NVIDIA NVVM Compiler";
  char path[1000];
  size_t size;
  snprintf(path, sizeof path, "%s/%s", root_path(), stage);
  char *program = read_whole(path, &size);
  cr_assert(program, "cannot read %s", path);
  const char *ptx = memmem(program, size, beginning, strlen(beginning));
  cr_assert(ptx, "no PTX in %s", path);
  char *copy = strdup(ptx);
  free(program);
  return copy;
}

// Runs the stage on PTX of our own.
static Output *run_ptx(const char *stage, const char *ptx, const char *options) {
  char path[] = "/tmp/hopper-ladder-ptx-XXXXXX", line[300];
  int file = mkstemp(path);
  cr_assert(file >= 0 && write(file, ptx, strlen(ptx)) == (ssize_t)strlen(ptx));
  close(file);
  snprintf(line, sizeof line, "--ptx=%s %s", path, options);
  Output *output = run_line(stage, line);
  unlink(path);
  return output;
}

// A copy of text with `with` put in place of each `what`; *count is how many there were.
static char *replace(const char *text, const char *what, const char *with, int *count) {
  char *copy = calloc(1, strlen(text) * 2 + 1), *end = copy;
  const char *found;
  for (*count = 0; (found = strstr(text, what)); text = found + strlen(what), ++*count) {
    end = mempcpy(end, text, (size_t)(found - text));
    end = stpcpy(end, with);
  }
  strcpy(end, text);
  return copy;
}

// A copy of the PTX in which every kernel returns before its first instruction.
static char *without_bodies(const char *ptx) {
  static const char leave[] = "\tret;\n";
  char *copy = calloc(1, strlen(ptx) + 10000), *end = copy;
  for (const char *entry; (entry = strstr(ptx, ".entry "));) {
    const char *body = strstr(entry, "\tld.param");
    cr_assert(body, "a kernel that reads no parameter");
    end = mempcpy(end, ptx, (size_t)(body - ptx));
    end = stpcpy(end, leave);
    ptx = body;
  }
  strcpy(end, ptx);
  return copy;
}

static void unchanged_is_right(const char *stage) {
  if (!tests_host_code(stage)) return;
  char *ptx = embedded_ptx(stage);
  Output *output = run_ptx(stage, ptx, small(stage));
  cr_expect_eq(output->code, 0, "%s: exit code %d\n%s%s", stage, output->code, output->out, output->err);
}

static void without_body_is_wrong(const char *stage) {
  if (!tests_host_code(stage)) return;
  char *ptx = without_bodies(embedded_ptx(stage));
  Output *output = run_ptx(stage, ptx, small(stage));
  cr_expect_eq(output->code, 1, "%s: exit code %d\n%s%s", stage, output->code, output->out, output->err);
  cr_expect(strstr(output->out, "result    WRONG"), "%s", output->out);
  cr_expect(strstr(output->out, "[0][0]: got NaN, expected "), "%s", output->out);
}

static void cut_short_is_refused(const char *stage) {
  char *ptx = embedded_ptx(stage);
  ptx[strlen(ptx) / 2] = 0;
  Output *output = run_ptx(stage, ptx, small(stage));
  cr_expect_eq(output->code, 2, "%s: exit code %d\n%s%s", stage, output->code, output->out, output->err);
  cr_expect(strstr(output->err, "PTX line "), "%s", output->err);
}

Test(stages, ptx_unchanged_is_right) { for_each_stage(unchanged_is_right); }
Test(stages, ptx_without_bodies_is_wrong) { for_each_stage(without_body_is_wrong); }
Test(stages, ptx_cut_short_is_refused) { for_each_stage(cut_short_is_refused); }

// Stage 00 with one constant changed: exp(x) becomes 2^x, a softmax of another temperature.
Test(stages, wrong_constant_is_wrong) {
  int count;
  char *ptx = replace(embedded_ptx("stage-00"), "0f3FB8AA3B", "0f3F800000", &count);  // log2(e), 1
  cr_assert(count > 0, "log2(e) is not in the PTX");
  Output *output = run_ptx("stage-00", ptx, "--seqlen=40");
  cr_expect_eq(output->code, 1, "exit code %d\n%s%s", output->code, output->out, output->err);
  cr_expect(strstr(output->out, "result    WRONG"), "%s", output->out);
  cr_expect(strstr(output->out, "\nhazards   none\n"), "%s", output->out);
}

// Stage 00 with the stores of its scores left out: softmax then reads what nobody wrote.
Test(stages, missing_store_is_a_hazard) {
  int count;
  char *ptx = replace(embedded_ptx("stage-00"), "\tst.global.f32", "\t//", &count);
  cr_assert(count > 0, "no store of a score in the PTX");
  Output *output = run_ptx("stage-00", ptx, "--seqlen=40");
  cr_expect_eq(output->code, 1, "exit code %d\n%s%s", output->code, output->out, output->err);
  cr_expect(strstr(output->out, "uninitialised read"), "%s", output->out);
  cr_expect(strstr(output->out, "kernel.cu:"), "%s", output->out);
}

// A note is printed, and makes no run wrong: ptxas ignores a setmaxnreg of this kernel.
Test(stages, a_note_is_no_fault) {
  int count;
  char *ptx = replace(embedded_ptx("stage-00"), "\tret;", "\tsetmaxnreg.dec.sync.aligned.u32 24;\n\tret;", &count);
  cr_assert(count > 0);
  Output *output = run_ptx("stage-00", ptx, "--seqlen=64 --strict");
  cr_expect_eq(output->code, 0, "exit code %d\n%s%s", output->code, output->out, output->err);
  cr_expect(strstr(output->out, "\nhazards   none ("), "%s", output->out);
  cr_expect(strstr(output->out, "\nnote: setmaxnreg misuse"), "%s", output->out);
}

// A counter that is not 0 at the end is a fault of the next launch. Here atomicInc became a maximum, with two tiles for
// two blocks: all that is asked for is more than there is, and the result is right.
static void left_counter_is_wrong(const char *stage, int causal_kernels) {
  int count;
  char *ptx = replace(embedded_ptx(stage), "atom.global.inc.u32", "atom.global.max.u32", &count);
  cr_assert_eq(count, causal_kernels, "the causal kernels of %s count", stage);
  Output *output = run_ptx(stage, ptx, "--seqlen=40 --heads=2 --causal");
  cr_expect_eq(output->code, 1, "exit code %d\n%s%s", output->code, output->out, output->err);
  cr_expect(strstr(output->out, "result    right"), "%s", output->out);
  cr_expect(strstr(output->out, " WRONG: the kernel leaves its counter at 1 instead of 0\n"), "%s", output->out);
}
Test(stages, left_counter_is_wrong) {
  left_counter_is_wrong("stage-09", 2);
  left_counter_is_wrong("stage-10", 4);  // two also store the log-sum-exp
}

// A kernel that is not there is the user's mistake when the PTX is the user's.
Test(stages, missing_kernel_is_refused) {
  int count;
  char *ptx = replace(embedded_ptx("stage-00"), "softmax", "hardmax", &count);
  Output *output = run_ptx("stage-00", ptx, "--seqlen=40");
  cr_expect_eq(output->code, 2, "exit code %d\n%s%s", output->code, output->out, output->err);
  cr_expect(strstr(output->err, "softmax"), "%s", output->err);
}

// ---- on a GPU ----

static void expect_right_on_gpu(const char *stage, const char *options) {
  char line[300];
  snprintf(line, sizeof line, "--device=gpu --repeat=0 %s", options);
  Output *output = run_line(stage, line);
  cr_expect_eq(output->code, 0, "%s %s: exit code %d\n%s%s", stage, line, output->code, output->out, output->err);
  cr_expect(strstr(output->out, "\nresult    right: "), "%s %s:\n%s", stage, line, output->out);
  free(output);
}

// A test has every third stage: it starts hundreds of programs, and the tests run side by side.
enum { GPU_PARTS = 3 };
static const char *gpu_options;
static int gpu_part, gpu_stage;
static void (*gpu_check)(const char *stage);

static void gpu_check_part(const char *stage) {
  if (gpu_stage++ % GPU_PARTS == gpu_part) gpu_check(stage);
}

static void gpu_for_each(void (*check)(const char *), int part, const char *options) {
  gpu_check = check;
  gpu_options = options;
  gpu_part = part;
  for_each_attention(gpu_check_part);
}

static void gpu_shapes(const char *stage) {
  static const int long_seqlens[] = {255, 256, 257, 511, 640, 1000, 1021, 2048, 4097};
  char options[200];
  for (int i = 0; i < SEQLENS; i++) {
    snprintf(options, sizeof options, "--batch=2 --heads=3 --seqlen=%d %s", seqlens[i], gpu_options);
    expect_right_on_gpu(stage, options);
  }
  for (size_t i = 0; i < sizeof long_seqlens / sizeof *long_seqlens; i++) {
    snprintf(options, sizeof options, "--batch=1 --heads=4 --seqlen=%d %s", long_seqlens[i], gpu_options);
    expect_right_on_gpu(stage, options);
  }
}

static void gpu_inputs(const char *stage) {
  char options[200];
  for (int i = 0, count = inputs_of(stage); i < count; i++) {
    snprintf(options, sizeof options, "--input=%s --seqlen=777 --batch=1 --heads=5 --head-dim=128 --causal",
             input_names[i]);
    expect_right_on_gpu(stage, options);
    snprintf(options, sizeof options, "--input=%s", input_names[i]);
    expect_right_on_gpu(stage, options);
  }
  if (!has_option(stage, "scales")) return;
  expect_right_on_gpu(stage, "--input=outliers --scales=head --rotate --head-dim=128");
  expect_right_on_gpu(stage, "--input=outliers --scales=head --causal");
}

static void gpu_random_shapes(const char *stage) {
  unsigned state = 2027;
  char options[200];
  for (int i = 0; i < 10; i++) {
    random_problem(options, sizeof options, &state, 40, 3000);
    expect_right_on_gpu(stage, options);
  }
}

// More heads than a grid's y and z can count, and more scores than one buffer holds.
static void gpu_large(const char *stage) {
  expect_right_on_gpu(stage, "--batch=3 --heads=30000 --seqlen=3");
  expect_right_on_gpu(stage, "--batch=1 --heads=16 --seqlen=16384 --head-dim=128");
}

static void gpu_only(void) {
  if (!getenv("HL_GPU")) cr_skip_test("no GPU: make test-gpu runs this");
}

#define GPU_TESTS(NAME, CHECK, OPTIONS)                                                                                \
  Test(gpu_stages, NAME##_part_0, .init = gpu_only) { gpu_for_each(CHECK, 0, OPTIONS); }                               \
  Test(gpu_stages, NAME##_part_1, .init = gpu_only) { gpu_for_each(CHECK, 1, OPTIONS); }                               \
  Test(gpu_stages, NAME##_part_2, .init = gpu_only) { gpu_for_each(CHECK, 2, OPTIONS); }
GPU_TESTS(shapes_64, gpu_shapes, "--head-dim=64")
GPU_TESTS(shapes_64_causal, gpu_shapes, "--head-dim=64 --causal")
GPU_TESTS(shapes_128, gpu_shapes, "--head-dim=128")
GPU_TESTS(shapes_128_causal, gpu_shapes, "--head-dim=128 --causal")
GPU_TESTS(inputs, gpu_inputs, "")
GPU_TESTS(random_shapes, gpu_random_shapes, "")
Test(gpu_stages, large, .init = gpu_only) { for_each_attention(gpu_large); }
