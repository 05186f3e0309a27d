// fp16 on the host, as bits, because not every compiler has the type.
//   sign 1 bit, exponent 5 bits (bias 15), fraction 10 bits; exponent 0 is subnormal, 31 is infinity or NaN.
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef uint16_t Half;

static inline bool half_is_finite(Half half) { return (half & 0x7c00) != 0x7c00; }
static inline bool half_is_nan(Half half) { return (half & 0x7fff) > 0x7c00; }

// Exact. The fields move up by 13 bits, which makes the number 2^112 times too small, because the exponents' biases
// differ by 112; also where it is subnormal. An infinity and a NaN get float's largest exponent. Without a branch:
// loops over it become wide instructions.
static inline float half_to_float(Half half) {
  uint32_t sign = (uint32_t)(half & 0x8000) << 16, bits = (uint32_t)(half & 0x7fff) << 13;
  uint32_t special = bits >= 0x7c00u << 13 ? 0x7f800000 : 0;
  float value;
  memcpy(&value, &bits, sizeof value);
  value *= 0x1p112f;
  memcpy(&bits, &value, sizeof bits);
  bits |= special | sign;
  memcpy(&value, &bits, sizeof value);
  return value;
}

// Rounds to the nearest, ties to even; numbers that exceed 65504 by half a unit or more become infinite. The processor
// does the rounding: it adds a number whose last fraction bit weighs as much as the result's last bit.
static inline Half half_from_double(double value) {
  uint16_t sign = signbit(value) ? 0x8000 : 0;
  double magnitude = fabs(value);
  if (isnan(value)) return sign | 0x7e00;
  if (magnitude >= 65520.0) return sign | 0x7c00;
  if (magnitude < 0x1p-14) return sign | (uint16_t)((magnitude + 0x1p28) * 0x1p24 - 0x1p52);

  uint64_t bits;
  memcpy(&bits, &magnitude, sizeof bits);
  bits += ((uint64_t)1 << 41) - 1 + (bits >> 42 & 1);
  return sign | (uint16_t)((bits >> 42) - ((uint64_t)(1023 - 15) << 10));
}

static inline double half_round(double value) { return half_to_float(half_from_double(value)); }
