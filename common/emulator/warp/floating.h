// What the floating-point families share: the GPU's NaN, flushing, saturation, minimum and maximum, exact sums, 2^x.
#pragma once

#include "float16.h"

// An f32 result that is NaN is always this one, whatever the sources carried: PTX ISA 9.7.3.
#define CANONICAL_NAN 0x7fffffffu

ALWAYS_INLINE f32 canonical_f32(f32 x) { return x != x ? f32_from_bits(CANONICAL_NAN) : x; }

// An f64 result that is NaN is the last source that is NaN, quieted, sign and payload kept; PTX leaves it open, an H200
// does this. The host would take the first one, or whichever operand the compiler put first.
ALWAYS_INLINE f64 quiet_f64(f64 x) { return f64_from_bits(f64_bits(x) | 1ull << 51); }
ALWAYS_INLINE f64 last_nan_f64(f64 x, f64 y, f64 result) {
  return y != y ? quiet_f64(y) : x != x ? quiet_f64(x) : result;
}

// .ftz: a subnormal becomes zero of its sign.
ALWAYS_INLINE f32 flush_f32(f32 x) {
  u32 bits = f32_bits(x);
  return f32_from_bits(bits & 0x7f800000 ? bits : bits & 0x80000000);
}

// .sat: to [0, 1], NaN and -0 to +0.
ALWAYS_INLINE f32 saturate_f32(f32 x) { return x > 0 ? (x < 1 ? x : 1) : 0; }
ALWAYS_INLINE f64 saturate_f64(f64 x) { return x > 0 ? (x < 1 ? x : 1) : 0; }
// .relu: negative numbers and -0 to +0; a NaN stays one.
ALWAYS_INLINE f64 relu_f64(f64 x) { return x > 0 || x != x ? x : 0; }

// The smaller of two numbers, -0 below +0; the other one when one is NaN.
ALWAYS_INLINE bool picks_first(bool less, bool equal, bool negative, bool other_nan) {
  return less | (equal & negative) | other_nan;
}
ALWAYS_INLINE f32 min_f32(f32 x, f32 y) { return picks_first(x < y, x == y, f32_bits(x) >> 31, y != y) ? x : y; }
ALWAYS_INLINE f32 max_f32(f32 x, f32 y) { return picks_first(x > y, x == y, !(f32_bits(x) >> 31), y != y) ? x : y; }
ALWAYS_INLINE f64 min_f64(f64 x, f64 y) { return picks_first(x < y, x == y, f64_bits(x) >> 63, y != y) ? x : y; }
ALWAYS_INLINE f64 max_f64(f64 x, f64 y) { return picks_first(x > y, x == y, !(f64_bits(x) >> 63), y != y) ? x : y; }
// Whether their result is NaN: when both sources are, or with .NaN (any_wins) when one is.
ALWAYS_INLINE bool extremum_is_nan(bool x_nan, bool y_nan, bool any_wins) {
  return (x_nan & y_nan) | ((x_nan | y_nan) & any_wins);
}

// x + y rounded to odd: when the sum is not exact, whichever neighbour has an odd last bit. Rounding that once more, to
// any format at least two bits narrower, gives the exact sum rounded once (Boldo and Melquiond, 2008).
ALWAYS_INLINE f64 sum_to_odd(f64 x, f64 y) {
  f64 sum = x + y, of_y = sum - x;
  f64 error = (x - (sum - of_y)) + (y - of_y);  // exactly what the rounding lost (Knuth's TwoSum); NaN for infinities
  u64 bits = f64_bits(sum);
  // An even last bit moves by one: away from zero when the error has the sum's sign, else towards it.
  u64 even = ~bits & 1, towards_zero = (f64_bits(error) ^ bits) >> 63;
  u64 step = even - 2 * (even & towards_zero);
  return f64_from_bits(bits + (__builtin_fabs(error) > 0 ? step : 0));
}

// 2^x to about 44 bits for |x| <= 1000, and beyond something that no narrower format can hold: x = n + f with |f| <=
// 1/2, 2^f by Taylor's series, 2^n by the exponent. Adding 1.5 * 2^52 leaves the integer n in the low bits of the sum.
ALWAYS_INLINE f64 exp2_f64(f64 x) {
  x = __builtin_fabs(x) > 1000 ? __builtin_copysign(1000, x) : x;
  f64 shifted = x + 0x1.8p52, f = x - (shifted - 0x1.8p52);
  f64 power = 0x1.e8cac7351bb25p-32;  // ln(2)^11 / 11!, and so on down to ln(2)^0 / 0!
  power = power * f + 0x1.e4cf5158b8ecap-28;
  power = power * f + 0x1.b5253d395e7c4p-24;
  power = power * f + 0x1.62c0223a5c824p-20;
  power = power * f + 0x1.ffcbfc588b0c7p-17;
  power = power * f + 0x1.430912f86c787p-13;
  power = power * f + 0x1.5d87fe78a6731p-10;
  power = power * f + 0x1.3b2ab6fba4e77p-7;
  power = power * f + 0x1.c6b08d704a0c0p-5;
  power = power * f + 0x1.ebfbdff82c58fp-3;
  power = power * f + 0x1.62e42fefa39efp-1;
  power = power * f + 1;
  return power * f64_from_bits((f64_bits(shifted) + 1023) << 52);
}
