// Integer arithmetic: add sub mul mad mul24 mad24 sad div rem abs neg min max, their carrying and packed forms, and the
// dot products. PTX ISA 9.7.1 (integer) and 9.7.2 (extended precision).
//
// Arithmetic that wraps is done on unsigned types, where C defines it; a register's bits are the same.
#include "../warp/forms.h"
#include "../warp/lanes.h"
#include "../warp/machine.h"
#include "families.h"

#define COUNT(table) ((int)(sizeof(table) / sizeof(table)[0]))

// ---- one result per lane ----

// The high half of a product, in a type of twice the width.
#define HIGH_PRODUCT(WIDE, bits) ((WIDE)x * (WIDE)y >> (bits))

// What both signednesses of a width share: the low half of sums and products.
#define WRAPPING_OPERATIONS(T, U)                                                                                      \
  LANE_OPERATION(add_##T, U, U, U, U, x + y)                                                                           \
  LANE_OPERATION(sub_##T, U, U, U, U, x - y)                                                                           \
  LANE_OPERATION(mul_lo_##T, U, U, U, U, x *(u64)y)                                                                    \
  LANE_OPERATION(mad_lo_##T, U, U, U, U, x *(u64)y + z)                                                                \
  LANE_OPERATION(sad_##T, T, T, T, U, z + (x < y ? (U)y - (U)x : (U)x - (U)y))

#define ORDERED_OPERATIONS(T, WIDE, bits)                                                                              \
  LANE_OPERATION(min_##T, T, T, T, T, x < y ? x : y)                                                                   \
  LANE_OPERATION(max_##T, T, T, T, T, x > y ? x : y)                                                                   \
  LANE_OPERATION(mul_hi_##T, T, T, T, T, HIGH_PRODUCT(WIDE, bits))                                                     \
  LANE_OPERATION(mad_hi_##T, T, T, T, T, HIGH_PRODUCT(WIDE, bits) + (WIDE)z)

// Division by zero is unspecified; as on an H200, the quotient and the remainder have all bits set.
#define UNSIGNED_DIVISION(T)                                                                                           \
  LANE_OPERATION(div_##T, T, T, T, T, y ? x / y : (T)-1)                                                               \
  LANE_OPERATION(rem_##T, T, T, T, T, y ? x % y : (T)-1)

// MIN / -1 overflows and wraps to MIN, with no remainder.
#define SIGNED_OPERATIONS(T, U)                                                                                        \
  LANE_OPERATION(div_##T, U, T, T, T, y == 0 ? (U)-1 : y == -1 ? 0 - (U)x : (U)(x / y))                                \
  LANE_OPERATION(rem_##T, T, T, T, T, y == 0 ? (T)-1 : y == -1 ? 0 : x % y)                                            \
  LANE_OPERATION(abs_##T, U, T, T, T, x < 0 ? 0 - (U)x : (U)x)                                                         \
  LANE_OPERATION(neg_##T, U, U, U, U, 0 - x)

WRAPPING_OPERATIONS(u16, u16)
WRAPPING_OPERATIONS(s16, u16)
WRAPPING_OPERATIONS(u32, u32)
WRAPPING_OPERATIONS(s32, u32)
WRAPPING_OPERATIONS(u64, u64)
WRAPPING_OPERATIONS(s64, u64)
ORDERED_OPERATIONS(u16, u32, 16)
ORDERED_OPERATIONS(s16, s32, 16)
ORDERED_OPERATIONS(u32, u64, 32)
ORDERED_OPERATIONS(s32, s64, 32)
ORDERED_OPERATIONS(u64, u128, 64)
ORDERED_OPERATIONS(s64, s128, 64)
UNSIGNED_DIVISION(u16)
UNSIGNED_DIVISION(u32)
UNSIGNED_DIVISION(u64)
SIGNED_OPERATIONS(s16, u16)
SIGNED_OPERATIONS(s32, u32)
SIGNED_OPERATIONS(s64, u64)

LANE_OPERATION(mul_wide_u16, u32, u16, u16, u16, x *(u32)y)
LANE_OPERATION(mul_wide_s16, s32, s16, s16, s16, x *(s32)y)
LANE_OPERATION(mul_wide_u32, u64, u32, u32, u32, x *(u64)y)
LANE_OPERATION(mul_wide_s32, s64, s32, s32, s32, x *(s64)y)
LANE_OPERATION(mad_wide_u16, u32, u16, u16, u32, x *(u32)y + z)
LANE_OPERATION(mad_wide_s16, u32, s16, s16, u32, (u32)(x *(s32)y) + z)
LANE_OPERATION(mad_wide_u32, u64, u32, u32, u64, x *(u64)y + z)
LANE_OPERATION(mad_wide_s32, u64, s32, s32, u64, (u64)(x *(s64)y) + z)

// A sum of two s32 fits an s64; then it is clamped.
static inline s32 clamp_s32(s64 x) { return x > INT32_MAX ? INT32_MAX : x < INT32_MIN ? INT32_MIN : (s32)x; }

LANE_OPERATION(add_sat_s32, s32, s32, s32, s32, clamp_s32((s64)x + y))
LANE_OPERATION(sub_sat_s32, s32, s32, s32, s32, clamp_s32((s64)x - y))
LANE_OPERATION(mad_hi_sat_s32, s32, s32, s32, s32, clamp_s32((x * (s64)y >> 32) + z))
LANE_OPERATION(min_relu_s32, s32, s32, s32, s32, (x < y ? x : y) > 0 ? (x < y ? x : y) : 0)
LANE_OPERATION(max_relu_s32, s32, s32, s32, s32, (x > y ? x : y) > 0 ? (x > y ? x : y) : 0)

// 24-bit factors, the 48-bit product's low or middle 32 bits.
static inline u64 product24_u32(u32 x, u32 y) { return (u64)(x & 0xffffff) * (y & 0xffffff); }
static inline u64 product24_s32(u32 x, u32 y) { return (u64)((s64)((s32)(x << 8) >> 8) * ((s32)(y << 8) >> 8)); }

#define PRODUCT24_OPERATIONS(T)                                                                                        \
  LANE_OPERATION(mul24_lo_##T, u32, u32, u32, u32, product24_##T(x, y))                                                \
  LANE_OPERATION(mul24_hi_##T, u32, u32, u32, u32, product24_##T(x, y) >> 16)                                          \
  LANE_OPERATION(mad24_lo_##T, u32, u32, u32, u32, product24_##T(x, y) + z)                                            \
  LANE_OPERATION(mad24_hi_##T, u32, u32, u32, u32, (product24_##T(x, y) >> 16) + z)

PRODUCT24_OPERATIONS(u32)
PRODUCT24_OPERATIONS(s32)
LANE_OPERATION(mad24_hi_sat_s32, s32, u32, u32, s32, clamp_s32(((s64)product24_s32(x, y) >> 16) + z))

// ---- two 16-bit numbers in 32 bits ----

static inline u32 pack16(u32 low, u32 high) { return (low & 0xffff) | high << 16; }
static inline s32 smaller_s32(s32 x, s32 y) { return x < y ? x : y; }
static inline s32 larger_s32(s32 x, s32 y) { return x > y ? x : y; }

// f of the low halves and of the high halves, read as type T.
#define PACKED_OPERATION(name, T, f)                                                                                   \
  LANE_OPERATION(name, u32, u32, u32, u32, pack16((u32)f((T)x, (T)y), (u32)f((T)(x >> 16), (T)(y >> 16))))
#define SUM(x, y) ((x) + (y))
#define SMALLER_RELU(x, y) larger_s32(smaller_s32(x, y), 0)
#define LARGER_RELU(x, y) larger_s32(larger_s32(x, y), 0)

PACKED_OPERATION(add_16x2, u16, SUM)
PACKED_OPERATION(min_u16x2, u16, smaller_s32)
PACKED_OPERATION(max_u16x2, u16, larger_s32)
PACKED_OPERATION(min_s16x2, s16, smaller_s32)
PACKED_OPERATION(max_s16x2, s16, larger_s32)
PACKED_OPERATION(min_relu_s16x2, s16, SMALLER_RELU)
PACKED_OPERATION(max_relu_s16x2, s16, LARGER_RELU)

// ---- dot products: four bytes with four, or two halves with two bytes of y ----

#define DOT4(TX, TY)                                                                                                   \
  (z + (u32)((TX)x * (TY)y) + (u32)((TX)(x >> 8) * (TY)(y >> 8)) + (u32)((TX)(x >> 16) * (TY)(y >> 16)) +              \
   (u32)((TX)(x >> 24) * (TY)(y >> 24)))
#define DOT2(TX, TY, shift) (z + (u32)((TX)x * (TY)(y >> (shift))) + (u32)((TX)(x >> 16) * (TY)(y >> ((shift) + 8))))

#define DOT_OPERATIONS(A, B, X4, X2, Y)                                                                                \
  LANE_OPERATION(dp4a_##A##_##B, u32, u32, u32, u32, DOT4(X4, Y))                                                      \
  LANE_OPERATION(dp2a_lo_##A##_##B, u32, u32, u32, u32, DOT2(X2, Y, 0))                                                \
  LANE_OPERATION(dp2a_hi_##A##_##B, u32, u32, u32, u32, DOT2(X2, Y, 16))

DOT_OPERATIONS(u32, u32, u8, u16, u8)
DOT_OPERATIONS(u32, s32, u8, u16, s8)
DOT_OPERATIONS(s32, u32, s8, s16, u8)
DOT_OPERATIONS(s32, s32, s8, s16, s8)

// ---- extended precision: the carry of each lane is a bit of warp->carry ----
//
// There is one flag, and it is an adder's carry: a subtraction is x + ~y + 1, so after sub.cc the flag is 1 when there
// was NO borrow, and subc is x + ~y + flag. PTX ISA 9.7.2 promises no more than that a sub.cc fits a subc. nvcc's own
// division of 128-bit integers reads the flag of a sub.cc with addc, and an H100 does this for each of them.

// The two addends of add and sub, and of mad.lo and mad.hi, whose product wraps.
#define TERM_ADD(U, WIDE, bits) x
#define TERM_SUB(U, WIDE, bits) x
#define TERM_MUL_LO(U, WIDE, bits) (U)((U)x * (U)y)
#define TERM_MUL_HI(U, WIDE, bits) (U)((WIDE)x * (WIDE)y >> (bits))
#define ADDEND_ADD y
#define ADDEND_SUB ~y
#define ADDEND_MUL_LO z
#define ADDEND_MUL_HI z

// term + addend + carry in. A sum has carried out when it is smaller than what was added to; with a carry in, also when
// it is equal.
#define CARRY_LOOP(T, U, WIDE, bits, TERM, in, out)                                                                    \
  U *d = SLOT(warp, inst->d, U);                                                                                       \
  const T *a = SLOT(warp, inst->a, T), *b = SLOT(warp, inst->b, T), *c = SLOT(warp, inst->c, T);                       \
  Mask carry = 0;                                                                                                      \
  for (int lane = 0; lane < LANES; lane++) {                                                                           \
    if (!(mask >> lane & 1)) continue;                                                                                 \
    T x = a[lane], y = b[lane], z = c[lane];                                                                           \
    (void)y;                                                                                                           \
    (void)z;                                                                                                           \
    U term = (U)TERM_##TERM(U, WIDE, bits), addend = (U)ADDEND_##TERM;                                                 \
    U carried = (in), sum = term + addend + carried;                                                                   \
    carry |= (Mask)(sum < term || (carried && sum == term)) << lane;                                                   \
    d[lane] = sum;                                                                                                     \
  }                                                                                                                    \
  if (out) warp->carry = (warp->carry & ~mask) | carry

#define CARRY_OPERATION(name, T, U, WIDE, bits, TERM, in, out)                                                         \
  static void name(Warp *warp, const Inst *inst, Mask mask) { CARRY_LOOP(T, U, WIDE, bits, TERM, in, out); }

// The carry in of addc, subc and madc.
#define FLAG (warp->carry >> lane & 1)

// add and sub are the same for both signednesses, and so is mad.lo; mad.hi is not.
#define CARRYING_OPERATIONS(U, WIDE, bits)                                                                             \
  CARRY_OPERATION(add_cc_##U, U, U, WIDE, bits, ADD, 0, 1)                                                             \
  CARRY_OPERATION(addc_##U, U, U, WIDE, bits, ADD, FLAG, 0)                                                            \
  CARRY_OPERATION(addc_cc_##U, U, U, WIDE, bits, ADD, FLAG, 1)                                                         \
  CARRY_OPERATION(sub_cc_##U, U, U, WIDE, bits, SUB, 1, 1)                                                             \
  CARRY_OPERATION(subc_##U, U, U, WIDE, bits, SUB, FLAG, 0)                                                            \
  CARRY_OPERATION(subc_cc_##U, U, U, WIDE, bits, SUB, FLAG, 1)                                                         \
  CARRY_OPERATION(mad_lo_cc_##U, U, U, WIDE, bits, MUL_LO, 0, 1)                                                       \
  CARRY_OPERATION(madc_lo_##U, U, U, WIDE, bits, MUL_LO, FLAG, 0)                                                      \
  CARRY_OPERATION(madc_lo_cc_##U, U, U, WIDE, bits, MUL_LO, FLAG, 1)

#define CARRYING_HIGH_OPERATIONS(T, U, WIDE, bits)                                                                     \
  CARRY_OPERATION(mad_hi_cc_##T, T, U, WIDE, bits, MUL_HI, 0, 1)                                                       \
  CARRY_OPERATION(madc_hi_##T, T, U, WIDE, bits, MUL_HI, FLAG, 0)                                                      \
  CARRY_OPERATION(madc_hi_cc_##T, T, U, WIDE, bits, MUL_HI, FLAG, 1)

CARRYING_OPERATIONS(u32, u64, 32)
CARRYING_OPERATIONS(u64, u128, 64)
CARRYING_HIGH_OPERATIONS(u32, u32, u64, 32)
CARRYING_HIGH_OPERATIONS(s32, u32, s64, 32)
CARRYING_HIGH_OPERATIONS(u64, u64, u128, 64)
CARRYING_HIGH_OPERATIONS(s64, u64, s128, 64)

// ---- the forms ----

#define UNARY(syntax, T, f) FORM(syntax "." #T, #T " " #T, f)
#define BINARY(syntax, T, f) FORM(syntax "." #T, #T " " #T " " #T, f)
#define TERNARY(syntax, T, f) FORM(syntax "." #T, #T " " #T " " #T " " #T, f)

#define EVERY_TYPE(T)                                                                                                  \
  BINARY("add", T, add_##T), BINARY("sub", T, sub_##T), BINARY("mul.lo", T, mul_lo_##T),                               \
      BINARY("mul.hi", T, mul_hi_##T), TERNARY("mad.lo", T, mad_lo_##T), TERNARY("mad.hi", T, mad_hi_##T),             \
      TERNARY("sad", T, sad_##T), BINARY("div", T, div_##T), BINARY("rem", T, rem_##T), BINARY("min", T, min_##T),     \
      BINARY("max", T, max_##T)

#define WIDENING(T, W)                                                                                                 \
  FORM("mul.wide." #T, #W " " #T " " #T, mul_wide_##T), FORM("mad.wide." #T, #W " " #T " " #T " " #W, mad_wide_##T)

#define SIGNED_TYPE(T) UNARY("abs", T, abs_##T), UNARY("neg", T, neg_##T)

#define PRODUCT24(T)                                                                                                   \
  BINARY("mul24.lo", T, mul24_lo_##T), BINARY("mul24.hi", T, mul24_hi_##T), TERNARY("mad24.lo", T, mad24_lo_##T),      \
      TERNARY("mad24.hi", T, mad24_hi_##T)

#define DOT(A, B)                                                                                                      \
  FORM("dp4a." #A "." #B, "b32 b32 b32 b32", dp4a_##A##_##B),                                                          \
      FORM("dp2a.lo." #A "." #B, "b32 b32 b32 b32", dp2a_lo_##A##_##B),                                                \
      FORM("dp2a.hi." #A "." #B, "b32 b32 b32 b32", dp2a_hi_##A##_##B)

#define PACKED(syntax, f) FORM(syntax, "b32 b32 b32", f)

#define CARRYING(T, U)                                                                                                 \
  BINARY("add.cc", T, add_cc_##U), BINARY("addc", T, addc_##U), BINARY("addc.cc", T, addc_cc_##U),                     \
      BINARY("sub.cc", T, sub_cc_##U), BINARY("subc", T, subc_##U), BINARY("subc.cc", T, subc_cc_##U),                 \
      TERNARY("mad.lo.cc", T, mad_lo_cc_##U), TERNARY("madc.lo", T, madc_lo_##U),                                      \
      TERNARY("madc.lo.cc", T, madc_lo_cc_##U), TERNARY("mad.hi.cc", T, mad_hi_cc_##T),                                \
      TERNARY("madc.hi", T, madc_hi_##T), TERNARY("madc.hi.cc", T, madc_hi_cc_##T)

static const Form integer_forms[] = {
    EVERY_TYPE(u16),
    EVERY_TYPE(s16),
    EVERY_TYPE(u32),
    EVERY_TYPE(s32),
    EVERY_TYPE(u64),
    EVERY_TYPE(s64),
    SIGNED_TYPE(s16),
    SIGNED_TYPE(s32),
    SIGNED_TYPE(s64),
    WIDENING(u16, u32),
    WIDENING(s16, s32),
    WIDENING(u32, u64),
    WIDENING(s32, s64),
    BINARY("add.sat", s32, add_sat_s32),
    BINARY("sub.sat", s32, sub_sat_s32),
    TERNARY("mad.hi.sat", s32, mad_hi_sat_s32),
    // The PTX ISA writes .relu before the type; CUDA's headers, and ptxas, also after it.
    BINARY("min.relu", s32, min_relu_s32),
    BINARY("max.relu", s32, max_relu_s32),
    FORM("min.s32.relu", "s32 s32 s32", min_relu_s32),
    FORM("max.s32.relu", "s32 s32 s32", max_relu_s32),
    PACKED("min.s16x2.relu", min_relu_s16x2),
    PACKED("max.s16x2.relu", max_relu_s16x2),
    PRODUCT24(u32),
    PRODUCT24(s32),
    TERNARY("mad24.hi.sat", s32, mad24_hi_sat_s32),
    PACKED("add.u16x2", add_16x2),
    PACKED("add.s16x2", add_16x2),
    PACKED("min.u16x2", min_u16x2),
    PACKED("max.u16x2", max_u16x2),
    PACKED("min.s16x2", min_s16x2),
    PACKED("max.s16x2", max_s16x2),
    PACKED("min.relu.s16x2", min_relu_s16x2),
    PACKED("max.relu.s16x2", max_relu_s16x2),
    DOT(u32, u32),
    DOT(u32, s32),
    DOT(s32, u32),
    DOT(s32, s32),
    CARRYING(u32, u32),
    CARRYING(s32, u32),
    CARRYING(u64, u64),
    CARRYING(s64, u64),
};

DecodeResult decode_integer(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  return form_decode(decoder, source, integer_forms, COUNT(integer_forms), inst);
}
