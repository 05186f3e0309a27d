// Integer and bit instructions on the emulator, against 128-bit arithmetic and loops over single bits.
#include <criterion/criterion.h>

#include "support/run_ptx.h"

TestSuite(integer);

// The function `name`, whose result is an expression of the sources x, y, z, w as exact integers.
#define EXPECT(name, result)                                                                                           \
  static void name(const Sample *sample, uint64_t *out) {                                                              \
    Wide x = integer_source(sample, 0), y = integer_source(sample, 1), z = integer_source(sample, 2),                  \
         w = integer_source(sample, 3);                                                                                \
    (void)x, (void)y, (void)z, (void)w;                                                                                \
    out[0] = (uint64_t)(result);                                                                                       \
  }

#define BITS (sample->types[0].bits)
#define SIGNED (sample->types[0].kind == VALUE_SIGNED)
#define EVERY_TYPE(ROW, ...)                                                                                           \
  ROW(u16, __VA_ARGS__), ROW(s16, __VA_ARGS__), ROW(u32, __VA_ARGS__), ROW(s32, __VA_ARGS__), ROW(u64, __VA_ARGS__),   \
      ROW(s64, __VA_ARGS__)
#define SIGNED_TYPES(ROW, ...) ROW(s16, __VA_ARGS__), ROW(s32, __VA_ARGS__), ROW(s64, __VA_ARGS__)

// ---- arithmetic ----

// The high half of a product may need 128 unsigned bits.
static Wide high_product(const Sample *sample, Wide x, Wide y) {
  if (BITS == 64 && !SIGNED) return (Wide)((unsigned __int128)x * (unsigned __int128)y >> 64);
  return x * y >> BITS;
}

static Wide clamp(Wide x, Wide low, Wide high) { return x < low ? low : x > high ? high : x; }

EXPECT(add, x + y)
EXPECT(sub, x - y)
EXPECT(mul_lo, (unsigned __int128)x *(unsigned __int128)y)
EXPECT(mul_hi, high_product(sample, x, y))
EXPECT(mad_lo, (unsigned __int128)x *(unsigned __int128)y + (unsigned __int128)z)
EXPECT(mad_hi, high_product(sample, x, y) + z)
EXPECT(sad, z + (x < y ? y - x : x - y))
// Division by zero is unspecified; quotient and remainder are all ones, as an H200 has them.
EXPECT(divide, y == 0 ? -1 : x / y)
EXPECT(rem, y == 0 ? -1 : x % y)
EXPECT(min, x < y ? x : y)
EXPECT(max, x > y ? x : y)
EXPECT(absolute, x < 0 ? -x : x)
EXPECT(neg, -x)
EXPECT(add_sat, clamp(x + y, INT32_MIN, INT32_MAX))
EXPECT(sub_sat, clamp(x - y, INT32_MIN, INT32_MAX))
EXPECT(mad_hi_sat, clamp((x * y >> 32) + z, INT32_MIN, INT32_MAX))
EXPECT(min_relu, clamp(x < y ? x : y, 0, INT32_MAX))
EXPECT(max_relu, clamp(x > y ? x : y, 0, INT32_MAX))

Test(integer, arithmetic) {
  const InstructionTest tests[] = {
      EVERY_TYPE(TWO_SOURCES, "add", add),
      EVERY_TYPE(TWO_SOURCES, "sub", sub),
      EVERY_TYPE(TWO_SOURCES, "mul.lo", mul_lo),
      EVERY_TYPE(TWO_SOURCES, "mul.hi", mul_hi),
      EVERY_TYPE(THREE_SOURCES, "mad.lo", mad_lo),
      EVERY_TYPE(THREE_SOURCES, "mad.hi", mad_hi),
      EVERY_TYPE(THREE_SOURCES, "sad", sad),
      EVERY_TYPE(TWO_SOURCES, "div", divide),
      EVERY_TYPE(TWO_SOURCES, "rem", rem),
      EVERY_TYPE(TWO_SOURCES, "min", min),
      EVERY_TYPE(TWO_SOURCES, "max", max),
      SIGNED_TYPES(ONE_SOURCE, "abs", absolute),
      SIGNED_TYPES(ONE_SOURCE, "neg", neg),
      {"mul.wide.u16", "u32: u16 u16", mul_lo, 0},
      {"mul.wide.s16", "s32: s16 s16", mul_lo, 0},
      {"mul.wide.u32", "u64: u32 u32", mul_lo, 0},
      {"mul.wide.s32", "s64: s32 s32", mul_lo, 0},
      {"mad.wide.u16", "u32: u16 u16 u32", mad_lo, 0},
      {"mad.wide.s16", "s32: s16 s16 s32", mad_lo, 0},
      {"mad.wide.u32", "u64: u32 u32 u64", mad_lo, 0},
      {"mad.wide.s32", "s64: s32 s32 s64", mad_lo, 0},
      {"add.sat.s32", "s32: s32 s32", add_sat, 0},
      {"sub.sat.s32", "s32: s32 s32", sub_sat, 0},
      {"mad.hi.sat.s32", "s32: s32 s32 s32", mad_hi_sat, 0},
      {"min.relu.s32", "s32: s32 s32", min_relu, 0},
      {"min.s32.relu", "s32: s32 s32", min_relu, 0},
      {"max.relu.s32", "s32: s32 s32", max_relu, 0},
  };
  RUN_TESTS(tests);
}

// ---- sources that are not registers, and a destination that is a source ----

EXPECT(times_minus_7, x * -7)
EXPECT(minus_x, 1000 - x)
EXPECT(plus_big, x + 0x123456789abcdef)

Test(integer, operands) {
  const InstructionTest tests[] = {
      {"mul.lo.s32 %d, %a, -7", "s32: s32", times_minus_7, 0},
      {"sub.s16 %d, 1000, %a", "s16: s16", minus_x, 0},
      {"add.u64 %d, %a, 0x123456789abcdef", "u64: u64", plus_big, 0},
      {"mad.lo.s32 %a, %a, %b, %c;\nmov.b32 %d, %a", "s32: s32 s32 s32", mad_lo, 0},
  };
  RUN_TESTS(tests);
}

// ---- 24 bits, packed, dot products ----

// The low 24 bits, and with a sign the number that they are.
static Wide low24(const Sample *sample, Wide x) {
  Wide value = x & 0xffffff;
  return SIGNED && value >= 0x800000 ? value - 0x1000000 : value;
}
#define PRODUCT24 (low24(sample, x) * low24(sample, y))

EXPECT(mul24_lo, PRODUCT24)
EXPECT(mul24_hi, PRODUCT24 >> 16)
EXPECT(mad24_lo, PRODUCT24 + z)
EXPECT(mad24_hi, (uint32_t)(PRODUCT24 >> 16) + z)
EXPECT(mad24_hi_sat, clamp((PRODUCT24 >> 16) + z, INT32_MIN, INT32_MAX))

// A part of x: number `index` of those with `bits` bits.
static Wide part(Wide x, int index, int bits, bool is_signed) {
  Wide value = x >> index * bits & (((Wide)1 << bits) - 1);
  return is_signed && value >> (bits - 1) ? value - ((Wide)1 << bits) : value;
}
#define HALVES(f, is_signed)                                                                                           \
  ((f(part(x, 0, 16, is_signed), part(y, 0, 16, is_signed)) & 0xffff) |                                                \
   (f(part(x, 1, 16, is_signed), part(y, 1, 16, is_signed)) & 0xffff) << 16)

static Wide add2(Wide x, Wide y) { return x + y; }
static Wide min2(Wide x, Wide y) { return x < y ? x : y; }
static Wide max2(Wide x, Wide y) { return x > y ? x : y; }
static Wide min2_relu(Wide x, Wide y) { return max2(min2(x, y), 0); }
static Wide max2_relu(Wide x, Wide y) { return max2(max2(x, y), 0); }

EXPECT(add_16x2, HALVES(add2, false))
EXPECT(min_u16x2, HALVES(min2, false))
EXPECT(max_u16x2, HALVES(max2, false))
EXPECT(min_s16x2, HALVES(min2, true))
EXPECT(max_s16x2, HALVES(max2, true))
EXPECT(min_relu_s16x2, HALVES(min2_relu, true))
EXPECT(max_relu_s16x2, HALVES(max2_relu, true))

static Wide dot(Wide x, Wide y, Wide z, int parts, bool x_signed, bool y_signed, int first) {
  for (int i = 0; i < parts; i++) z += part(x, i, 32 / parts, x_signed) * part(y, first + i, 8, y_signed);
  return z;
}
#define DOTS(A, B, x_signed, y_signed)                                                                                 \
  EXPECT(dp4a_##A##_##B, dot(x, y, z, 4, x_signed, y_signed, 0))                                                       \
  EXPECT(dp2a_lo_##A##_##B, dot(x, y, z, 2, x_signed, y_signed, 0))                                                    \
  EXPECT(dp2a_hi_##A##_##B, dot(x, y, z, 2, x_signed, y_signed, 2))
#define DOT_ROWS(A, B)                                                                                                 \
  INSTRUCTION("dp4a." #A "." #B, "b32: b32 b32 b32", dp4a_##A##_##B, 0),                                               \
      INSTRUCTION("dp2a.lo." #A "." #B, "b32: b32 b32 b32", dp2a_lo_##A##_##B, 0),                                     \
      INSTRUCTION("dp2a.hi." #A "." #B, "b32: b32 b32 b32", dp2a_hi_##A##_##B, 0)
DOTS(u32, u32, false, false)
DOTS(u32, s32, false, true)
DOTS(s32, u32, true, false)
DOTS(s32, s32, true, true)

Test(integer, parts_of_a_register) {
  const InstructionTest tests[] = {
      {"mul24.lo.u32", "u32: u32 u32", mul24_lo, 0},
      {"mul24.lo.s32", "s32: s32 s32", mul24_lo, 0},
      {"mul24.hi.u32", "u32: u32 u32", mul24_hi, 0},
      {"mul24.hi.s32", "s32: s32 s32", mul24_hi, 0},
      {"mad24.lo.u32", "u32: u32 u32 u32", mad24_lo, 0},
      {"mad24.lo.s32", "s32: s32 s32 s32", mad24_lo, 0},
      {"mad24.hi.u32", "u32: u32 u32 u32", mad24_hi, 0},
      {"mad24.hi.s32", "s32: s32 s32 s32", mad24_hi, 0},
      {"mad24.hi.sat.s32", "s32: s32 s32 s32", mad24_hi_sat, 0},
      {"add.u16x2", "b32: b32 b32", add_16x2, 0},
      {"add.s16x2", "b32: b32 b32", add_16x2, 0},
      {"min.u16x2", "b32: b32 b32", min_u16x2, 0},
      {"max.u16x2", "b32: b32 b32", max_u16x2, 0},
      {"min.s16x2", "b32: b32 b32", min_s16x2, 0},
      {"max.s16x2", "b32: b32 b32", max_s16x2, 0},
      {"min.relu.s16x2", "b32: b32 b32", min_relu_s16x2, 0},
      {"max.s16x2.relu", "b32: b32 b32", max_relu_s16x2, 0},
      DOT_ROWS(u32, u32),
      DOT_ROWS(u32, s32),
      DOT_ROWS(s32, u32),
      DOT_ROWS(s32, s32),
  };
  RUN_TESTS(tests);
}

// ---- carries: pairs of instructions make sums and products of twice the width ----

#define WHOLE(low, high) ((unsigned __int128)(high) << BITS | (unsigned __int128)((low) & (((Wide)1 << BITS) - 1)))

// Low and high word of (y:x) op (w:z).
#define EXPECT_PAIR(name, result)                                                                                      \
  static void name(const Sample *sample, uint64_t *out) {                                                              \
    Wide x = integer_source(sample, 0), y = integer_source(sample, 1), z = integer_source(sample, 2),                  \
         w = integer_source(sample, 3);                                                                                \
    unsigned __int128 p = WHOLE(x, y), q = WHOLE(z, w), r = (result);                                                  \
    (void)p, (void)q;                                                                                                  \
    out[0] = (uint64_t)r;                                                                                              \
    out[1] = (uint64_t)(r >> BITS);                                                                                    \
  }
EXPECT_PAIR(add_pair, p + q)
EXPECT_PAIR(sub_pair, p - q)
EXPECT_PAIR(mad_pair, (unsigned __int128)x *(unsigned __int128)y + q)  // x * y + (w:z)

// The carry that a third instruction reads: into a zero register.
static void carry_of_sum(const Sample *sample, uint64_t *out) {
  Wide x = integer_source(sample, 0), y = integer_source(sample, 1);
  out[0] = (uint64_t)(x + y);
  out[1] = (uint64_t)((x + y) >> BITS & 1);
}

static void borrow_of_difference(const Sample *sample, uint64_t *out) {
  Wide x = integer_source(sample, 0), y = integer_source(sample, 1);
  out[0] = (uint64_t)(x - y);
  out[1] = x < y ? (uint64_t)-1 : 0;
}

// After a subtraction the flag is the carry of x + ~y + 1, set when there was no borrow.
static void carry_of_difference(const Sample *sample, uint64_t *out) {
  Wide x = integer_source(sample, 0), y = integer_source(sample, 1);
  out[0] = (uint64_t)(x - y);
  out[1] = x >= y;
}

// And subc takes one more away when the flag is clear, whichever instruction left it.
static void subc_after_sum(const Sample *sample, uint64_t *out) {
  Wide x = integer_source(sample, 0), y = integer_source(sample, 1);
  out[0] = (uint64_t)(x + y);
  out[1] = (uint64_t)(integer_source(sample, 2) - integer_source(sample, 3) - !((x + y) >> BITS & 1));
}

static void addc_after_subc(const Sample *sample, uint64_t *out) {
  Wide borrow = integer_source(sample, 0) < integer_source(sample, 1);
  Wide middle = integer_source(sample, 2) - integer_source(sample, 3) - borrow;
  out[0] = (uint64_t)middle;
  out[1] = middle >= 0;
}

static void madc_after_difference(const Sample *sample, uint64_t *out) {
  Wide x = integer_source(sample, 0), y = integer_source(sample, 1), z = integer_source(sample, 2);
  out[0] = (uint64_t)(x - y);
  out[1] = (uint64_t)x * (uint64_t)z + (uint64_t)y + (x >= y);
}

#define MIXED_ROWS(T)                                                                                                  \
  INSTRUCTION("sub.cc." #T " %d, %a, %b;\naddc." #T " %d2, 0, 0", #T " " #T ": " #T " " #T, carry_of_difference, 0),   \
      INSTRUCTION("add.cc." #T " %d, %a, %b;\nsubc." #T " %d2, %c, %e", #T " " #T ": " #T " " #T " " #T " " #T,        \
                  subc_after_sum, 0),                                                                                  \
      INSTRUCTION("mad.lo.cc." #T " %d, %a, 1, %b;\nsubc." #T " %d2, %c, %e", #T " " #T ": " #T " " #T " " #T " " #T,  \
                  subc_after_sum, 0),                                                                                  \
      INSTRUCTION("sub.cc." #T " %d, %a, %b;\nsubc.cc." #T " %d, %c, %e;\naddc." #T " %d2, 0, 0",                      \
                  #T " " #T ": " #T " " #T " " #T " " #T, addc_after_subc, 0),                                         \
      INSTRUCTION("sub.cc." #T " %d, %a, %b;\nmadc.lo." #T " %d2, %a, %c, %b", #T " " #T ": " #T " " #T " " #T,        \
                  madc_after_difference, 0)

#define CARRY_ROWS(T)                                                                                                  \
  INSTRUCTION("add.cc." #T " %d, %a, %c;\naddc." #T " %d2, %b, %e", #T " " #T ": " #T " " #T " " #T " " #T, add_pair,  \
              0),                                                                                                      \
      INSTRUCTION("sub.cc." #T " %d, %a, %c;\nsubc." #T " %d2, %b, %e", #T " " #T ": " #T " " #T " " #T " " #T,        \
                  sub_pair, 0),                                                                                        \
      INSTRUCTION("add.cc." #T " %d, %a, %c;\naddc.cc." #T " %d2, %b, %e", #T " " #T ": " #T " " #T " " #T " " #T,     \
                  add_pair, 0),                                                                                        \
      INSTRUCTION("sub.cc." #T " %d, %a, %c;\nsubc.cc." #T " %d2, %b, %e", #T " " #T ": " #T " " #T " " #T " " #T,     \
                  sub_pair, 0),                                                                                        \
      INSTRUCTION("mad.lo.cc." #T " %d, %a, %b, %c;\nmadc.hi." #T " %d2, %a, %b, %e",                                  \
                  #T " " #T ": " #T " " #T " " #T " " #T, mad_pair, 0),                                                \
      INSTRUCTION("mad.lo.cc." #T " %d, %a, %b, %c;\nmadc.hi.cc." #T " %d2, %a, %b, %e",                               \
                  #T " " #T ": " #T " " #T " " #T " " #T, mad_pair, 0),                                                \
      INSTRUCTION("add.cc." #T " %d, %a, %b;\naddc." #T " %d2, 0, 0", #T " " #T ": " #T " " #T, carry_of_sum, 0),      \
      INSTRUCTION("mad.lo.cc." #T " %d, %a, 1, %b;\naddc." #T " %d2, 0, 0", #T " " #T ": " #T " " #T, carry_of_sum,    \
                  0),                                                                                                  \
      INSTRUCTION("sub.cc." #T " %d, %a, %b;\nsubc." #T " %d2, 0, 0", #T " " #T ": " #T " " #T, borrow_of_difference,  \
                  0)

// Carries through a middle word: (x : all ones) + (y : 1) in words, whose carry reaches the third addition.
static void middle_carry(const Sample *sample, uint64_t *out) {
  Wide carry = (integer_source(sample, 0) + integer_source(sample, 1)) >> BITS & 1;
  Wide middle = integer_source(sample, 2) + integer_source(sample, 3) + carry;
  out[0] = (uint64_t)middle;
  out[1] = (uint64_t)(middle >> BITS & 1);
}

static void middle_product_carry(const Sample *sample, uint64_t *out) {
  Wide x = integer_source(sample, 0), y = integer_source(sample, 1), z = integer_source(sample, 2);
  Wide mask = ((Wide)1 << BITS) - 1;
  Wide carry = (x + y) >> BITS & 1,
       sum = (Wide)((unsigned __int128)x * (unsigned __int128)z & (unsigned __int128)mask) + y + carry;
  out[0] = (uint64_t)sum;
  out[1] = (uint64_t)(sum >> BITS & 1);
}

static void middle_borrow(const Sample *sample, uint64_t *out) {
  Wide borrow = integer_source(sample, 0) < integer_source(sample, 1);
  Wide middle = integer_source(sample, 2) - integer_source(sample, 3) - borrow;
  out[0] = (uint64_t)middle;
  out[1] = middle < 0 ? (uint64_t)-1 : 0;
}

static void middle_high_carry(const Sample *sample, uint64_t *out) {
  Wide x = integer_source(sample, 0), y = integer_source(sample, 1), z = integer_source(sample, 2);
  Wide sum = high_product(sample, x, z) + integer_source(sample, 3) + ((x + y) >> BITS & 1);
  out[0] = (uint64_t)sum;
  out[1] = (uint64_t)(sum >> BITS & 1);
}

#define MIDDLE_ROWS(T)                                                                                                 \
  INSTRUCTION("add.cc." #T " %d, %a, %b;\naddc.cc." #T " %d, %c, %e;\naddc." #T " %d2, 0, 0",                          \
              #T " " #T ": " #T " " #T " " #T " " #T, middle_carry, 0),                                                \
      INSTRUCTION("sub.cc." #T " %d, %a, %b;\nsubc.cc." #T " %d, %c, %e;\nsubc." #T " %d2, 0, 0",                      \
                  #T " " #T ": " #T " " #T " " #T " " #T, middle_borrow, 0),                                           \
      INSTRUCTION("add.cc." #T " %d, %a, %b;\nmadc.hi.cc." #T " %d, %a, %c, %e;\naddc." #T " %d2, 0, 0",               \
                  #T " " #T ": " #T " " #T " " #T " " #T, middle_high_carry, 0),                                       \
      INSTRUCTION("add.cc." #T " %d, %a, %b;\nmadc.lo.cc." #T " %d, %a, %c, %b;\naddc." #T " %d2, 0, 0",               \
                  #T " " #T ": " #T " " #T " " #T, middle_product_carry, 0),                                           \
      INSTRUCTION("add.cc." #T " %d, %a, %b;\nmadc.lo." #T " %d, %a, %c, %b;\nadd.cc." #T " %d2, 0, 0;\n"              \
                  "add.cc." #T " %d2, %a, %b;\nmadc.lo.cc." #T " %d2, %a, %c, %b;\naddc." #T " %d2, 0, 0",             \
                  #T " " #T ": " #T " " #T " " #T, middle_product_carry, 0)

Test(integer, carries) {
  const InstructionTest tests[] = {
      CARRY_ROWS(u32),
      CARRY_ROWS(u64),
      MIDDLE_ROWS(u32),
      MIDDLE_ROWS(u64),
      MIXED_ROWS(u32),
      MIXED_ROWS(u64),
      {"add.cc.s32 %d, %a, %c;\naddc.s32 %d2, %b, %e", "u32 u32: u32 u32 u32 u32", add_pair, 0},
      {"sub.cc.s64 %d, %a, %c;\nsubc.s64 %d2, %b, %e", "u64 u64: u64 u64 u64 u64", sub_pair, 0},
      {"mad.lo.cc.s32 %d, %a, %b, %c;\nmadc.hi.s32 %d2, %a, %b, %e", "s32 s32: s32 s32 s32 s32", mad_pair, 0},
      {"mad.lo.cc.s64 %d, %a, %b, %c;\nmadc.hi.s64 %d2, %a, %b, %e", "s64 s64: s64 s64 s64 s64", mad_pair, 0},
  };
  RUN_TESTS(tests);
}

// ---- refused ----

Test(integer, refused) {
  const RefusedTest tests[] = {
      {"add.sat.u32 %r0, %r1, %r2", "no such form; there is add.u32"},
      {"add.s32 %r0, %r1", "operands"},
      {"add.s32 %r0, %r1, %r2, %r3", "operands"},
      {"add.s32 %r0, %r1, %rd2", "register %rd2"},
      {"add.s32 %rd0, %r1, %r2", "register %rd0"},
      {"add.s32 %r0, %r1, 1.5", "immediate"},
      {"add.s32 %r0, %r1, -%r2", "negated"},
      {"add.s32 5, %r1, %r2", "destination"},
      {"add.u8 %h0, %h1, %h2", "add"},
      {"add %r0, %r1, %r2", "add"},
      {"mul.s32 %r0, %r1, %r2", "mul.lo.s32"},
      {"mul.wide.s64 %rd0, %rd1, %rd2", "no such form"},
      {"mad.wide.s32 %r0, %r1, %r2, %r3", "register %r0"},
      {"mad.hi.sat.u32 %r0, %r1, %r2, %r3", "no such form"},
      {"add.cc.u16 %h0, %h1, %h2", "no such form"},
      {"abs.u32 %r0, %r1", "abs"},
      {"dp4a.u32 %r0, %r1, %r2, %r3", "no such form"},
      {"div.rn.s32 %r0, %r1, %r2", "no such form"},
      {"shf.l.b32 %r0, %r1, %r2, %r3", "shf.l.clamp.b32"},
      {"shl.u32 %r0, %r1, %r2", "shl"},
      {"shl.b64 %rd0, %rd1, %rd2", "register %rd2"},
      {"prmt.b32.xyz %r0, %r1, %r2, %r3", "no such form"},
      {"lop3.b32 %r0, %r1, %r2, %r3, %r4", "truth table"},
      {"lop3.b32 %r0, %r1, -%r2, %r3, 1", "negated"},
      {"lop3.b32 %r0, %r1, %r2, %r3, 256", "truth table"},
      {"lop3.xor.b32 %r0|%p0, %r1, %r2, %r3, 1, %p1", "lop3.or.b32"},
      {"lop3.or.b32 %r0, %r1, %r2, %r3, 1, %p1", "d|p"},
      {"and.pred %p0, %p1, %r2", "register %r2"},
      {"and.b32 %r0, %p1, %r2", "register %p1"},
      {"bfind.u16 %r0, %h1", "bfind"},
      {"popc.b64 %rd0, %rd1", "register %rd0"},
  };
  RUN_REFUSED_TESTS(tests);
}
