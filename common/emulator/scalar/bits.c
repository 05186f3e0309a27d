// Logic, shifts and bit fields: and or xor not cnot lop3, shl shr shf prmt, popc clz bfind fns brev bfe bfi bmsk szext.
// PTX ISA 9.7.1 (bit fields), 9.7.8 (logic and shift) and 9.7.9 (prmt).
#include "../warp/forms.h"
#include "../warp/lanes.h"
#include "../warp/machine.h"
#include "../warp/decoder.h"
#include "families.h"

#define COUNT(table) ((int)(sizeof(table) / sizeof(table)[0]))

// ---- logic ----

LANE_OPERATION(and_b16, b16, b16, b16, b16, x &y)
LANE_OPERATION(and_b32, b32, b32, b32, b32, x &y)
LANE_OPERATION(and_b64, b64, b64, b64, b64, x &y)
LANE_OPERATION(or_b16, b16, b16, b16, b16, x | y)
LANE_OPERATION(or_b32, b32, b32, b32, b32, x | y)
LANE_OPERATION(or_b64, b64, b64, b64, b64, x | y)
LANE_OPERATION(xor_b16, b16, b16, b16, b16, x ^ y)
LANE_OPERATION(xor_b32, b32, b32, b32, b32, x ^ y)
LANE_OPERATION(xor_b64, b64, b64, b64, b64, x ^ y)
LANE_OPERATION(not_b16, b16, b16, b16, b16, ~x)
LANE_OPERATION(not_b32, b32, b32, b32, b32, ~x)
LANE_OPERATION(not_b64, b64, b64, b64, b64, ~x)
LANE_OPERATION(cnot_b16, b16, b16, b16, b16, x == 0)
LANE_OPERATION(cnot_b32, b32, b32, b32, b32, x == 0)
LANE_OPERATION(cnot_b64, b64, b64, b64, b64, x == 0)

// Sources that are written !p, in Inst.flags.
enum { NEGATED_A = 1 << 8, NEGATED_B = 1 << 9 };

// Predicates are Masks: one operation does all lanes.
#define PREDICATE_OPERATION(name, result)                                                                              \
  static void name(Warp *warp, const Inst *inst, Mask mask) {                                                          \
    Mask x = *SLOT(warp, inst->a, Mask) ^ (inst->flags & NEGATED_A ? FULL_MASK : 0);                                   \
    Mask y = *SLOT(warp, inst->b, Mask) ^ (inst->flags & NEGATED_B ? FULL_MASK : 0);                                   \
    (void)y;                                                                                                           \
    Mask *d = SLOT(warp, inst->d, Mask);                                                                               \
    *d = (*d & ~mask) | ((result)&mask);                                                                               \
  }

PREDICATE_OPERATION(and_pred, x &y)
PREDICATE_OPERATION(or_pred, x | y)
PREDICATE_OPERATION(xor_pred, x ^ y)
PREDICATE_OPERATION(not_pred, ~x)

// The operation of three bits whose truth table is the low 8 bits of flags: the sum of the minterms it contains. Each
// `term` is all ones or zero, the same for every lane, so that the loop has no condition.
static inline u32 lop3(const u32 *term, u32 x, u32 y, u32 z) {
  return (term[0] & ~x & ~y & ~z) | (term[1] & ~x & ~y & z) | (term[2] & ~x & y & ~z) | (term[3] & ~x & y & z) |
         (term[4] & x & ~y & ~z) | (term[5] & x & ~y & z) | (term[6] & x & y & ~z) | (term[7] & x & y & z);
}

static void execute_lop3(Warp *warp, const Inst *inst, Mask mask) {
  u32 term[8];
  for (int i = 0; i < 8; i++) term[i] = inst->flags >> i & 1 ? ~0u : 0;
  u32 *d = SLOT(warp, inst->d, u32);
  const u32 *a = SLOT(warp, inst->a, u32), *b = SLOT(warp, inst->b, u32), *c = SLOT(warp, inst->c, u32);
  EACH_LANE(mask, d[LANE] = lop3(term, a[LANE], b[LANE], c[LANE]));
}

// What lop3.or and lop3.and need besides the operation itself: p = (d != 0) BoolOp q.
typedef struct Lop3Predicate {
  Slot p, q;
  bool negated, is_and;
} Lop3Predicate;

static void execute_lop3_predicate(Warp *warp, const Inst *inst, Mask mask) {
  const Lop3Predicate *predicate = inst->extra;
  Mask q = *SLOT(warp, predicate->q, Mask) ^ (predicate->negated ? FULL_MASK : 0), nonzero = 0;
  execute_lop3(warp, inst, mask);
  const u32 *d = SLOT(warp, inst->d, u32);
  for (int lane = 0; lane < LANES; lane++) nonzero |= (Mask)(d[lane] != 0) << lane;
  Mask *p = SLOT(warp, predicate->p, Mask), result = predicate->is_and ? nonzero & q : nonzero | q;
  *p = (*p & ~mask) | (result & mask);
}

// ---- shifts: amounts beyond the width count as the width, unless they wrap ----

LANE_OPERATION(shl_b16, b16, b16, u32, b16, y < 16 ? (u64)x << y : 0)
LANE_OPERATION(shl_b32, b32, b32, u32, b32, y < 32 ? (u64)x << y : 0)
LANE_OPERATION(shl_b64, b64, b64, u32, b64, y < 64 ? (u64)x << y : 0)
// A sign fills the whole word after one less shift than the width.
LANE_OPERATION(shr_s16, s16, s16, u32, s16, x >> (y < 16 ? y : 15))
LANE_OPERATION(shr_s32, s32, s32, u32, s32, x >> (y < 32 ? y : 31))
LANE_OPERATION(shr_s64, s64, s64, u32, s64, x >> (y < 64 ? y : 63))
LANE_OPERATION(shr_u16, u16, u16, u32, u16, y < 16 ? x >> y : 0)
LANE_OPERATION(shr_u32, u32, u32, u32, u32, y < 32 ? x >> y : 0)
LANE_OPERATION(shr_u64, u64, u64, u32, u64, y < 64 ? x >> y : 0)

// The funnel: y above x, shifted left or right; the high or the low word of it.
static inline u64 funnel(u32 low, u32 high) { return (u64)high << 32 | low; }

LANE_OPERATION(shf_l_clamp, u32, u32, u32, u32, (funnel(x, y) << (z < 32 ? z : 32)) >> 32)
LANE_OPERATION(shf_r_clamp, u32, u32, u32, u32, funnel(x, y) >> (z < 32 ? z : 32))
LANE_OPERATION(shf_l_wrap, u32, u32, u32, u32, (funnel(x, y) << (z & 31)) >> 32)
LANE_OPERATION(shf_r_wrap, u32, u32, u32, u32, funnel(x, y) >> (z & 31))

// ---- byte permutation: selectors pick bytes of y:x, the lowest result byte first ----

// A selector's bit 3 asks for the byte's sign, eight times.
static inline u32 permute(u32 x, u32 y, u32 selectors) {
  u64 bytes = funnel(x, y);
  u32 result = 0;
  for (int i = 0; i < 4; i++) {
    u32 selector = selectors >> 4 * i & 15, byte = (u32)(bytes >> 8 * (selector & 7)) & 255;
    u32 sign = (byte >> 7) * 255;
    result |= (selector & 8 ? sign : byte) << 8 * i;
  }
  return result;
}

// The named modes are four fixed selections each, chosen by z's two low bits.
static const u16 permute_f4e[4] = {0x3210, 0x4321, 0x5432, 0x6543};
static const u16 permute_b4e[4] = {0x5670, 0x6701, 0x7012, 0x0123};
static const u16 permute_rc8[4] = {0x0000, 0x1111, 0x2222, 0x3333};
static const u16 permute_ecl[4] = {0x3210, 0x3211, 0x3222, 0x3333};
static const u16 permute_ecr[4] = {0x0000, 0x1110, 0x2210, 0x3210};
static const u16 permute_rc16[4] = {0x1010, 0x3232, 0x1010, 0x3232};

LANE_OPERATION(prmt, u32, u32, u32, u32, permute(x, y, z))
LANE_OPERATION(prmt_f4e, u32, u32, u32, u32, permute(x, y, permute_f4e[z & 3]))
LANE_OPERATION(prmt_b4e, u32, u32, u32, u32, permute(x, y, permute_b4e[z & 3]))
LANE_OPERATION(prmt_rc8, u32, u32, u32, u32, permute(x, y, permute_rc8[z & 3]))
LANE_OPERATION(prmt_ecl, u32, u32, u32, u32, permute(x, y, permute_ecl[z & 3]))
LANE_OPERATION(prmt_ecr, u32, u32, u32, u32, permute(x, y, permute_ecr[z & 3]))
LANE_OPERATION(prmt_rc16, u32, u32, u32, u32, permute(x, y, permute_rc16[z & 3]))

// ---- counting and finding ----

static inline u32 popcount(u64 x) { return (u32)__builtin_popcountll(x); }
static inline u32 leading_zeros(u64 x) { return x ? (u32)__builtin_clzll(x) : 64; }

// The position of the highest bit that is not a copy of the sign; all ones when there is none.
static inline u32 highest_bit(u64 x) { return x ? 63 - leading_zeros(x) : ~0u; }
// The same as a distance from the top bit, number `top`.
static inline u32 distance_from_top(u64 x, u32 top) { return x ? top - highest_bit(x) : ~0u; }
// x with the copies of its sign cleared.
static inline u64 without_sign(s64 x) { return (u64)(x < 0 ? ~x : x); }

LANE_OPERATION(popc_b32, u32, u32, u32, u32, popcount(x))
LANE_OPERATION(popc_b64, u32, u64, u64, u64, popcount(x))
LANE_OPERATION(clz_b32, u32, u32, u32, u32, leading_zeros(x) - 32)
LANE_OPERATION(clz_b64, u32, u64, u64, u64, leading_zeros(x))
LANE_OPERATION(bfind_u32, u32, u32, u32, u32, highest_bit(x))
LANE_OPERATION(bfind_u64, u32, u64, u64, u64, highest_bit(x))
LANE_OPERATION(bfind_s32, u32, s32, u32, u32, highest_bit(without_sign(x)))
LANE_OPERATION(bfind_s64, u32, s64, u64, u64, highest_bit(without_sign(x)))
LANE_OPERATION(bfind_shiftamt_u32, u32, u32, u32, u32, distance_from_top(x, 31))
LANE_OPERATION(bfind_shiftamt_u64, u32, u64, u64, u64, distance_from_top(x, 63))
LANE_OPERATION(bfind_shiftamt_s32, u32, s32, u32, u32, distance_from_top(without_sign(x), 31))
LANE_OPERATION(bfind_shiftamt_s64, u32, s64, u64, u64, distance_from_top(without_sign(x), 63))

// The position of the |offset|-th set bit of x at or above base (below, when offset is negative), base itself when
// offset is 0 and its bit is set; all ones when there is none. For the least offset, whose magnitude overflows, an H100
// gives 0.
static inline u32 find_nth_set(u32 x, s64 base, s64 offset) {
  if (offset == INT32_MIN) return 0;
  if (offset == 0) return base >= 0 && base < 32 && (x >> base & 1) ? (u32)base : ~0u;
  s64 step = offset > 0 ? 1 : -1, left = offset * step;
  for (s64 position = base; position >= 0 && position < 32; position += step)
    if ((x >> position & 1) && --left == 0) return (u32)position;
  return ~0u;
}

static inline u64 reverse(u64 x) {
  x = __builtin_bswap64(x);
  x = (x >> 4 & 0x0f0f0f0f0f0f0f0full) | (x & 0x0f0f0f0f0f0f0f0full) << 4;
  x = (x >> 2 & 0x3333333333333333ull) | (x & 0x3333333333333333ull) << 2;
  return (x >> 1 & 0x5555555555555555ull) | (x & 0x5555555555555555ull) << 1;
}

LANE_OPERATION(fns_b32, u32, u32, u32, s32, find_nth_set(x, y, z))
LANE_OPERATION(brev_b32, u32, u32, u32, u32, reverse(x) >> 32)
LANE_OPERATION(brev_b64, u64, u64, u64, u64, reverse(x))

// ---- bit fields: position and length, of which a field ends at the top bit ----
//
// They are the low bytes of their operands, but bfe of 64 bits takes the operands whole, as an H200 does.

// The low `length` bits.
static inline u64 low_bits(u32 length) { return length < 64 ? (1ull << length) - 1 : ~0ull; }

static inline u64 extract_unsigned(u64 x, u32 position, u32 length) {
  return position < 64 ? x >> position & low_bits(length) : 0;
}

// A field's top bit fills the result: the bit at position + length - 1, or the word's top bit when that lies beyond. x
// is sign-extended already, so that shifting far enough gives the latter.
static inline u64 extract_signed(s64 x, u32 position, u32 length) {
  if (length == 0) return 0;
  u64 shifted = (u64)(x >> (position < 63 ? position : 63));
  if (length >= 64) return shifted;
  u64 sign = 1ull << (length - 1);
  return ((shifted & low_bits(length)) ^ sign) - sign;
}

// y with the low `length` bits of x at position.
static inline u64 insert_field(u64 x, u64 y, u32 position, u32 length) {
  position &= 255, length &= 255;
  if (position >= 64) return y;
  u64 field = low_bits(length) << position;
  return (y & ~field) | (x << position & field);
}

LANE_OPERATION(bfe_u32, u32, u32, u32, u32, extract_unsigned(x, y & 255, z & 255))
LANE_OPERATION(bfe_u64, u64, u64, u32, u32, extract_unsigned(x, y, z))
LANE_OPERATION(bfe_s32, u32, s32, u32, u32, extract_signed(x, y & 255, z & 255))
LANE_OPERATION(bfe_s64, u64, s64, u32, u32, extract_signed(x, y, z))

// bfi has a fourth source, in d2.
#define INSERT_OPERATION(name, T)                                                                                      \
  static void name(Warp *warp, const Inst *inst, Mask mask) {                                                          \
    T *d = SLOT(warp, inst->d, T);                                                                                     \
    const T *a = SLOT(warp, inst->a, T), *b = SLOT(warp, inst->b, T);                                                  \
    const u32 *position = SLOT(warp, inst->c, u32), *length = SLOT(warp, inst->d2, u32);                               \
    EACH_LANE(mask, d[LANE] = (T)insert_field(a[LANE], b[LANE], position[LANE], length[LANE]));                        \
  }

INSERT_OPERATION(bfi_b32, b32)
INSERT_OPERATION(bfi_b64, b64)

// Ones from bit `start`, `width` of them.
static inline u32 bit_mask_wrap(u32 start, u32 width) { return (u32)(low_bits(width & 31) << (start & 31)); }

static inline u32 bit_mask_clamp(u32 start, u32 width) {
  if (start >= 32) return 0;
  return (u32)(low_bits(width < 32 ? width : 32) << start);
}

// The low `width` bits of x, zero- or sign-extended.
static inline u32 extend_field(u32 x, u32 width, bool is_signed) {
  if (width == 0) return 0;
  return (u32)(is_signed ? extract_signed((s32)x, 0, width) : extract_unsigned(x, 0, width));
}

LANE_OPERATION(bmsk_clamp, u32, u32, u32, u32, bit_mask_clamp(x, y))
LANE_OPERATION(bmsk_wrap, u32, u32, u32, u32, bit_mask_wrap(x, y))
LANE_OPERATION(szext_clamp_u32, u32, u32, u32, u32, extend_field(x, y < 32 ? y : 32, false))
LANE_OPERATION(szext_clamp_s32, u32, u32, u32, u32, extend_field(x, y < 32 ? y : 32, true))
LANE_OPERATION(szext_wrap_u32, u32, u32, u32, u32, extend_field(x, y & 31, false))
LANE_OPERATION(szext_wrap_s32, u32, u32, u32, u32, extend_field(x, y & 31, true))

// ---- the forms ----

static const Form bit_forms[] = {
    FORM("and.pred", "pred pred pred", and_pred),
    FORM("and.b16", "b16 b16 b16", and_b16),
    FORM("and.b32", "b32 b32 b32", and_b32),
    FORM("and.b64", "b64 b64 b64", and_b64),
    FORM("or.pred", "pred pred pred", or_pred),
    FORM("or.b16", "b16 b16 b16", or_b16),
    FORM("or.b32", "b32 b32 b32", or_b32),
    FORM("or.b64", "b64 b64 b64", or_b64),
    FORM("xor.pred", "pred pred pred", xor_pred),
    FORM("xor.b16", "b16 b16 b16", xor_b16),
    FORM("xor.b32", "b32 b32 b32", xor_b32),
    FORM("xor.b64", "b64 b64 b64", xor_b64),
    FORM("not.pred", "pred pred", not_pred),
    FORM("not.b16", "b16 b16", not_b16),
    FORM("not.b32", "b32 b32", not_b32),
    FORM("not.b64", "b64 b64", not_b64),
    FORM("cnot.b16", "b16 b16", cnot_b16),
    FORM("cnot.b32", "b32 b32", cnot_b32),
    FORM("cnot.b64", "b64 b64", cnot_b64),
    FORM("shl.b16", "b16 b16 u32", shl_b16),
    FORM("shl.b32", "b32 b32 u32", shl_b32),
    FORM("shl.b64", "b64 b64 u32", shl_b64),
    FORM("shr.b16", "b16 b16 u32", shr_u16),
    FORM("shr.b32", "b32 b32 u32", shr_u32),
    FORM("shr.b64", "b64 b64 u32", shr_u64),
    FORM("shr.u16", "u16 u16 u32", shr_u16),
    FORM("shr.u32", "u32 u32 u32", shr_u32),
    FORM("shr.u64", "u64 u64 u32", shr_u64),
    FORM("shr.s16", "s16 s16 u32", shr_s16),
    FORM("shr.s32", "s32 s32 u32", shr_s32),
    FORM("shr.s64", "s64 s64 u32", shr_s64),
    FORM("shf.l.clamp.b32", "b32 b32 b32 b32", shf_l_clamp),
    FORM("shf.r.clamp.b32", "b32 b32 b32 b32", shf_r_clamp),
    FORM("shf.l.wrap.b32", "b32 b32 b32 b32", shf_l_wrap),
    FORM("shf.r.wrap.b32", "b32 b32 b32 b32", shf_r_wrap),
    FORM("prmt.b32", "b32 b32 b32 b32", prmt),
    FORM("prmt.b32.f4e", "b32 b32 b32 b32", prmt_f4e),
    FORM("prmt.b32.b4e", "b32 b32 b32 b32", prmt_b4e),
    FORM("prmt.b32.rc8", "b32 b32 b32 b32", prmt_rc8),
    FORM("prmt.b32.ecl", "b32 b32 b32 b32", prmt_ecl),
    FORM("prmt.b32.ecr", "b32 b32 b32 b32", prmt_ecr),
    FORM("prmt.b32.rc16", "b32 b32 b32 b32", prmt_rc16),
    FORM("popc.b32", "u32 b32", popc_b32),
    FORM("popc.b64", "u32 b64", popc_b64),
    FORM("clz.b32", "u32 b32", clz_b32),
    FORM("clz.b64", "u32 b64", clz_b64),
    FORM("bfind.u32", "u32 u32", bfind_u32),
    FORM("bfind.u64", "u32 u64", bfind_u64),
    FORM("bfind.s32", "u32 s32", bfind_s32),
    FORM("bfind.s64", "u32 s64", bfind_s64),
    FORM("bfind.shiftamt.u32", "u32 u32", bfind_shiftamt_u32),
    FORM("bfind.shiftamt.u64", "u32 u64", bfind_shiftamt_u64),
    FORM("bfind.shiftamt.s32", "u32 s32", bfind_shiftamt_s32),
    FORM("bfind.shiftamt.s64", "u32 s64", bfind_shiftamt_s64),
    FORM("fns.b32", "b32 b32 b32 s32", fns_b32),
    FORM("brev.b32", "b32 b32", brev_b32),
    FORM("brev.b64", "b64 b64", brev_b64),
    FORM("bfe.u32", "u32 u32 u32 u32", bfe_u32),
    FORM("bfe.u64", "u64 u64 u32 u32", bfe_u64),
    FORM("bfe.s32", "s32 s32 u32 u32", bfe_s32),
    FORM("bfe.s64", "s64 s64 u32 u32", bfe_s64),
    FORM("bfi.b32", "b32 b32 b32 u32 u32", bfi_b32),
    FORM("bfi.b64", "b64 b64 b64 u32 u32", bfi_b64),
    FORM("bmsk.clamp.b32", "b32 b32 b32", bmsk_clamp),
    FORM("bmsk.wrap.b32", "b32 b32 b32", bmsk_wrap),
    FORM("szext.clamp.u32", "b32 b32 b32", szext_clamp_u32),
    FORM("szext.clamp.s32", "b32 b32 b32", szext_clamp_s32),
    FORM("szext.wrap.u32", "b32 b32 b32", szext_wrap_u32),
    FORM("szext.wrap.s32", "b32 b32 b32", szext_wrap_s32),
};

// The truth table of lop3, which must be an integer literal of 8 bits.
static bool decode_table(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  const PtxOperand *table = &source->operands[4];
  if (table->kind != PTX_OPERAND_INTEGER || table->value < 0 || table->value > 255)
    return decoder_error(decoder, source, "the truth table must be a constant from 0 to 255"), false;
  inst->flags = (uint32_t)table->value;
  return true;
}

// lop3.b32 d, a, b, c, table;  lop3.or.b32 d|p, a, b, c, table, q;  d may be a sink in the latter.
DecodeResult decode_lop3(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  bool is_or = ptx_has(source, "or"), is_and = ptx_has(source, "and"), with_predicate = is_or || is_and;
  if (source->modifier_count != 1 + with_predicate || (is_or && is_and) || !ptx_has(source, "b32"))
    return decoder_error(decoder, source, "no such form; there is lop3.b32, lop3.or.b32, lop3.and.b32");
  if (!decoder_operands(decoder, source, 5 + with_predicate, 5 + with_predicate)) return DECODE_FAILED;
  const PtxOperand *operands = source->operands, *d = &operands[0];
  for (int i = 1; i <= 3; i++)
    if (operands[i].negated) return decoder_error(decoder, source, "operand %d cannot be negated", i + 1);
  if (with_predicate) {
    if (d->kind != PTX_OPERAND_PAIR) return decoder_error(decoder, source, "the destination must be d|p");
    Lop3Predicate *predicate = decoder_allocate(decoder, sizeof *predicate);
    *predicate = (Lop3Predicate){decoder_destination(decoder, &d->items[1], PTX_PRED),
                                 decoder_source(decoder, &operands[5], PTX_PRED), operands[5].negated, is_and};
    inst->extra = predicate;
    d = &d->items[0];
  }
  inst->d = decoder_destination(decoder, d, PTX_B32);
  inst->a = decoder_source(decoder, &operands[1], PTX_B32);
  inst->b = decoder_source(decoder, &operands[2], PTX_B32);
  inst->c = decoder_source(decoder, &operands[3], PTX_B32);
  if (!decode_table(decoder, source, inst)) return DECODE_FAILED;
  inst->type = PTX_B32;
  inst->execute = with_predicate ? execute_lop3_predicate : execute_lop3;
  return DECODED;
}

DecodeResult decode_bits(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  DecodeResult result = form_decode(decoder, source, bit_forms, COUNT(bit_forms), inst);
  if (result != DECODED || inst->type != PTX_PRED) return result;
  if (source->operands[1].negated) inst->flags |= NEGATED_A;
  if (source->operand_count > 2 && source->operands[2].negated) inst->flags |= NEGATED_B;
  return DECODED;
}
