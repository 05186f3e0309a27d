// The harness's own arithmetic: fp16 conversion, inputs, the fp64 reference against hand-computed cases and properties
// of attention, the limit against kernels that are right and kernels that are nearly right, the comparison, and passes
// over a few heads at a time.
#include <criterion/criterion.h>
#include <stdlib.h>

#include "harness/harness.h"

TestSuite(reference);

static Problem make_problem(Shape shape, InputKind input, uint64_t seed) {
  Problem problem;
  cr_assert(problem_create(&problem, &shape, input, seed));
  return problem;
}

static Half *element(Half *tensor, const Problem *problem, int head, int row, int d) {
  return &tensor[((size_t)head * problem->shape.seqlen + row) * problem->shape.head_dim + d];
}

// All of one head's output, [seqlen][head_dim]; the caller frees it.
static double *reference_of(const Problem *problem, int index) {
  ReferenceHead head;
  cr_assert(reference_open(&head, problem, (size_t)index));
  int head_dim = problem->shape.head_dim;
  double *out = malloc(sizeof(double) * problem->shape.seqlen * head_dim);
  for (int row = 0; row < problem->shape.seqlen; row++) reference_row(&head, row, out + row * head_dim);
  reference_close(&head);
  return out;
}

static void zero(const Problem *problem, Half *tensor) { memset(tensor, 0, problem->elements * sizeof(Half)); }

// ---- fp16 ----

Test(reference, half_keeps_every_value) {
  for (int bits = 0; bits < 0x10000; bits++) {
    Half half = (Half)bits;
    float value = half_to_float(half);
    if (half_is_nan(half))
      cr_expect(isnan(value) && half_is_nan(half_from_double(value)));
    else
      cr_expect_eq(half_from_double(value), half, "%04x came back as %04x", bits, half_from_double(value));
  }
}

Test(reference, half_rounds_to_nearest_even) {
  static const struct {
    double value;
    Half half;
  } cases[] = {
      {1.0, 0x3c00},
      {-2.0, 0xc000},
      {65504, 0x7bff},
      {65519.999, 0x7bff},            // still nearer to 65504
      {65520, 0x7c00},                // half a unit beyond: infinity
      {-1e300, 0xfc00},               //
      {0x1p-24, 0x0001},              // the smallest number
      {0x1p-25, 0x0000},              // a tie goes to even, zero
      {0x1.8p-25, 0x0001},            // beyond the tie
      {0x1.8p-24, 0x0002},            // a tie goes to even, two units
      {0x1.ff8p-15, 0x03ff},          // the largest subnormal
      {0x1.ffcp-15, 0x0400},          // a tie to even, up to the smallest normal number
      {1 + 0x1p-11, 0x3c00},          // a tie to even, down
      {1 + 0x3p-11, 0x3c02},          // a tie to even, up
      {1 + 0x1.01p-11, 0x3c01},       // beyond the tie
      {1 + 0x1.0000001p-11, 0x3c01},  // which a detour over float would have lost
      {-0.0, 0x8000},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    cr_expect_eq(half_from_double(cases[i].value), cases[i].half, "%a became %04x, not %04x", cases[i].value,
                 half_from_double(cases[i].value), cases[i].half);
}

// ---- inputs ----

Test(reference, inputs_follow_the_seed) {
  Shape shape = {.batch = 2, .heads = 3, .seqlen = 50, .head_dim = 64};
  Problem a = make_problem(shape, INPUT_NORMAL, 7), b = make_problem(shape, INPUT_NORMAL, 7),
          c = make_problem(shape, INPUT_NORMAL, 8);
  size_t size = a.elements * sizeof(Half);
  cr_expect(!memcmp(a.q, b.q, size) && !memcmp(a.k, b.k, size) && !memcmp(a.v, b.v, size),
            "the same seed, other inputs");
  cr_expect(memcmp(a.q, c.q, size) && memcmp(a.v, c.v, size), "another seed, the same inputs");
  cr_expect(memcmp(a.q, a.k, size) && memcmp(a.k, a.v, size), "Q, K and V are alike");
  size_t head = size / a.heads;
  cr_expect(memcmp(a.q, (char *)a.q + head, head), "two heads are alike");
  problem_free(&a);
  problem_free(&b);
  problem_free(&c);
}

Test(reference, normal_inputs_are_normal) {
  Problem problem = make_problem((Shape){.batch = 1, .heads = 4, .seqlen = 1000, .head_dim = 64}, INPUT_NORMAL, 1);
  double sum = 0, squares = 0;
  for (size_t i = 0; i < problem.elements; i++) {
    double x = half_to_float(problem.k[i]);
    sum += x;
    squares += x * x;
  }
  double mean = sum / (double)problem.elements, variance = squares / (double)problem.elements;
  cr_expect(fabs(mean) < 0.01, "mean %g", mean);
  cr_expect(fabs(variance - 1) < 0.02, "variance %g", variance);
  problem_free(&problem);
}

// The keys of cliff: normal ones at the end, 128 or fewer, and before them 64 times as large.
Test(reference, cliff_ends_in_normal_keys) {
  static const struct { int seqlen, large; } cases[] = {{100, 0}, {128, 0}, {129, 128}, {256, 128}, {300, 256}};
  for (int i = 0; i < 5; i++) {
    Shape shape = {.batch = 1, .heads = 1, .seqlen = cases[i].seqlen, .head_dim = 64};
    Problem cliff = make_problem(shape, INPUT_CLIFF, 1), normal = make_problem(shape, INPUT_NORMAL, 1);
    int wrong = 0;
    for (size_t at = 0; at < normal.elements; at++) {
      double factor = at / 64 < (size_t)cases[i].large ? 64 : 1;
      wrong += half_to_float(cliff.k[at]) != (float)(factor * (double)half_to_float(normal.k[at]));
    }
    cr_expect_eq(wrong, 0, "seqlen %d: %d elements", shape.seqlen, wrong);
    problem_free(&cliff);
    problem_free(&normal);
  }
}

// ---- hand-computed ----

Test(reference, one_key_gives_its_value) {
  Problem problem = make_problem((Shape){.batch = 1, .heads = 1, .seqlen = 1, .head_dim = 128}, INPUT_NORMAL, 3);
  double *out = reference_of(&problem, 0);
  for (int d = 0; d < 128; d++) cr_expect_eq(out[d], half_to_float(problem.v[d]));
  free(out);
  problem_free(&problem);
}

// Scores 0 and 1 (8 * 1 / sqrt(64)), so weights 1 and e.
Test(reference, two_keys_by_hand) {
  Problem problem = make_problem((Shape){.batch = 1, .heads = 1, .seqlen = 2, .head_dim = 64}, INPUT_ARANGE, 1);
  zero(&problem, problem.q);
  zero(&problem, problem.k);
  *element(problem.q, &problem, 0, 0, 5) = half_from_double(8);
  *element(problem.k, &problem, 0, 1, 5) = half_from_double(1);
  double *out = reference_of(&problem, 0), e = exp(1.0);
  for (int d = 0; d < 64; d++) {
    double v0 = half_to_float(*element(problem.v, &problem, 0, 0, d)),
           v1 = half_to_float(*element(problem.v, &problem, 0, 1, d));
    cr_expect_float_eq(out[d], (v0 + e * v1) / (1 + e), 1e-14, "row 0, d %d: %.17g", d, out[d]);
    cr_expect_float_eq(out[64 + d], (v0 + v1) / 2, 1e-15, "row 1 has equal weights, d %d: %.17g", d, out[64 + d]);
  }
  free(out);
  problem_free(&problem);
}

// ---- properties ----

// With V all ones an output is the sum of a row of P.
Test(reference, rows_sum_to_one) {
  for (int causal = 0; causal < 2; causal++) {
    Problem problem = make_problem((Shape){1, 1, 97, 128, causal}, INPUT_NORMAL, 5);
    for (size_t i = 0; i < problem.elements; i++) problem.v[i] = half_from_double(1);
    double *out = reference_of(&problem, 0);
    for (int i = 0; i < 97 * 128; i++) cr_expect_float_eq(out[i], 1, 1e-13);
    free(out);
    problem_free(&problem);
  }
}

// Attention takes its keys as a set: reversing K and V together changes nothing.
Test(reference, permuting_keys_changes_nothing) {
  Shape shape = {.batch = 1, .heads = 1, .seqlen = 61, .head_dim = 64};
  Problem problem = make_problem(shape, INPUT_NORMAL, 9), reversed = make_problem(shape, INPUT_NORMAL, 9);
  for (int row = 0; row < 61; row++) {
    memcpy(element(reversed.k, &reversed, 0, row, 0), element(problem.k, &problem, 0, 60 - row, 0), 64 * sizeof(Half));
    memcpy(element(reversed.v, &reversed, 0, row, 0), element(problem.v, &problem, 0, 60 - row, 0), 64 * sizeof(Half));
  }
  double *a = reference_of(&problem, 0), *b = reference_of(&reversed, 0);
  for (int i = 0; i < 61 * 64; i++) cr_expect_float_eq(a[i], b[i], 1e-13);
  free(a);
  free(b);
  problem_free(&problem);
  problem_free(&reversed);
}

Test(reference, identity_gives_v) {
  for (int head_dim = 64; head_dim <= 128; head_dim *= 2) {
    Problem problem = make_problem((Shape){1, 2, head_dim, head_dim, false}, INPUT_IDENTITY, 1);
    double *out = reference_of(&problem, 1);
    Half *v = element(problem.v, &problem, 1, 0, 0);
    for (int i = 0; i < head_dim * head_dim; i++)
      cr_expect_float_eq(out[i], half_to_float(v[i]), 1e-6, "head dim %d, element %d", head_dim, i);
    free(out);
    problem_free(&problem);
  }
}

// Row i of a causal problem is the last row of one that has i + 1 keys.
Test(reference, causal_rows_see_a_prefix) {
  Problem problem = make_problem((Shape){1, 1, 40, 64, true}, INPUT_NORMAL, 11);
  double *causal = reference_of(&problem, 0);
  for (int d = 0; d < 64; d++) cr_expect_eq(causal[d], half_to_float(problem.v[d]), "row 0 is V[0]");
  for (int row = 1; row < 40; row++) {
    Problem prefix = problem;
    prefix.shape.seqlen = row + 1;
    prefix.shape.causal = false;
    double *full = reference_of(&prefix, 0);
    for (int d = 0; d < 64; d++) cr_expect_float_eq(causal[row * 64 + d], full[row * 64 + d], 1e-15);
    free(full);
  }
  free(causal);
  problem_free(&problem);
}

// Scores of some hundreds: exp of them is infinite, their softmax is not, and an average of values lies among them.
Test(reference, large_inputs_do_not_overflow) {
  Problem problem = make_problem((Shape){1, 1, 200, 64, false}, INPUT_LARGE, 2);
  double *out = reference_of(&problem, 0), largest_score = 0;
  for (int d = 0; d < 64; d++) {
    double low = INFINITY, high = -INFINITY;
    for (int row = 0; row < 200; row++) {
      double v = half_to_float(*element(problem.v, &problem, 0, row, d));
      low = fmin(low, v);
      high = fmax(high, v);
    }
    for (int row = 0; row < 200; row++)
      cr_expect(out[row * 64 + d] >= low - 1e-12 && out[row * 64 + d] <= high + 1e-12);
  }
  for (int row = 0; row < 200; row++) {
    double score = 0;
    for (int d = 0; d < 64; d++)
      score += (double)half_to_float(problem.q[row * 64 + d]) * half_to_float(problem.k[(199 - row) * 64 + d]) / 8;
    largest_score = fmax(largest_score, score);
  }
  cr_expect(largest_score > 100, "the inputs are not large: %g", largest_score);
  free(out);
  problem_free(&problem);
}

// Two keys with the same score, 8 or -8, and values 1 and 3 or -1 and -3: their mean, 2 or -2, is a number of fp16.
// Then three keys, 1, 1 and 3, whose mean is none. Each term of reference.c's limit by hand.
static void expect_limit(int keys, int sign) {
  Problem problem = make_problem((Shape){.batch = 1, .heads = 1, .seqlen = keys, .head_dim = 64}, INPUT_ONES, 1);
  zero(&problem, problem.q);
  zero(&problem, problem.k);
  zero(&problem, problem.v);
  for (int row = 0; row < keys; row++) {
    *element(problem.q, &problem, 0, row, 7) = half_from_double(8);
    *element(problem.k, &problem, 0, row, 7) = half_from_double(8 * sign);
    *element(problem.v, &problem, 0, row, 5) = half_from_double((row == keys - 1 ? 3 : 1) * sign);
  }
  ReferenceHead head;
  double out[64], mean = (keys + 2) / (double)keys;
  cr_assert(reference_open(&head, &problem, 0));
  double limit = reference_row(&head, 0, out);
  double rms = sqrt(keys + 8) / keys;
  double expected = 2 * fabs(half_round(mean) - mean) + 0x1p-11 * mean + 0x1p-25 * keys * mean + 0x1p-11 * rms +
                    0x1p-20 * 8 * mean + 0x1p-25;
  cr_expect_float_eq(out[5], mean * sign, 1e-15);
  cr_expect_float_eq(limit, expected, 1e-12 * expected, "%d keys, sign %d: %.17g, not %.17g", keys, sign, limit,
                     expected);
  reference_close(&head);
  problem_free(&problem);
}

Test(reference, limit_by_hand) {
  for (int keys = 2; keys <= 3; keys++)
    for (int sign = -1; sign <= 1; sign += 2) expect_limit(keys, sign);
}

// ---- the limit: kernels as one would write them, in fp32 with fp16 weights ----

// A mistake that a kernel may have.
typedef enum Mistake {
  NO_MISTAKE,
  KEY_MISSING,      // the last key of every row is left out
  KEY_TWICE,        // the first key counts twice
  SCALE_OFF,        // the scale is 1 % too large
  MASK_OFF_BY_ONE,  // a causal query sees one key too many
  NO_RESCALE,       // the running sum is not rescaled when the maximum grows
  LAST_ROW_LOST,    // the last row is the one before it
  HALF_SUM,         // the weights are added up in fp16
  HALF_OUTPUT,      // the output is kept in fp16 between tiles
} Mistake;

enum { TILE = 64, DIM = 64 };

static float score(const Problem *problem, int head, int row, int key, float scale) {
  enum { LANES = 8 };  // sums that do not wait for each other
  const Half *q = element(problem->q, problem, head, row, 0), *k = element(problem->k, problem, head, key, 0);
  float sums[LANES] = {0}, sum = 0;
  for (int d = 0; d < DIM; d += LANES)
    for (int lane = 0; lane < LANES; lane++) sums[lane] += half_to_float(q[d + lane]) * half_to_float(k[d + lane]);
  for (int lane = 0; lane < LANES; lane++) sum += sums[lane];
  return sum * scale;
}

// One row as FlashAttention does it: tile by tile, with a running maximum, weights rounded to fp16, sums in fp32.
static void online_row(const Problem *problem, int head, int row, Mistake mistake, float *out) {
  int keys = problem->shape.causal ? row + 1 + (mistake == MASK_OFF_BY_ONE) : problem->shape.seqlen;
  if (keys > problem->shape.seqlen) keys = problem->shape.seqlen;
  if (mistake == KEY_MISSING && keys > 1) keys--;
  float scale = (float)problem_scale(&problem->shape) * (mistake == SCALE_OFF ? 1.01f : 1), max = -INFINITY, sum = 0;
  for (int d = 0; d < DIM; d++) out[d] = 0;
  for (int first = 0; first < keys; first += TILE) {
    int end = first + TILE < keys ? first + TILE : keys;
    float old_max = max, scores[TILE];
    for (int j = first; j < end; j++) max = fmaxf(max, scores[j - first] = score(problem, head, row, j, scale));
    float rescale = mistake == NO_RESCALE && first ? 1 : expf(old_max - max);
    sum *= rescale;
    for (int d = 0; d < DIM; d++) out[d] *= rescale;
    for (int j = first; j < end; j++) {
      float weight = expf(scores[j - first] - max) * (mistake == KEY_TWICE && j == 0 ? 2 : 1);
      sum += weight;
      if (mistake == HALF_SUM) sum = (float)half_round(sum);
      weight = (float)half_round(weight);
      const Half *v = element(problem->v, problem, head, j, 0);
      for (int d = 0; d < DIM; d++) out[d] += weight * half_to_float(v[d]);
    }
    for (int d = 0; mistake == HALF_OUTPUT && d < DIM; d++) out[d] = (float)half_round(out[d]);
  }
  for (int d = 0; d < DIM; d++) out[d] /= sum;
}

static CheckResult check_kernel(const Problem *problem, Mistake mistake) {
  float out[DIM];
  for (int head = 0; head < (int)problem->heads; head++)
    for (int row = 0; row < problem->shape.seqlen; row++) {
      int from = mistake == LAST_ROW_LOST && row > 0 && row == problem->shape.seqlen - 1 ? row - 1 : row;
      online_row(problem, head, from, mistake, out);
      for (int d = 0; d < DIM; d++) *element(problem->o, problem, head, row, d) = half_from_double(out[d]);
    }
  CheckResult result;
  cr_assert(check_output(problem, OUTPUT_O, 1, &result));
  return result;
}

Test(reference, limit_lets_a_right_kernel_pass) {
  static const int seqlens[] = {1, 2, 3, 5, 17, 64, 65, 300};
  for (size_t i = 0; i < sizeof seqlens / sizeof *seqlens; i++)
    for (InputKind input = INPUT_NORMAL; input <= INPUT_IDENTITY; input++)
      for (int causal = 0; causal < 2; causal++)
        for (uint64_t seed = 1; seed <= 3; seed++) {
          Problem problem = make_problem((Shape){1, 2, seqlens[i], DIM, causal}, input, seed);
          CheckResult result = check_kernel(&problem, NO_MISTAKE);
          cr_expect(check_is_right(&result), "seqlen %d, input %d, causal %d, seed %d: %.2f of the limit", seqlens[i],
                    input, causal, (int)seed, result.worst);
          problem_free(&problem);
        }
}

// Each of these passes a limit of 1e-2 on some shape; none may pass here.
Test(reference, limit_stops_nearly_right_kernels) {
  static const struct {
    Mistake mistake;
    const char *name;
    bool causal;
  } cases[] = {
      {KEY_MISSING, "key missing", false}, {KEY_TWICE, "key twice", false},
      {SCALE_OFF, "scale 1 % off", false}, {MASK_OFF_BY_ONE, "mask off by one", true},
      {NO_RESCALE, "no rescale", false},   {LAST_ROW_LOST, "last row lost", false},
      {HALF_SUM, "sum in fp16", false},    {HALF_OUTPUT, "output kept in fp16", false},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    Problem problem = make_problem((Shape){1, 2, 600, DIM, cases[i].causal}, INPUT_NORMAL, 1);
    CheckResult result = check_kernel(&problem, cases[i].mistake);
    cr_expect(result.wrong > 0, "%s passed at %.2f of the limit", cases[i].name, result.worst);
    problem_free(&problem);
  }
}

// ---- the comparison ----

// Ones everywhere: each output is exactly 1, whatever the shape, so that no kernel is needed.
static Problem ones_problem(Shape shape) {
  Problem problem = make_problem(shape, INPUT_ONES, 1);
  for (size_t i = 0; i < problem.elements; i++) problem.o[i] = half_from_double(1);
  return problem;
}

Test(reference, check_compares_everything_when_small) {
  Problem problem = ones_problem((Shape){2, 3, 33, 64, false});
  CheckResult result;
  cr_assert(check_output(&problem, OUTPUT_O, 1, &result));
  cr_expect(check_is_right(&result) && result.complete);
  cr_expect_eq(result.compared, problem.elements);
  problem_free(&problem);
}

Test(reference, check_names_the_first_differences) {
  Problem problem = ones_problem((Shape){2, 3, 33, 64, false});
  static const size_t places[] = {12345, 77, 4000};
  for (int i = 0; i < 3; i++) problem.o[places[i]] = half_from_double(1.01);
  CheckResult result;
  cr_assert(check_output(&problem, OUTPUT_O, 1, &result));
  cr_expect(!check_is_right(&result));
  cr_expect_eq(result.wrong, 3);
  cr_assert_eq(result.difference_count, 3);
  cr_expect_eq(result.differences[0].index, 77);
  cr_expect_eq(result.differences[1].index, 4000);
  cr_expect_eq(result.differences[2].index, 12345);
  cr_expect_float_eq(result.differences[0].got, 1.01, 1e-3);
  cr_expect_eq(result.differences[0].expected, 1);
  problem_free(&problem);
}

Test(reference, report_says_where_it_differs) {
  Problem problem = ones_problem((Shape){2, 3, 33, 64, false});
  *element(problem.o, &problem, 5, 4, 6) = half_from_double(3);
  *element(problem.o, &problem, 3, 32, 62) = 0xffff;  // as before the launch
  *element(problem.o, &problem, 3, 32, 63) = 0x7fff;  // as a calculation makes it
  CheckResult result;
  cr_assert(check_output(&problem, OUTPUT_O, 1, &result));
  char *text = NULL;
  size_t size;
  FILE *out = open_memstream(&text, &size);
  report_check(out, &problem, &result, 1);
  fclose(out);
  cr_expect(strstr(text, "3 of 12,672 elements differ"), "%s", text);
  cr_expect(strstr(text, "2 of 12,672 are NaN or infinite (never written: 1), the first is O[1][0][32][62]\n"), "%s",
            text);
  cr_expect(strstr(text, "O[1][0][32][63]: got NaN, expected 1\n"), "%s", text);
  cr_expect(strstr(text, "O[1][2][4][6]: got 3, expected 1, off by 2 (limit "), "%s", text);
  free(text);
  problem_free(&problem);
}

Test(reference, check_keeps_the_first_of_many) {
  Problem problem = ones_problem((Shape){3, 3, 20, 128, false});
  for (size_t i = 100; i < problem.elements; i++) problem.o[i] = half_from_double(-1);
  CheckResult result;
  cr_assert(check_output(&problem, OUTPUT_O, 1, &result));
  cr_expect_eq(result.wrong, problem.elements - 100);
  cr_assert_eq(result.difference_count, MAX_DIFFERENCES);
  for (int i = 0; i < MAX_DIFFERENCES; i++) cr_expect_eq(result.differences[i].index, (size_t)(100 + i));
  problem_free(&problem);
}

Test(reference, check_never_lets_nan_pass) {
  Problem problem = ones_problem((Shape){1, 1, 8, 64, false});
  problem.o[70] = 0xffff;
  CheckResult result;
  cr_assert(check_output(&problem, OUTPUT_O, 1, &result));
  cr_expect(!check_is_right(&result));
  cr_expect_eq(result.wrong, 1);
  cr_expect_eq(result.not_finite, 1);
  cr_expect_eq(result.first_not_finite, 70);
  cr_expect(isnan(result.max_error) && isnan(result.worst), "%g, %g", result.max_error, result.worst);
  problem_free(&problem);
}

// In every order of elements and of heads: a NaN stays the largest error, beside an infinity too.
Test(reference, nan_wins_every_maximum) {
  for (int head = 0; head < 2; head++)
    for (int row = 0; row < 8; row += 7) {
      Problem problem = ones_problem((Shape){1, 2, 8, 64, false});
      for (int other = 0; other < 8; other++) *element(problem.o, &problem, other % 2, other, 3) = half_from_double(7);
      *element(problem.o, &problem, 1 - head, 4, 3) = 0x7c00;
      *element(problem.o, &problem, head, row, 9) = 0x7e00;
      CheckResult result;
      cr_assert(check_output(&problem, OUTPUT_O, 1, &result));
      cr_expect(isnan(result.max_error) && isnan(result.worst), "%g, %g", result.max_error, result.worst);
      problem_free(&problem);
    }
  cr_expect(isnan(larger(NAN, 1)) && isnan(larger(1, NAN)) && isnan(larger(NAN, INFINITY)));
  cr_expect_eq(larger(1, 2), 2);
  cr_expect_eq(larger(2, 1), 2);
}

// A large problem is sampled: the first and last row always are, and a NaN is found wherever it is.
Test(reference, check_samples_large_problems) {
  Shape shape = {.batch = 1, .heads = 8, .seqlen = 6000, .head_dim = 64};
  Problem problem = ones_problem(shape);
  CheckResult result;
  cr_assert(check_output(&problem, OUTPUT_O, 1, &result));
  cr_expect(check_is_right(&result) && !result.complete);
  cr_expect(result.compared < problem.elements / 10 && result.compared > problem.elements / 100);

  *element(problem.o, &problem, 7, 0, 3) = half_from_double(1.01);
  *element(problem.o, &problem, 7, 5999, 63) = half_from_double(1.01);
  for (int row = 1; row < 5999; row += 7) *element(problem.o, &problem, 5, row, 1) = 0x7e00;
  cr_assert(check_output(&problem, OUTPUT_O, 1, &result));
  cr_expect(result.wrong >= 2 && result.differences[0].index > (size_t)5 * 6000 * 64);
  cr_expect_eq(result.differences[result.difference_count - 1].index % 64, result.wrong > MAX_DIFFERENCES ? 1 : 63);
  cr_expect_eq(result.not_finite, (5998 + 6) / 7);
  cr_expect_eq(result.first_not_finite, (size_t)(5 * 6000 + 1) * 64 + 1);
  problem_free(&problem);
}

// Makes an element wrong in every row of the heads from first to last that is `place` modulo 16, or in every row: -1.
static CheckResult check_with_wrong_rows(Problem *problem, int first, int last, int place) {
  CheckResult result;
  for (size_t i = 0; i < problem->elements; i++) problem->o[i] = half_from_double(1);
  for (int head = first; head <= last; head++)
    for (int row = 0; row < problem->shape.seqlen; row++)
      if (place < 0 || row % 16 == place) *element(problem->o, problem, head, row, 7) = half_from_double(1.01);
  cr_assert(check_output(problem, OUTPUT_O, 1, &result));
  cr_expect_not(result.complete);
  return result;
}

// A mistake at the edges of tiles is seen on both sides, each row is compared once, and other rows in each head.
Test(reference, check_samples_rows_at_edges_and_others_in_each_head) {
  Problem problem = ones_problem((Shape){.batch = 1, .heads = 16, .seqlen = 1024, .head_dim = 128});
  CheckResult behind = check_with_wrong_rows(&problem, 0, 15, 0), before = check_with_wrong_rows(&problem, 0, 15, 15);
  cr_expect(behind.wrong > 16 * 20 && before.wrong > 16 * 20, "%d behind an edge and %d before one, of 1024 each",
            (int)behind.wrong, (int)before.wrong);
  CheckResult one = check_with_wrong_rows(&problem, 3, 3, -1), other = check_with_wrong_rows(&problem, 5, 5, -1);
  size_t head_size = 1024 * 128;
  bool same = true;
  for (int i = 0; i < MAX_DIFFERENCES; i++) {
    same &= one.differences[i].index - 3 * head_size == other.differences[i].index - 5 * head_size;
    if (i > 0) cr_expect_gt(one.differences[i].index, one.differences[i - 1].index, "a row is compared twice");
  }
  cr_expect_not(same, "two heads have the same rows compared");
  problem_free(&problem);
}

// ---- passes ----

static Attention passes[16];
static int pass_count;

static bool note_pass(Device *device, const Attention *pass) {
  (void)device;
  passes[pass_count++] = *pass;
  return pass_count != 5;  // the fifth fails
}

Test(reference, passes_do_each_head_once) {
  if (SIZE_MAX <= UINT32_MAX) cr_skip_test("less fits into a pass where sizes have 32 bits");
  Attention all = {.shape = {3, 3, 10, 64, true},
                   .scale = 0.125f,
                   .q.address = 1 << 20,
                   .k.address = 2 << 20,
                   .v.address = 3 << 20,
                   .o.address = 4 << 20};
  size_t head_size = (size_t)3 << 30, head_bytes = 10 * 64 * sizeof(Half);
  cr_expect_eq(passes_workspace(&all.shape, head_size), 2 * head_size, "8 GiB hold two heads");
  cr_expect_eq(passes_workspace(&all.shape, 5 * head_size), 5 * head_size, "at least one");
  cr_expect_eq(passes_workspace(&all.shape, 16), 9 * 16, "no more than there are");
  cr_expect_not(passes_launch(NULL, &all, head_size, note_pass), "the fifth launch fails");
  cr_assert_eq(pass_count, 5);
  for (int i = 0; i < 5; i++) {
    const Attention *pass = &passes[i];
    cr_expect(pass->shape.batch == 1 && pass->shape.heads == (i < 4 ? 2 : 1), "pass %d: %d heads", i,
              pass->shape.heads);
    cr_expect(pass->shape.seqlen == 10 && pass->shape.head_dim == 64 && pass->shape.causal && pass->scale == 0.125f);
    const DeviceAddress tensors[] = {pass->q.address, pass->k.address, pass->v.address, pass->o.address};
    for (int tensor = 0; tensor < 4; tensor++)
      cr_expect_eq(tensors[tensor], ((DeviceAddress)(tensor + 1) << 20) + 2 * i * head_bytes, "pass %d", i);
  }
}

Test(reference, passes_end_with_the_launch_that_fails) {
  if (SIZE_MAX <= UINT32_MAX) cr_skip_test("less fits into a pass where sizes have 32 bits");
  Attention all = {.shape = {8, 1, 1, 64, false}};
  cr_expect_not(passes_launch(NULL, &all, (size_t)8 << 30, note_pass));
  cr_expect_eq(pass_count, 5, "three heads are left");
}

Test(reference, passes_fit_a_grid) {
  Attention all = {.shape = {2, 65536, 1, 64, false}};
  cr_expect(passes_launch(NULL, &all, 4, note_pass));
  cr_assert_eq(pass_count, 3);
  cr_expect(passes[0].shape.heads == 65535 && passes[1].shape.heads == 65535 && passes[2].shape.heads == 2);
}
