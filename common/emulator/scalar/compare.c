// Comparisons and selections: setp set selp slct testp. PTX ISA 9.7.6, and 9.7.7 for half precision.
//
// A comparison of 32 lanes gives a Mask. setp merges it into predicates; set writes a value for each of its bits.
#include <math.h>
#include <stdio.h>

#include "../warp/floating.h"
#include "../warp/machine.h"
#include "../warp/decoder.h"
#include "families.h"

#define COUNT(table) ((int)(sizeof(table) / sizeof(table)[0]))
#define EACH INDEPENDENT for (int i = 0; i < LANES; i++)

// ---- comparisons: 32 elements with 32 ----

typedef Mask Compare(const void *a, const void *b);

#define COMPARISON(name, T, condition)                                                                                 \
  static Mask name(const void *a, const void *b) {                                                                     \
    Mask result = 0;                                                                                                   \
    for (int i = 0; i < LANES; i++) {                                                                                  \
      const T x = ((const T *)a)[i], y = ((const T *)b)[i];                                                            \
      (void)y;                                                                                                         \
      result |= (Mask)(condition) << i;                                                                                \
    }                                                                                                                  \
    return result;                                                                                                     \
  }

COMPARISON(eq_u16, u16, x == y)
COMPARISON(eq_s16, s16, x == y)
COMPARISON(eq_u32, u32, x == y)
COMPARISON(eq_s32, s32, x == y)
COMPARISON(eq_u64, u64, x == y)
COMPARISON(eq_s64, s64, x == y)
COMPARISON(ne_u16, u16, x != y)
COMPARISON(ne_s16, s16, x != y)
COMPARISON(ne_u32, u32, x != y)
COMPARISON(ne_s32, s32, x != y)
COMPARISON(ne_u64, u64, x != y)
COMPARISON(ne_s64, s64, x != y)
COMPARISON(lt_u16, u16, x < y)
COMPARISON(lt_s16, s16, x < y)
COMPARISON(lt_u32, u32, x < y)
COMPARISON(lt_s32, s32, x < y)
COMPARISON(lt_u64, u64, x < y)
COMPARISON(lt_s64, s64, x < y)
COMPARISON(le_u16, u16, x <= y)
COMPARISON(le_s16, s16, x <= y)
COMPARISON(le_u32, u32, x <= y)
COMPARISON(le_s32, s32, x <= y)
COMPARISON(le_u64, u64, x <= y)
COMPARISON(le_s64, s64, x <= y)
COMPARISON(gt_u16, u16, x > y)
COMPARISON(gt_s16, s16, x > y)
COMPARISON(gt_u32, u32, x > y)
COMPARISON(gt_s32, s32, x > y)
COMPARISON(gt_u64, u64, x > y)
COMPARISON(gt_s64, s64, x > y)
COMPARISON(ge_u16, u16, x >= y)
COMPARISON(ge_s16, s16, x >= y)
COMPARISON(ge_u32, u32, x >= y)
COMPARISON(ge_s32, s32, x >= y)
COMPARISON(ge_u64, u64, x >= y)
COMPARISON(ge_s64, s64, x >= y)

// Of numbers only: false when either is NaN. With a u: true then.
COMPARISON(eq_f32, f32, x == y)
COMPARISON(eq_f64, f64, x == y)
COMPARISON(ne_f32, f32, (x < y) | (x > y))
COMPARISON(ne_f64, f64, (x < y) | (x > y))
COMPARISON(lt_f32, f32, x < y)
COMPARISON(lt_f64, f64, x < y)
COMPARISON(le_f32, f32, x <= y)
COMPARISON(le_f64, f64, x <= y)
COMPARISON(gt_f32, f32, x > y)
COMPARISON(gt_f64, f64, x > y)
COMPARISON(ge_f32, f32, x >= y)
COMPARISON(ge_f64, f64, x >= y)
COMPARISON(equ_f32, f32, !((x < y) | (x > y)))
COMPARISON(equ_f64, f64, !((x < y) | (x > y)))
COMPARISON(neu_f32, f32, x != y)
COMPARISON(neu_f64, f64, x != y)
COMPARISON(ltu_f32, f32, !(x >= y))
COMPARISON(ltu_f64, f64, !(x >= y))
COMPARISON(leu_f32, f32, !(x > y))
COMPARISON(leu_f64, f64, !(x > y))
COMPARISON(gtu_f32, f32, !(x <= y))
COMPARISON(gtu_f64, f64, !(x <= y))
COMPARISON(geu_f32, f32, !(x < y))
COMPARISON(geu_f64, f64, !(x < y))
COMPARISON(num_f32, f32, (x == x) & (y == y))
COMPARISON(num_f64, f64, (x == x) & (y == y))
COMPARISON(nan_f32, f32, (x != x) | (y != y))
COMPARISON(nan_f64, f64, (x != x) | (y != y))

typedef struct Row {
  const char *name;  // "lt.f32"
  Compare *compare;
} Row;

static const Row comparisons[] = {
    {"eq.b16", eq_u16},   {"eq.b32", eq_u32},   {"eq.b64", eq_u64},   {"ne.b16", ne_u16},   {"ne.b32", ne_u32},
    {"ne.b64", ne_u64},   {"eq.u16", eq_u16},   {"eq.s16", eq_s16},   {"eq.u32", eq_u32},   {"eq.s32", eq_s32},
    {"eq.u64", eq_u64},   {"eq.s64", eq_s64},   {"ne.u16", ne_u16},   {"ne.s16", ne_s16},   {"ne.u32", ne_u32},
    {"ne.s32", ne_s32},   {"ne.u64", ne_u64},   {"ne.s64", ne_s64},   {"lt.u16", lt_u16},   {"lt.s16", lt_s16},
    {"lt.u32", lt_u32},   {"lt.s32", lt_s32},   {"lt.u64", lt_u64},   {"lt.s64", lt_s64},   {"le.u16", le_u16},
    {"le.s16", le_s16},   {"le.u32", le_u32},   {"le.s32", le_s32},   {"le.u64", le_u64},   {"le.s64", le_s64},
    {"gt.u16", gt_u16},   {"gt.s16", gt_s16},   {"gt.u32", gt_u32},   {"gt.s32", gt_s32},   {"gt.u64", gt_u64},
    {"gt.s64", gt_s64},   {"ge.u16", ge_u16},   {"ge.s16", ge_s16},   {"ge.u32", ge_u32},   {"ge.s32", ge_s32},
    {"ge.u64", ge_u64},   {"ge.s64", ge_s64},   {"lo.u16", lt_u16},   {"lo.u32", lt_u32},   {"lo.u64", lt_u64},
    {"ls.u16", le_u16},   {"ls.u32", le_u32},   {"ls.u64", le_u64},   {"hi.u16", gt_u16},   {"hi.u32", gt_u32},
    {"hi.u64", gt_u64},   {"hs.u16", ge_u16},   {"hs.u32", ge_u32},   {"hs.u64", ge_u64},   {"eq.f32", eq_f32},
    {"eq.f64", eq_f64},   {"ne.f32", ne_f32},   {"ne.f64", ne_f64},   {"lt.f32", lt_f32},   {"lt.f64", lt_f64},
    {"le.f32", le_f32},   {"le.f64", le_f64},   {"gt.f32", gt_f32},   {"gt.f64", gt_f64},   {"ge.f32", ge_f32},
    {"ge.f64", ge_f64},   {"equ.f32", equ_f32}, {"equ.f64", equ_f64}, {"neu.f32", neu_f32}, {"neu.f64", neu_f64},
    {"ltu.f32", ltu_f32}, {"ltu.f64", ltu_f64}, {"leu.f32", leu_f32}, {"leu.f64", leu_f64}, {"gtu.f32", gtu_f32},
    {"gtu.f64", gtu_f64}, {"geu.f32", geu_f32}, {"geu.f64", geu_f64}, {"num.f32", num_f32}, {"num.f64", num_f64},
    {"nan.f32", nan_f32}, {"nan.f64", nan_f64}};

// ---- setp and set ----

typedef enum BoolOp { NO_BOOL, BOOL_AND, BOOL_OR, BOOL_XOR } BoolOp;

// What one instruction does: Inst.extra.
typedef struct Plan {
  Compare *compare;
  PtxType type;  // of the sources
  int parts;     // 2 for packed types
  bool ftz;
  BoolOp bool_op;  // with the predicate in slot c
  bool c_negated;
  bool has_q;  // setp p|q
  int d_size;  // set: bytes of an element
  u64 d_true;  // set: what stands for true
} Plan;

static bool is_half(PtxType type) { return type >= PTX_F16 && type <= PTX_BF16X2; }

// f16 and bf16 numbers, or f32 ones that .ftz changes, as f32. A packed source's parts alternate.
static void widen_to_f32(const Plan *plan, f32 *to, const void *from, int part) {
  if (plan->type == PTX_F32) {
    EACH to[i] = flush_f32(((const f32 *)from)[i]);
    return;
  }
  const u16 *codes = (const u16 *)from + part;
  bool is_f16 = plan->type == PTX_F16 || plan->type == PTX_F16X2;
  for (int i = 0; i < LANES; i++) {
    u16 code = codes[i * plan->parts];
    if (plan->ftz && !(code & 0x7c00)) code &= 0x8000;
    to[i] = is_f16 ? f32_from_f16(code) : f32_from_bf16(code);
  }
}

static Mask compare_one_part(const Plan *plan, const void *a, const void *b, int part) {
  f32 x[LANES], y[LANES];
  if (!plan->ftz && !is_half(plan->type)) return plan->compare(a, b);
  widen_to_f32(plan, x, a, part);
  widen_to_f32(plan, y, b, part);
  return plan->compare(x, y);
}

static Mask combine_predicate(const Plan *plan, Warp *warp, const Inst *inst, Mask result) {
  if (plan->bool_op == NO_BOOL) return result;
  Mask c = *SLOT(warp, inst->c, Mask) ^ (plan->c_negated ? FULL_MASK : 0);
  return plan->bool_op == BOOL_AND ? result & c : plan->bool_op == BOOL_OR ? result | c : result ^ c;
}

static void write_predicate(Warp *warp, Slot slot, Mask result, Mask mask) {
  Mask *d = SLOT(warp, slot, Mask);
  *d = (*d & ~mask) | (result & mask);
}

// The plain case: setp.lt.s32 p, a, b.
static void execute_setp(Warp *warp, const Inst *inst, Mask mask) {
  const Plan *plan = inst->extra;
  write_predicate(warp, inst->d, plan->compare(SLOT(warp, inst->a, void), SLOT(warp, inst->b, void)), mask);
}

// q is the opposite of p before both are combined with c; of packed sources, p is for the low half and q for the high
// one.
static void execute_setp_general(Warp *warp, const Inst *inst, Mask mask) {
  const Plan *plan = inst->extra;
  const void *a = SLOT(warp, inst->a, void), *b = SLOT(warp, inst->b, void);
  Mask p = compare_one_part(plan, a, b, 0), q = plan->parts == 2 ? compare_one_part(plan, a, b, 1) : ~p;
  p = combine_predicate(plan, warp, inst, p);
  q = combine_predicate(plan, warp, inst, q);
  write_predicate(warp, inst->d, p, mask);
  if (plan->has_q) write_predicate(warp, inst->d2, q, mask);
}

static void execute_set(Warp *warp, const Inst *inst, Mask mask) {
  const Plan *plan = inst->extra;
  const void *a = SLOT(warp, inst->a, void), *b = SLOT(warp, inst->b, void);
  Mask low = combine_predicate(plan, warp, inst, compare_one_part(plan, a, b, 0));
  if (plan->parts == 2) {
    Mask high = combine_predicate(plan, warp, inst, compare_one_part(plan, a, b, 1));
    u32 *d = SLOT(warp, inst->d, u32), value = (u32)plan->d_true;
    EACH_LANE(mask, d[LANE] = (low >> LANE & 1 ? value : 0) | (high >> LANE & 1 ? value << 16 : 0));
  } else if (plan->d_size == 2) {
    u16 *d = SLOT(warp, inst->d, u16), value = (u16)plan->d_true;
    EACH_LANE(mask, d[LANE] = low >> LANE & 1 ? value : 0);
  } else {
    u32 *d = SLOT(warp, inst->d, u32), value = (u32)plan->d_true;
    EACH_LANE(mask, d[LANE] = low >> LANE & 1 ? value : 0);
  }
}

// ---- selp, slct, testp ----

enum { NEGATED = 1 << 8 };  // in Inst.flags: the predicate is !c

#define SELECT_OPERATION(name, T)                                                                                      \
  static void name(Warp *warp, const Inst *inst, Mask mask) {                                                          \
    T *d = SLOT(warp, inst->d, T);                                                                                     \
    const T *a = SLOT(warp, inst->a, T), *b = SLOT(warp, inst->b, T);                                                  \
    const Mask c = *SLOT(warp, inst->c, Mask) ^ (inst->flags & NEGATED ? FULL_MASK : 0);                               \
    EACH_LANE(mask, T x = a[LANE]; T y = b[LANE]; d[LANE] = c >> LANE & 1 ? x : y);                                    \
  }

SELECT_OPERATION(selp_b16, b16)
SELECT_OPERATION(selp_b32, b32)
SELECT_OPERATION(selp_b64, b64)
LANE_OPERATION(slct_b16_s32, b16, b16, b16, s32, z >= 0 ? x : y)
LANE_OPERATION(slct_b32_s32, b32, b32, b32, s32, z >= 0 ? x : y)
LANE_OPERATION(slct_b64_s32, b64, b64, b64, s32, z >= 0 ? x : y)
LANE_OPERATION(slct_b16_f32, b16, b16, b16, f32, z >= 0 ? x : y)
LANE_OPERATION(slct_b32_f32, b32, b32, b32, f32, z >= 0 ? x : y)
LANE_OPERATION(slct_b64_f32, b64, b64, b64, f32, z >= 0 ? x : y)
LANE_OPERATION(slct_b16_f32_ftz, b16, b16, b16, f32, flush_f32(z) >= 0 ? x : y)
LANE_OPERATION(slct_b32_f32_ftz, b32, b32, b32, f32, flush_f32(z) >= 0 ? x : y)
LANE_OPERATION(slct_b64_f32_ftz, b64, b64, b64, f32, flush_f32(z) >= 0 ? x : y)

// Tests of one number. Zeros count as normal.
COMPARISON(finite_f32, f32, __builtin_fabs(x) < INFINITY)
COMPARISON(finite_f64, f64, __builtin_fabs(x) < INFINITY)
COMPARISON(infinite_f32, f32, __builtin_fabs(x) == INFINITY)
COMPARISON(infinite_f64, f64, __builtin_fabs(x) == INFINITY)
COMPARISON(number_f32, f32, x == x)
COMPARISON(number_f64, f64, x == x)
COMPARISON(notanumber_f32, f32, x != x)
COMPARISON(notanumber_f64, f64, x != x)
COMPARISON(normal_f32, f32, (__builtin_fabs(x) < INFINITY) & ((__builtin_fabs(x) >= 0x1p-126) | (x == 0)))
COMPARISON(normal_f64, f64, (__builtin_fabs(x) < INFINITY) & ((__builtin_fabs(x) >= 0x1p-1022) | (x == 0)))
COMPARISON(subnormal_f32, f32, (__builtin_fabs(x) < 0x1p-126) & (x != 0))
COMPARISON(subnormal_f64, f64, (__builtin_fabs(x) < 0x1p-1022) & (x != 0))

static void execute_testp(Warp *warp, const Inst *inst, Mask mask) {
  const Plan *plan = inst->extra;
  const void *a = SLOT(warp, inst->a, void);
  write_predicate(warp, inst->d, plan->compare(a, a), mask);
}

static const Row tests[] = {
    {"finite.f32", finite_f32},         {"finite.f64", finite_f64},         {"infinite.f32", infinite_f32},
    {"infinite.f64", infinite_f64},     {"number.f32", number_f32},         {"number.f64", number_f64},
    {"notanumber.f32", notanumber_f32}, {"notanumber.f64", notanumber_f64}, {"normal.f32", normal_f32},
    {"normal.f64", normal_f64},         {"subnormal.f32", subnormal_f32},   {"subnormal.f64", subnormal_f64}};

static const Form selp_forms[] = {
    FORM("selp.b16", "b16 b16 b16 pred", selp_b16), FORM("selp.u16", "u16 u16 u16 pred", selp_b16),
    FORM("selp.s16", "s16 s16 s16 pred", selp_b16), FORM("selp.b32", "b32 b32 b32 pred", selp_b32),
    FORM("selp.u32", "u32 u32 u32 pred", selp_b32), FORM("selp.s32", "s32 s32 s32 pred", selp_b32),
    FORM("selp.f32", "f32 f32 f32 pred", selp_b32), FORM("selp.b64", "b64 b64 b64 pred", selp_b64),
    FORM("selp.u64", "u64 u64 u64 pred", selp_b64), FORM("selp.s64", "s64 s64 s64 pred", selp_b64),
    FORM("selp.f64", "f64 f64 f64 pred", selp_b64),
};

static const Form slct_forms[] = {
    FORM("slct.b16.s32", "b16 b16 b16 s32", slct_b16_s32),
    FORM("slct.u16.s32", "u16 u16 u16 s32", slct_b16_s32),
    FORM("slct.s16.s32", "s16 s16 s16 s32", slct_b16_s32),
    FORM("slct.b32.s32", "b32 b32 b32 s32", slct_b32_s32),
    FORM("slct.u32.s32", "u32 u32 u32 s32", slct_b32_s32),
    FORM("slct.s32.s32", "s32 s32 s32 s32", slct_b32_s32),
    FORM("slct.f32.s32", "f32 f32 f32 s32", slct_b32_s32),
    FORM("slct.b64.s32", "b64 b64 b64 s32", slct_b64_s32),
    FORM("slct.u64.s32", "u64 u64 u64 s32", slct_b64_s32),
    FORM("slct.s64.s32", "s64 s64 s64 s32", slct_b64_s32),
    FORM("slct.f64.s32", "f64 f64 f64 s32", slct_b64_s32),
    FORM_WITH_FTZ("slct{.ftz}.b16.f32", "b16 b16 b16 f32", slct_b16_f32),
    FORM_WITH_FTZ("slct{.ftz}.u16.f32", "u16 u16 u16 f32", slct_b16_f32),
    FORM_WITH_FTZ("slct{.ftz}.s16.f32", "s16 s16 s16 f32", slct_b16_f32),
    FORM_WITH_FTZ("slct{.ftz}.b32.f32", "b32 b32 b32 f32", slct_b32_f32),
    FORM_WITH_FTZ("slct{.ftz}.u32.f32", "u32 u32 u32 f32", slct_b32_f32),
    FORM_WITH_FTZ("slct{.ftz}.s32.f32", "s32 s32 s32 f32", slct_b32_f32),
    FORM_WITH_FTZ("slct{.ftz}.f32.f32", "f32 f32 f32 f32", slct_b32_f32),
    FORM_WITH_FTZ("slct{.ftz}.b64.f32", "b64 b64 b64 f32", slct_b64_f32),
    FORM_WITH_FTZ("slct{.ftz}.u64.f32", "u64 u64 u64 f32", slct_b64_f32),
    FORM_WITH_FTZ("slct{.ftz}.s64.f32", "s64 s64 s64 f32", slct_b64_f32),
    FORM_WITH_FTZ("slct{.ftz}.f64.f32", "f64 f64 f64 f32", slct_b64_f32),
};

// ---- decoding ----

static Compare *find_comparison(const Row *rows, int count, const char *op, PtxType type) {
  char name[32];
  snprintf(name, sizeof name, "%s.%s", op, ptx_type_name(type));
  for (int i = 0; i < count; i++)
    if (!strcmp(rows[i].name, name)) return rows[i].compare;
  return NULL;
}

// Reads the modifiers before the types, in any order: the comparison, how it is combined, and ftz.
static DecodeResult read_comparison(Decoder *decoder, const PtxInstruction *source, int count, Plan *plan) {
  static const char *const bool_ops[] = {"", "and", "or", "xor"};
  PtxType compared = is_half(plan->type) ? PTX_F32 : plan->type;  // half-precision numbers are widened
  for (int m = 0; m < count; m++) {
    const char *name = source->modifiers[m];
    Compare *compare = find_comparison(comparisons, COUNT(comparisons), name, compared);
    bool known = compare && !plan->compare;
    if (known) plan->compare = compare;
    for (int i = BOOL_AND; i <= BOOL_XOR && !known && !plan->bool_op; i++)
      if (!strcmp(name, bool_ops[i])) known = true, plan->bool_op = (BoolOp)i;
    if (!known && !plan->ftz && !strcmp(name, "ftz") &&
        (plan->type == PTX_F32 || plan->type == PTX_F16 || plan->type == PTX_F16X2))
      known = plan->ftz = true;
    if (!known)
      return decoder_error(decoder, source, "modifier .%s does not go with .%s", name, ptx_type_name(plan->type));
  }
  return plan->compare ? DECODED
                       : decoder_error(decoder, source, "needs a comparison that .%s has", ptx_type_name(plan->type));
}

// The sources, and the predicate that the result is combined with.
static DecodeResult read_sources(Decoder *decoder, const PtxInstruction *source, Plan *plan, Inst *inst) {
  int count = plan->bool_op ? 4 : 3;
  if (!decoder_operands(decoder, source, count, count)) return DECODE_FAILED;
  const PtxOperand *operands = source->operands;
  if (operands[1].negated || operands[2].negated) return decoder_error(decoder, source, "a source cannot be negated");
  inst->a = decoder_source(decoder, &operands[1], plan->type);
  inst->b = decoder_source(decoder, &operands[2], plan->type);
  if (plan->bool_op) inst->c = decoder_source(decoder, &operands[3], PTX_PRED);
  plan->c_negated = plan->bool_op && operands[3].negated;
  plan->parts = plan->type == PTX_F16X2 || plan->type == PTX_BF16X2 ? 2 : 1;
  inst->type = (uint8_t)plan->type;
  inst->extra = plan;
  return DECODED;
}

// setp.cmp{.bool}{.ftz}.type p{|q}, a, b{, c};
DecodeResult decode_setp(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  Plan *plan = decoder_allocate(decoder, sizeof *plan);
  plan->type = ptx_instruction_type(source);
  int last = source->modifier_count - 1;
  if (last < 0 || ptx_type_from_name(source->modifiers[last]) != plan->type || plan->type == PTX_NO_TYPE ||
      plan->type == PTX_OTHER_TYPE)
    return decoder_error(decoder, source, "needs a type to compare, at the end");
  if (read_comparison(decoder, source, last, plan) != DECODED || read_sources(decoder, source, plan, inst) != DECODED)
    return DECODE_FAILED;
  const PtxOperand *d = &source->operands[0];
  plan->has_q = d->kind == PTX_OPERAND_PAIR;
  if (plan->has_q && is_half(plan->type) && plan->parts == 1)
    return decoder_error(decoder, source, "has one destination only");
  inst->d = decoder_destination(decoder, plan->has_q ? &d->items[0] : d, PTX_PRED);
  if (plan->has_q) inst->d2 = decoder_destination(decoder, &d->items[1], PTX_PRED);
  bool plain = !plan->has_q && !plan->bool_op && !plan->ftz && !is_half(plan->type);
  inst->execute = plain ? execute_setp : execute_setp_general;
  return DECODED;
}

// Whether set can write `to` for comparisons of `from`.
static bool set_types_meet(PtxType to, PtxType from) {
  bool is_word = to == PTX_U32 || to == PTX_S32;
  if (from == PTX_F16X2 || from == PTX_BF16X2) return is_word || to == from;
  if (from == PTX_F16 || from == PTX_BF16) return is_word || to == PTX_U16 || to == PTX_S16 || to == from;
  return is_word || to == PTX_F32 || to == PTX_F16 || to == PTX_BF16;
}

// What set writes for true: all bits of an integer, 1.0 of a float. In packed registers every half is a 16-bit result.
static u64 set_true(PtxType to, int parts) {
  if (to == PTX_F32) return 0x3f800000;
  if (to == PTX_F16 || to == PTX_F16X2) return 0x3c00;
  if (to == PTX_BF16 || to == PTX_BF16X2) return 0x3f80;
  return parts == 2 || ptx_type_size(to) == 2 ? 0xffff : 0xffffffff;
}

// set.cmp{.bool}{.ftz}.to.from d, a, b{, c};
DecodeResult decode_set(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  Plan *plan = decoder_allocate(decoder, sizeof *plan);
  int types = source->modifier_count - 2;
  PtxType to = types < 0 ? PTX_NO_TYPE : ptx_type_from_name(source->modifiers[types]);
  plan->type = types < 0 ? PTX_NO_TYPE : ptx_type_from_name(source->modifiers[types + 1]);
  if (to == PTX_NO_TYPE || plan->type == PTX_NO_TYPE)
    return decoder_error(decoder, source, "needs a destination and a source type");
  if (!set_types_meet(to, plan->type))
    return decoder_error(decoder, source, "cannot write .%s for these sources", ptx_type_name(to));
  if (read_comparison(decoder, source, types, plan) != DECODED || read_sources(decoder, source, plan, inst) != DECODED)
    return DECODE_FAILED;
  inst->d = decoder_destination(decoder, &source->operands[0], to);
  plan->d_size = (int)ptx_type_size(to);
  plan->d_true = set_true(to, plan->parts);
  inst->execute = execute_set;
  return DECODED;
}

// testp.op.type p, a;
DecodeResult decode_testp(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  Plan *plan = decoder_allocate(decoder, sizeof *plan);
  plan->type = ptx_instruction_type(source);
  if (source->modifier_count == 2 && plan->type != PTX_NO_TYPE)
    plan->compare = find_comparison(tests, COUNT(tests), source->modifiers[0], plan->type);
  if (!plan->compare)
    return decoder_error(decoder, source,
                         "needs one of .finite .infinite .number .notanumber .normal .subnormal, and .f32 or .f64");
  if (!decoder_operands(decoder, source, 2, 2)) return DECODE_FAILED;
  if (source->operands[1].negated) return decoder_error(decoder, source, "a source cannot be negated");
  inst->d = decoder_destination(decoder, &source->operands[0], PTX_PRED);
  inst->a = decoder_source(decoder, &source->operands[1], plan->type);
  inst->type = (uint8_t)plan->type;
  inst->extra = plan;
  inst->execute = execute_testp;
  return DECODED;
}

DecodeResult decode_slct(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  return form_decode(decoder, source, slct_forms, COUNT(slct_forms), inst);
}

DecodeResult decode_selp(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  DecodeResult result = form_decode(decoder, source, selp_forms, COUNT(selp_forms), inst);
  if (result == DECODED && source->operands[3].negated) inst->flags |= NEGATED;
  return result;
}
