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

// high_product_u64 with signs: a negative factor is 2^64 less than the same bits without one.
ALWAYS_INLINE u64 high_product_s64(s64 x, s64 y) {
  return high_product_u64((u64)x, (u64)y) - (x < 0 ? (u64)y : 0) - (y < 0 ? (u64)x : 0);
}

// The high half of a product of fewer bits, in a type of twice the width.
#define HIGH_PRODUCT(WIDE, bits) ((WIDE)x * (WIDE)y >> (bits))

// The low half of a sum or a product is the same for both signednesses.
LANE_OPERATION(add_u16, u16, u16, u16, u16, x + y)
LANE_OPERATION(add_s16, u16, u16, u16, u16, x + y)
LANE_OPERATION(add_u32, u32, u32, u32, u32, x + y)
LANE_OPERATION(add_s32, u32, u32, u32, u32, x + y)
LANE_OPERATION(add_u64, u64, u64, u64, u64, x + y)
LANE_OPERATION(add_s64, u64, u64, u64, u64, x + y)
LANE_OPERATION(sub_u16, u16, u16, u16, u16, x - y)
LANE_OPERATION(sub_s16, u16, u16, u16, u16, x - y)
LANE_OPERATION(sub_u32, u32, u32, u32, u32, x - y)
LANE_OPERATION(sub_s32, u32, u32, u32, u32, x - y)
LANE_OPERATION(sub_u64, u64, u64, u64, u64, x - y)
LANE_OPERATION(sub_s64, u64, u64, u64, u64, x - y)
LANE_OPERATION(mul_lo_u16, u16, u16, u16, u16, x *(u64)y)
LANE_OPERATION(mul_lo_s16, u16, u16, u16, u16, x *(u64)y)
LANE_OPERATION(mul_lo_u32, u32, u32, u32, u32, x *(u64)y)
LANE_OPERATION(mul_lo_s32, u32, u32, u32, u32, x *(u64)y)
LANE_OPERATION(mul_lo_u64, u64, u64, u64, u64, x *(u64)y)
LANE_OPERATION(mul_lo_s64, u64, u64, u64, u64, x *(u64)y)
LANE_OPERATION(mad_lo_u16, u16, u16, u16, u16, x *(u64)y + z)
LANE_OPERATION(mad_lo_s16, u16, u16, u16, u16, x *(u64)y + z)
LANE_OPERATION(mad_lo_u32, u32, u32, u32, u32, x *(u64)y + z)
LANE_OPERATION(mad_lo_s32, u32, u32, u32, u32, x *(u64)y + z)
LANE_OPERATION(mad_lo_u64, u64, u64, u64, u64, x *(u64)y + z)
LANE_OPERATION(mad_lo_s64, u64, u64, u64, u64, x *(u64)y + z)
LANE_OPERATION(sad_u16, u16, u16, u16, u16, z + (x < y ? (u16)y - (u16)x : (u16)x - (u16)y))
LANE_OPERATION(sad_s16, s16, s16, s16, u16, z + (x < y ? (u16)y - (u16)x : (u16)x - (u16)y))
LANE_OPERATION(sad_u32, u32, u32, u32, u32, z + (x < y ? (u32)y - (u32)x : (u32)x - (u32)y))
LANE_OPERATION(sad_s32, s32, s32, s32, u32, z + (x < y ? (u32)y - (u32)x : (u32)x - (u32)y))
LANE_OPERATION(sad_u64, u64, u64, u64, u64, z + (x < y ? (u64)y - (u64)x : (u64)x - (u64)y))
LANE_OPERATION(sad_s64, s64, s64, s64, u64, z + (x < y ? (u64)y - (u64)x : (u64)x - (u64)y))

LANE_OPERATION(min_u16, u16, u16, u16, u16, x < y ? x : y)
LANE_OPERATION(min_s16, s16, s16, s16, s16, x < y ? x : y)
LANE_OPERATION(min_u32, u32, u32, u32, u32, x < y ? x : y)
LANE_OPERATION(min_s32, s32, s32, s32, s32, x < y ? x : y)
LANE_OPERATION(min_u64, u64, u64, u64, u64, x < y ? x : y)
LANE_OPERATION(min_s64, s64, s64, s64, s64, x < y ? x : y)
LANE_OPERATION(max_u16, u16, u16, u16, u16, x > y ? x : y)
LANE_OPERATION(max_s16, s16, s16, s16, s16, x > y ? x : y)
LANE_OPERATION(max_u32, u32, u32, u32, u32, x > y ? x : y)
LANE_OPERATION(max_s32, s32, s32, s32, s32, x > y ? x : y)
LANE_OPERATION(max_u64, u64, u64, u64, u64, x > y ? x : y)
LANE_OPERATION(max_s64, s64, s64, s64, s64, x > y ? x : y)

LANE_OPERATION(mul_hi_u16, u16, u16, u16, u16, HIGH_PRODUCT(u32, 16))
LANE_OPERATION(mul_hi_s16, s16, s16, s16, s16, HIGH_PRODUCT(s32, 16))
LANE_OPERATION(mul_hi_u32, u32, u32, u32, u32, HIGH_PRODUCT(u64, 32))
LANE_OPERATION(mul_hi_s32, s32, s32, s32, s32, HIGH_PRODUCT(s64, 32))
LANE_OPERATION(mul_hi_u64, u64, u64, u64, u64, high_product_u64(x, y))
LANE_OPERATION(mul_hi_s64, s64, s64, s64, s64, high_product_s64(x, y))
LANE_OPERATION(mad_hi_u16, u16, u16, u16, u16, HIGH_PRODUCT(u32, 16) + (u32)z)
LANE_OPERATION(mad_hi_s16, s16, s16, s16, s16, HIGH_PRODUCT(s32, 16) + (s32)z)
LANE_OPERATION(mad_hi_u32, u32, u32, u32, u32, HIGH_PRODUCT(u64, 32) + (u64)z)
LANE_OPERATION(mad_hi_s32, s32, s32, s32, s32, HIGH_PRODUCT(s64, 32) + (s64)z)
LANE_OPERATION(mad_hi_u64, u64, u64, u64, u64, high_product_u64(x, y) + (u64)z)
LANE_OPERATION(mad_hi_s64, s64, s64, s64, s64, high_product_s64(x, y) + (u64)z)

// Division by zero is unspecified; as on an H200, the quotient and the remainder have all bits set. MIN / -1 overflows
// and wraps to MIN, with no remainder.
LANE_OPERATION(div_u16, u16, u16, u16, u16, y ? x / y : (u16)-1)
LANE_OPERATION(div_s16, u16, s16, s16, s16, y == 0 ? (u16)-1 : y == -1 ? 0 - (u16)x : (u16)(x / y))
LANE_OPERATION(div_u32, u32, u32, u32, u32, y ? x / y : (u32)-1)
LANE_OPERATION(div_s32, u32, s32, s32, s32, y == 0 ? (u32)-1 : y == -1 ? 0 - (u32)x : (u32)(x / y))
LANE_OPERATION(div_u64, u64, u64, u64, u64, y ? x / y : (u64)-1)
LANE_OPERATION(div_s64, u64, s64, s64, s64, y == 0 ? (u64)-1 : y == -1 ? 0 - (u64)x : (u64)(x / y))
LANE_OPERATION(rem_u16, u16, u16, u16, u16, y ? x % y : (u16)-1)
LANE_OPERATION(rem_s16, s16, s16, s16, s16, y == 0 ? (s16)-1 : y == -1 ? 0 : x % y)
LANE_OPERATION(rem_u32, u32, u32, u32, u32, y ? x % y : (u32)-1)
LANE_OPERATION(rem_s32, s32, s32, s32, s32, y == 0 ? (s32)-1 : y == -1 ? 0 : x % y)
LANE_OPERATION(rem_u64, u64, u64, u64, u64, y ? x % y : (u64)-1)
LANE_OPERATION(rem_s64, s64, s64, s64, s64, y == 0 ? (s64)-1 : y == -1 ? 0 : x % y)

LANE_OPERATION(abs_s16, u16, s16, s16, s16, x < 0 ? 0 - (u16)x : (u16)x)
LANE_OPERATION(abs_s32, u32, s32, s32, s32, x < 0 ? 0 - (u32)x : (u32)x)
LANE_OPERATION(abs_s64, u64, s64, s64, s64, x < 0 ? 0 - (u64)x : (u64)x)
LANE_OPERATION(neg_s16, u16, u16, u16, u16, 0 - x)
LANE_OPERATION(neg_s32, u32, u32, u32, u32, 0 - x)
LANE_OPERATION(neg_s64, u64, u64, u64, u64, 0 - x)

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

LANE_OPERATION(mul24_lo_u32, u32, u32, u32, u32, product24_u32(x, y))
LANE_OPERATION(mul24_lo_s32, u32, u32, u32, u32, product24_s32(x, y))
LANE_OPERATION(mul24_hi_u32, u32, u32, u32, u32, product24_u32(x, y) >> 16)
LANE_OPERATION(mul24_hi_s32, u32, u32, u32, u32, product24_s32(x, y) >> 16)
LANE_OPERATION(mad24_lo_u32, u32, u32, u32, u32, product24_u32(x, y) + z)
LANE_OPERATION(mad24_lo_s32, u32, u32, u32, u32, product24_s32(x, y) + z)
LANE_OPERATION(mad24_hi_u32, u32, u32, u32, u32, (product24_u32(x, y) >> 16) + z)
LANE_OPERATION(mad24_hi_s32, u32, u32, u32, u32, (product24_s32(x, y) >> 16) + z)
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

LANE_OPERATION(dp4a_u32_u32, u32, u32, u32, u32, DOT4(u8, u8))
LANE_OPERATION(dp4a_u32_s32, u32, u32, u32, u32, DOT4(u8, s8))
LANE_OPERATION(dp4a_s32_u32, u32, u32, u32, u32, DOT4(s8, u8))
LANE_OPERATION(dp4a_s32_s32, u32, u32, u32, u32, DOT4(s8, s8))
LANE_OPERATION(dp2a_lo_u32_u32, u32, u32, u32, u32, DOT2(u16, u8, 0))
LANE_OPERATION(dp2a_lo_u32_s32, u32, u32, u32, u32, DOT2(u16, s8, 0))
LANE_OPERATION(dp2a_lo_s32_u32, u32, u32, u32, u32, DOT2(s16, u8, 0))
LANE_OPERATION(dp2a_lo_s32_s32, u32, u32, u32, u32, DOT2(s16, s8, 0))
LANE_OPERATION(dp2a_hi_u32_u32, u32, u32, u32, u32, DOT2(u16, u8, 16))
LANE_OPERATION(dp2a_hi_u32_s32, u32, u32, u32, u32, DOT2(u16, s8, 16))
LANE_OPERATION(dp2a_hi_s32_u32, u32, u32, u32, u32, DOT2(s16, u8, 16))
LANE_OPERATION(dp2a_hi_s32_s32, u32, u32, u32, u32, DOT2(s16, s8, 16))

// ---- extended precision: the carry of each lane is a bit of warp->carry ----
//
// There is one flag, and it is an adder's carry: a subtraction is x + ~y + 1, so after sub.cc the flag is 1 when there
// was NO borrow, and subc is x + ~y + flag. PTX ISA 9.7.2 promises no more than that a sub.cc fits a subc. nvcc's own
// division of 128-bit integers reads the flag of a sub.cc with addc, and an H100 does this for each of them.

// term + addend + carry in. A sum has carried out when it is smaller than what was added to; with a carry in, also when
// it is equal.
#define CARRY_LOOP(T, U, TERM, ADDEND, in, out)                                                                        \
  U *d = SLOT(warp, inst->d, U);                                                                                       \
  const T *a = SLOT(warp, inst->a, T), *b = SLOT(warp, inst->b, T), *c = SLOT(warp, inst->c, T);                       \
  Mask carry = 0;                                                                                                      \
  for (int lane = 0; lane < LANES; lane++) {                                                                           \
    if (!(mask >> lane & 1)) continue;                                                                                 \
    T x = a[lane], y = b[lane], z = c[lane];                                                                           \
    (void)y;                                                                                                           \
    (void)z;                                                                                                           \
    U term = (U)(TERM), addend = (U)(ADDEND);                                                                          \
    U carried = (in), sum = term + addend + carried;                                                                   \
    carry |= (Mask)(sum < term || (carried && sum == term)) << lane;                                                   \
    d[lane] = sum;                                                                                                     \
  }                                                                                                                    \
  if (out) warp->carry = (warp->carry & ~mask) | carry

#define CARRY_OPERATION(name, T, U, TERM, ADDEND, in, out)                                                             \
  static void name(Warp *warp, const Inst *inst, Mask mask) { CARRY_LOOP(T, U, TERM, ADDEND, in, out); }

// The carry in of addc, subc and madc.
#define FLAG (warp->carry >> lane & 1)

// add and sub are the same for both signednesses, and so is mad.lo; mad.hi is not.
CARRY_OPERATION(add_cc_u32, u32, u32, x, y, 0, 1)
CARRY_OPERATION(add_cc_u64, u64, u64, x, y, 0, 1)
CARRY_OPERATION(addc_u32, u32, u32, x, y, FLAG, 0)
CARRY_OPERATION(addc_u64, u64, u64, x, y, FLAG, 0)
CARRY_OPERATION(addc_cc_u32, u32, u32, x, y, FLAG, 1)
CARRY_OPERATION(addc_cc_u64, u64, u64, x, y, FLAG, 1)
CARRY_OPERATION(sub_cc_u32, u32, u32, x, ~y, 1, 1)
CARRY_OPERATION(sub_cc_u64, u64, u64, x, ~y, 1, 1)
CARRY_OPERATION(subc_u32, u32, u32, x, ~y, FLAG, 0)
CARRY_OPERATION(subc_u64, u64, u64, x, ~y, FLAG, 0)
CARRY_OPERATION(subc_cc_u32, u32, u32, x, ~y, FLAG, 1)
CARRY_OPERATION(subc_cc_u64, u64, u64, x, ~y, FLAG, 1)
CARRY_OPERATION(mad_lo_cc_u32, u32, u32, x *y, z, 0, 1)
CARRY_OPERATION(mad_lo_cc_u64, u64, u64, x *y, z, 0, 1)
CARRY_OPERATION(madc_lo_u32, u32, u32, x *y, z, FLAG, 0)
CARRY_OPERATION(madc_lo_u64, u64, u64, x *y, z, FLAG, 0)
CARRY_OPERATION(madc_lo_cc_u32, u32, u32, x *y, z, FLAG, 1)
CARRY_OPERATION(madc_lo_cc_u64, u64, u64, x *y, z, FLAG, 1)
CARRY_OPERATION(mad_hi_cc_u32, u32, u32, HIGH_PRODUCT(u64, 32), z, 0, 1)
CARRY_OPERATION(mad_hi_cc_s32, s32, u32, HIGH_PRODUCT(s64, 32), z, 0, 1)
CARRY_OPERATION(mad_hi_cc_u64, u64, u64, high_product_u64(x, y), z, 0, 1)
CARRY_OPERATION(mad_hi_cc_s64, s64, u64, high_product_s64(x, y), z, 0, 1)
CARRY_OPERATION(madc_hi_u32, u32, u32, HIGH_PRODUCT(u64, 32), z, FLAG, 0)
CARRY_OPERATION(madc_hi_s32, s32, u32, HIGH_PRODUCT(s64, 32), z, FLAG, 0)
CARRY_OPERATION(madc_hi_u64, u64, u64, high_product_u64(x, y), z, FLAG, 0)
CARRY_OPERATION(madc_hi_s64, s64, u64, high_product_s64(x, y), z, FLAG, 0)
CARRY_OPERATION(madc_hi_cc_u32, u32, u32, HIGH_PRODUCT(u64, 32), z, FLAG, 1)
CARRY_OPERATION(madc_hi_cc_s32, s32, u32, HIGH_PRODUCT(s64, 32), z, FLAG, 1)
CARRY_OPERATION(madc_hi_cc_u64, u64, u64, high_product_u64(x, y), z, FLAG, 1)
CARRY_OPERATION(madc_hi_cc_s64, s64, u64, high_product_s64(x, y), z, FLAG, 1)

// ---- the forms ----

static const Form integer_forms[] = {
    FORM("add.u16", "u16 u16 u16", add_u16),
    FORM("add.s16", "s16 s16 s16", add_s16),
    FORM("add.u32", "u32 u32 u32", add_u32),
    FORM("add.s32", "s32 s32 s32", add_s32),
    FORM("add.u64", "u64 u64 u64", add_u64),
    FORM("add.s64", "s64 s64 s64", add_s64),
    FORM("sub.u16", "u16 u16 u16", sub_u16),
    FORM("sub.s16", "s16 s16 s16", sub_s16),
    FORM("sub.u32", "u32 u32 u32", sub_u32),
    FORM("sub.s32", "s32 s32 s32", sub_s32),
    FORM("sub.u64", "u64 u64 u64", sub_u64),
    FORM("sub.s64", "s64 s64 s64", sub_s64),
    FORM("mul.lo.u16", "u16 u16 u16", mul_lo_u16),
    FORM("mul.lo.s16", "s16 s16 s16", mul_lo_s16),
    FORM("mul.lo.u32", "u32 u32 u32", mul_lo_u32),
    FORM("mul.lo.s32", "s32 s32 s32", mul_lo_s32),
    FORM("mul.lo.u64", "u64 u64 u64", mul_lo_u64),
    FORM("mul.lo.s64", "s64 s64 s64", mul_lo_s64),
    FORM("mul.hi.u16", "u16 u16 u16", mul_hi_u16),
    FORM("mul.hi.s16", "s16 s16 s16", mul_hi_s16),
    FORM("mul.hi.u32", "u32 u32 u32", mul_hi_u32),
    FORM("mul.hi.s32", "s32 s32 s32", mul_hi_s32),
    FORM("mul.hi.u64", "u64 u64 u64", mul_hi_u64),
    FORM("mul.hi.s64", "s64 s64 s64", mul_hi_s64),
    FORM("mad.lo.u16", "u16 u16 u16 u16", mad_lo_u16),
    FORM("mad.lo.s16", "s16 s16 s16 s16", mad_lo_s16),
    FORM("mad.lo.u32", "u32 u32 u32 u32", mad_lo_u32),
    FORM("mad.lo.s32", "s32 s32 s32 s32", mad_lo_s32),
    FORM("mad.lo.u64", "u64 u64 u64 u64", mad_lo_u64),
    FORM("mad.lo.s64", "s64 s64 s64 s64", mad_lo_s64),
    FORM("mad.hi.u16", "u16 u16 u16 u16", mad_hi_u16),
    FORM("mad.hi.s16", "s16 s16 s16 s16", mad_hi_s16),
    FORM("mad.hi.u32", "u32 u32 u32 u32", mad_hi_u32),
    FORM("mad.hi.s32", "s32 s32 s32 s32", mad_hi_s32),
    FORM("mad.hi.u64", "u64 u64 u64 u64", mad_hi_u64),
    FORM("mad.hi.s64", "s64 s64 s64 s64", mad_hi_s64),
    FORM("sad.u16", "u16 u16 u16 u16", sad_u16),
    FORM("sad.s16", "s16 s16 s16 s16", sad_s16),
    FORM("sad.u32", "u32 u32 u32 u32", sad_u32),
    FORM("sad.s32", "s32 s32 s32 s32", sad_s32),
    FORM("sad.u64", "u64 u64 u64 u64", sad_u64),
    FORM("sad.s64", "s64 s64 s64 s64", sad_s64),
    FORM("div.u16", "u16 u16 u16", div_u16),
    FORM("div.s16", "s16 s16 s16", div_s16),
    FORM("div.u32", "u32 u32 u32", div_u32),
    FORM("div.s32", "s32 s32 s32", div_s32),
    FORM("div.u64", "u64 u64 u64", div_u64),
    FORM("div.s64", "s64 s64 s64", div_s64),
    FORM("rem.u16", "u16 u16 u16", rem_u16),
    FORM("rem.s16", "s16 s16 s16", rem_s16),
    FORM("rem.u32", "u32 u32 u32", rem_u32),
    FORM("rem.s32", "s32 s32 s32", rem_s32),
    FORM("rem.u64", "u64 u64 u64", rem_u64),
    FORM("rem.s64", "s64 s64 s64", rem_s64),
    FORM("min.u16", "u16 u16 u16", min_u16),
    FORM("min.s16", "s16 s16 s16", min_s16),
    FORM("min.u32", "u32 u32 u32", min_u32),
    FORM("min.s32", "s32 s32 s32", min_s32),
    FORM("min.u64", "u64 u64 u64", min_u64),
    FORM("min.s64", "s64 s64 s64", min_s64),
    FORM("max.u16", "u16 u16 u16", max_u16),
    FORM("max.s16", "s16 s16 s16", max_s16),
    FORM("max.u32", "u32 u32 u32", max_u32),
    FORM("max.s32", "s32 s32 s32", max_s32),
    FORM("max.u64", "u64 u64 u64", max_u64),
    FORM("max.s64", "s64 s64 s64", max_s64),
    FORM("abs.s16", "s16 s16", abs_s16),
    FORM("abs.s32", "s32 s32", abs_s32),
    FORM("abs.s64", "s64 s64", abs_s64),
    FORM("neg.s16", "s16 s16", neg_s16),
    FORM("neg.s32", "s32 s32", neg_s32),
    FORM("neg.s64", "s64 s64", neg_s64),
    FORM("mul.wide.u16", "u32 u16 u16", mul_wide_u16),
    FORM("mul.wide.s16", "s32 s16 s16", mul_wide_s16),
    FORM("mul.wide.u32", "u64 u32 u32", mul_wide_u32),
    FORM("mul.wide.s32", "s64 s32 s32", mul_wide_s32),
    FORM("mad.wide.u16", "u32 u16 u16 u32", mad_wide_u16),
    FORM("mad.wide.s16", "s32 s16 s16 s32", mad_wide_s16),
    FORM("mad.wide.u32", "u64 u32 u32 u64", mad_wide_u32),
    FORM("mad.wide.s32", "s64 s32 s32 s64", mad_wide_s32),
    FORM("add.sat.s32", "s32 s32 s32", add_sat_s32),
    FORM("sub.sat.s32", "s32 s32 s32", sub_sat_s32),
    FORM("mad.hi.sat.s32", "s32 s32 s32 s32", mad_hi_sat_s32),
    // The PTX ISA writes .relu before the type; CUDA's headers, and ptxas, also after it.
    FORM("min.relu.s32", "s32 s32 s32", min_relu_s32),
    FORM("max.relu.s32", "s32 s32 s32", max_relu_s32),
    FORM("min.s32.relu", "s32 s32 s32", min_relu_s32),
    FORM("max.s32.relu", "s32 s32 s32", max_relu_s32),
    FORM("min.s16x2.relu", "b32 b32 b32", min_relu_s16x2),
    FORM("max.s16x2.relu", "b32 b32 b32", max_relu_s16x2),
    FORM("mul24.lo.u32", "u32 u32 u32", mul24_lo_u32),
    FORM("mul24.lo.s32", "s32 s32 s32", mul24_lo_s32),
    FORM("mul24.hi.u32", "u32 u32 u32", mul24_hi_u32),
    FORM("mul24.hi.s32", "s32 s32 s32", mul24_hi_s32),
    FORM("mad24.lo.u32", "u32 u32 u32 u32", mad24_lo_u32),
    FORM("mad24.lo.s32", "s32 s32 s32 s32", mad24_lo_s32),
    FORM("mad24.hi.u32", "u32 u32 u32 u32", mad24_hi_u32),
    FORM("mad24.hi.s32", "s32 s32 s32 s32", mad24_hi_s32),
    FORM("mad24.hi.sat.s32", "s32 s32 s32 s32", mad24_hi_sat_s32),
    FORM("add.u16x2", "b32 b32 b32", add_16x2),
    FORM("add.s16x2", "b32 b32 b32", add_16x2),
    FORM("min.u16x2", "b32 b32 b32", min_u16x2),
    FORM("min.s16x2", "b32 b32 b32", min_s16x2),
    FORM("min.relu.s16x2", "b32 b32 b32", min_relu_s16x2),
    FORM("max.u16x2", "b32 b32 b32", max_u16x2),
    FORM("max.s16x2", "b32 b32 b32", max_s16x2),
    FORM("max.relu.s16x2", "b32 b32 b32", max_relu_s16x2),
    FORM("dp4a.u32.u32", "b32 b32 b32 b32", dp4a_u32_u32),
    FORM("dp4a.u32.s32", "b32 b32 b32 b32", dp4a_u32_s32),
    FORM("dp4a.s32.u32", "b32 b32 b32 b32", dp4a_s32_u32),
    FORM("dp4a.s32.s32", "b32 b32 b32 b32", dp4a_s32_s32),
    FORM("dp2a.lo.u32.u32", "b32 b32 b32 b32", dp2a_lo_u32_u32),
    FORM("dp2a.lo.u32.s32", "b32 b32 b32 b32", dp2a_lo_u32_s32),
    FORM("dp2a.lo.s32.u32", "b32 b32 b32 b32", dp2a_lo_s32_u32),
    FORM("dp2a.lo.s32.s32", "b32 b32 b32 b32", dp2a_lo_s32_s32),
    FORM("dp2a.hi.u32.u32", "b32 b32 b32 b32", dp2a_hi_u32_u32),
    FORM("dp2a.hi.u32.s32", "b32 b32 b32 b32", dp2a_hi_u32_s32),
    FORM("dp2a.hi.s32.u32", "b32 b32 b32 b32", dp2a_hi_s32_u32),
    FORM("dp2a.hi.s32.s32", "b32 b32 b32 b32", dp2a_hi_s32_s32),
    FORM("add.cc.u32", "u32 u32 u32", add_cc_u32),
    FORM("add.cc.s32", "s32 s32 s32", add_cc_u32),
    FORM("add.cc.u64", "u64 u64 u64", add_cc_u64),
    FORM("add.cc.s64", "s64 s64 s64", add_cc_u64),
    FORM("addc.u32", "u32 u32 u32", addc_u32),
    FORM("addc.s32", "s32 s32 s32", addc_u32),
    FORM("addc.u64", "u64 u64 u64", addc_u64),
    FORM("addc.s64", "s64 s64 s64", addc_u64),
    FORM("addc.cc.u32", "u32 u32 u32", addc_cc_u32),
    FORM("addc.cc.s32", "s32 s32 s32", addc_cc_u32),
    FORM("addc.cc.u64", "u64 u64 u64", addc_cc_u64),
    FORM("addc.cc.s64", "s64 s64 s64", addc_cc_u64),
    FORM("sub.cc.u32", "u32 u32 u32", sub_cc_u32),
    FORM("sub.cc.s32", "s32 s32 s32", sub_cc_u32),
    FORM("sub.cc.u64", "u64 u64 u64", sub_cc_u64),
    FORM("sub.cc.s64", "s64 s64 s64", sub_cc_u64),
    FORM("subc.u32", "u32 u32 u32", subc_u32),
    FORM("subc.s32", "s32 s32 s32", subc_u32),
    FORM("subc.u64", "u64 u64 u64", subc_u64),
    FORM("subc.s64", "s64 s64 s64", subc_u64),
    FORM("subc.cc.u32", "u32 u32 u32", subc_cc_u32),
    FORM("subc.cc.s32", "s32 s32 s32", subc_cc_u32),
    FORM("subc.cc.u64", "u64 u64 u64", subc_cc_u64),
    FORM("subc.cc.s64", "s64 s64 s64", subc_cc_u64),
    FORM("mad.lo.cc.u32", "u32 u32 u32 u32", mad_lo_cc_u32),
    FORM("mad.lo.cc.s32", "s32 s32 s32 s32", mad_lo_cc_u32),
    FORM("mad.lo.cc.u64", "u64 u64 u64 u64", mad_lo_cc_u64),
    FORM("mad.lo.cc.s64", "s64 s64 s64 s64", mad_lo_cc_u64),
    FORM("madc.lo.u32", "u32 u32 u32 u32", madc_lo_u32),
    FORM("madc.lo.s32", "s32 s32 s32 s32", madc_lo_u32),
    FORM("madc.lo.u64", "u64 u64 u64 u64", madc_lo_u64),
    FORM("madc.lo.s64", "s64 s64 s64 s64", madc_lo_u64),
    FORM("madc.lo.cc.u32", "u32 u32 u32 u32", madc_lo_cc_u32),
    FORM("madc.lo.cc.s32", "s32 s32 s32 s32", madc_lo_cc_u32),
    FORM("madc.lo.cc.u64", "u64 u64 u64 u64", madc_lo_cc_u64),
    FORM("madc.lo.cc.s64", "s64 s64 s64 s64", madc_lo_cc_u64),
    FORM("mad.hi.cc.u32", "u32 u32 u32 u32", mad_hi_cc_u32),
    FORM("mad.hi.cc.s32", "s32 s32 s32 s32", mad_hi_cc_s32),
    FORM("mad.hi.cc.u64", "u64 u64 u64 u64", mad_hi_cc_u64),
    FORM("mad.hi.cc.s64", "s64 s64 s64 s64", mad_hi_cc_s64),
    FORM("madc.hi.u32", "u32 u32 u32 u32", madc_hi_u32),
    FORM("madc.hi.s32", "s32 s32 s32 s32", madc_hi_s32),
    FORM("madc.hi.u64", "u64 u64 u64 u64", madc_hi_u64),
    FORM("madc.hi.s64", "s64 s64 s64 s64", madc_hi_s64),
    FORM("madc.hi.cc.u32", "u32 u32 u32 u32", madc_hi_cc_u32),
    FORM("madc.hi.cc.s32", "s32 s32 s32 s32", madc_hi_cc_s32),
    FORM("madc.hi.cc.u64", "u64 u64 u64 u64", madc_hi_cc_u64),
    FORM("madc.hi.cc.s64", "s64 s64 s64 s64", madc_hi_cc_s64),
};

DecodeResult decode_integer(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  return form_decode(decoder, source, integer_forms, COUNT(integer_forms), inst);
}
