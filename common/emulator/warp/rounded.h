// f64 arithmetic rounded toward zero, down or up, in integers: WebAssembly has no such modes, and where a host has them, a
// change costs as much as the arithmetic. To nearest, the host's own arithmetic is IEEE 754's.
//
// What is a NaN or an infinity by IEEE 754, or the quotient of a zero, is as the host has it.
#pragma once

#include "forms.h"
#include "lanes.h"

f64 rounded_add(f64 x, f64 y, Rounding rounding);
f64 rounded_multiply(f64 x, f64 y, Rounding rounding);
// x * y + z, rounded once.
f64 rounded_fma(f64 x, f64 y, f64 z, Rounding rounding);
f64 rounded_divide(f64 x, f64 y, Rounding rounding);
f64 rounded_sqrt(f64 x, Rounding rounding);
