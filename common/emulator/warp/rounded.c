// Rounding toward zero, down and up: see rounded.h.
#include "rounded.h"

#include <fenv.h>
#include <math.h>
#include <stdatomic.h>

#include "float16.h"
#include "fused.h"

// ---- the host's modes ----

int host_mode(Rounding rounding) {
#if defined FE_TOWARDZERO && defined FE_DOWNWARD && defined FE_UPWARD
  static const int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD, FE_TONEAREST};
  return modes[rounding];
#else
  return (void)rounding, FE_TONEAREST;
#endif
}

// Volatile, or else the compiler adds in another mode.
static bool host_rounds(void) {
  volatile f64 one = 1, little = 0x1p-60, sum;
  fesetround(host_mode(ROUND_UP));
  sum = one + little;
  fesetround(FE_TONEAREST);
  return sum > 1;
}

static _Atomic int by_software = -1;  // not yet known

bool rounds_by_software(void) {
  if (by_software < 0) by_software = !host_rounds();
  return by_software;
}

void round_by_software(void) { by_software = true; }

// ---- by software ----

// An exact number other than an infinity or a NaN: (high * 2^64 + low) * 2^exponent.
typedef struct Exact {
  bool negative;
  int exponent;
  u64 high, low;
} Exact;

// The same number with the highest bit of its 128 set; of a zero, the same.
static Exact normalised(Exact x) {
  int by = x.high ? __builtin_clzll(x.high) : x.low ? 64 + __builtin_clzll(x.low) : 0;
  x.exponent -= by;
  if (by >= 64) x.high = x.low, x.low = 0, by -= 64;
  if (by) x.high = x.high << by | x.low >> (64 - by), x.low <<= by;
  return x;
}

// Bits that do not fit are not lost without a trace: the lowest bit is set for them.
static Exact shifted_right(Exact x, int by) {
  x.exponent += by;
  bool lost =
      by >= 128 || (by > 64 && x.high << (128 - by)) || (by >= 64 && x.low) || (by && by < 64 && x.low << (64 - by));
  if (by >= 64) x.low = x.high, x.high = 0, by -= 64;
  if (by >= 64) x.low = 0, by = 0;
  if (by) x.low = x.low >> by | x.high << (64 - by), x.high >>= by;
  x.low |= lost;
  return x;
}

static Exact exact_of(f64 x) {
  u64 bits = f64_bits(x), fraction = bits & ((1ull << 52) - 1);
  int field = (int)(bits >> 52 & 0x7ff);
  Exact exact = {bits >> 63, (field ? field : 1) - 1075, 0, field ? fraction | 1ull << 52 : fraction};
  return normalised(exact);
}

// Of numbers that stand in their high halves.
static Exact exact_product(Exact x, Exact y) {
  return normalised((Exact){x.negative != y.negative, x.exponent + y.exponent + 128, high_product_u64(x.high, y.high),
                            x.high * y.high});
}

static bool is_below(Exact x, Exact y) { return x.high < y.high || (x.high == y.high && x.low < y.low); }

// The difference of magnitudes with one exponent, whose sign is that of the larger one.
static Exact difference(Exact x, Exact y) {
  if (is_below(x, y)) return difference(y, x);
  return (Exact){x.negative, x.exponent, x.high - y.high - (x.low < y.low), x.low - y.low};
}

// Of normalised numbers of which one has no more than 106 bits and the other one no more than 53. The smaller one loses
// bits only where it is too small for the larger one's highest bits to cancel.
static Exact exact_sum(Exact x, Exact y) {
  if (!(y.high | y.low)) return x;
  if (!(x.high | x.low)) return y;
  x = shifted_right(x, 1), y = shifted_right(y, 1);  // room for a carry
  int distance = x.exponent - y.exponent;
  if (distance > 0) y = shifted_right(y, distance);
  if (distance < 0) x = shifted_right(x, -distance);
  if (x.negative != y.negative) return difference(x, y);
  u64 low = x.low + y.low;
  return (Exact){x.negative, x.exponent, x.high + y.high + (low < y.low), low};
}

// No zero. Below the smallest normal number more bits are cut off, and the exponent's field is 0.
static f64 rounded(Exact x, Rounding rounding) {
  x = normalised(x);
  const u64 largest = 0x7fefffffffffffff;
  u64 magnitude = x.high | (x.low != 0);
  int field = x.exponent + 127 + 1023, cut = 11 + (field < 1 ? 1 - field : 0);
  u64 kept = cut < 64 ? magnitude >> cut : 0, rest = cut < 64 ? magnitude << (64 - cut) : cut == 64 ? magnitude : 1;
  u64 code = kept + rounds_up(rounding, x.negative, kept, rest) + ((u64)(field < 1 ? 0 : field - 1) << 52);
  if (field > 2046 || code > largest) code = largest + !overflow_stays(rounding, x.negative);
  return f64_from_bits((u64)x.negative << 63 | code);
}

f64 rounded_fma(f64 x, f64 y, f64 z, Rounding rounding) {
  if (!isfinite(x) || !isfinite(y)) return x * y + z;
  if (!isfinite(z)) return z + z;
  Exact product = exact_product(exact_of(x), exact_of(y)), addend = exact_of(z), sum = exact_sum(product, addend);
  if (sum.high | sum.low) return rounded(sum, rounding);
  if (product.negative == addend.negative) return product.negative ? -0.0 : 0.0;  // two zeros
  return rounding == ROUND_DOWN ? -0.0 : 0.0;
}

f64 rounded_add(f64 x, f64 y, Rounding rounding) { return rounded_fma(x, 1, y, rounding); }

f64 rounded_multiply(f64 x, f64 y, Rounding rounding) {
  return rounded_fma(x, y, signbit(x) == signbit(y) ? 0.0 : -0.0, rounding);
}

// The quotient and the root of significands come from the host, rounded to nearest; then the remainder, which is a
// number of f64, tells on which side of it the exact one lies. One unit far below their 53 bits stands for the rest.
static Exact beside(f64 nearest, f64 remainder, int exponent) {
  u64 bits = (u64)nearest;
  return (Exact){false, exponent, bits - (remainder < 0), remainder > 0};
}

f64 rounded_divide(f64 x, f64 y, Rounding rounding) {
  if (!isfinite(x) || !isfinite(y) || x == 0 || y == 0) return x / y;
  Exact above = exact_of(x), below = exact_of(y);
  f64 numerator = (f64)above.high, denominator = (f64)below.high, quotient = numerator / denominator;
  Exact exact =
      beside(quotient * 0x1p60, fused_f64(-quotient, denominator, numerator), above.exponent - below.exponent - 124);
  exact.negative = above.negative != below.negative;
  return rounded(exact, rounding);
}

f64 rounded_sqrt(f64 x, Rounding rounding) {
  if (!(x > 0) || !isfinite(x)) return sqrt(x);
  Exact exact = exact_of(x);
  int odd = exact.exponent & 1;
  f64 square = (f64)(exact.high >> odd), root = sqrt(square);
  return rounded(beside(root * 0x1p30, fused_f64(-root, root, square), (exact.exponent + odd + 64) / 2 - 94), rounding);
}
