// Rounding toward zero, down and up: in the host's modes, or by software on hosts whose fesetround does nothing, such
// as WebAssembly. To nearest, every host's arithmetic is IEEE 754's.
#pragma once

#include "forms.h"
#include "lanes.h"

// Whether instructions are rounded by software. At the first call one sum in one of the host's modes decides.
bool rounds_by_software(void);
// From now on also where the host has modes, for tests.
void round_by_software(void);
// The value for the host's fesetround; to nearest where the host has no other.
int host_mode(Rounding rounding);

// f64 arithmetic in integers, with a rounding other than to nearest; rounded_fma also to nearest. For NaNs,
// infinities and quotients of zero the result is the host's.
f64 rounded_add(f64 x, f64 y, Rounding rounding);
f64 rounded_multiply(f64 x, f64 y, Rounding rounding);
// x * y + z, rounded once.
f64 rounded_fma(f64 x, f64 y, f64 z, Rounding rounding);
f64 rounded_divide(f64 x, f64 y, Rounding rounding);
f64 rounded_sqrt(f64 x, Rounding rounding);
