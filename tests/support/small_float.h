// Floating-point formats by their definition: what number a code stands for, and which code is right for an exact sum.
// It searches codes by their values, so that it shares no idea with the emulator's conversions, and takes any format.
#pragma once

#include <stdbool.h>
#include <stdint.h>

__extension__ typedef __float128 Quad;

typedef struct SmallFloat {
  int exponent_bits, fraction_bits;
  uint64_t largest;  // the largest finite magnitude's code; the next one is infinity, or NaN in a format that has none
  uint64_t nan;
} SmallFloat;

extern const SmallFloat small_f16, small_bf16, small_tf32, small_e4m3, small_e5m2, small_f32, small_f64;

enum { ROUND_TIES_AWAY = -1 };  // a rounding mode besides those of fenv.h

// The number that a code stands for; NaN and infinities included.
Quad small_value(const SmallFloat *format, uint64_t code);
// The code of x + y, rounded once. Exact as long as x and y have at most 53 significant bits each. With `finite`,
// overflow and infinities give the largest finite number.
uint64_t small_round(const SmallFloat *format, Quad x, Quad y, int mode, bool finite);
