// Attention with a sliding window, stage 21: right for any sequence and window; no more work than the window needs; the
// reference that it is compared with, and what the harness says of a wrong window.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/harness.h"
#include "support/program.h"
#include "support/sanitized.h"

TestSuite(window, .timeout = 300);
TestSuite(gpu_window, .timeout = 300);

enum { WINDOWED_DIM = 96 };

static Output *run_windowed(const char *options) {
  char line[300];
  snprintf(line, sizeof line, "--device=emulator --strict %s", options);
  return run_line("stage-21", line);
}

static void expect_right_window(const char *options) {
  Output *output = run_windowed(options);
  cr_expect_eq(output->code, 0, "stage-21 %s: exit code %d\n%s%s", options, output->code, output->out, output->err);
  cr_expect(strstr(output->out, "\nresult    right: all "), "stage-21 %s:\n%s", options, output->out);
  cr_expect(strstr(output->out, "\nhazards   none\n"), "stage-21 %s:\n%s", options, output->out);
  free(output);
}

// Sequences and windows on both sides of tiles of 128 and halves of 64; one key; longer than the sequence; and windows
// that begin in another key tile for the second warpgroup than for the first.
Test(window, is_right_at_the_edges_of_tiles) {
  static const int seqlens[] = {1, 64, 65, 127, 128, 129, 256, 300, 449, 640};
  static const int windows[] = {1, 2, 63, 64, 65, 66, 127, 128, 129, 191, 192, 193, 256, 320, 5000};
  enum { SEQLENS = sizeof seqlens / sizeof *seqlens, WINDOWS = sizeof windows / sizeof *windows };
  char options[200];
  for (int i = 0; i < (SANITIZED ? 4 : SEQLENS * WINDOWS / 2); i++) {
    int number = 2 * i + i / (SEQLENS / 2) % 2;  // every second pair, and the others for the next window
    snprintf(options, sizeof options, "--heads=1 --seqlen=%d --window=%d --schedule=%d", seqlens[number % SEQLENS],
             windows[number / SEQLENS], i % 4);
    expect_right_window(options);
  }
}

// Sequences and windows that nobody has thought of, the same in every run.
Test(window, is_right_for_random_problems) {
  static const char *const inputs[] = {"normal", "ones",  "arange",   "large", "identity",
                                       "waves",  "cliff", "outliers", "mean",  "negative"};
  unsigned state = 2026;
  char options[200];
  for (int i = 0; i < (SANITIZED ? 2 : 40); i++) {
    int seqlen = 1 + rand_r(&state) % 700, window = 1 + rand_r(&state) % (i % 3 ? 300 : 900);
    int heads = 1 + rand_r(&state) % 3, seed = rand_r(&state) % 1000;
    snprintf(options, sizeof options, "--heads=%d --seqlen=%d --window=%d --seed=%d --input=%s --schedule=%d", heads,
             seqlen, window, seed, inputs[i % 10], i % 6);
    expect_right_window(options);
  }
}

// More tiles than blocks, so that each ring goes round several times, and tiles begin while others end.
Test(window, is_right_with_many_tiles) {
  if (SANITIZED) cr_skip_test("the same code as few tiles");
  expect_right_window("--batch=3 --heads=7 --seqlen=260 --window=70 --schedule=1");
  expect_right_window("--heads=2 --seqlen=1500 --window=130 --schedule=2 --input=waves");
}

// ---- how much it does ----

static unsigned long long counted_flops(const char *options) {
  Output *output = run_windowed(options);
  char digits[32];
  int length = 0;
  const char *found = strstr(output->out, "tensor cores: ");
  cr_assert(found, "%s%s", output->out, output->err);
  for (const char *c = found + strlen("tensor cores: "); *c != ' '; c++)
    if (*c != ',') digits[length++] = *c;
  digits[length] = 0;
  free(output);
  return strtoull(digits, NULL, 10);
}

// How many products of 64 queries and 64 keys there are, if no query tile has more than it needs.
static unsigned long long pieces(int seqlen, int window) {
  unsigned long long count = 0;
  for (int row = 0; row < (seqlen + 127) / 128 * 128; row += 64) {
    int first = row - window + 1 > 0 ? row - window + 1 : 0;
    count += (unsigned long long)(row / 64 + 1 - first / 64);
  }
  return count;
}

Test(window, computes_no_half_tile_outside_the_window) {
  static const int problems[][2] = {{1024, 256}, {1024, 1024}, {640, 1}, {640, 64}, {640, 65}, {900, 320}, {900, 5000}};
  for (int i = 0; i < (SANITIZED ? 2 : 7); i++) {
    char options[100];
    snprintf(options, sizeof options, "--hazards=off --heads=1 --seqlen=%d --window=%d", problems[i][0],
             problems[i][1]);
    cr_expect_eq(counted_flops(options), pieces(problems[i][0], problems[i][1]) * 4 * 64 * 64 * WINDOWED_DIM, "%s",
                 options);
  }
}

// ---- the options ----

static void expect_refused_in_one_line(const char *stage, const char *options, const char *words) {
  Output *output = run_line(stage, options);
  cr_expect_eq(output->code, 2, "%s %s: exit code %d", stage, options, output->code);
  cr_expect(strstr(output->err, words), "%s %s: %s", stage, options, output->err);
  cr_expect_eq(strchr(output->err, '\n') + 1 - output->err, (long)strlen(output->err), "one line: %s", output->err);
  free(output);
}

Test(window, has_options_of_its_own) {
  expect_refused_in_one_line("stage-21", "--head-dim=64", "has head dimension 96, a causal mask and a window");
  expect_refused_in_one_line("stage-21", "--causal", "has head dimension 96, a causal mask and a window");
  expect_refused_in_one_line("stage-21", "--window=0", "--window=0: too small");
  expect_refused_in_one_line("stage-21", "--lse", "does not store the log-sum-exp");
  expect_refused_in_one_line("stage-05", "--window=5", "has no window");
  expect_refused_in_one_line("stage-20", "--window=5", "has no window");
}

// ---- the reference, and what is said of a wrong window ----

static Problem windowed_problem(int seqlen, int window) {
  Problem problem;
  Shape shape = {.batch = 1, .heads = 2, .seqlen = seqlen, .head_dim = WINDOWED_DIM, .causal = true};
  cr_assert(problem_create(&problem, &shape, INPUT_NORMAL, 3));
  problem.window = window;
  return problem;
}

static double value_of(const Problem *problem, const Half *tensor, int head, int row, int d) {
  return half_to_float(tensor[((size_t)head * (size_t)problem->shape.seqlen + (size_t)row) * WINDOWED_DIM + (size_t)d]);
}

// O for a window, in plain loops, rounded to fp16.
static void fill_output(Problem *problem, int window) {
  int seqlen = problem->shape.seqlen;
  for (int i = 0; i < 2 * seqlen; i++) {
    int head = i / seqlen, row = i % seqlen, first = window <= row ? row - window + 1 : 0;
    double sum = 0, o[WINDOWED_DIM] = {0};
    for (int key = first; key <= row; key++) {
      double score = 0;
      for (int d = 0; d < WINDOWED_DIM; d++)
        score += value_of(problem, problem->q, head, row, d) * value_of(problem, problem->k, head, key, d);
      double weight = exp(score / sqrt(WINDOWED_DIM));
      sum += weight;
      for (int d = 0; d < WINDOWED_DIM; d++) o[d] += weight * value_of(problem, problem->v, head, key, d);
    }
    for (int d = 0; d < WINDOWED_DIM; d++) problem->o[i * WINDOWED_DIM + d] = half_from_double(o[d] / sum);
  }
}

// Fills O as if the window were `computed`, and checks it.
static CheckResult checked(Problem *problem, int computed) {
  CheckResult result;
  fill_output(problem, computed);
  cr_assert(check_output(problem, OUTPUT_O, 1, &result));
  return result;
}

Test(window, reference_sees_the_keys_of_the_window_alone) {
  static const int windows[] = {1, 2, 7, 39, 40, 41, 1000};
  for (int i = 0; i < 7; i++) {
    Problem problem = windowed_problem(40, windows[i]);
    CheckResult result = checked(&problem, windows[i]);
    cr_expect(check_is_right(&result), "window %d: %llu wrong", windows[i], (unsigned long long)result.wrong);
    cr_expect_eq(result.compared, problem.elements);
    problem_free(&problem);
  }
}

Test(window, a_wrong_row_names_the_window_that_it_fits) {
  Problem problem = windowed_problem(60, 20);
  CheckResult result = checked(&problem, 21);
  cr_expect(!check_is_right(&result) && result.differences[0].index / WINDOWED_DIM == 20, "the first with 21 keys");
  cr_expect(check_fits_window(&problem, &result, 21));
  cr_expect(!check_fits_window(&problem, &result, 19));
  result = checked(&problem, 19);
  cr_expect(check_fits_window(&problem, &result, 19) && !check_fits_window(&problem, &result, 21));
  result = checked(&problem, 60);
  cr_expect(check_fits_window(&problem, &result, 0));
  problem_free(&problem);
}

Test(window, counts_the_scores_that_are_seen) {
  Shape shape = {.batch = 2, .heads = 3, .seqlen = 5, .head_dim = WINDOWED_DIM, .causal = true};
  cr_expect_eq(problem_windowed_flops(&shape, 3), 4.0 * 2 * 3 * WINDOWED_DIM * (1 + 2 + 3 + 3 + 3));
  cr_expect_eq(problem_windowed_flops(&shape, 9), 4.0 * 2 * 3 * WINDOWED_DIM * (1 + 2 + 3 + 4 + 5));
}

// ---- on a GPU ----

Test(gpu_window, is_right_and_timed) {
  if (!getenv("HL_GPU")) cr_skip_test("no GPU: make test-gpu runs this");
  static const char *const problems[] = {"--seqlen=4096 --window=1024", "--seqlen=1000 --window=37",
                                         "--seqlen=777 --window=900 --heads=3", "--seqlen=2000 --window=1 --batch=1"};
  for (int i = 0; i < 4; i++) {
    char line[200];
    snprintf(line, sizeof line, "--device=gpu --csv=- %s", problems[i]);
    Output *output = run_line("stage-21", line);
    cr_expect_eq(output->code, 0, "%s: %s", line, output->err);
    cr_expect(strstr(output->out, ",batch,heads,head_dim,seqlen,window,median_ms,"), "%s", output->out);
    free(output);
  }
}
