// Fused products, x * y + z rounded once to nearest, on every host.
#pragma once

#include <math.h>

#include "floating.h"
#include "rounded.h"

ALWAYS_INLINE f32 rounded_fma_f32(f32 x, f32 y, f32 z) { return (f32)sum_to_odd((f64)x * (f64)y, z); }

// A host without an instruction for it has a function, and musl's, which WebAssembly uses, are wrong there: fmaf rounds
// ties by a mode that does not exist, and fma makes +0 of +0 and a tiny negative product.
#if defined __GLIBC__ || (defined FP_FAST_FMA && defined FP_FAST_FMAF)
#define LIBRARY_FUSES
#endif

ALWAYS_INLINE f64 fused_f64(f64 x, f64 y, f64 z) {
#ifdef LIBRARY_FUSES
  return fma(x, y, z);
#else
  return rounded_fma(x, y, z, ROUND_NEAREST);
#endif
}

ALWAYS_INLINE f32 fused_f32(f32 x, f32 y, f32 z) {
#ifdef LIBRARY_FUSES
  return fmaf(x, y, z);
#else
  return rounded_fma_f32(x, y, z);
#endif
}
