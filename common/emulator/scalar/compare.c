// Comparisons and selections: setp set selp slct testp. PTX ISA 9.7.6, and 9.7.7 for half precision.
//
// A comparison of 32 lanes gives a Mask. setp merges it into predicates; set writes a value for each of its bits.
#include <math.h>
#include <stdio.h>

#include "../warp/floating.h"
#include "../warp/machine.h"
#include "../warp/operands.h"
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

#define ORDERED(T)                                                                                                     \
  COMPARISON(eq_##T, T, x == y)                                                                                        \
  COMPARISON(lt_##T, T, x < y)                                                                                         \
  COMPARISON(le_##T, T, x <= y)                                                                                        \
  COMPARISON(gt_##T, T, x > y)                                                                                         \
  COMPARISON(ge_##T, T, x >= y)

// Of numbers only: false when either is NaN. With a u: true then.
#define FLOATING(T)                                                                                                    \
  ORDERED(T)                                                                                                           \
  COMPARISON(ne_##T, T, (x < y) | (x > y))                                                                             \
  COMPARISON(equ_##T, T, !((x < y) | (x > y)))                                                                         \
  COMPARISON(neu_##T, T, x != y)                                                                                       \
  COMPARISON(ltu_##T, T, !(x >= y))                                                                                    \
  COMPARISON(leu_##T, T, !(x > y))                                                                                     \
  COMPARISON(gtu_##T, T, !(x <= y))                                                                                    \
  COMPARISON(geu_##T, T, !(x < y))                                                                                     \
  COMPARISON(num_##T, T, (x == x) & (y == y))                                                                          \
  COMPARISON(nan_##T, T, (x != x) | (y != y))

#define INTEGERS(T) ORDERED(T) COMPARISON(ne_##T, T, x != y)

INTEGERS(u16)
INTEGERS(s16)
INTEGERS(u32)
INTEGERS(s32)
INTEGERS(u64)
INTEGERS(s64)
FLOATING(f32)
FLOATING(f64)

// clang-format off
#define ROW(op, T, f) {#op "." #T, f}
// clang-format on
#define BITS(B, T) ROW(eq, B, eq_##T), ROW(ne, B, ne_##T)
#define ORDER(T)                                                                                                       \
  ROW(eq, T, eq_##T), ROW(ne, T, ne_##T), ROW(lt, T, lt_##T), ROW(le, T, le_##T), ROW(gt, T, gt_##T), ROW(ge, T, ge_##T)
#define UNSIGNED_ORDER(T) ORDER(T), ROW(lo, T, lt_##T), ROW(ls, T, le_##T), ROW(hi, T, gt_##T), ROW(hs, T, ge_##T)
// Half-precision numbers are compared as f32.
#define FLOAT_ORDER(F, T)                                                                                              \
  ROW(eq, F, eq_##T), ROW(ne, F, ne_##T), ROW(lt, F, lt_##T), ROW(le, F, le_##T), ROW(gt, F, gt_##T),                  \
      ROW(ge, F, ge_##T), ROW(equ, F, equ_##T), ROW(neu, F, neu_##T), ROW(ltu, F, ltu_##T), ROW(leu, F, leu_##T),      \
      ROW(gtu, F, gtu_##T), ROW(geu, F, geu_##T), ROW(num, F, num_##T), ROW(nan, F, nan_##T)

typedef struct Row {
  const char *name;  // "lt.f32"
  Compare *compare;
} Row;

static const Row comparisons[] = {
    BITS(b16, u16),
    BITS(b32, u32),
    BITS(b64, u64),
    UNSIGNED_ORDER(u16),
    UNSIGNED_ORDER(u32),
    UNSIGNED_ORDER(u64),
    ORDER(s16),
    ORDER(s32),
    ORDER(s64),
    FLOAT_ORDER(f32, f32),
    FLOAT_ORDER(f64, f64),
    FLOAT_ORDER(f16, f32),
    FLOAT_ORDER(f16x2, f32),
    FLOAT_ORDER(bf16, f32),
    FLOAT_ORDER(bf16x2, f32),
};

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

#define SELECT_OPERATION(T)                                                                                            \
  static void selp_##T(Warp *warp, const Inst *inst, Mask mask) {                                                      \
    T *d = SLOT(warp, inst->d, T);                                                                                     \
    const T *a = SLOT(warp, inst->a, T), *b = SLOT(warp, inst->b, T);                                                  \
    const Mask c = *SLOT(warp, inst->c, Mask) ^ (inst->flags & NEGATED ? FULL_MASK : 0);                               \
    EACH_LANE(mask, T x = a[LANE]; T y = b[LANE]; d[LANE] = c >> LANE & 1 ? x : y);                                    \
  }                                                                                                                    \
  LANE_OPERATION(slct_s32_##T, T, T, T, s32, z >= 0 ? x : y)                                                           \
  LANE_OPERATION(slct_f32_##T, T, T, T, f32, z >= 0 ? x : y)                                                           \
  LANE_OPERATION(slct_f32_##T##_ftz, T, T, T, f32, flush_f32(z) >= 0 ? x : y)

SELECT_OPERATION(b16)
SELECT_OPERATION(b32)
SELECT_OPERATION(b64)

// Tests of one number. Zeros count as normal.
#define TESTS(T, smallest_normal)                                                                                      \
  COMPARISON(finite_##T, T, __builtin_fabs(x) < INFINITY)                                                              \
  COMPARISON(infinite_##T, T, __builtin_fabs(x) == INFINITY)                                                           \
  COMPARISON(number_##T, T, x == x)                                                                                    \
  COMPARISON(notanumber_##T, T, x != x)                                                                                \
  COMPARISON(normal_##T, T, (__builtin_fabs(x) < INFINITY) & ((__builtin_fabs(x) >= smallest_normal) | (x == 0)))      \
  COMPARISON(subnormal_##T, T, (__builtin_fabs(x) < smallest_normal) & (x != 0))

TESTS(f32, 0x1p-126)
TESTS(f64, 0x1p-1022)

#define TEST_ROWS(T)                                                                                                   \
  ROW(finite, T, finite_##T), ROW(infinite, T, infinite_##T), ROW(number, T, number_##T),                              \
      ROW(notanumber, T, notanumber_##T), ROW(normal, T, normal_##T), ROW(subnormal, T, subnormal_##T)

static void execute_testp(Warp *warp, const Inst *inst, Mask mask) {
  const Plan *plan = inst->extra;
  const void *a = SLOT(warp, inst->a, void);
  write_predicate(warp, inst->d, plan->compare(a, a), mask);
}

static const Row tests[] = {TEST_ROWS(f32), TEST_ROWS(f64)};

#define SELP(T, B) FORM("selp." #T, #T " " #T " " #T " pred", selp_##B)
#define SLCT(T, B)                                                                                                     \
  FORM("slct." #T ".s32", #T " " #T " " #T " s32", slct_s32_##B),                                                      \
      FORM_WITH_FTZ("slct{.ftz}." #T ".f32", #T " " #T " " #T " f32", slct_f32_##B)
#define EVERY_TYPE(ROW)                                                                                                \
  ROW(b16, b16), ROW(u16, b16), ROW(s16, b16), ROW(b32, b32), ROW(u32, b32), ROW(s32, b32), ROW(f32, b32),             \
      ROW(b64, b64), ROW(u64, b64), ROW(s64, b64), ROW(f64, b64)

static const Form selp_forms[] = {EVERY_TYPE(SELP)}, slct_forms[] = {EVERY_TYPE(SLCT)};

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
  for (int m = 0; m < count; m++) {
    const char *name = source->modifiers[m];
    Compare *compare = find_comparison(comparisons, COUNT(comparisons), name, plan->type);
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
