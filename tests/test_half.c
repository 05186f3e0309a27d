// f16 and bf16 arithmetic on the emulator, against exact sums and products rounded by search among the format's codes.
#include <criterion/criterion.h>
#include <fenv.h>
#include <math.h>
#include <string.h>

#include "support/run_ptx.h"
#include "support/small_float.h"

TestSuite(half);

// An operation of three numbers: the sum of *low and *high is its exact result.
typedef void Operation(double x, double y, double z, Quad *high, Quad *low);

static const SmallFloat *format_of(const Sample *sample) {
  return sample->types[0].kind == VALUE_F16 ? &small_f16 : &small_bf16;
}

// .ftz: codes below the smallest normal are zero of their sign.
static unsigned flush(const SmallFloat *format, unsigned code) {
  return (code & 0x7fff) >> format->fraction_bits ? code : code & 0x8000;
}

static unsigned expect_number(const Sample *sample, const unsigned *codes, Operation *operation) {
  const SmallFloat *format = format_of(sample);
  bool ftz = has_modifier(sample, ".ftz");
  double in[3];
  for (int i = 0; i < 3; i++) in[i] = (double)small_value(format, ftz ? flush(format, codes[i]) : codes[i]);
  Quad high = 0, low = -0.0;
  operation(in[0], in[1], in[2], &high, &low);
  unsigned code = (unsigned)small_round(format, high, low, FE_TONEAREST, false);
  bool is_nan = (code & 0x7fff) > format->largest + 1;
  // An H200 flushes a product below 2^-14 even when rounding would lift it there; all other results once rounded.
  bool tiny_product = !strncmp(sample->text, "mul", 3) && fabs((double)high) < 0x1p-14;
  if (ftz && !is_nan) code = tiny_product ? code & 0x8000 : flush(format, code);
  bool has_oob_nan = (codes[0] & 0x7fff) == 0x7ff7 || (codes[1] & 0x7fff) == 0x7ff7;
  if (has_modifier(sample, ".oob") && has_oob_nan) return 0;
  unsigned one = format == &small_f16 ? 0x3c00 : 0x3f80;
  if (has_modifier(sample, ".sat")) return is_nan || code & 0x8000 ? 0 : code > one ? one : code;
  if (has_modifier(sample, ".relu") && !is_nan && code & 0x8000) return 0;
  return code;
}

// Does the operation for one number, or for both of a packed register.
static void expect_half(const Sample *sample, uint64_t *out, Operation *operation) {
  out[0] = 0;
  for (int part = 0; part < sample->types[0].bits / 16; part++) {
    unsigned codes[3];
    for (int i = 0; i < 3; i++) codes[i] = (unsigned)(sample->in[i] >> 16 * part & 0xffff);
    out[0] |= (uint64_t)expect_number(sample, codes, operation) << 16 * part;
  }
}

#define EXPECT(name, high_part, low_part)                                                                              \
  static void name##_parts(double x, double y, double z, Quad *high, Quad *low) {                                      \
    (void)y, (void)z;                                                                                                  \
    *high = (high_part);                                                                                               \
    *low = (low_part);                                                                                                 \
  }                                                                                                                    \
  static void name(const Sample *sample, uint64_t *out) { expect_half(sample, out, name##_parts); }

// An exact result; a zero keeps its sign.
#define EXPECT_EXACT(name, result) EXPECT(name, result, signbit((double)*high) ? -0.0 : 0.0)

// The total order of numbers, -0 below +0; NaN is nobody's minimum or maximum.
static double pick(double x, double y, int sign) {
  if (isnan(x)) return y;
  if (isnan(y)) return x;
  if (x == y) return (signbit(x) ? sign > 0 : sign < 0) ? x : y;
  return (x < y) == (sign > 0) ? x : y;
}

static double pick_nan(double x, double y, int sign) { return isnan(x) || isnan(y) ? (double)NAN : pick(x, y, sign); }

static double with_product_sign(double magnitude, double x, double y) {
  return copysign(magnitude, signbit(x) != signbit(y) ? -1.0 : 1.0);
}

EXPECT(add, x, y)
EXPECT(sub, x, -y)
EXPECT_EXACT(mul, x *(Quad)y)
EXPECT(fma3, x *(Quad)y, z)
EXPECT_EXACT(absolute, fabs(x))
EXPECT_EXACT(negate, -x)
EXPECT_EXACT(smaller, pick(x, y, 1))
EXPECT_EXACT(larger, pick(x, y, -1))
EXPECT_EXACT(smaller_nan, pick_nan(x, y, 1))
EXPECT_EXACT(larger_nan, pick_nan(x, y, -1))
EXPECT_EXACT(smaller_xorsign, with_product_sign(pick(fabs(x), fabs(y), 1), x, y))
EXPECT_EXACT(larger_nan_xorsign, with_product_sign(pick_nan(fabs(x), fabs(y), -1), x, y))
EXPECT_EXACT(exponential, exp2l((long double)x))
EXPECT_EXACT(tangent, tanhl((long double)x))

#define APPROX(T, text, f) INSTRUCTION(text "." #T, #T ": " #T, f, 1)
#define BOTH(ROW, text, f) ROW(f16, text, f), ROW(bf16, text, f)
#define ALL(ROW, text, f) ROW(f16, text, f), ROW(f16x2, text, f), ROW(bf16, text, f), ROW(bf16x2, text, f)
#define F16(ROW, text, f) ROW(f16, text, f), ROW(f16x2, text, f)

Test(half, sums_and_products) {
  const InstructionTest tests[] = {
      ALL(TWO_SOURCES, "add", add),
      ALL(TWO_SOURCES, "sub", sub),
      ALL(TWO_SOURCES, "mul", mul),
      ALL(TWO_SOURCES, "add.rn", add),
      ALL(TWO_SOURCES, "sub.rn", sub),
      ALL(TWO_SOURCES, "mul.rn", mul),
      F16(TWO_SOURCES, "add.ftz", add),
      F16(TWO_SOURCES, "sub.sat", sub),
      F16(TWO_SOURCES, "mul.ftz.sat", mul),
      F16(TWO_SOURCES, "mul.rn.ftz", mul),
      ALL(THREE_SOURCES, "fma.rn", fma3),
      F16(THREE_SOURCES, "fma.rn.ftz", fma3),
      F16(THREE_SOURCES, "fma.rn.sat", fma3),
      F16(THREE_SOURCES, "fma.rn.ftz.sat", fma3),
      ALL(THREE_SOURCES, "fma.rn.relu", fma3),
      F16(THREE_SOURCES, "fma.rn.ftz.relu", fma3),
      ALL(THREE_SOURCES, "fma.rn.oob", fma3),
      ALL(THREE_SOURCES, "fma.rn.oob.relu", fma3),
      {"fma.rn.f16x2 %c, %a, %b, %c;\nmov.b32 %d, %c", "f16x2: f16x2 f16x2 f16x2", fma3, 0},
  };
  RUN_TESTS(tests);
}

// 7 * 37 - 2^-100 lies below the middle of two bf16, 258 and 260. A double cannot hold it: it would round to the middle
// first and to 260 then.
static void is_258(const Sample *sample, uint64_t *out) {
  (void)sample;
  out[0] = 0x4381;
}

Test(half, bf16_fma_rounds_once) {
  const InstructionTest tests[] = {
      {"mov.b16 %a, 0x40e0;\nmov.b16 %b, 0x4214;\nmov.b16 %c, 0x8d80;\nfma.rn.bf16 %d, %a, %b, %c",
       "bf16: bf16 bf16 bf16", is_258, 0},
  };
  RUN_TESTS(tests);
}

Test(half, signs_and_extrema) {
  const InstructionTest tests[] = {
      ALL(ONE_SOURCE, "abs", absolute),
      ALL(ONE_SOURCE, "neg", negate),
      F16(ONE_SOURCE, "abs.ftz", absolute),
      F16(ONE_SOURCE, "neg.ftz", negate),
      ALL(TWO_SOURCES, "min", smaller),
      ALL(TWO_SOURCES, "max", larger),
      ALL(TWO_SOURCES, "min.NaN", smaller_nan),
      ALL(TWO_SOURCES, "max.NaN", larger_nan),
      ALL(TWO_SOURCES, "min.xorsign.abs", smaller_xorsign),
      ALL(TWO_SOURCES, "max.NaN.xorsign.abs", larger_nan_xorsign),
      F16(TWO_SOURCES, "min.ftz", smaller),
      F16(TWO_SOURCES, "max.ftz.NaN", larger_nan),
      F16(TWO_SOURCES, "max.ftz.NaN.xorsign.abs", larger_nan_xorsign),
  };
  RUN_TESTS(tests);
}

Test(half, approximations) {
  const InstructionTest tests[] = {
      APPROX(f16, "ex2.approx", exponential),
      APPROX(bf16, "ex2.approx.ftz", exponential),
      APPROX(f16, "tanh.approx", tangent),
      APPROX(bf16, "tanh.approx", tangent),
  };
  RUN_EXHAUSTIVE_TESTS(tests);
  const InstructionTest packed[] = {
      APPROX(f16x2, "ex2.approx", exponential),
      APPROX(bf16x2, "ex2.approx.ftz", exponential),
      APPROX(f16x2, "tanh.approx", tangent),
      APPROX(bf16x2, "tanh.approx", tangent),
  };
  RUN_TESTS(packed);
}

Test(half, refused) {
  const RefusedTest tests[] = {
      {"add.rz.f16 %h0, %h1, %h2", "no such form; there is add{.rn}{.ftz}{.sat}.f16"},
      {"add.sat.bf16 %h0, %h1, %h2", "no such form"},
      {"mul.ftz.bf16x2 %r0, %r1, %r2", "no such form"},
      {"fma.rn.sat.relu.f16 %h0, %h1, %h2, %h3", "no such form"},
      {"fma.f16 %h0, %h1, %h2, %h3", "fma.rn"},
      {"fma.rn.sat.bf16 %h0, %h1, %h2, %h3", "no such form"},
      {"fma.rn.f16 %h0, %h1, %h2", "operands"},
      {"add.f16x2 %h0, %r1, %r2", "register %h0"},
      {"add.f16 %h0, %r1, %h2", "register %r1"},
      {"ex2.approx.bf16 %h0, %h1", "ex2.approx.ftz.bf16"},
      {"ex2.approx.ftz.f16 %h0, %h1", "no such form"},
      {"div.f16 %h0, %h1, %h2", "div"},
      {"neg.ftz.bf16 %h0, %h1", "no such form"},
      {"max.abs.f16 %h0, %h1, %h2", "no such form"},
  };
  RUN_REFUSED_TESTS(tests);
}
