// bf16 on the host, as bits: the upper half of a float. Sign 1 bit, exponent 8 bits (bias 127), fraction 7 bits.
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef uint16_t Bf16;

static inline bool bf16_is_finite(Bf16 x) { return (x & 0x7f80) != 0x7f80; }

// Exact.
static inline float bf16_to_float(Bf16 x) {
  uint32_t bits = (uint32_t)x << 16;
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

// Rounds to the nearest, ties to even. A double is first rounded to odd as a float: where bits are lost, the float's
// last bit is 1, so that the second rounding decides as if there had been no first.
static inline Bf16 bf16_from_double(double value) {
  if (isnan(value)) return 0x7fff;
  float near = (float)value;
  uint32_t bits;
  memcpy(&bits, &near, sizeof bits);
  if (isfinite(near) && near != value) {
    if (fabs((double)near) > fabs(value)) bits--;  // toward zero
    bits |= 1;
  }
  return (Bf16)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static inline double bf16_round(double value) { return bf16_to_float(bf16_from_double(value)); }
