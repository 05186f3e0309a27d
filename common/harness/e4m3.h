// e4m3 on the host, as bits: the FP8 type with the larger precision and the smaller range (PTX ISA 5.2.3).
//   sign 1 bit, exponent 4 bits (bias 7), fraction 3 bits; exponent 0 is subnormal. There is no infinity: only 0x7f and
//   0xff are NaN, so the largest number is 0x7e, 1.75 * 2^8 = 448, and the smallest 0x01, 2^-9.
#pragma once

#include <math.h>
#include <stdint.h>
#include <string.h>

typedef uint8_t E4m3;

enum { E4M3_LARGEST = 448 };

// Exact.
static inline float e4m3_to_float(E4m3 code) {
  int exponent = code >> 3 & 15, fraction = code & 7;
  float magnitude = exponent ? ldexpf((float)(8 + fraction), exponent - 10) : ldexpf((float)fraction, -9);
  if ((code & 0x7f) == 0x7f) magnitude = NAN;
  return code & 0x80 ? -magnitude : magnitude;
}

// The distance between e4m3 numbers of this size: 2^-3 of the power of two below it, and at least 2^-9.
static inline double e4m3_step(double magnitude) {
  uint64_t bits;
  double step;
  memcpy(&bits, &magnitude, sizeof bits);
  uint64_t exponent = bits >> 52;  // with a bias of 1023
  bits = (exponent < 1023 - 6 ? 1023 - 6 - 3 : exponent - 3) << 52;
  memcpy(&step, &bits, sizeof step);
  return step;
}

// Rounds to the nearest, ties to even. Numbers beyond 448 and infinities become 448, as PTX's cvt with .satfinite does;
// NaN stays NaN. The processor rounds: it adds a number whose last fraction bit weighs one step.
static inline double e4m3_round(double value) {
  double magnitude = fabs(value);
  if (isnan(value)) return value;
  if (magnitude >= E4M3_LARGEST) return copysign(E4M3_LARGEST, value);
  double shift = 0x1p52 * e4m3_step(magnitude);
  return copysign(magnitude + shift - shift, value);
}

// With the fraction's leading bit, a normal number is 8 to 15 steps, and each power of two has 8 more codes.
static inline E4m3 e4m3_from_double(double value) {
  E4m3 sign = signbit(value) ? 0x80 : 0;
  if (isnan(value)) return sign | 0x7f;
  double magnitude = fabs(e4m3_round(value)), step = e4m3_step(magnitude);
  return sign | (E4m3)(8 * (ilogb(step) + 9) + (int)(magnitude / step));
}
