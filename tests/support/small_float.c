#include "small_float.h"

#include <fenv.h>
#include <math.h>

const SmallFloat small_f16 = {5, 10, 0x7bff, 0x7fff};
const SmallFloat small_bf16 = {8, 7, 0x7f7f, 0x7fff};
const SmallFloat small_tf32 = {8, 10, 0x3fbff, 0x3ffff};
const SmallFloat small_e4m3 = {4, 3, 0x7e, 0x7f};
const SmallFloat small_e5m2 = {5, 2, 0x7b, 0x7f};
const SmallFloat small_f32 = {8, 23, 0x7f7fffff, 0x7fffffff};
const SmallFloat small_f64 = {11, 52, 0x7fefffffffffffff, 0x7fffffffffffffff};

// fraction * 2^exponent for an exponent field, as if no exponent stood for infinity.
static Quad magnitude(const SmallFloat *format, uint64_t code) {
  int bias = (1 << (format->exponent_bits - 1)) - 1, field = (int)(code >> format->fraction_bits);
  uint64_t fraction = code & ((1ull << format->fraction_bits) - 1);
  if (field) fraction |= 1ull << format->fraction_bits;
  int exponent = (field ? field : 1) - bias - format->fraction_bits;
  double value = ldexp((double)fraction, exponent);  // exact: at most 53 bits, and none below 2^-1074
  return isinf(value) ? 2 * (Quad)ldexp((double)fraction, exponent - 1) : value;
}

Quad small_value(const SmallFloat *format, uint64_t code) {
  int sign_bit = format->exponent_bits + format->fraction_bits;
  bool negative = code >> sign_bit & 1;
  uint64_t positive = code & ((1ull << sign_bit) - 1);
  if (positive > format->largest) {
    bool infinite = format->largest + 1 != format->nan && positive == format->largest + 1;
    Quad special = infinite ? (Quad)INFINITY : (Quad)NAN;
    return negative ? -special : special;
  }
  return negative ? -magnitude(format, positive) : magnitude(format, positive);
}

static Quad absolute(Quad x) { return x < 0 ? -x : x; }

// The sign of x + y - z: the two largest first, so that at most the last sum is rounded, which keeps its sign.
static int compare_sum(Quad x, Quad y, Quad z) {
  if (y == 0) return (x > z) - (x < z);
  Quad terms[3] = {x, y, -z};
  int smallest = 0;
  for (int i = 1; i < 3; i++)
    if (absolute(terms[i]) < absolute(terms[smallest])) smallest = i;
  Quad sum = terms[(smallest + 1) % 3] + terms[(smallest + 2) % 3] + terms[smallest];
  return (sum > 0) - (sum < 0);
}

// The largest code whose magnitude is not above x + y, which is positive.
static uint64_t floor_code(const SmallFloat *format, Quad x, Quad y) {
  uint64_t low = 0, high = format->largest + 1;
  while (high - low > 1) {
    uint64_t middle = low + (high - low) / 2;
    if (compare_sum(x, y, magnitude(format, middle)) >= 0)
      low = middle;
    else
      high = middle;
  }
  return low;
}

static bool rounds_up(const SmallFloat *format, uint64_t code, Quad x, Quad y, int mode) {
  Quad below = magnitude(format, code), above = magnitude(format, code + 1);
  if (compare_sum(x, y, below) == 0 || mode == FE_TOWARDZERO) return false;
  if (mode == FE_UPWARD) return true;
  int side = compare_sum(x, y, (below + above) / 2);
  if (side) return side > 0;
  return mode == ROUND_TIES_AWAY || (code & 1);
}

uint64_t small_round(const SmallFloat *format, Quad x, Quad y, int mode, bool finite) {
  int sign_bit = format->exponent_bits + format->fraction_bits, sign = compare_sum(x, y, 0);
  Quad sum = x + y;
  if (sum != sum) return format->nan;
  if (sign == 0) {
    bool minus = x == 0 && y == 0 && signbit((double)x) && signbit((double)y);
    return minus || (mode == FE_DOWNWARD && x != 0) ? 1ull << sign_bit : 0;
  }
  uint64_t minus = sign < 0 ? 1ull << sign_bit : 0;
  if (sign < 0) {  // as the magnitude, with the opposite direction
    x = -x, y = -y;
    mode = mode == FE_UPWARD ? FE_DOWNWARD : mode == FE_DOWNWARD ? FE_UPWARD : mode;
  }
  if (mode == FE_DOWNWARD) mode = FE_TOWARDZERO;
  uint64_t infinity = finite ? format->largest : format->largest + 1;
  if (sum - sum != 0) return minus | infinity;
  uint64_t code = floor_code(format, x, y);
  code += rounds_up(format, code, x, y, mode);
  return minus | (code > format->largest ? infinity : code);
}
