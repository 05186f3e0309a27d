// f32 and f64 instructions on the emulator, checked against 113-bit arithmetic: wide enough that rounding its result
// once more gives the correctly rounded one, in every rounding mode.
#include <criterion/criterion.h>
#include <fenv.h>
#include <math.h>
#include <string.h>

#include "emulator/warp/rounded.h"
#include "support/run_ptx.h"

TestSuite(floats);

// Once in the host's modes, and once more as on hosts without: each test is a process of its own.
#define ROUNDING_TEST(name)                                                                                            \
  static void check_##name(void);                                                                                      \
  Test(floats, name) { check_##name(); }                                                                               \
  Test(floats, name##_by_software) {                                                                                   \
    round_by_software();                                                                                               \
    check_##name();                                                                                                    \
  }                                                                                                                    \
  static void check_##name(void)

__extension__ typedef __float128 Quad;

// ---- rounding that no mode of the host takes part in: WebAssembly has none ----

// A result of 113 bits that lacks something: its last bit becomes 1, so that no later rounding takes it for exact.
static Quad round_to_odd(Quad nearest, Quad lack) {
  __extension__ typedef unsigned __int128 Bits;
  Bits bits;
  memcpy(&bits, &nearest, sizeof bits);
  if (lack != 0 && bits % 2 == 0) bits += (lack > 0) == (nearest > 0) ? 1 : (Bits)-1;
  memcpy(&nearest, &bits, sizeof bits);
  return nearest;
}

// Subtracting the larger addend from the sum is exact. A sum that cancels is +0, but -0 when rounding down.
static Quad sum(Quad x, Quad y, int mode) {
  Quad nearest = x + y;
  if (nearest == 0) return x == 0 && signbit(x) == signbit(y) ? x : mode == FE_DOWNWARD ? -(Quad)0 : 0;
  if (!isfinite(nearest)) return nearest;
  bool swapped = (x < 0 ? -x : x) < (y < 0 ? -y : y);
  return round_to_odd(nearest, (swapped ? x : y) - (nearest - (swapped ? y : x)));
}

// Where a result rounded to nearest must move to, as the mode says: to nowhere, down or up. `lack`: what it lacks.
static int direction(bool positive, Quad lack, int mode) {
  if (mode == FE_TOWARDZERO) mode = positive ? FE_DOWNWARD : FE_UPWARD;
  return mode == FE_DOWNWARD && lack < 0 ? -1 : mode == FE_UPWARD && lack > 0 ? 1 : 0;
}

// Numbers that are exact, or have so many bits that what they lack does not count.
static float to_f32(Quad x, int mode) {
  float nearest = (float)x;
  int moves = direction(x > 0, x - nearest, mode);
  return moves ? nextafterf(nearest, moves > 0 ? INFINITY : -INFINITY) : nearest;
}

static double to_f64(Quad x, int mode) {
  if (isnan(x)) return double_of(0xfff8000000000000);  // an H200's, where no source is a NaN
  double nearest = (double)x;
  int moves = direction(x > 0, x - nearest, mode);
  return moves ? nextafter(nearest, moves > 0 ? INFINITY : -INFINITY) : nearest;
}

// ---- f32 ----

static float flush(float x) { return fabsf(x) < 0x1p-126f ? copysignf(0, x) : x; }

// Applies the modifiers that the instruction has around an operation of three f32.
static void expect_f32(const Sample *sample, uint64_t *out, Quad (*operation)(float, float, float, int)) {
  float in[3], result;
  bool ftz = has_modifier(sample, ".ftz");
  for (int i = 0; i < 3; i++) in[i] = ftz ? flush(float_source(sample, i)) : float_source(sample, i);
  result = to_f32(operation(in[0], in[1], in[2], rounding_of(sample)), rounding_of(sample));
  if (ftz) result = flush(result);
  if (has_modifier(sample, ".sat")) result = isnan(result) || result <= 0 ? 0 : fminf(result, 1);
  out[0] = isnan(result) ? 0x7fffffff : float_bits(result);
}

#define EXPECT_F32(name, result)                                                                                       \
  static Quad name##_value(float x, float y, float z, int mode) {                                                      \
    (void)x, (void)y, (void)z, (void)mode;                                                                             \
    return result;                                                                                                     \
  }                                                                                                                    \
  static void name(const Sample *sample, uint64_t *out) { expect_f32(sample, out, name##_value); }

// The total order of numbers, -0 below +0; NaN is nobody's minimum or maximum.
static float pick(float x, float y, int sign) {
  if (isnan(x)) return y;
  if (isnan(y)) return x;
  if (x == y) return (signbit(x) ? sign > 0 : sign < 0) ? x : y;
  return (x < y) == (sign > 0) ? x : y;
}

EXPECT_F32(add, sum(x, y, mode))
EXPECT_F32(sub, sum(x, -y, mode))
EXPECT_F32(rounded_product, (Quad)x *y)

// .ftz judges the result rounded to 24 bits, as if there were smaller exponents: what is below 2^-126 then is zero.
static void flush_lifted(const Sample *sample, uint64_t *out, Quad exact) {
  float lifted = to_f32(exact * 0x1p126, rounding_of(sample));
  if (has_modifier(sample, ".ftz") && fabsf(lifted) < 1) out[0] &= 0x80000000;
}

static float flushed(const Sample *sample, int i) {
  return has_modifier(sample, ".ftz") ? flush(float_source(sample, i)) : float_source(sample, i);
}

static void mul(const Sample *sample, uint64_t *out) {
  rounded_product(sample, out);
  flush_lifted(sample, out, (Quad)flushed(sample, 0) * flushed(sample, 1));
}

EXPECT_F32(rounded_quotient, (Quad)x / y)
static void divide(const Sample *sample, uint64_t *out) {
  rounded_quotient(sample, out);
  flush_lifted(sample, out, (Quad)flushed(sample, 0) / flushed(sample, 1));
}

EXPECT_F32(rounded_reciprocal, 1 / (Quad)x)
static void reciprocal(const Sample *sample, uint64_t *out) {
  rounded_reciprocal(sample, out);
  flush_lifted(sample, out, 1 / (Quad)flushed(sample, 0));
}

EXPECT_F32(rounded_sum, sum((Quad)x *y, z, mode))
static void multiply_add(const Sample *sample, uint64_t *out) {
  rounded_sum(sample, out);
  flush_lifted(sample, out,
               sum((Quad)flushed(sample, 0) * flushed(sample, 1), flushed(sample, 2), rounding_of(sample)));
}

// Results that a subnormal's last bit would lift to 2^-126.
EXPECT_F32(half_of_largest, (Quad)0x1.fffffep-126f / x)
EXPECT_F32(over_next_to_largest, x / (Quad)0x1.000002p126f)
EXPECT_F32(tiny_product_and, sum(0x1p-151, x, mode))
EXPECT_F32(larger_tiny_product_and, sum(0x1.000002p-150, x, mode))
static void lifted_quotient(const Sample *sample, uint64_t *out) {
  half_of_largest(sample, out);
  flush_lifted(sample, out, (Quad)0x1.fffffep-126f / flushed(sample, 0));
}
static void lifted_quotient_up(const Sample *sample, uint64_t *out) {
  over_next_to_largest(sample, out);
  flush_lifted(sample, out, flushed(sample, 0) / (Quad)0x1.000002p126f);
}
static void lifted_sum(const Sample *sample, uint64_t *out) {
  tiny_product_and(sample, out);
  flush_lifted(sample, out, sum(0x1p-151, flushed(sample, 0), rounding_of(sample)));
}
static void lifted_sum_up(const Sample *sample, uint64_t *out) {
  larger_tiny_product_and(sample, out);
  flush_lifted(sample, out, sum(0x1.000002p-150, flushed(sample, 0), rounding_of(sample)));
}

EXPECT_F32(square_root, sqrt((double)x))
EXPECT_F32(absolute, fabsf(x))
EXPECT_F32(negate, -x)
EXPECT_F32(plus_one, sum(x, 1, mode))
EXPECT_F32(sub_from_tenth, sum(0.1f, -x, mode))
EXPECT_F32(smaller, pick(x, y, 1))
EXPECT_F32(larger, pick(x, y, -1))
EXPECT_F32(smaller_nan, isnan(x) || isnan(y) ? NAN : pick(x, y, 1))
EXPECT_F32(larger_nan, isnan(x) || isnan(y) ? NAN : pick(x, y, -1))
EXPECT_F32(smaller_xorsign, copysignf(pick(fabsf(x), fabsf(y), 1), signbit(x) != signbit(y) ? -1.0f : 1.0f))
EXPECT_F32(larger_nan_xorsign, isnan(x) || isnan(y)
                                   ? NAN
                                   : copysignf(pick(fabsf(x), fabsf(y), -1), signbit(x) != signbit(y) ? -1.0f : 1.0f))

#define F32_1(text, f) INSTRUCTION(text, "f32: f32", f, 0)
#define F32_2(text, f) INSTRUCTION(text, "f32: f32 f32", f, 0)
#define F32_3(text, f) INSTRUCTION(text, "f32: f32 f32 f32", f, 0)
#define FTZ_SAT(ROW, op, f) ROW(op ".f32", f), ROW(op ".ftz.f32", f), ROW(op ".sat.f32", f), ROW(op ".ftz.sat.f32", f)
#define EVERY_ROUNDING(ROW, op, f)                                                                                     \
  FTZ_SAT(ROW, op ".rn", f), FTZ_SAT(ROW, op ".rz", f), FTZ_SAT(ROW, op ".rm", f), FTZ_SAT(ROW, op ".rp", f)
#define ROUNDING_AND_FTZ(ROW, op, f)                                                                                   \
  ROW(op ".rn.f32", f), ROW(op ".rz.f32", f), ROW(op ".rm.f32", f), ROW(op ".rp.f32", f), ROW(op ".rn.ftz.f32", f),    \
      ROW(op ".rz.ftz.f32", f), ROW(op ".rm.ftz.f32", f), ROW(op ".rp.ftz.f32", f)

ROUNDING_TEST(f32_arithmetic) {
  const InstructionTest tests[] = {
      FTZ_SAT(F32_2, "add", add),
      FTZ_SAT(F32_2, "sub", sub),
      FTZ_SAT(F32_2, "mul", mul),
      EVERY_ROUNDING(F32_2, "add", add),
      EVERY_ROUNDING(F32_2, "sub", sub),
      EVERY_ROUNDING(F32_2, "mul", mul),
      EVERY_ROUNDING(F32_3, "fma", multiply_add),
      EVERY_ROUNDING(F32_3, "mad", multiply_add),
      ROUNDING_AND_FTZ(F32_2, "div", divide),
      ROUNDING_AND_FTZ(F32_1, "rcp", reciprocal),
      ROUNDING_AND_FTZ(F32_1, "sqrt", square_root),
      F32_1("abs.f32", absolute),
      F32_1("abs.ftz.f32", absolute),
      F32_1("neg.f32", negate),
      F32_1("neg.ftz.f32", negate),
      F32_1("add.f32 %d, %a, 0f3F800000", plus_one),
      F32_1("add.f32 %d, %a, 1.0", plus_one),
      F32_1("sub.ftz.f32 %d, 0f3DCCCCCD, %a", sub_from_tenth),
      F32_3("fma.rn.f32 %c, %a, %b, %c;\nmov.f32 %d, %c", multiply_add),
  };
  RUN_TESTS(tests);
}

Test(floats, f32_extrema) {
  const InstructionTest tests[] = {
      F32_2("min.f32", smaller),
      F32_1("div.rn.ftz.f32 %d, 0f00FFFFFF, %a", lifted_quotient),
      F32_1("div.rp.ftz.f32 %d, 0f00FFFFFF, %a", lifted_quotient),
      F32_1("div.rp.ftz.f32 %d, %a, 0f7E800001", lifted_quotient_up),
      F32_1("div.rn.ftz.f32 %d, %a, 0f7E800001", lifted_quotient_up),
      F32_1("fma.rn.ftz.f32 %d, 0f33000000, 0f00800000, %a", lifted_sum),
      F32_1("fma.rm.ftz.f32 %d, 0f33800000, 0f00800001, %a", lifted_sum_up),
      F32_2("min.ftz.f32", smaller),
      F32_2("min.NaN.f32", smaller_nan),
      F32_2("min.ftz.NaN.f32", smaller_nan),
      F32_2("min.xorsign.abs.f32", smaller_xorsign),
      F32_2("max.f32", larger),
      F32_2("max.ftz.f32", larger),
      F32_2("max.NaN.f32", larger_nan),
      F32_2("max.ftz.NaN.f32", larger_nan),
      F32_2("max.ftz.NaN.xorsign.abs.f32", larger_nan_xorsign),
  };
  RUN_TESTS(tests);
}

static void copy_sign(const Sample *sample, uint64_t *out) {
  int sign = sample->types[0].bits - 1;
  out[0] = (sample->in[0] >> sign & 1) << sign | (sample->in[1] & ~(1ull << sign));
}

Test(floats, copysign) {
  const InstructionTest tests[] = {
      {"copysign.f32", "u32: f32 f32", copy_sign, 0},
  };
  RUN_TESTS(tests);
}

// ---- approximate functions ----

// A quotient by a huge number is zero: PTX ISA, div.approx.
static double approximate_quotient(float x, float y) {
  if (fabsf(y) > 0x1p126f && !isinf(y) && !isnan(y)) return isinf(x) ? NAN : x * copysignf(0, y);
  return (double)x / y;
}

// The angle in turns as the hardware takes it: the product with an f32, cut to 24 bits.
static long double turns(float x) {
  long double exact = (long double)x * 0x1.45f306p-3L;
  float nearest = (float)exact;
  return fabsl(nearest) > fabsl(exact) ? nextafterf(nearest, 0) : nearest;
}

// The sine of x, moved on by some quarters of a turn. Of the turns 25 bits behind the point count, and in the quarters
// where the sine falls the angle is one bit further on.
static double sine_of(float x, int quarters) {
  const long double pi = 3.14159265358979323846L, bits = 0x1p25L;
  if (isnan(x) || isinf(x)) return NAN;
  long double place = fmodl(fmodl(floorl(fabsl(turns(x)) * bits), bits) + quarters * (bits / 4), bits);
  bool falls = (int)(place / (bits / 4)) % 2 == 1, below = place >= bits / 2;
  long double within = fmodl(place, bits / 2) + falls, sine = within == bits / 2 ? 0 : sinl(2 * pi * within / bits);
  return (double)(below != (quarters == 0 && signbit(x)) ? -sine : sine);
}

EXPECT_F32(rounded_div_approx, approximate_quotient(x, y))
static void div_approx(const Sample *sample, uint64_t *out) {
  rounded_div_approx(sample, out);
  flush_lifted(sample, out, approximate_quotient(flushed(sample, 0), flushed(sample, 1)));
}
EXPECT_F32(reciprocal_root, 1 / sqrtl((long double)x))
EXPECT_F32(sine, sine_of(x, 0))
EXPECT_F32(cosine, sine_of(x, 1))
EXPECT_F32(logarithm, log2l((long double)x))
EXPECT_F32(exponential, exp2l((long double)x))
EXPECT_F32(tangent, tanhl((long double)x))

#define APPROX(text, types, f) INSTRUCTION(text, types, f, 1)
#define APPROX_FTZ(op, types, f) APPROX(op ".approx.f32", types, f), APPROX(op ".approx.ftz.f32", types, f)

Test(floats, approximations) {
  const InstructionTest tests[] = {
      APPROX_FTZ("div", "f32: f32 f32", div_approx),
      APPROX("div.full.f32", "f32: f32 f32", divide),
      APPROX("div.full.ftz.f32", "f32: f32 f32", divide),
      APPROX_FTZ("rcp", "f32: f32", reciprocal),
      APPROX_FTZ("sqrt", "f32: f32", square_root),
      APPROX_FTZ("rsqrt", "f32: f32", reciprocal_root),
      APPROX_FTZ("sin", "f32: f32", sine),
      APPROX_FTZ("cos", "f32: f32", cosine),
      APPROX_FTZ("lg2", "f32: f32", logarithm),
      APPROX_FTZ("ex2", "f32: f32", exponential),
      APPROX("tanh.approx.f32", "f32: f32", tangent),
  };
  RUN_TESTS(tests);
}

// ---- f64 ----

// The NaN that an H200 makes of a NaN source: quiet, with its sign and payload. Of several, the second one's; fma's
// addend counts after the second factor, before the first one.
static double quiet(double x) { return double_of(double_bits(x) | 0x0008000000000000); }
static double or_nan(double x, double y, double result) { return isnan(y) ? quiet(y) : isnan(x) ? quiet(x) : result; }

#define EXPECT_F64(name, result)                                                                                       \
  static void name(const Sample *sample, uint64_t *out) {                                                              \
    double x = double_source(sample, 0), y = double_source(sample, 1), z = double_source(sample, 2);                   \
    int mode = rounding_of(sample);                                                                                    \
    (void)y, (void)z, (void)mode;                                                                                      \
    out[0] = double_bits((double)(result));                                                                            \
  }

static double pick_double(double x, double y, int sign) {
  if (isnan(x) && isnan(y)) return quiet(y);
  if (isnan(x)) return y;
  if (isnan(y)) return x;
  if (x == y) return (signbit(x) ? sign > 0 : sign < 0) ? x : y;
  return (x < y) == (sign > 0) ? x : y;
}

// The root from its definition: the largest double whose square is not above x, or the next one.
static double root(double x, int mode) {
  if (!(x > 0) || isinf(x)) return x < 0 ? NAN : x;
  double low = sqrt(x);
  while ((Quad)low * low > x) low = nextafter(low, 0);
  double high = nextafter(low, INFINITY);
  bool exact = (Quad)low * low == x;
  Quad middle = ((Quad)low + high) / 2;
  if (exact || mode == FE_DOWNWARD || mode == FE_TOWARDZERO) return low;
  if (mode == FE_UPWARD) return high;
  return middle * middle > x ? low : high;
}

EXPECT_F64(add_f64, or_nan(x, y, to_f64(sum(x, y, mode), mode)))
EXPECT_F64(sub_f64, or_nan(x, y, to_f64(sum(x, -y, mode), mode)))
EXPECT_F64(mul_f64, or_nan(x, y, to_f64((Quad)x *y, mode)))
EXPECT_F64(div_f64, to_f64((Quad)x / y, mode))
EXPECT_F64(rcp_f64, to_f64(1 / (Quad)x, mode))
EXPECT_F64(sqrt_f64, root(x, mode))
EXPECT_F64(rsqrt_f64, 1 / sqrtl((long double)x))
EXPECT_F64(fma_f64, isnan(y) ? quiet(y) : or_nan(x, z, to_f64(sum((Quad)x *y, z, mode), mode)))
EXPECT_F64(abs_f64, or_nan(0, x, fabs(x)))
EXPECT_F64(neg_f64, or_nan(0, x, -x))
EXPECT_F64(min_f64, pick_double(x, y, 1))
EXPECT_F64(max_f64, pick_double(x, y, -1))
EXPECT_F64(copysign_f64, copysign(y, x))
EXPECT_F64(plus_tenth, or_nan(x, 0.1, to_f64(sum(x, 0.1, mode), mode)))

// The high words of a source and of the result; subnormals count as zero.
static double gross(double x) {
  if (fabs(x) < 0x1p-1022) return copysign(0, x);
  return double_of(double_bits(x) & 0xffffffff00000000);  // of some NaNs an infinity
}
EXPECT_F64(rcp_gross, gross(1 / gross(x)))
EXPECT_F64(rsqrt_gross, gross(1 / sqrt(gross(x))))

// Results as bits are compared in the payload of a NaN too.
#define F64_1(text, f) INSTRUCTION(text, "f64: f64", f, 0)
#define F64_2(text, f) INSTRUCTION(text, "f64: f64 f64", f, 0)
#define BITS_1(text, f) INSTRUCTION(text, "b64: f64", f, 0)
#define BITS_2(text, f) INSTRUCTION(text, "b64: f64 f64", f, 0)
#define BITS_3(text, f) INSTRUCTION(text, "b64: f64 f64 f64", f, 0)
#define ROUNDINGS(ROW, op, f) ROW(op ".rn.f64", f), ROW(op ".rz.f64", f), ROW(op ".rm.f64", f), ROW(op ".rp.f64", f)

ROUNDING_TEST(f64) {
  const InstructionTest tests[] = {
      BITS_2("add.f64", add_f64),
      BITS_2("sub.f64", sub_f64),
      BITS_2("mul.f64", mul_f64),
      ROUNDINGS(BITS_2, "add", add_f64),
      ROUNDINGS(BITS_2, "sub", sub_f64),
      ROUNDINGS(BITS_2, "mul", mul_f64),
      ROUNDINGS(F64_2, "div", div_f64),
      ROUNDINGS(F64_1, "rcp", rcp_f64),
      ROUNDINGS(F64_1, "sqrt", sqrt_f64),
      ROUNDINGS(BITS_3, "fma", fma_f64),
      ROUNDINGS(BITS_3, "mad", fma_f64),
      BITS_1("abs.f64", abs_f64),
      BITS_1("neg.f64", neg_f64),
      BITS_2("min.f64", min_f64),
      BITS_2("max.f64", max_f64),
      BITS_2("copysign.f64", copysign_f64),
      F64_1("rcp.approx.ftz.f64", rcp_gross),
      F64_1("rsqrt.approx.ftz.f64", rsqrt_gross),
      {"rsqrt.approx.f64", "f64: f64", rsqrt_f64, 2},
      F64_1("add.f64 %d, %a, 0d3FB999999999999A", plus_tenth),
  };
  RUN_TESTS(tests);
}

// ---- refused ----

Test(floats, refused) {
  const RefusedTest tests[] = {
      {"add.rna.f32 %f0, %f1, %f2", "no such form; there is add{.rnd}{.ftz}{.sat}.f32"},
      {"add.ftz.ftz.f32 %f0, %f1, %f2", "no such form"},
      {"add.rn.rz.f32 %f0, %f1, %f2", "no such form"},
      {"add.ftz.f64 %fd0, %fd1, %fd2", "no such form"},
      {"fma.f32 %f0, %f1, %f2, %f3", "fma.rnd"},
      {"fma.rn.f32 %f0, %f1, %f2", "operands"},
      {"mad.f32 %f0, %f1, %f2, %f3", "mad.rnd"},
      {"add.f32 %f0, %f1, %fd2", "register %fd2"},
      {"add.f32 %f0, %f1, -%f2", "negated"},
      {"add.f64 %fd0, %fd1, 1", "immediate"},
      {"div.f32 %f0, %f1, %f2", "div.rnd"},
      {"sqrt.f32 %f0, %f1", "sqrt.rnd"},
      {"ex2.f32 %f0, %f1", "ex2.approx"},
      {"ex2.approx.sat.f32 %f0, %f1", "no such form"},
      {"tanh.approx.ftz.f32 %f0, %f1", "tanh.approx.f32"},
      {"min.abs.f32 %f0, %f1, %f2", "no such form"},
      {"min.xorsign.f32 %f0, %f1, %f2", "no such form"},
      {"min.f32 %f0, %f1, %f2, %f3", "operands"},
      {"min.NaN.f64 %fd0, %fd1, %fd2", "no such form"},
      {"rcp.approx.f64 %fd0, %fd1", "no such form"},
      {"add.f32.f16 %f0, %h1, %f2", "no such form"},
  };
  RUN_REFUSED_TESTS(tests);
}
