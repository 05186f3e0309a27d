// f64 rounded toward zero, down and up in integers, against the host's own arithmetic in these modes, bit for bit; and
// fused products rounded to nearest, against its instruction for them or glibc. test_float.c checks the instructions.
#include <criterion/criterion.h>
#include <fenv.h>
#include <math.h>

#include "emulator/warp/fused.h"
#include "emulator/warp/rounded.h"

TestSuite(rounded, .timeout = 60);

static const int modes[] = {[ROUND_ZERO] = FE_TOWARDZERO, [ROUND_DOWN] = FE_DOWNWARD, [ROUND_UP] = FE_UPWARD};

static u64 state = 1;

// Marsaglia's xorshift, by a factor.
static u64 random_bits(void) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state * 0x2545f4914f6cdd1d;
}

// Any bits; or numbers near the smallest, near the largest, near 1, and of a few bits; or one of the table.
static f64 random_number(void) {
  static const f64 special[] = {0,       1, 3, 0x1p-1074, 0x1.fffffffffffffp-1023, 0x1p-1022, 0x1.fffffffffffffp1023,
                                INFINITY};
  u64 bits = random_bits(), sign_and_fraction = bits & 0x800fffffffffffff;
  u64 near = random_bits() % 120;
  switch (random_bits() % 8) {
  case 0: return (bits >> 63 ? -1 : 1) * special[bits % 8];
  case 1: return f64_from_bits(sign_and_fraction);
  case 2: return f64_from_bits(sign_and_fraction | near << 52);
  case 3: return f64_from_bits(sign_and_fraction | (2046 - near) << 52);
  case 4: return f64_from_bits(sign_and_fraction | (960 + near) << 52);
  case 5: return f64_from_bits(sign_and_fraction | (460 + near) << 52);  // products near the smallest
  case 6: return (f64)(s64)(bits >> near % 64);
  default: return f64_from_bits(bits);
  }
}

static void expect_same(const char *name, f64 x, f64 y, f64 z, Rounding rounding, f64 got, f64 expected) {
  bool both_nan = got != got && expected != expected;
  cr_assert(both_nan || f64_bits(got) == f64_bits(expected), "%s %a %a %a, rounding %d: %a and not %a", name, x, y, z,
            rounding, got, expected);
}

// The operands and the result are volatile, or else the compiler computes in another mode.
#define EXPECT_SAME(name, expression, got)                                                                             \
  do {                                                                                                                 \
    fesetround(modes[rounding]);                                                                                       \
    volatile f64 expected = (expression);                                                                              \
    fesetround(FE_TONEAREST);                                                                                          \
    expect_same(name, x, y, z, rounding, got, expected);                                                               \
  } while (0)

static void expect_all(const f64 operands[3], Rounding rounding) {
  volatile f64 x = operands[0], y = operands[1], z = operands[2];
  EXPECT_SAME("add", x + y, rounded_add(x, y, rounding));
  EXPECT_SAME("multiply", x * y, rounded_multiply(x, y, rounding));
  EXPECT_SAME("fma", fma(x, y, z), rounded_fma(x, y, z, rounding));
  EXPECT_SAME("divide", x / y, rounded_divide(x, y, rounding));
  EXPECT_SAME("sqrt", sqrt(x), rounded_sqrt(x, rounding));
}

// Of every fourth, the addend cancels the product but for a few last bits, and a second operand the first.
static void random_operands(int i, f64 operands[3]) {
  f64 x = random_number(), y = random_number(), z = random_number();
  f64 nearly = 1 + (f64)(random_bits() % 4) * 0x1p-52;
  if (i % 4 == 1) z = -(x * y) * nearly;
  if (i % 4 == 2) y = -x * nearly;
  operands[0] = x, operands[1] = y, operands[2] = z;
}

// A host that has no modes has nothing to compare with: this is the test of what it uses in their place.
static void where_the_host_has_modes(void) {
  if (rounds_by_software()) cr_skip_test("this host has no rounding modes");
}

Test(rounded, as_the_hosts_modes) {
  enum { SAMPLES = 300000 };
  where_the_host_has_modes();
  for (int i = 0; i < SAMPLES; i++) {
    f64 operands[3];
    random_operands(i, operands);
    for (Rounding rounding = ROUND_ZERO; rounding <= ROUND_UP; rounding++) expect_all(operands, rounding);
  }
}

Test(rounded, fused_products_to_nearest) {
  enum { SAMPLES = 2000000 };
  where_the_host_has_modes();
  for (int i = 0; i < SAMPLES; i++) {
    f64 operands[3];
    random_operands(i, operands);
    f64 x = operands[0], y = operands[1], z = operands[2];
    expect_same("fma", x, y, z, ROUND_NEAREST, rounded_fma(x, y, z, ROUND_NEAREST), fma(x, y, z));
  }
}

// Any bits; or numbers of a few bits, whose products with an addend of another size lie between two numbers or beside
// that.
static f32 random_f32(void) {
  u64 bits = random_bits();
  if (bits % 4 == 0) return f32_from_bits((u32)(bits >> 32));
  u32 fraction = (u32)(bits >> 40) & 0x7fffff & ~((1u << (bits >> 8) % 24) - 1);
  u32 exponent = bits % 4 == 1 ? (u32)(bits >> 16) % 30 : 112 + (u32)(bits >> 16) % 30;
  return f32_from_bits((u32)(bits >> 63) << 31 | exponent << 23 | fraction);
}

Test(rounded, fused_products_of_f32) {
  enum { SAMPLES = 4000000 };
  where_the_host_has_modes();
  for (int i = 0; i < SAMPLES; i++) {
    f32 x = random_f32(), y = random_f32(), z = random_f32();
    if (i % 2) z = -(x * y) * (1 + (f32)(random_bits() % 4) * 0x1p-23f);
    f32 got = rounded_fma_f32(x, y, z), expected = fmaf(x, y, z);
    cr_assert((got != got && expected != expected) || f32_bits(got) == f32_bits(expected), "%a %a %a: %a and not %a",
              (f64)x, (f64)y, (f64)z, (f64)got, (f64)expected);
  }
}
