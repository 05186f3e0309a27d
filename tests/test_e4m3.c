// e4m3 problems: the type, quantisation and rotation, the report, and the limit against models of kernels that are
// right and of kernels that are nearly right.
#include <criterion/criterion.h>
#include <fenv.h>
#include <stdlib.h>

#include "emulator/async/tensor_map.h"
#include "harness/harness.h"
#include "support/small_float.h"

TestSuite(e4m3, .timeout = 120);

static Problem make_problem_of(StageInputs inputs, Shape shape, InputKind input, bool per_head, bool rotate) {
  Problem problem;
  cr_assert(problem_create(&problem, &shape, input, 1));
  cr_assert(problem_quantise(&problem, inputs, per_head, rotate, 1));
  return problem;
}

static Problem make_problem(Shape shape, InputKind input, bool per_head, bool rotate) {
  return make_problem_of(INPUTS_E4M3, shape, input, per_head, rotate);
}

// ---- the type ----

Test(e4m3, codes_are_the_numbers_of_the_format) {
  for (int code = 0; code < 256; code++) {
    double value = e4m3_to_float((E4m3)code), expected = (double)small_value(&small_e4m3, (uint64_t)code);
    if (isnan(expected))
      cr_expect(isnan(value), "%02x is %g", code, value);
    else
      cr_expect(value == expected && signbit(value) == signbit(expected), "%02x is %g", code, value);
    cr_expect_eq(e4m3_from_double(value), code, "%02x came back as %02x", code, e4m3_from_double(value));
  }
}

static void expect_rounding(double value) {
  E4m3 code = e4m3_from_double(value), expected = (E4m3)small_round(&small_e4m3, value, -0.0, FE_TONEAREST, true);
  cr_expect_eq(code, expected, "%a became %02x, not %02x", value, code, expected);
  cr_expect_eq(e4m3_round(value), e4m3_to_float(expected), "%a was rounded to %a", value, e4m3_round(value));
}

// Each number, the middle between it and the next, and what is just below and above both.
Test(e4m3, rounds_to_nearest_even_and_saturates) {
  for (int code = 0; code < 0x7e; code++) {
    double low = e4m3_to_float((E4m3)code), high = e4m3_to_float((E4m3)(code + 1)), middle = (low + high) / 2;
    const double values[] = {low, nextafter(middle, 0), middle, nextafter(middle, 1e9), nextafter(high, 0)};
    for (int i = 0; i < 5; i++) {
      expect_rounding(values[i]);
      expect_rounding(-values[i]);
    }
  }
  static const double large[] = {448, 463.9, 464, 480, 1e300, INFINITY};
  for (int i = 0; i < 6; i++) {
    cr_expect_eq(e4m3_from_double(large[i]), 0x7e);
    cr_expect_eq(e4m3_from_double(-large[i]), 0xfe);
  }
  uint64_t seed = 1;
  for (int i = 0; i < 100000; i++) {
    double value = ldexp((double)(random_bits(&seed) >> 11) * 0x1p-53, (int)(random_bits(&seed) % 24) - 13);
    expect_rounding(value);
  }
}

// ---- quantisation ----

static const Shape three_heads = {.batch = 1, .heads = 3, .seqlen = 50, .head_dim = 64};

static const Half *tensor_of(const Problem *problem, int tensor) {
  const Half *tensors[] = {problem->q, problem->k, problem->v};
  return tensors[tensor];
}

static float scale_of(const Problem *problem, int tensor, size_t head) {
  return problem->scales[tensor][head * (size_t)problem->scale_stride];
}

// Expects each head's largest element to be 448 times its scale, or smaller if the tensor's scale is that of another
// head.
static void expect_scales(const Problem *problem, int tensor) {
  size_t size = problem->elements / problem->heads;
  double all = 0;
  for (size_t head = 0; head < problem->heads; head++) {
    double largest = 0;
    for (size_t i = head * size; i < (head + 1) * size; i++)
      largest = fmax(largest, fabs(half_to_float(tensor_of(problem, tensor)[i])));
    all = fmax(all, largest);
    if (problem->scale_stride) cr_expect_float_eq(448 * scale_of(problem, tensor, head), largest, 1e-6 * largest);
  }
  if (!problem->scale_stride) cr_expect_float_eq(448 * scale_of(problem, tensor, 0), all, 1e-6 * all);
}

Test(e4m3, values_are_within_half_a_step) {
  for (int per_head = 0; per_head < 2; per_head++)
    for (int tensor = 0; tensor < TENSORS; tensor++) {
      Problem problem = make_problem(three_heads, INPUT_OUTLIERS, per_head, false);
      expect_scales(&problem, tensor);
      int wrong = 0;
      for (size_t i = 0; i < problem.elements; i++) {
        double exact = half_to_float(tensor_of(&problem, tensor)[i]), scale = scale_of(&problem, tensor, i / (50 * 64));
        double step = scale * e4m3_step(fabs(exact) / scale);
        wrong += !(fabs(scale * e4m3_to_float(problem.codes[tensor][i]) - exact) <= 0.5001 * step);
      }
      cr_expect_eq(wrong, 0, "tensor %d, per head %d: %d elements", tensor, per_head, wrong);
      problem_free(&problem);
    }
}

Test(e4m3, heads_of_zeros_have_scale_1) {
  Problem problem;
  cr_assert(problem_create(&problem, &three_heads, INPUT_NORMAL, 1));
  memset(problem.k + 50 * 64, 0, 50 * 64 * sizeof(Half));
  cr_assert(problem_quantise(&problem, INPUTS_E4M3, true, false, 1));
  cr_expect_eq(problem.scales[TENSOR_K][1], 1);
  cr_expect(problem.scales[TENSOR_K][0] < 1 && problem.scales[TENSOR_K][2] < 1);
  for (int i = 50 * 64; i < 2 * 50 * 64; i++) cr_expect_eq(problem.codes[TENSOR_K][i], 0);
  problem_free(&problem);
}

// ---- rotation ----

static double dot(const double *a, const double *b, int size) {
  double sum = 0;
  for (int d = 0; d < size; d++) sum += a[d] * b[d];
  return sum;
}

// The matrix has the rotated unit vectors as rows: they have length 1 and are perpendicular, and all their elements are
// of one size.
Test(e4m3, rotation_is_orthogonal_and_spreads) {
  static double rows[128][128];
  for (int size = 64; size <= 128; size *= 2)
    for (uint64_t seed = 0; seed < 3; seed++) {
      for (int i = 0; i < size; i++) {
        memset(rows[i], 0, sizeof rows[i]);
        rows[i][i] = 1;
        quantise_rotate(rows[i], size, seed);
        for (int d = 0; d < size; d++) cr_expect_float_eq(fabs(rows[i][d]), 1 / sqrt(size), 1e-15);
      }
      for (int i = 0; i < size; i++)
        for (int j = 0; j <= i; j++) cr_expect_float_eq(dot(rows[i], rows[j], size), i == j, 1e-14);
    }
}

Test(e4m3, rotation_follows_the_seed) {
  double a[64] = {1, 2, 3}, b[64] = {1, 2, 3}, c[64] = {1, 2, 3};
  quantise_rotate(a, 64, 7);
  quantise_rotate(b, 64, 7);
  quantise_rotate(c, 64, 8);
  cr_expect(!memcmp(a, b, sizeof a), "the same seed, another matrix");
  cr_expect(memcmp(a, c, sizeof a), "another seed, the same matrix");
}

// Compares fp64 on the e4m3 inputs with fp64 on the fp16 ones, as if the kernel were exact.
static CheckResult check_exact(const Problem *problem) {
  CheckResult result;
  memset(problem->o, 0, problem->elements * sizeof(Half));
  cr_assert(check_output(problem, OUTPUT_O, 1, &result));
  return result;
}

// Rotated Q and K have other codes and the same scores, so that the output is near that of fp16; V is not rotated.
Test(e4m3, rotation_makes_outliers_cost_less) {
  Shape shape = {.batch = 1, .heads = 2, .seqlen = 200, .head_dim = 128};
  Problem plain = make_problem(shape, INPUT_OUTLIERS, false, false),
          rotated = make_problem(shape, INPUT_OUTLIERS, false, true);
  cr_expect(memcmp(plain.codes[TENSOR_Q], rotated.codes[TENSOR_Q], plain.elements));
  cr_expect(memcmp(plain.codes[TENSOR_K], rotated.codes[TENSOR_K], plain.elements));
  cr_expect(!memcmp(plain.codes[TENSOR_V], rotated.codes[TENSOR_V], plain.elements));
  CheckResult a = check_exact(&plain), b = check_exact(&rotated);
  double before = check_relative_error(&a.quantisation), after = check_relative_error(&b.quantisation);
  cr_expect(before > 0.06 && before < 0.15, "off by %g", before);
  cr_expect(after > 0.03 && after < 0.85 * before, "off by %g, and %g rotated", before, after);
  problem_free(&plain);
  problem_free(&rotated);
}

// ---- the report ----

static void expect_accuracy(const Problem *problem, const CheckResult *result, const char *expected) {
  char *text;
  size_t size;
  FILE *out = open_memstream(&text, &size);
  report_accuracy(out, problem, result);
  fclose(out);
  cr_expect_str_eq(text, expected);
  free(text);
}

Test(e4m3, report_shows_both_errors) {
  Problem problem = {.inputs = INPUTS_E4M3};
  CheckResult result = {.kernel = {4, 10000}, .quantisation = {25, 10000}};
  expect_accuracy(&problem, &result, "accuracy  the kernel is off by 2.00 %, the quantisation by 5.00 %\n");
  problem.inputs = INPUTS_F16;
  expect_accuracy(&problem, &result, "");
  problem.inputs = INPUTS_E4M3;
  result.kernel.difference = NAN;
  expect_accuracy(&problem, &result, "");
}

// An output of zeros is off by all of it. An output that is the reference, rounded to fp16, is off by little.
Test(e4m3, check_adds_up_both_errors) {
  Problem problem = make_problem((Shape){1, 2, 40, 64, true}, INPUT_NORMAL, true, false);
  CheckResult result = check_exact(&problem);
  cr_expect_float_eq(check_relative_error(&result.kernel), 1, 1e-12);
  cr_expect(check_relative_error(&result.quantisation) > 0.01 && check_relative_error(&result.quantisation) < 0.1);
  for (size_t index = 0; index < 2; index++) {
    ReferenceHead head;
    double out[64];
    cr_assert(reference_open(&head, &problem, index));
    for (int row = 0; row < 40; row++) {
      reference_row(&head, row, out);
      for (size_t d = 0; d < 64; d++) problem.o[(index * 40 + (size_t)row) * 64 + d] = half_from_double(out[d]);
    }
    reference_close(&head);
  }
  cr_assert(check_output(&problem, OUTPUT_O, 1, &result));
  cr_expect(check_is_right(&result));
  cr_expect(check_relative_error(&result.kernel) > 1e-5 && check_relative_error(&result.kernel) < 0x1p-11);
  problem_free(&problem);
}

static void expect_problem(const Stage *stage, const Options *options, const char *end) {
  char *text;
  size_t size;
  FILE *out = open_memstream(&text, &size);
  report_problem(out, stage, options, &(DeviceInfo){.kind = DEVICE_GPU});
  fclose(out);
  cr_expect(strstr(text, end), "%s", text);
  free(text);
}

Test(e4m3, report_shows_scales_and_rotation) {
  static const Stage e4m3 = {.inputs = INPUTS_E4M3}, f16 = {.inputs = INPUTS_F16},
                     scores = {.inputs = INPUTS_E4M3_SCORES};
  Options options = {.seed = 3};
  expect_problem(&e4m3, &options, "seed 3; e4m3 with a scale for each tensor\n");
  options.scales = options.rotate = 1;
  expect_problem(&e4m3, &options, "seed 3; e4m3 with a scale for each head, Q and K rotated\n");
  expect_problem(&scores, &options, "seed 3; Q and K e4m3 with a scale for each head, Q and K rotated\n");
  expect_problem(&f16, &options, "seed 3\n");
}

// ---- tensor maps ----

Test(e4m3, tensor_maps_have_whole_rows) {
  for (int head_dim = 64; head_dim <= 128; head_dim *= 2) {
    DeviceError error;
    Device *device = device_open(&(DeviceOptions){.kind = DEVICE_EMULATOR}, &error);
    Shape shape = {.batch = 2, .heads = 3, .seqlen = 100, .head_dim = head_dim};
    DeviceTensor tensor = {.address = device_alloc(device, (size_t)(600 * head_dim))};
    TensorMap map;
    TensorMapFields fields;
    cr_assert(attention_tensor_map_e4m3(device, &shape, tensor, 40, &map), "%s", device_error(device)->text);
    cr_assert(tensor_map_decode(map.bytes, &fields));
    cr_expect_eq(fields.type, EMULATOR_TENSOR_U8);
    cr_expect_eq(fields.swizzle, head_dim == 64 ? EMULATOR_SWIZZLE_64B : EMULATOR_SWIZZLE_128B);
    cr_expect(fields.box[0] == (uint32_t)head_dim && fields.box[1] == 40 && fields.box[2] == 1);
    cr_expect(fields.last[0] == (uint32_t)head_dim - 1 && fields.last[1] == 99 && fields.last[2] == 5);
    device_close(device);
  }
}

// ---- the limit: kernels as one would write them for the FP8 tensor core ----

// A mistake that a kernel may have.
typedef enum Mistake {
  NO_MISTAKE,
  KEY_MISSING,      // the last key of every row is left out
  KEY_TWICE,        // one key counts twice
  SCALE_OFF,        // the scale of the scores is 10 % too large
  MASK_OFF_BY_ONE,  // a causal query sees one key too many
  NO_RESCALE,       // the sums are not rescaled when the factor of the weights changes
  TILE_MISSING,     // the weights of the last tile are not in the denominator
  KEYS_SWAPPED,     // neighbouring keys have each other's values
  UNROUNDED_SUM,    // the denominator has the weights before rounding
  ONE_SUM,          // P V is kept in one sum of 13 bits for all keys
} Mistake;

typedef struct Kernel {
  int tile;        // keys
  double largest;  // log2 of the largest weight of the first tile, and of each tile whose weights would exceed 2^8
  Mistake mistake;
} Kernel;

enum { DIM = 64, PRODUCTS = 32, MAX_TILE = 128, MAX_KEYS = 4096, NOTHING = -1000 };

// ilogb of a normal number, in line.
static int logarithm(double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  return (int)(bits >> 52 & 0x7ff) - 1023;
}

// As a factor of a product, a subnormal has the exponent of the smallest normal number.
static int exponent_of(double code) { return code == 0 ? NOTHING : fabs(code) < 0x1p-6 ? -6 : logarithm(code); }

// One step of an FP8 tensor core (notes/tensor-core-arithmetic.md): sum plus 32 products, each cut to 13 bits below the
// largest, then their sum cut to 13 bits. a and b: e4m3's numbers, the latter b_stride apart.
static double tensor_step(double sum, const double *a, const double *b, int b_stride) {
  int top = sum == 0 ? NOTHING : logarithm(sum);
  for (int i = 0; i < PRODUCTS; i++) {
    int exponent = exponent_of(a[i]) + exponent_of(b[i * b_stride]);
    if (exponent > top) top = exponent;
  }
  if (top == NOTHING) return 0;
  double unit = ldexp(1, top - 13), per_unit = 1 / unit, units = trunc(sum * per_unit);
  for (int i = 0; i < PRODUCTS; i++) units += trunc(a[i] * b[i * b_stride] * per_unit);
  if (units == 0) return 0;
  double last = ldexp(unit, logarithm(units) - 13);
  return trunc(units * unit / last) * last;
}

static double tensor_core(double sum, const double *a, const double *b, int b_stride, int count) {
  for (int i = 0; i < count; i += PRODUCTS) sum = tensor_step(sum, a + i, b + i * b_stride, b_stride);
  return sum;
}

// Scores as powers of two. Returns how many keys the kernel sees.
static int compute_scores(const ReferenceHead *head, int row, Mistake mistake, double *scores) {
  int keys = head->causal ? row + 1 + (mistake == MASK_OFF_BY_ONE) : head->seqlen;
  if (keys > head->seqlen) keys = head->seqlen;
  if (mistake == KEY_MISSING && keys > 1) keys--;
  double q[DIM], factor = head->scale * 1.4426950408889634 * (mistake == SCALE_OFF ? 1.1 : 1);
  for (int d = 0; d < DIM; d++) q[d] = head->q[row * DIM + d];
  for (int j = 0; j < keys; j++) scores[j] = (float)(tensor_core(0, q, head->k + j * DIM, 1, DIM) * factor);
  return keys;
}

// The factor of the weights, as a power of two: that of the last tile as long as it fits.
static double choose_shift(const Kernel *kernel, const double *scores, int count, double shift) {
  double max = -INFINITY;
  for (int j = 0; j < count; j++) max = fmax(max, scores[j]);
  return max + shift > 8 ? kernel->largest - max : shift;
}

static void swap_neighbours(double *weights, int count) {
  for (int j = 0; j + 1 < count; j += 2) {
    double first = weights[j];
    weights[j] = weights[j + 1];
    weights[j + 1] = first;
  }
}

// One row as a kernel computes it. head->v has room for a tile of zeros behind the last key.
static void compute_row(const ReferenceHead *head, int row, const Kernel *kernel, double *out) {
  static double scores[MAX_KEYS];
  int keys = compute_scores(head, row, kernel->mistake, scores);
  double shift = INFINITY;
  float sum = 0, sums[DIM] = {0};
  for (int first = 0; first < keys; first += kernel->tile) {
    int count = first + kernel->tile < keys ? kernel->tile : keys - first;
    double weights[MAX_TILE] = {0}, next = choose_shift(kernel, scores + first, count, shift);
    float factor = first == 0 || kernel->mistake == NO_RESCALE ? 1 : (float)exp2(next - shift);
    shift = next;
    sum *= factor;
    for (int j = 0; j < count; j++) {
      double exact = exp2(scores[first + j] + shift) * (kernel->mistake == KEY_TWICE && first + j == keys / 2 ? 2 : 1);
      weights[j] = e4m3_round(exact);
      bool counts = kernel->mistake != TILE_MISSING || first + count < keys || first == 0;
      if (counts) sum += (float)(kernel->mistake == UNROUNDED_SUM ? exact : weights[j]);
    }
    if (kernel->mistake == KEYS_SWAPPED) swap_neighbours(weights, count);
    for (int d = 0; d < DIM; d++) {
      const double *v = head->v + first * DIM + d;
      sums[d] *= factor;
      if (kernel->mistake == ONE_SUM)
        sums[d] = (float)tensor_core(sums[d], weights, v, DIM, kernel->tile);
      else
        sums[d] += (float)tensor_core(0, weights, v, DIM, kernel->tile);
    }
  }
  for (int d = 0; d < DIM; d++) out[d] = half_round(sums[d] / sum * (float)head->value_scale);
}

// The first head, with a tile of zeros behind V.
static ReferenceHead open_head(const Problem *problem) {
  ReferenceHead head;
  cr_assert(reference_open(&head, problem, 0));
  size_t count = (size_t)head.seqlen * DIM;
  head.v = realloc(head.v, (count + MAX_TILE * DIM) * sizeof(double));
  memset(head.v + count, 0, MAX_TILE * DIM * sizeof(double));
  return head;
}

// The largest error, relative to its row's limit, of a kernel on about `rows` rows of the first head.
static double worst_of(const Problem *problem, const Kernel *kernel, int rows) {
  ReferenceHead head = open_head(problem);
  int step = head.seqlen > rows ? head.seqlen / rows : 1;
  double worst = 0, expected[DIM], out[DIM];
  for (int row = head.seqlen - 1; row >= 0; row -= step) {
    double limit = reference_row(&head, row, expected);
    compute_row(&head, row, kernel, out);
    for (int d = 0; d < DIM; d++) worst = larger(worst, fabs(out[d] - expected[d]) / limit);
  }
  reference_close(&head);
  return worst;
}

// From the smallest to the largest factor that a kernel may have, not only powers of two.
static const Kernel right[] = {{64, 4, 0}, {128, 4, 0}, {128, 5.55, 0}, {64, 6.8, 0}, {96, 8, 0}};

static void expect_right(InputKind input, int seqlen, bool causal, bool rotate, int rows) {
  Problem problem = make_problem((Shape){1, 1, seqlen, DIM, causal}, input, causal, rotate);
  for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
    double worst = worst_of(&problem, &right[i], rows);
    cr_expect(worst < 0.5, "input %d, seqlen %d, causal %d, rotated %d, largest weight 2^%g: %.2f of the limit", input,
              seqlen, causal, rotate, right[i].largest, worst);
  }
  problem_free(&problem);
}

Test(e4m3, limit_lets_a_right_kernel_pass) {
  static const int seqlens[] = {1, 2, 3, 5, 17, 64, 65, 200};
  for (InputKind input = INPUT_NORMAL; input <= INPUT_NEGATIVE; input++)
    for (size_t i = 0; i < sizeof seqlens / sizeof *seqlens; i++)
      for (int causal = 0; causal < 2; causal++) expect_right(input, seqlens[i], causal, i % 2, 50);
}

Test(e4m3, limit_lets_a_right_kernel_pass_on_many_keys) {
  for (InputKind input = INPUT_NORMAL; input <= INPUT_NEGATIVE; input++) expect_right(input, 4096, input % 2, false, 3);
}

Test(e4m3, limit_stops_nearly_right_kernels) {
  static const struct {
    Mistake mistake;
    const char *name;
    InputKind input;
    int seqlen;
  } cases[] = {
      {KEY_MISSING, "key missing", INPUT_NORMAL, 300},       {KEY_TWICE, "key twice", INPUT_NORMAL, 300},
      {MASK_OFF_BY_ONE, "mask off by one", INPUT_MEAN, 300}, {NO_RESCALE, "no rescale", INPUT_WAVES, 300},
      {TILE_MISSING, "tile missing", INPUT_NORMAL, 300},     {KEYS_SWAPPED, "keys swapped", INPUT_NORMAL, 4096},
      {SCALE_OFF, "scale 10 % off", INPUT_OUTLIERS, 300},    {UNROUNDED_SUM, "unrounded sum", INPUT_IDENTITY, 64},
      {ONE_SUM, "one sum of 13 bits", INPUT_MEAN, 4096},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    Problem problem = make_problem((Shape){1, 1, cases[i].seqlen, DIM, true}, cases[i].input, false, false);
    int rows = cases[i].seqlen > 300 ? 4 : 100;
    double worst = worst_of(&problem, &(Kernel){128, 5.55, cases[i].mistake}, rows),
           without = worst_of(&problem, &(Kernel){128, 5.55, NO_MISTAKE}, rows);
    cr_expect(worst > 1.2, "%s passed at %.2f of the limit", cases[i].name, worst);
    cr_expect(without < 0.5, "without %s: %.2f of the limit", cases[i].name, without);
    problem_free(&problem);
  }
}

// Two keys with the same score, and values 1 and 3.5, which e4m3 holds exactly: each term of the limit by hand.
Test(e4m3, limit_by_hand) {
  Problem problem;
  Shape shape = {.batch = 1, .heads = 1, .seqlen = 2, .head_dim = DIM};
  cr_assert(problem_create(&problem, &shape, INPUT_ONES, 1));
  memset(problem.v, 0, problem.elements * sizeof(Half));
  problem.v[5] = half_from_double(1);
  problem.v[DIM + 5] = half_from_double(3.5);
  cr_assert(problem_quantise(&problem, INPUTS_E4M3, false, false, 1));
  ReferenceHead head;
  double out[DIM];
  cr_assert(reference_open(&head, &problem, 0));
  double limit = reference_row(&head, 0, out);
  // Q and K are 1 everywhere, so a product is 1 and the scale 1/8. The weights are 2^4 and exact, and of one code.
  double rms = sqrt(2 * 1.25 * 1.25) / 2, peak = 4.5 / 2;
  double expected = (0x1.6ap-3 + 0x1p-11 / 8) * rms + 0x1p-7 * peak + 0x1p-10 * 2.25 + 0x1p-25;
  cr_expect_float_eq(out[5], 2.25, 1e-6);
  cr_expect_float_eq(limit, expected, 1e-6 * expected, "%.9g, not %.9g", limit, expected);
  reference_close(&head);
  problem_free(&problem);
}

// ---- Q and K in e4m3, V in fp16 ----

Test(e4m3, reference_adds_up_as_the_tensor_core_does) {
  uint64_t seed = 1;
  double a[128], b[128];
  for (int run = 0; run < 2000; run++) {
    int same_sign = run % 3 == 0;
    for (int i = 0; i < 128; i++) {
      uint64_t bits = random_bits(&seed);
      a[i] = e4m3_to_float((E4m3)(bits % 127));
      b[i] = e4m3_to_float((E4m3)(bits >> 8 & (same_sign ? 0x3f : 0xbf)));
    }
    cr_expect_eq(reference_tensor_core(a, b, 128), tensor_core(0, a, b, 1, 128), "run %d", run);
  }
}

// One row of a kernel that rounds its weights and its output to fp16, and keeps its sums in fp32.
static void compute_f16_row(const ReferenceHead *head, int row, Mistake mistake, double *out) {
  static double scores[MAX_KEYS];
  int keys = compute_scores(head, row, mistake, scores);
  double max = -INFINITY;
  for (int j = 0; j < keys; j++) max = fmax(max, scores[j]);
  float sum = 0, sums[DIM] = {0};
  if (mistake == KEYS_SWAPPED) swap_neighbours(scores, keys);
  for (int j = 0; j < keys; j++) {
    double weight = exp2(scores[j] - max) * (mistake == KEY_TWICE && j == keys / 2 ? 2 : 1);
    sum += (float)weight;
    for (int d = 0; d < DIM; d++) sums[d] += (float)(half_round(weight) * head->v[j * DIM + d]);
  }
  for (int d = 0; d < DIM; d++) out[d] = half_round(sums[d] / sum);
}

static double worst_f16_row(const Problem *problem, Mistake mistake, int rows) {
  ReferenceHead head = open_head(problem);
  int step = head.seqlen > rows ? head.seqlen / rows : 1;
  double worst = 0, expected[DIM], out[DIM];
  for (int row = head.seqlen - 1; row >= 0; row -= step) {
    double limit = reference_row(&head, row, expected);
    compute_f16_row(&head, row, mistake, out);
    for (int d = 0; d < DIM; d++) worst = larger(worst, fabs(out[d] - expected[d]) / limit);
  }
  reference_close(&head);
  return worst;
}

Test(e4m3, limit_of_scores_lets_a_right_kernel_pass) {
  static const int seqlens[] = {1, 2, 5, 65, 300, 4096};
  for (InputKind input = INPUT_NORMAL; input <= INPUT_NEGATIVE; input++)
    for (size_t i = 0; i < sizeof seqlens / sizeof *seqlens; i++) {
      Shape shape = {1, 1, seqlens[i], DIM, i % 2};
      Problem problem = make_problem_of(INPUTS_E4M3_SCORES, shape, input, false, i % 2);
      double worst = worst_f16_row(&problem, NO_MISTAKE, seqlens[i] > 300 ? 3 : 50);
      cr_expect(worst < 0.55, "input %d, seqlen %d: %.2f of the limit", input, seqlens[i], worst);
      problem_free(&problem);
    }
}

// The scale of the scores is 10 % too large here; with weights in e4m3 that shows in outliers only.
Test(e4m3, limit_of_scores_stops_nearly_right_kernels) {
  static const struct {
    Mistake mistake;
    const char *name;
    int seqlen;
  } cases[] = {{KEY_MISSING, "key missing", 1000},
               {KEY_TWICE, "key twice", 1000},
               {MASK_OFF_BY_ONE, "mask off by one", 1000},
               {KEYS_SWAPPED, "keys swapped", 4096},
               {SCALE_OFF, "scale 10 % off", 4096}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    Problem problem =
        make_problem_of(INPUTS_E4M3_SCORES, (Shape){1, 1, cases[i].seqlen, DIM, true}, INPUT_NORMAL, false, false);
    double worst = worst_f16_row(&problem, cases[i].mistake, 20);
    cr_expect(worst > 1.2, "%s passed at %.2f of the limit", cases[i].name, worst);
    problem_free(&problem);
  }
}
