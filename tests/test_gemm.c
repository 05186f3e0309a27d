// Matrix products, stages 20 and 20b: right in every shape and schedule, and what the harness refuses and finds.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/harness.h"
#include "support/program.h"
#include "support/sanitized.h"

TestSuite(gemm, .timeout = 300);
TestSuite(gpu_gemm, .timeout = 300);

static const char *const products[] = {"stage-20", "stage-20b"};
enum { PRODUCTS = sizeof products / sizeof *products };

static void expect_right_product(const char *stage, const char *options) {
  char line[300];
  snprintf(line, sizeof line, "--device=emulator --strict %s", options);
  Output *output = run_line(stage, line);
  cr_expect_eq(output->code, 0, "%s %s: exit code %d\n%s%s", stage, line, output->code, output->out, output->err);
  cr_expect(strstr(output->out, "\nresult    right: "), "%s %s:\n%s", stage, line, output->out);
  cr_expect(strstr(output->out, "\nhazards   none\n"), "%s %s:\n%s", stage, line, output->out);
  free(output);
}

// Both sides of the tile's edges, one row, one step, many; and more rows of tiles than a group has.
Test(gemm, is_right_in_every_shape) {
  static const char *const shapes[] = {"--m=1 --n=8 --k=8",       "--m=128 --n=256 --k=64",  "--m=129 --n=264 --k=72",
                                       "--m=127 --n=248 --k=56",  "--m=8 --n=1032 --k=640",  "--m=700 --n=520 --k=328",
                                       "--m=300 --n=16 --k=1000", "--m=2200 --n=520 --k=16", "--m=257 --n=8 --k=520"};
  char options[200];
  for (int i = 0; i < (SANITIZED ? 3 : (int)(sizeof shapes / sizeof *shapes)); i++)
    for (int p = 0; p < PRODUCTS; p++) {
      snprintf(options, sizeof options, "%s --schedule=%d", shapes[i], (i + p) % 5);
      expect_right_product(products[p], options);
    }
}

Test(gemm, is_right_with_every_input_and_schedule) {
  static const char *const inputs[] = {"normal", "ones", "arange", "identity", "outliers", "mean"};
  char options[200];
  for (int i = 0; i < 6; i++)
    for (int p = 0; p < PRODUCTS; p++) {
      snprintf(options, sizeof options, "--input=%s --schedule=%d --seed=%d", inputs[i], i, i);
      expect_right_product(products[p], options);
    }
}

// Where the check compares chosen rows and columns alone.
Test(gemm, is_right_where_elements_are_chosen) {
  if (SANITIZED) cr_skip_test("the same code as small problems");
  Output *output = run_line("stage-20", "--device=emulator --size=1024 --hazards=off");
  cr_expect_eq(output->code, 0);
  cr_expect(strstr(output->out, "right: ") && strstr(output->out, " rows and ") && strstr(output->out, " columns)"),
            "%s", output->out);
  free(output);
}

// ---- what the harness refuses ----

static void expect_refused(const char *stage, const char *options, const char *words) {
  Output *output = run_line(stage, options);
  cr_expect_eq(output->code, 2, "%s %s: exit code %d", stage, options, output->code);
  cr_expect(strstr(output->err, words), "%s %s: %s", stage, options, output->err);
  cr_expect_eq(strchr(output->err, '\n') + 1 - output->err, (long)strlen(output->err), "one line: %s", output->err);
  free(output);
}

Test(gemm, refuses_what_makes_no_sense_in_one_line) {
  expect_refused("stage-20", "--k=12", "--k=12: n and k must be multiples of 8");
  expect_refused("stage-20b", "--n=513", "--n=513: n and k must be multiples of 8");
  expect_refused("stage-20", "--size=20", "multiples of 8");
  expect_refused("stage-20", "--m=0", "--m=0: too small");
  expect_refused("stage-20", "--input=waves", "one of normal|ones|arange|identity|outliers|mean is allowed");
  expect_refused("stage-20", "--seqlen=64", "is not an attention kernel");
  expect_refused("stage-05", "--size=64", "is not a matrix product");
}

// ---- what the check finds ----

// A problem whose C is right: fp64, rounded.
static GemmProblem right_problem(int m, int n, int k, InputKind input) {
  GemmProblem problem;
  cr_assert(gemm_problem_create(&problem, m, n, k, input, 1));
  for (int i = 0; i < m; i++)
    for (int j = 0; j < n; j++) {
      double sum = 0;
      for (int p = 0; p < k; p++)
        sum += (double)half_to_float(problem.a[i * k + p]) * half_to_float(problem.b[j * k + p]);
      problem.c[i * n + j] = half_from_double(sum);
    }
  return problem;
}

static GemmCheck check_of(const GemmProblem *problem) {
  GemmCheck check;
  cr_assert(gemm_check(problem, 1, &check));
  return check;
}

Test(gemm_check, takes_the_exact_product_for_right) {
  for (InputKind input = INPUT_NORMAL; input <= INPUT_MEAN; input++) {
    GemmProblem problem = right_problem(19, 24, 104, input);
    GemmCheck check = check_of(&problem);
    cr_expect(gemm_check_is_right(&check) && check.compared == 19 * 24 && check.worst <= 1, "input %d: %g", input,
              check.worst);
    gemm_problem_free(&problem);
  }
}

// Three units of the last place off; a NaN; an infinity.
Test(gemm_check, finds_one_wrong_element_and_says_where) {
  static const Half wrong[] = {3, 0x7e00, 0x7c00};
  for (int i = 0; i < 3; i++) {
    GemmProblem problem = right_problem(40, 16, 48, INPUT_NORMAL);
    problem.c[37 * 16 + 5] = i ? wrong[i] : (Half)(problem.c[37 * 16 + 5] + wrong[i]);
    GemmCheck check = check_of(&problem);
    cr_expect(!gemm_check_is_right(&check) && check.wrong == 1 && check.differences[0].index == 37 * 16 + 5);
    cr_expect_eq(check.not_finite, i > 0);
    gemm_problem_free(&problem);
  }
}

// A slice of 16 terms left out, or added in fp16: what kernels get wrong.
Test(gemm_check, finds_sums_that_are_kept_in_fp16) {
  GemmProblem problem = right_problem(32, 32, 512, INPUT_MEAN);
  for (int i = 0; i < 32 * 32; i++) {
    double sum = 0;
    for (int p = 0; p < 512; p++)
      sum = half_round(sum +
                       (double)half_to_float(problem.a[i / 32 * 512 + p]) * half_to_float(problem.b[i % 32 * 512 + p]));
    problem.c[i] = half_from_double(sum);
  }
  GemmCheck check = check_of(&problem);
  cr_expect_gt(check.wrong, 500, "%llu of %llu", (unsigned long long)check.wrong, (unsigned long long)check.compared);
  gemm_problem_free(&problem);
}

// An element that is never written is found also where the check does not compare it.
Test(gemm_check, finds_nan_in_what_is_not_compared) {
  GemmProblem problem;
  cr_assert(gemm_problem_create(&problem, 2048, 2048, 512, INPUT_ONES, 1));
  for (size_t i = 0; i < (size_t)2048 * 2048; i++) problem.c[i] = half_from_double(512);
  problem.c[1000 * 2048 + 1001] = 0xffff;
  GemmCheck check = check_of(&problem);
  cr_expect(check.rows < 2048 && check.not_finite == 1 && check.first_not_finite == 1000 * 2048 + 1001);
  cr_expect(!gemm_check_is_right(&check));
  gemm_problem_free(&problem);
}

// The same element is the same number, however large the rest is: rows have streams of their own.
Test(gemm_check, inputs_depend_on_seed_and_place_alone) {
  GemmProblem small, large, other;
  cr_assert(gemm_problem_create(&small, 3, 8, 16, INPUT_NORMAL, 7));
  cr_assert(gemm_problem_create(&large, 30, 40, 16, INPUT_NORMAL, 7));
  cr_assert(gemm_problem_create(&other, 3, 8, 16, INPUT_NORMAL, 8));
  cr_expect_arr_eq(small.a, large.a, 3 * 16 * sizeof(Half));
  cr_expect_arr_eq(small.b, large.b, 8 * 16 * sizeof(Half));
  cr_expect_neq(memcmp(small.a, other.a, 3 * 16 * sizeof(Half)), 0);
  cr_expect_neq(memcmp(small.a, small.b, 3 * 16 * sizeof(Half)), 0);
  gemm_problem_free(&small);
  gemm_problem_free(&large);
  gemm_problem_free(&other);
}

// ---- on a GPU ----

Test(gpu_gemm, is_right_and_timed_beside_cublas) {
  if (!getenv("HL_GPU")) cr_skip_test("no GPU: make test-gpu runs this");
  for (int p = 0; p < PRODUCTS; p++) {
    Output *output = run_line(products[p], "--device=gpu --m=1000 --n=2056 --k=520 --csv=-");
    cr_expect_eq(output->code, 0, "%s", output->err);
    cr_expect(strstr(output->out, ",m,n,k,input,median_ms,"), "%s", output->out);
    free(output);
  }
}
