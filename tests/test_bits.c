// Logic, shifts, bit fields and permutations on the emulator, against loops over single bits.
#include <criterion/criterion.h>

#include "support/run_ptx.h"

TestSuite(bits);

#define BITS (sample->types[0].bits)
#define SIGNED (sample->types[0].kind == VALUE_SIGNED)

// The function `name`, whose result is an expression of the sources' bits x, y, z, w.
#define EXPECT(name, result)                                                                                           \
  static void name(const Sample *sample, uint64_t *out) {                                                              \
    uint64_t x = sample->in[0], y = sample->in[1], z = sample->in[2], w = sample->in[3];                               \
    (void)x, (void)y, (void)z, (void)w;                                                                                \
    out[0] = (uint64_t)(result);                                                                                       \
  }

static unsigned bit(uint64_t x, int index) { return (unsigned)(x >> index & 1); }

// ---- logic ----

// Every truth table of three bits, one bit at a time.
static uint64_t by_table(unsigned table, uint64_t x, uint64_t y, uint64_t z) {
  uint64_t result = 0;
  for (int i = 0; i < 32; i++) result |= (uint64_t)bit(table, (int)(bit(x, i) * 4 + bit(y, i) * 2 + bit(z, i))) << i;
  return result;
}

EXPECT(and, x &y)
EXPECT(or, x | y)
EXPECT(xor, x ^ y)
EXPECT(not, ~x)
EXPECT(cnot, x == 0)
EXPECT(and_not, x && !y)
EXPECT(not_or, !x || y)
EXPECT(lop3_0x96, by_table(0x96, x, y, z))
EXPECT(lop3_0xe8, by_table(0xe8, x, y, z))
EXPECT(lop3_0x1b, by_table(0x1b, x, y, z))
EXPECT(lop3_0x80, by_table(0x80, x, y, z))
EXPECT(lop3_0x01, by_table(0x01, x, y, z))
EXPECT(lop3_0xff, by_table(0xff, x, y, z))

static void lop3_or(const Sample *sample, uint64_t *out) {
  out[0] = by_table(0xc0, sample->in[0], sample->in[1], sample->in[2]);
  out[1] = out[0] != 0 || sample->in[3];
}

static void lop3_and_not(const Sample *sample, uint64_t *out) {
  out[0] = by_table(0x80, sample->in[0], sample->in[1], sample->in[2]);
  out[1] = out[0] != 0 && !sample->in[3];
}

EXPECT(lop3_predicate, by_table(0x80, x, y, z) != 0 && w)

#define LOGIC(T)                                                                                                       \
  INSTRUCTION("and." #T, #T ": " #T " " #T, and, 0), INSTRUCTION("or." #T, #T ": " #T " " #T, or, 0),                  \
      INSTRUCTION("xor." #T, #T ": " #T " " #T, xor, 0), INSTRUCTION("not." #T, #T ": " #T, not, 0)

Test(bits, logic) {
  const InstructionTest tests[] = {
      LOGIC(pred),
      LOGIC(b16),
      LOGIC(b32),
      LOGIC(b64),
      {"cnot.b16", "b16: b16", cnot, 0},
      {"cnot.b32", "b32: b32", cnot, 0},
      {"cnot.b64", "b64: b64", cnot, 0},
      {"and.pred %d, %a, !%b", "pred: pred pred", and_not, 0},
      {"or.pred %d, !%a, %b", "pred: pred pred", not_or, 0},
      {"lop3.b32 %d, %a, %b, %c, 0x96", "b32: b32 b32 b32", lop3_0x96, 0},
      {"lop3.b32 %d, %a, %b, %c, 0xe8", "b32: b32 b32 b32", lop3_0xe8, 0},
      {"lop3.b32 %d, %a, %b, %c, 27", "b32: b32 b32 b32", lop3_0x1b, 0},
      {"lop3.b32 %d, %a, %b, %c, 0x80", "b32: b32 b32 b32", lop3_0x80, 0},
      {"lop3.b32 %d, %a, %b, %c, 1", "b32: b32 b32 b32", lop3_0x01, 0},
      {"lop3.b32 %d, %a, %b, %c, 255", "b32: b32 b32 b32", lop3_0xff, 0},
      {"lop3.or.b32 %d|%d2, %a, %b, %c, 0xc0, %e", "b32 pred: b32 b32 b32 pred", lop3_or, 0},
      {"lop3.and.b32 %d|%d2, %a, %b, %c, 0x80, !%e", "b32 pred: b32 b32 b32 pred", lop3_and_not, 0},
      {"lop3.and.b32 _|%d, %a, %b, %c, 0x80, %e", "pred: b32 b32 b32 pred", lop3_predicate, 0},
  };
  RUN_TESTS(tests);
}

// ---- shifts: one position at a time ----

static uint64_t shift_left(uint64_t x, int bits, uint64_t amount) {
  for (uint64_t i = 0; i < amount && i < 64; i++) x = x * 2 & (bits == 64 ? ~0ull : (1ull << bits) - 1);
  return x;
}

static uint64_t shift_right(uint64_t x, int bits, uint64_t amount, bool is_signed) {
  uint64_t sign = is_signed && bit(x, bits - 1) ? 1ull << (bits - 1) : 0;
  for (uint64_t i = 0; i < amount && i < 64; i++) x = x / 2 | sign;
  return x;
}

// The 64 bits y:x, shifted by the amount; the high word or the low one.
static uint64_t funnel_left(uint64_t x, uint64_t y, uint64_t amount) {
  return shift_left(y << 32 | x, 64, amount) >> 32;
}
static uint64_t funnel_right(uint64_t x, uint64_t y, uint64_t amount) {
  return shift_right(y << 32 | x, 64, amount, false);
}

EXPECT(shl, shift_left(x, BITS, y))
EXPECT(shr, shift_right(x, BITS, y, SIGNED))
EXPECT(shf_l_clamp, funnel_left(x, y, z > 32 ? 32 : z))
EXPECT(shf_r_clamp, funnel_right(x, y, z > 32 ? 32 : z))
EXPECT(shf_l_wrap, funnel_left(x, y, z % 32))
EXPECT(shf_r_wrap, funnel_right(x, y, z % 32))
EXPECT(rotate_5, funnel_left(x, x, 5))

#define SHR(T) INSTRUCTION("shr." #T, #T ": " #T " u32", shr, 0)

Test(bits, shifts) {
  const InstructionTest tests[] = {
      {"shl.b16", "b16: b16 u32", shl, 0},
      {"shl.b32", "b32: b32 u32", shl, 0},
      {"shl.b64", "b64: b64 u32", shl, 0},
      SHR(b16),
      SHR(b32),
      SHR(b64),
      SHR(u16),
      SHR(u32),
      SHR(u64),
      SHR(s16),
      SHR(s32),
      SHR(s64),
      {"shf.l.clamp.b32", "b32: b32 b32 u32", shf_l_clamp, 0},
      {"shf.r.clamp.b32", "b32: b32 b32 u32", shf_r_clamp, 0},
      {"shf.l.wrap.b32", "b32: b32 b32 u32", shf_l_wrap, 0},
      {"shf.r.wrap.b32", "b32: b32 b32 u32", shf_r_wrap, 0},
      {"shf.l.wrap.b32 %d, %a, %a, 5", "b32: b32", rotate_5, 0},
  };
  RUN_TESTS(tests);
}

// ---- prmt ----

static unsigned byte_of(uint64_t x, uint64_t y, unsigned index) {
  return (unsigned)((index < 4 ? x >> 8 * index : y >> 8 * (index - 4)) & 255);
}

static uint64_t prmt_default(uint64_t x, uint64_t y, uint64_t selectors) {
  uint64_t result = 0;
  for (int i = 3; i >= 0; i--) {
    unsigned selector = (unsigned)(selectors >> 4 * i) & 15, byte = byte_of(x, y, selector & 7);
    result = result << 8 | (selector < 8 ? byte : byte & 128 ? 255 : 0);
  }
  return result;
}

// Result byte i of the named modes takes source byte `index`, where n is the mode's number in z.
#define PRMT_MODE(name, index)                                                                                         \
  static void name(const Sample *sample, uint64_t *out) {                                                              \
    unsigned n = sample->in[2] & 3;                                                                                    \
    out[0] = 0;                                                                                                        \
    for (unsigned i = 0; i < 4; i++) out[0] |= (uint64_t)byte_of(sample->in[0], sample->in[1], (index)) << 8 * i;      \
  }

EXPECT(prmt, prmt_default(x, y, z))
PRMT_MODE(prmt_f4e, n + i)
PRMT_MODE(prmt_b4e, (n - i) & 7)
PRMT_MODE(prmt_rc8, n)
PRMT_MODE(prmt_ecl, i > n ? i : n)
PRMT_MODE(prmt_ecr, i < n ? i : n)
PRMT_MODE(prmt_rc16, (n & 1) * 2 + (i & 1))

Test(bits, permutations) {
  const InstructionTest tests[] = {
      {"prmt.b32", "b32: b32 b32 b32", prmt, 0},           {"prmt.b32.f4e", "b32: b32 b32 b32", prmt_f4e, 0},
      {"prmt.b32.b4e", "b32: b32 b32 b32", prmt_b4e, 0},   {"prmt.b32.rc8", "b32: b32 b32 b32", prmt_rc8, 0},
      {"prmt.b32.ecl", "b32: b32 b32 b32", prmt_ecl, 0},   {"prmt.b32.ecr", "b32: b32 b32 b32", prmt_ecr, 0},
      {"prmt.b32.rc16", "b32: b32 b32 b32", prmt_rc16, 0},
  };
  RUN_TESTS(tests);
}

// ---- counting and finding ----

static uint64_t count_ones(uint64_t x, int bits) {
  uint64_t count = 0;
  for (int i = 0; i < bits; i++) count += bit(x, i);
  return count;
}

static uint64_t count_leading_zeros(uint64_t x, int bits) {
  int i = bits;
  while (i > 0 && !bit(x, i - 1)) i--;
  return (uint64_t)(bits - i);
}

// The highest bit that differs from the sign (from zero, when unsigned).
static uint64_t find(uint64_t x, int bits, bool is_signed) {
  unsigned sign = is_signed ? bit(x, bits - 1) : 0;
  for (int i = bits - 1; i >= 0; i--)
    if (bit(x, i) != sign) return (uint64_t)i;
  return ~0ull;
}

static uint64_t reverse(uint64_t x, int bits) {
  uint64_t result = 0;
  for (int i = 0; i < bits; i++) result |= (uint64_t)bit(x, i) << (bits - 1 - i);
  return result;
}

// PTX ISA's description of fns, with base and offset as signed numbers. The least offset gives 0 on an H100.
static uint64_t find_nth(uint64_t x, int64_t base, int64_t offset) {
  if (offset == INT32_MIN) return 0;
  if (offset == 0) return base >= 0 && base < 32 && bit(x, (int)base) ? (uint64_t)base : ~0ull;
  int64_t step = offset > 0 ? 1 : -1, count = (offset > 0 ? offset : -offset) - 1;
  for (int64_t i = base; i >= 0 && i < 32; i += step)
    if (bit(x, (int)i) && count-- == 0) return (uint64_t)i;
  return ~0ull;
}

EXPECT(popc, count_ones(x, BITS))
EXPECT(clz, count_leading_zeros(x, BITS))
EXPECT(bfind, find(x, BITS, SIGNED))
EXPECT(bfind_shiftamt, find(x, BITS, SIGNED) == ~0ull ? ~0ull : (uint64_t)BITS - 1 - find(x, BITS, SIGNED))
EXPECT(brev, reverse(x, BITS))
EXPECT(fns, find_nth(x, (int64_t)y, (int32_t)z))

#define BFIND(T)                                                                                                       \
  INSTRUCTION("bfind." #T, "u32: " #T, bfind, 0), INSTRUCTION("bfind.shiftamt." #T, "u32: " #T, bfind_shiftamt, 0)

Test(bits, counting) {
  const InstructionTest tests[] = {
      {"popc.b32", "u32: b32", popc, 0},
      {"popc.b64", "u32: b64", popc, 0},
      {"clz.b32", "u32: b32", clz, 0},
      {"clz.b64", "u32: b64", clz, 0},
      BFIND(u32),
      BFIND(s32),
      BFIND(u64),
      BFIND(s64),
      {"brev.b32", "b32: b32", brev, 0},
      {"brev.b64", "b64: b64", brev, 0},
      {"fns.b32", "b32: b32 b32 s32", fns, 0},
  };
  RUN_TESTS(tests);
}

// ---- bit fields, as the PTX ISA describes them ----

static uint64_t extract(uint64_t x, int bits, bool is_signed, uint64_t position, uint64_t length) {
  uint64_t result = 0, top = (uint64_t)bits - 1, last = position + length - 1;
  unsigned sign = !is_signed || length == 0 ? 0 : bit(x, (int)(last < top ? last : top));
  for (uint64_t i = 0; i <= top; i++) {
    bool inside = i < length && position + i <= top;
    result |= (uint64_t)(inside ? bit(x, (int)(position + i)) : sign) << i;
  }
  return result;
}

static uint64_t insert(uint64_t x, uint64_t y, int bits, unsigned position, unsigned length) {
  for (unsigned i = 0; i < length && (int)(position + i) < bits; i++) {
    uint64_t place = 1ull << (position + i);
    y = (y & ~place) | (bit(x, (int)i) ? place : 0);
  }
  return y;
}

// Ones in bits start to start + width - 1.
static uint64_t ones(uint64_t start, uint64_t width) {
  uint64_t result = 0;
  for (uint64_t i = start; i < start + width && i < 32; i++) result |= 1ull << i;
  return result;
}

static uint64_t low_part(uint64_t x, uint64_t width, bool is_signed) {
  return width >= 32 ? x : extract(x, 32, is_signed, 0, width);
}

EXPECT(bfe, extract(x, BITS, SIGNED, y & 255, z & 255))
// PTX looks at 8 bits of position and length, but an H200 at all 32 when it extracts from 64 bits.
EXPECT(bfe_wide, extract(x, BITS, SIGNED, y & 0xffffffff, z & 0xffffffff))
EXPECT(bfi, insert(x, y, BITS, z & 255, w & 255))
EXPECT(bmsk_clamp, x >= 32 ? 0 : ones(x, y > 32 ? 32 : y))
EXPECT(bmsk_wrap, ones(x % 32, y % 32))
EXPECT(szext_clamp, low_part(x, y, SIGNED))
EXPECT(szext_wrap, low_part(x, y % 32, SIGNED))

Test(bits, fields) {
  const InstructionTest tests[] = {
      {"bfe.u32", "u32: u32 u32 u32", bfe, 0},
      {"bfe.s32", "s32: s32 u32 u32", bfe, 0},
      {"bfe.u64", "u64: u64 u32 u32", bfe_wide, 0},
      {"bfe.s64", "s64: s64 u32 u32", bfe_wide, 0},
      {"bfi.b32", "b32: b32 b32 u32 u32", bfi, 0},
      {"bfi.b64", "b64: b64 b64 u32 u32", bfi, 0},
      {"bmsk.clamp.b32", "b32: b32 b32", bmsk_clamp, 0},
      {"bmsk.wrap.b32", "b32: b32 b32", bmsk_wrap, 0},
      {"szext.clamp.u32", "u32: u32 u32", szext_clamp, 0},
      {"szext.clamp.s32", "s32: s32 u32", szext_clamp, 0},
      {"szext.wrap.u32", "u32: u32 u32", szext_wrap, 0},
      {"szext.wrap.s32", "s32: s32 u32", szext_wrap, 0},
  };
  RUN_TESTS(tests);
}
