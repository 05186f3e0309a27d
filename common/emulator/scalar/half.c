// f16 and bf16 arithmetic, one number or two packed in 32 bits. PTX ISA 9.7.4.
//
// An instruction widens its sources to double, computes there and narrows once. Every f16 and bf16 is a double exactly,
// and so is every product of two; sums are rounded to odd. Hence no result is rounded twice.
#include <math.h>

#include "../warp/floating.h"
#include "../warp/machine.h"
#include "contraction.h"
#include "families.h"

#define COUNT(table) ((int)(sizeof(table) / sizeof(table)[0]))

// One step works on as many numbers as a warp has lanes; a packed instruction takes two steps.
typedef void Compute(f64 *x, const f64 *y, const f64 *z, unsigned flags);
typedef void Widen(f64 *to, const u16 *from);
typedef void Narrow(u16 *to, const f64 *from);

// What a form computes: Form.plan.
typedef struct Operation {
  Compute *compute;
  int sources;
} Operation;

// What one instruction does: Inst.extra.
typedef struct HalfPlan {
  Operation operation;
  Widen *widen;
  Narrow *narrow;
  int steps;            // 1, or 2 when packed
  u16 smallest_normal;  // magnitudes below it are flushed; 0: none
} HalfPlan;

#define EACH INDEPENDENT for (int i = 0; i < LANES; i++)

// What a tensor copy fills with where its map asks for NaN: PTX calls it OOB-NaN, and an H200 writes these bits.
// fma.oob takes them for it with either sign.
enum { OOB_NAN = 0x7ff7 };
ALWAYS_INLINE bool is_oob(u16 x) { return (x & 0x7fff) == OOB_NAN; }

// ---- the operations, on x, y and z; the result replaces x ----

// .ftz, which f16 alone has, judges the exact product: one below 2^-14 becomes zero even where rounding would lift it
// to 2^-14.
ALWAYS_INLINE f64 multiply_flushing(f64 x, f64 y, bool ftz) {
  f64 exact = x * y;
  return ftz && fabs(exact) < 0x1p-14 ? copysign(0, exact) : exact;
}

#define OPERATION(name, count, result)                                                                                 \
  static void name##_lanes(f64 *x, const f64 *y, const f64 *z, unsigned flags) {                                       \
    (void)y, (void)z, (void)flags;                                                                                     \
    EACH x[i] = result;                                                                                                \
  }                                                                                                                    \
  static const Operation name = {name##_lanes, count};

OPERATION(half_add, 2, sum_to_odd(x[i], y[i]))
OPERATION(half_sub, 2, sum_to_odd(x[i], -y[i]))
OPERATION(half_mul, 2, multiply_flushing(x[i], y[i], flags &FORM_FTZ))
OPERATION(half_fma, 3, sum_to_odd(x[i] * y[i], z[i]))
OPERATION(half_abs, 1, fabs(x[i]))
OPERATION(half_neg, 1, -x[i])
OPERATION(half_ex2, 1, exp2_f64(x[i]))
OPERATION(half_tanh, 1, tanh(x[i]))

// .xorsign.abs compares magnitudes, and the sign is the product's.
#define EXTREMUM(name, pick)                                                                                           \
  static void name##_lanes(f64 *x, const f64 *y, const f64 *z, unsigned flags) {                                       \
    (void)z;                                                                                                           \
    const u64 sign_bit = flags & FORM_XORSIGN_ABS ? 1ull << 63 : 0;                                                    \
    const bool nan_wins = flags & FORM_NAN;                                                                            \
    EACH {                                                                                                             \
      u64 sign = (f64_bits(x[i]) ^ f64_bits(y[i])) & sign_bit;                                                         \
      f64 a = f64_from_bits(f64_bits(x[i]) & ~sign_bit), b = f64_from_bits(f64_bits(y[i]) & ~sign_bit);                \
      u64 result = f64_bits(pick(a, b)) | sign;                                                                        \
      x[i] = extremum_is_nan(a != a, b != b, nan_wins) ? (f64)NAN : f64_from_bits(result);                             \
    }                                                                                                                  \
  }                                                                                                                    \
  static const Operation name = {name##_lanes, 2};

EXTREMUM(half_min, min_f64)
EXTREMUM(half_max, max_f64)

// ---- the formats ----

static void widen_f16(f64 *to, const u16 *from) { EACH to[i] = f32_from_f16(from[i]); }
static void widen_bf16(f64 *to, const u16 *from) { EACH to[i] = f32_from_bf16(from[i]); }
static void narrow_f16(u16 *to, const f64 *from) {
  EACH to[i] = (u16)narrow((SmallFormat)FORMAT_F16, from[i], ROUND_NEAREST, false);
}
static void narrow_bf16(u16 *to, const f64 *from) {
  EACH to[i] = (u16)narrow((SmallFormat)FORMAT_BF16, from[i], ROUND_NEAREST, false);
}

// Magnitudes below the smallest normal become zero of their sign.
static void flush_codes(u16 *codes, u16 smallest_normal) {
  EACH codes[i] &= (codes[i] & 0x7fff) < smallest_normal ? 0x8000 : 0xffff;
}

// Clamping commutes with rounding, because 0 and 1 are numbers of both formats.
static void clamp_values(f64 *x, unsigned flags) {
  if (flags & FORM_SAT) EACH x[i] = saturate_f64(x[i]);
  if (flags & FORM_RELU) EACH x[i] = relu_f64(x[i]);
}

// ---- execution ----

static void execute_part(const HalfPlan *plan, unsigned flags, u16 *d, const u16 *const *sources) {
  u16 codes[LANES];
  f64 values[3][LANES];
  for (int s = 0; s < plan->operation.sources; s++) {
    memcpy(codes, sources[s], sizeof codes);
    if (plan->smallest_normal) flush_codes(codes, plan->smallest_normal);
    plan->widen(values[s], codes);
  }
  plan->operation.compute(values[0], values[1], values[2], flags);
  clamp_values(values[0], flags);
  plan->narrow(d, values[0]);
  if (flags & FORM_OOB) EACH d[i] = is_oob(sources[0][i]) || is_oob(sources[1][i]) ? 0 : d[i];
  if (plan->smallest_normal) flush_codes(d, plan->smallest_normal);
}

// Writes the results of the mask's lanes.
static void keep_u16(u16 *d, const u16 *result, Mask mask) { EACH_LANE(mask, d[LANE] = result[LANE]); }
static void keep_u32(u32 *d, const u32 *result, Mask mask) { EACH_LANE(mask, d[LANE] = result[LANE]); }

// Lane i's numbers are at i, or at 2i and 2i + 1 when packed. All are computed; those of the mask's lanes are kept.
static void execute_half(Warp *warp, const Inst *inst, Mask mask) {
  const HalfPlan *plan = inst->extra;
  _Alignas(64) u16 result[2 * LANES];
  for (int s = 0; s < plan->steps; s++) {
    const u16 *sources[3] = {SLOT(warp, inst->a, u16) + s * LANES, SLOT(warp, inst->b, u16) + s * LANES,
                             SLOT(warp, inst->c, u16) + s * LANES};
    execute_part(plan, inst->flags, result + s * LANES, sources);
  }
  if (plan->steps == 1)
    keep_u16(SLOT(warp, inst->d, u16), result, mask);
  else
    keep_u32(SLOT(warp, inst->d, u32), (const void *)result, mask);
}

// ---- the forms ----

// All are executed by execute_half.
#define HALF_FORM(syntax, operands, operation) FORM_WITH_FLAGS(syntax, operands, execute_half, &operation)

static const Form half_forms[] = {
    HALF_FORM("add{.rn}{.ftz}{.sat}.f16", "f16 f16 f16", half_add),
    HALF_FORM("sub{.rn}{.ftz}{.sat}.f16", "f16 f16 f16", half_sub),
    HALF_FORM("mul{.rn}{.ftz}{.sat}.f16", "f16 f16 f16", half_mul),
    HALF_FORM("fma.rn{.ftz}{.sat}.f16", "f16 f16 f16 f16", half_fma),
    HALF_FORM("fma.rn{.ftz}{.relu}.f16", "f16 f16 f16 f16", half_fma),
    HALF_FORM("fma.rn{.oob}{.relu}.f16", "f16 f16 f16 f16", half_fma),
    HALF_FORM("abs{.ftz}.f16", "f16 f16", half_abs),
    HALF_FORM("neg{.ftz}.f16", "f16 f16", half_neg),
    HALF_FORM("min{.ftz}{.NaN}{.xorsign.abs}.f16", "f16 f16 f16", half_min),
    HALF_FORM("max{.ftz}{.NaN}{.xorsign.abs}.f16", "f16 f16 f16", half_max),
    HALF_FORM("ex2.approx.f16", "f16 f16", half_ex2),
    HALF_FORM("tanh.approx.f16", "f16 f16", half_tanh),
    HALF_FORM("add{.rn}{.ftz}{.sat}.f16x2", "f16x2 f16x2 f16x2", half_add),
    HALF_FORM("sub{.rn}{.ftz}{.sat}.f16x2", "f16x2 f16x2 f16x2", half_sub),
    HALF_FORM("mul{.rn}{.ftz}{.sat}.f16x2", "f16x2 f16x2 f16x2", half_mul),
    HALF_FORM("fma.rn{.ftz}{.sat}.f16x2", "f16x2 f16x2 f16x2 f16x2", half_fma),
    HALF_FORM("fma.rn{.ftz}{.relu}.f16x2", "f16x2 f16x2 f16x2 f16x2", half_fma),
    HALF_FORM("fma.rn{.oob}{.relu}.f16x2", "f16x2 f16x2 f16x2 f16x2", half_fma),
    HALF_FORM("abs{.ftz}.f16x2", "f16x2 f16x2", half_abs),
    HALF_FORM("neg{.ftz}.f16x2", "f16x2 f16x2", half_neg),
    HALF_FORM("min{.ftz}{.NaN}{.xorsign.abs}.f16x2", "f16x2 f16x2 f16x2", half_min),
    HALF_FORM("max{.ftz}{.NaN}{.xorsign.abs}.f16x2", "f16x2 f16x2 f16x2", half_max),
    HALF_FORM("ex2.approx.f16x2", "f16x2 f16x2", half_ex2),
    HALF_FORM("tanh.approx.f16x2", "f16x2 f16x2", half_tanh),
    HALF_FORM("add{.rn}.bf16", "bf16 bf16 bf16", half_add),
    HALF_FORM("sub{.rn}.bf16", "bf16 bf16 bf16", half_sub),
    HALF_FORM("mul{.rn}.bf16", "bf16 bf16 bf16", half_mul),
    HALF_FORM("fma.rn{.oob}{.relu}.bf16", "bf16 bf16 bf16 bf16", half_fma),
    HALF_FORM("abs.bf16", "bf16 bf16", half_abs),
    HALF_FORM("neg.bf16", "bf16 bf16", half_neg),
    HALF_FORM("min{.NaN}{.xorsign.abs}.bf16", "bf16 bf16 bf16", half_min),
    HALF_FORM("max{.NaN}{.xorsign.abs}.bf16", "bf16 bf16 bf16", half_max),
    HALF_FORM("ex2.approx.ftz.bf16", "bf16 bf16", half_ex2),
    HALF_FORM("tanh.approx.bf16", "bf16 bf16", half_tanh),
    HALF_FORM("add{.rn}.bf16x2", "bf16x2 bf16x2 bf16x2", half_add),
    HALF_FORM("sub{.rn}.bf16x2", "bf16x2 bf16x2 bf16x2", half_sub),
    HALF_FORM("mul{.rn}.bf16x2", "bf16x2 bf16x2 bf16x2", half_mul),
    HALF_FORM("fma.rn{.oob}{.relu}.bf16x2", "bf16x2 bf16x2 bf16x2 bf16x2", half_fma),
    HALF_FORM("abs.bf16x2", "bf16x2 bf16x2", half_abs),
    HALF_FORM("neg.bf16x2", "bf16x2 bf16x2", half_neg),
    HALF_FORM("min{.NaN}{.xorsign.abs}.bf16x2", "bf16x2 bf16x2 bf16x2", half_min),
    HALF_FORM("max{.NaN}{.xorsign.abs}.bf16x2", "bf16x2 bf16x2 bf16x2", half_max),
    HALF_FORM("ex2.approx.ftz.bf16x2", "bf16x2 bf16x2", half_ex2),
    HALF_FORM("tanh.approx.bf16x2", "bf16x2 bf16x2", half_tanh),
};

DecodeResult decode_half(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  DecodeResult result = form_decode(decoder, source, half_forms, COUNT(half_forms), inst);
  if (result != DECODED) return result;
  FormMatch match;
  form_find(decoder, source, half_forms, COUNT(half_forms), &match);
  bool is_f16 = inst->type == PTX_F16 || inst->type == PTX_F16X2;
  HalfPlan *plan = decoder_allocate(decoder, sizeof *plan);
  *plan = (HalfPlan){
      .operation = *(const Operation *)match.form->plan,
      .widen = is_f16 ? widen_f16 : widen_bf16,
      .narrow = is_f16 ? narrow_f16 : narrow_bf16,
      .steps = inst->type == PTX_F16X2 || inst->type == PTX_BF16X2 ? 2 : 1,
      .smallest_normal = ptx_has(source, "ftz") ? (is_f16 ? 0x0400 : 0x0080) : 0,
  };
  inst->extra = plan;
  return DECODED;
}

void half_fuse(Decoder *decoder, Inst *sum) {
  HalfPlan *plan = decoder_allocate(decoder, sizeof *plan);
  *plan = *(const HalfPlan *)sum->extra;
  plan->operation = half_fma;
  sum->extra = plan;
}
