// Lane loops for the arithmetic families.
//
// A warp's slots are either the same or disjoint, so that no lane depends on another one. The compiler cannot know
// that, and `fma d, a, b, d` would make it fall back to one lane at a time. INDEPENDENT promises it.
#pragma once

#include <float.h>

// A result that the host keeps in more bits would be rounded twice. 16 is as good as 0: it concerns half precision.
#if FLT_EVAL_METHOD != 0 && FLT_EVAL_METHOD != 16
#error "float and double must be computed as such: on x86 of 32 bits compile with -msse2 -mfpmath=sse"
#endif

#include "../parse/float_bits.h"
#include "program.h"

#if defined(__clang__)
#pragma clang diagnostic ignored "-Wpass-failed"  // a loop that calls libm stays a loop
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

// PTX's names of the C types, so that one name serves both in the tables of handlers.
typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;
typedef uint16_t b16;
typedef uint32_t b32;
typedef uint64_t b64;
typedef float f32;
typedef double f64;

// The high half of a product of two numbers of 64 bits, from the products of their halves: not every host has 128 bits.
ALWAYS_INLINE u64 high_product_u64(u64 x, u64 y) {
  u64 middle = (x >> 32) * (u32)y + ((u64)(u32)x * (u32)y >> 32);
  u64 other = (u64)(u32)x * (y >> 32) + (u32)middle;
  return (x >> 32) * (y >> 32) + (middle >> 32) + (other >> 32);
}

// The loop over the lanes of mask; with a full mask it has no condition and vectorises.
#define EACH_LANE(mask, ...)                                                                                           \
  do {                                                                                                                 \
    if ((mask) == FULL_MASK) {                                                                                         \
      INDEPENDENT for (int LANE = 0; LANE < LANES; LANE++) { __VA_ARGS__; }                                            \
    } else {                                                                                                           \
      for (int LANE = 0; LANE < LANES; LANE++)                                                                         \
        if ((mask) >> LANE & 1) {                                                                                      \
          __VA_ARGS__;                                                                                                 \
        }                                                                                                              \
    }                                                                                                                  \
  } while (0)

// A handler: d = result for each lane, with the sources as x, y and z of types A, B and C. A form with fewer sources
// leaves the others alone.
#define LANE_OPERATION(name, D, A, B, C, result)                                                                       \
  static void name(Warp *warp, const Inst *inst, Mask mask) {                                                          \
    D *d = SLOT(warp, inst->d, D);                                                                                     \
    const A *a = SLOT(warp, inst->a, A);                                                                               \
    const B *b = SLOT(warp, inst->b, B);                                                                               \
    const C *c = SLOT(warp, inst->c, C);                                                                               \
    EACH_LANE(mask, A x = a[LANE]; B y = b[LANE]; C z = c[LANE]; (void)x; (void)y; (void)z; d[LANE] = (D)(result));    \
  }
