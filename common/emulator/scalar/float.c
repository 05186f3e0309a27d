// f32 and f64 arithmetic and the special functions. PTX ISA 9.7.3.
//
// The host's arithmetic is IEEE 754's, so +, -, *, /, fma and sqrt are the GPU's bit for bit. A rounding other than to
// nearest runs the same handler in another host mode, or one of its own by software (form_decode). The approximate
// functions are computed in double and rounded once: no less exact than the GPU's, which are within 2 ulp of that.
#include <math.h>

#include "../warp/floating.h"
#include "../warp/fused.h"
#include "../warp/rounded.h"
#include "../warp/machine.h"
#include "contraction.h"
#include "families.h"

#define COUNT(table) ((int)(sizeof(table) / sizeof(table)[0]))

// ---- f32 ----

ALWAYS_INLINE f32 source_f32(f32 x, bool ftz) { return ftz ? flush_f32(x) : x; }

ALWAYS_INLINE f32 result_f32(f32 x, bool ftz, bool sat) {
  x = ftz ? flush_f32(x) : x;
  return sat ? saturate_f32(x) : canonical_f32(x);
}

// .ftz judges the result rounded to 24 bits, as if there were smaller exponents: one below 2^-126 becomes zero even
// where rounding to a subnormal's last bit would lift it to 2^-126.
ALWAYS_INLINE f32 flush_lifted(f64 exact, f32 result) {
  return fabsf((f32)(exact * 0x1p126)) < 1 ? (f32)copysign(0, exact) : result;
}
ALWAYS_INLINE f32 multiply_ftz(f32 x, f32 y) { return flush_lifted((f64)x * (f64)y, x * y); }
// A quotient of two f32 below 1 is at least 2^-24 below it, so it does not matter that this one is rounded twice.
ALWAYS_INLINE f32 divide_ftz(f32 x, f32 y) { return flush_lifted((f64)x / (f64)y, x / y); }

#define F32_HANDLER(name, result, ftz, sat)                                                                            \
  static void name(Warp *warp, const Inst *inst, Mask mask) {                                                          \
    f32 *d = SLOT(warp, inst->d, f32);                                                                                 \
    const f32 *a = SLOT(warp, inst->a, f32);                                                                           \
    const f32 *b = SLOT(warp, inst->b, f32);                                                                           \
    const f32 *c = SLOT(warp, inst->c, f32);                                                                           \
    EACH_LANE(mask, f32 x = source_f32(a[LANE], ftz); f32 y = source_f32(b[LANE], ftz);                                \
              f32 z = source_f32(c[LANE], ftz); (void)x; (void)y; (void)z; d[LANE] = result_f32(result, ftz, sat));    \
  }

// An operation with and without .ftz, and one that also has .sat.
#define F32_FTZ(name, result)                                                                                          \
  F32_HANDLER(name, result, false, false)                                                                              \
  F32_HANDLER(name##_ftz, result, true, false)
#define F32_FTZ_SAT(name, result)                                                                                      \
  F32_FTZ(name, result)                                                                                                \
  F32_HANDLER(name##_sat, result, false, true)                                                                         \
  F32_HANDLER(name##_ftz_sat, result, true, true)

F32_FTZ_SAT(add_f32, x + y)
F32_FTZ_SAT(sub_f32, x - y)
F32_HANDLER(mul_f32, x *y, false, false)
F32_HANDLER(mul_f32_sat, x *y, false, true)
F32_HANDLER(mul_f32_ftz, multiply_ftz(x, y), true, false)
F32_HANDLER(mul_f32_ftz_sat, multiply_ftz(x, y), true, true)
F32_HANDLER(fma_f32, fused_f32(x, y, z), false, false)
F32_HANDLER(fma_f32_sat, fused_f32(x, y, z), false, true)
F32_HANDLER(div_f32, x / y, false, false)
F32_HANDLER(div_f32_ftz, divide_ftz(x, y), true, false)
F32_HANDLER(rcp_f32, 1 / x, false, false)
F32_HANDLER(rcp_f32_ftz, divide_ftz(1, x), true, false)
F32_FTZ(sqrt_f32, sqrtf(x))
F32_FTZ(abs_f32, fabsf(x))
F32_FTZ(neg_f32, -x)
LANE_OPERATION(copysign_f32, u32, u32, u32, u32, (x & 0x80000000) | (y & 0x7fffffff))

// The sums of fma.ftz that came out as 2^-126, which is rare.
static void flush_lifted_sums(f32 *sums, const f32 *a, const f32 *b, const f32 *c) {
  u32 lifted = 0;
  for (int i = 0; i < LANES; i++) lifted |= (f32_bits(sums[i]) & 0x7fffffff) == 0x00800000;
  if (!lifted) return;
  for (int i = 0; i < LANES; i++)
    if (fabsf(sums[i]) == 0x1p-126f)
      sums[i] = flush_lifted(sum_to_odd((f64)flush_f32(a[i]) * flush_f32(b[i]), flush_f32(c[i])), sums[i]);
}

#define FMA_FTZ(name, sat)                                                                                             \
  static void name(Warp *warp, const Inst *inst, Mask mask) {                                                          \
    f32 *d = SLOT(warp, inst->d, f32), sums[LANES];                                                                    \
    const f32 *a = SLOT(warp, inst->a, f32), *b = SLOT(warp, inst->b, f32), *c = SLOT(warp, inst->c, f32);             \
    EACH_LANE(FULL_MASK, sums[LANE] = fused_f32(flush_f32(a[LANE]), flush_f32(b[LANE]), flush_f32(c[LANE])));          \
    flush_lifted_sums(sums, a, b, c);                                                                                  \
    EACH_LANE(mask, d[LANE] = result_f32(sums[LANE], true, sat));                                                      \
  }
FMA_FTZ(fma_f32_ftz, false)
FMA_FTZ(fma_f32_ftz_sat, true)

// ---- f32 rounded toward zero, down or up by software ----

// From a result that is exact, or rounded to odd, or so near to the exact one that no number of f32 is between: what is
// nearest to it, or that number's neighbour. The bits of a zero and of an infinity are next to their neighbours' too.
ALWAYS_INLINE f32 narrow_wide(f64 wide, Rounding rounding) {
  f32 nearest = (f32)wide;
  u32 bits = f32_bits(nearest), negative = bits >> 31;
  bool above = nearest > wide, below = nearest < wide;
  bool shrinks = negative ? below : above, grows = negative ? above : below;
  bool away = rounding == ROUND_DOWN ? negative : rounding == ROUND_UP && !negative;
  return f32_from_bits(bits + (grows && away) - (shrinks && !away));
}

ALWAYS_INLINE f32 round_wide(f64 wide, Rounding rounding, bool ftz, bool sat) {
  f32 result = narrow_wide(wide, rounding), lifted = narrow_wide(wide * 0x1p126, rounding);  // as flush_lifted() has it
  return result_f32(ftz && fabsf(lifted) < 1 ? (f32)copysign(0, wide) : result, ftz, sat);
}

// A sum that cancels is -0 when it is rounded down.
ALWAYS_INLINE f64 wide_sum(f64 x, f64 y, Rounding rounding) {
  f64 sum = sum_to_odd(x, y);
  return rounding == ROUND_DOWN && sum == 0 && (signbit(x) | signbit(y) | (x != 0)) ? -0.0 : sum;
}

// A loop for each rounding, so that it vectorises.
#define F32_RND_LOOP(mode, wide)                                                                                       \
  case mode:                                                                                                           \
    EACH_LANE(mask, const Rounding rounding = mode; f64 x = source_f32(a[LANE], ftz);                                  \
              f64 y = source_f32(b[LANE], ftz); f64 z = source_f32(c[LANE], ftz); (void)x; (void)y; (void)z;           \
              d[LANE] = round_wide(wide, rounding, ftz, sat));                                                         \
    break;
#define F32_RND(name, wide)                                                                                            \
  static void name(Warp *warp, const Inst *inst, Mask mask) {                                                          \
    f32 *d = SLOT(warp, inst->d, f32);                                                                                 \
    const f32 *a = SLOT(warp, inst->a, f32), *b = SLOT(warp, inst->b, f32), *c = SLOT(warp, inst->c, f32);             \
    const bool ftz = inst->flags & FORM_FTZ, sat = inst->flags & FORM_SAT;                                             \
    switch (form_rounding(inst)) {                                                                                     \
      F32_RND_LOOP(ROUND_ZERO, wide)                                                                                   \
      F32_RND_LOOP(ROUND_DOWN, wide)                                                                                   \
      F32_RND_LOOP(ROUND_UP, wide)                                                                                     \
    default: break;                                                                                                    \
    }                                                                                                                  \
  }

F32_RND(add_f32_rnd, wide_sum(x, y, rounding))
F32_RND(sub_f32_rnd, wide_sum(x, -y, rounding))
F32_RND(mul_f32_rnd, x *y)
F32_RND(fma_f32_rnd, wide_sum(x *y, z, rounding))
// Of two f32 the quotient, and of one the root, is at least 2^-49 of itself away from each f32 that it is not.
F32_RND(div_f32_rnd, x / y)
F32_RND(rcp_f32_rnd, 1 / x)
F32_RND(sqrt_f32_rnd, sqrt(x))

// min and max have many options and are rarely hot: flags are looked at here, once a warp.
#define F32_EXTREMUM(name, pick)                                                                                       \
  static void name(Warp *warp, const Inst *inst, Mask mask) {                                                          \
    f32 *d = SLOT(warp, inst->d, f32);                                                                                 \
    const f32 *a = SLOT(warp, inst->a, f32), *b = SLOT(warp, inst->b, f32);                                            \
    const bool ftz = inst->flags & FORM_FTZ, nan_wins = inst->flags & FORM_NAN;                                        \
    const u32 sign_bit = inst->flags & FORM_XORSIGN_ABS ? 0x80000000 : 0;                                              \
    EACH_LANE(mask, f32 x = source_f32(a[LANE], ftz); f32 y = source_f32(b[LANE], ftz);                                \
              u32 sign = (f32_bits(x) ^ f32_bits(y)) & sign_bit; x = f32_from_bits(f32_bits(x) & ~sign_bit);           \
              y = f32_from_bits(f32_bits(y) & ~sign_bit); u32 result = f32_bits(pick(x, y)) | sign;                    \
              bool is_nan = extremum_is_nan(x != x, y != y, nan_wins);                                                 \
              d[LANE] = f32_from_bits(is_nan ? CANONICAL_NAN : result));                                               \
  }

F32_EXTREMUM(min_handler_f32, min_f32)
F32_EXTREMUM(max_handler_f32, max_f32)

// ---- approximate functions of f32 ----

// The hardware multiplies by a reciprocal, and that of a divisor beyond 2^126 underflows to zero: PTX ISA, div.
ALWAYS_INLINE f32 divide_approx(f32 x, f32 y) {
  return fabsf(y) > 0x1p126f && fabsf(y) < INFINITY ? x * copysignf(0, y) : x / y;
}
ALWAYS_INLINE f32 divide_approx_ftz(f32 x, f32 y) {
  return fabsf(y) > 0x1p126f && fabsf(y) < INFINITY ? x * copysignf(0, y) : divide_ftz(x, y);
}

// sin and cos first turn the angle into turns: x times the f32 nearest to 1 / 2 pi, rounded toward zero. For large
// angles that product decides the result.
ALWAYS_INLINE f32 turns(f32 x) {
  const f64 exact = (f64)x * 0x1.45f306p-3;
  return f32_from_bits(narrow((SmallFormat)FORMAT_F32, exact, ROUND_ZERO, false));
}

// The sine of an angle in turns, moved on by some quarters. Of the angle 25 bits behind the point count, and a quarter
// that is walked backwards takes their complement: tiny angles have the sine 0, and so has half a turn less a bit.
static f64 sin_of_turns(f32 angle, u32 quarters) {
  const f64 bit = 0x1.921fb54442d18p-23;  // 2 pi / 2^25
  const u32 one_quarter = 1u << 23;
  f64 magnitude = fabs((f64)angle);
  if (!(magnitude < INFINITY)) return NAN;
  u32 bits = (u32)((magnitude - floor(magnitude)) * 0x1p25), quarter = bits / one_quarter + quarters;
  u32 rest = quarter & 1 ? one_quarter - 1 - bits % one_quarter : bits % one_quarter;
  f64 sine = sin(rest * bit);
  bool negative = (quarter & 2) != 0, mirrored = quarters == 0 && signbit(angle);
  return negative != mirrored ? -sine : sine;
}

F32_HANDLER(div_approx_f32, divide_approx(x, y), false, false)
F32_HANDLER(div_approx_f32_ftz, divide_approx_ftz(x, y), true, false)
F32_FTZ(rsqrt_f32, (f32)(1 / sqrt((f64)x)))
F32_FTZ(sin_f32, (f32)sin_of_turns(turns(x), 0))
F32_FTZ(cos_f32, (f32)sin_of_turns(turns(x), 1))
F32_FTZ(lg2_f32, (f32)log2((f64)x))
F32_FTZ(ex2_f32, (f32)exp2_f64((f64)x))
F32_HANDLER(tanh_f32, (f32)tanh((f64)x), false, false)

// ---- f64: NaNs pass through with their payload ----

LANE_OPERATION(add_f64, f64, f64, f64, f64, last_nan_f64(x, y, x + y))
LANE_OPERATION(sub_f64, f64, f64, f64, f64, last_nan_f64(x, y, x - y))
LANE_OPERATION(mul_f64, f64, f64, f64, f64, last_nan_f64(x, y, x *y))
// Of the factors' NaNs and the addend's, the second factor's comes first, then the addend's.
LANE_OPERATION(fma_f64, f64, f64, f64, f64, y != y ? quiet_f64(y) : last_nan_f64(x, z, fused_f64(x, y, z)))
LANE_OPERATION(div_f64, f64, f64, f64, f64, x / y)
LANE_OPERATION(rcp_f64, f64, f64, f64, f64, 1 / x)
LANE_OPERATION(sqrt_f64, f64, f64, f64, f64, sqrt(x))
LANE_OPERATION(add_f64_rnd, f64, f64, f64, f64, last_nan_f64(x, y, rounded_add(x, y, form_rounding(inst))))
LANE_OPERATION(sub_f64_rnd, f64, f64, f64, f64, last_nan_f64(x, y, rounded_add(x, -y, form_rounding(inst))))
LANE_OPERATION(mul_f64_rnd, f64, f64, f64, f64, last_nan_f64(x, y, rounded_multiply(x, y, form_rounding(inst))))
LANE_OPERATION(fma_f64_rnd, f64, f64, f64, f64,
               y != y ? quiet_f64(y) : last_nan_f64(x, z, rounded_fma(x, y, z, form_rounding(inst))))
LANE_OPERATION(div_f64_rnd, f64, f64, f64, f64, rounded_divide(x, y, form_rounding(inst)))
LANE_OPERATION(rcp_f64_rnd, f64, f64, f64, f64, rounded_divide(1, x, form_rounding(inst)))
LANE_OPERATION(sqrt_f64_rnd, f64, f64, f64, f64, rounded_sqrt(x, form_rounding(inst)))
// Of a NaN they leave the sign, as the H200 does.
LANE_OPERATION(abs_f64, f64, f64, f64, f64, x != x ? quiet_f64(x) : fabs(x))
LANE_OPERATION(neg_f64, f64, f64, f64, f64, x != x ? quiet_f64(x) : -x)
LANE_OPERATION(copysign_f64, u64, u64, u64, u64, (x & 1ull << 63) | (y & ~(1ull << 63)))
LANE_OPERATION(min_handler_f64, f64, f64, f64, f64, x != x && y != y ? quiet_f64(y) : min_f64(x, y))
LANE_OPERATION(max_handler_f64, f64, f64, f64, f64, x != x && y != y ? quiet_f64(y) : max_f64(x, y))

// rcp and rsqrt.approx.ftz.f64 are starting points for an iteration: they read the source's high word and give the
// result's. Subnormals count as zero, on both sides, and a NaN that has its payload in the low word as an infinity.
ALWAYS_INLINE u64 high_word(f64 x) {
  u64 bits = f64_bits(x) & 0xffffffff00000000, magnitude = bits & ~(1ull << 63);
  if (magnitude > 0x7ffull << 52) return (u64)CANONICAL_NAN << 32;
  return bits & 0x7ffull << 52 ? bits : bits & 1ull << 63;
}
ALWAYS_INLINE u64 rsqrt_high_word(f64 x) { return high_word(1 / sqrt(f64_from_bits(high_word(x)))); }

// rsqrt.approx.f64 is that starting point and one step of an iteration, as ptxas writes it.
static f64 rsqrt_step(f64 x) {
  f64 y = f64_from_bits(rsqrt_high_word(x)), error = fused_f64(x, -(y * y), 1);
  return fused_f64(fused_f64(error, 0.375, 0.5), y * error, y);
}
static f64 rsqrt_of(f64 x) {
  if (x != x) return quiet_f64(x);
  if (x == 0) return copysign(INFINITY, x);
  if (x < 0) return f64_from_bits(0xfff8ull << 48);
  if (x == INFINITY) return 0;
  return x < 0x1p-1022 ? rsqrt_step(x * 0x1p54) * 0x1p27 : rsqrt_step(x);
}

LANE_OPERATION(rcp_approx_f64, u64, f64, f64, f64, high_word(1 / f64_from_bits(high_word(x))))
LANE_OPERATION(rsqrt_approx_f64, u64, f64, f64, f64, rsqrt_high_word(x))
LANE_OPERATION(rsqrt_f64, f64, f64, f64, f64, rsqrt_of(x))

// ---- the forms ----

static const Form float_forms[] = {
    FORM_WITH_RND_FTZ_SAT("add{.rnd}{.ftz}{.sat}.f32", "f32 f32 f32", add_f32),
    FORM_WITH_RND_FTZ_SAT("sub{.rnd}{.ftz}{.sat}.f32", "f32 f32 f32", sub_f32),
    FORM_WITH_RND_FTZ_SAT("mul{.rnd}{.ftz}{.sat}.f32", "f32 f32 f32", mul_f32),
    FORM_WITH_RND_FTZ_SAT("fma.rnd{.ftz}{.sat}.f32", "f32 f32 f32 f32", fma_f32),
    FORM_WITH_RND_FTZ_SAT("mad.rnd{.ftz}{.sat}.f32", "f32 f32 f32 f32", fma_f32),
    FORM_WITH_RND_FTZ("div.rnd{.ftz}.f32", "f32 f32 f32", div_f32),
    FORM_WITH_FTZ("div.full{.ftz}.f32", "f32 f32 f32", div_f32),
    FORM_WITH_FTZ("div.approx{.ftz}.f32", "f32 f32 f32", div_approx_f32),
    FORM_WITH_FTZ("abs{.ftz}.f32", "f32 f32", abs_f32),
    FORM_WITH_FTZ("neg{.ftz}.f32", "f32 f32", neg_f32),
    FORM("copysign.f32", "f32 f32 f32", copysign_f32),
    FORM_WITH_FLAGS("min{.ftz}{.NaN}{.xorsign.abs}.f32", "f32 f32 f32", min_handler_f32, NULL),
    FORM_WITH_FLAGS("max{.ftz}{.NaN}{.xorsign.abs}.f32", "f32 f32 f32", max_handler_f32, NULL),
    FORM_WITH_RND_FTZ("rcp.rnd{.ftz}.f32", "f32 f32", rcp_f32),
    FORM_WITH_FTZ("rcp.approx{.ftz}.f32", "f32 f32", rcp_f32),
    FORM_WITH_RND_FTZ("sqrt.rnd{.ftz}.f32", "f32 f32", sqrt_f32),
    FORM_WITH_FTZ("sqrt.approx{.ftz}.f32", "f32 f32", sqrt_f32),
    FORM_WITH_FTZ("rsqrt.approx{.ftz}.f32", "f32 f32", rsqrt_f32),
    FORM_WITH_FTZ("sin.approx{.ftz}.f32", "f32 f32", sin_f32),
    FORM_WITH_FTZ("cos.approx{.ftz}.f32", "f32 f32", cos_f32),
    FORM_WITH_FTZ("lg2.approx{.ftz}.f32", "f32 f32", lg2_f32),
    FORM_WITH_FTZ("ex2.approx{.ftz}.f32", "f32 f32", ex2_f32),
    FORM("tanh.approx.f32", "f32 f32", tanh_f32),
    FORM_WITH_RND("rcp.rnd.f64", "f64 f64", rcp_f64),
    FORM_WITH_RND("sqrt.rnd.f64", "f64 f64", sqrt_f64),
    FORM("rcp.approx.ftz.f64", "f64 f64", rcp_approx_f64),
    FORM("rsqrt.approx.ftz.f64", "f64 f64", rsqrt_approx_f64),
    FORM("rsqrt.approx.f64", "f64 f64", rsqrt_f64),
    FORM_WITH_RND("add{.rnd}.f64", "f64 f64 f64", add_f64),
    FORM_WITH_RND("sub{.rnd}.f64", "f64 f64 f64", sub_f64),
    FORM_WITH_RND("mul{.rnd}.f64", "f64 f64 f64", mul_f64),
    FORM_WITH_RND("fma.rnd.f64", "f64 f64 f64 f64", fma_f64),
    FORM_WITH_RND("mad.rnd.f64", "f64 f64 f64 f64", fma_f64),
    FORM_WITH_RND("div.rnd.f64", "f64 f64 f64", div_f64),
    FORM("abs.f64", "f64 f64", abs_f64),
    FORM("neg.f64", "f64 f64", neg_f64),
    FORM("copysign.f64", "f64 f64 f64", copysign_f64),
    FORM("min.f64", "f64 f64 f64", min_handler_f64),
    FORM("max.f64", "f64 f64 f64", max_handler_f64),
};

DecodeResult decode_float(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  return form_decode(decoder, source, float_forms, COUNT(float_forms), inst);
}

void float_fuse(Inst *sum) {
  static Execute *const of_f32[] = {fma_f32, fma_f32_ftz, fma_f32_sat, fma_f32_ftz_sat};
  sum->execute = sum->type == PTX_F64 ? fma_f64 : of_f32[sum->flags & (FORM_FTZ | FORM_SAT)];
}
