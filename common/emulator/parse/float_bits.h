// The bits of floating-point numbers.
#pragma once

#include <stdint.h>
#include <string.h>

#include "../host/host_memory.h"

ALWAYS_INLINE uint32_t f32_bits(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

ALWAYS_INLINE float f32_from_bits(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

ALWAYS_INLINE uint64_t f64_bits(double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

ALWAYS_INLINE double f64_from_bits(uint64_t bits) {
  double x;
  memcpy(&x, &bits, sizeof x);
  return x;
}
