// The small floating-point formats: f16, bf16, tf32, e4m3 and e5m2, to and from the host's float and double, bit for
// bit.
//
// Narrowing is integer arithmetic on a double's bits with any rounding, so it depends on no host mode and rounds
// exactly once. Widening is exact.
#pragma once

#include "forms.h"
#include "lanes.h"

// sign | exponent | fraction, the exponent biased.
typedef struct SmallFormat {
  int fraction_bits;
  int bias;
  int sign_bit;
  u32 largest;   // the largest finite magnitude
  u32 infinity;  // NaN in a format that has none
  u32 nan;       // canonical
} SmallFormat;

#define FORMAT_F16                                                                                                     \
  { 10, 15, 15, 0x7bff, 0x7c00, 0x7fff }
#define FORMAT_BF16                                                                                                    \
  { 7, 127, 15, 0x7f7f, 0x7f80, 0x7fff }
#define FORMAT_E4M3                                                                                                    \
  { 3, 7, 7, 0x7e, 0x7f, 0x7f }
#define FORMAT_E5M2                                                                                                    \
  { 2, 15, 7, 0x7b, 0x7c, 0x7f }
#define FORMAT_TF32                                                                                                    \
  { 10, 127, 18, 0x3fbff, 0x3fc00, 0x3ffff }  // the high 19 bits of an f32
#define FORMAT_F32                                                                                                     \
  { 23, 127, 31, 0x7f7fffff, 0x7f800000, 0x7fffffff }

// 1 when a magnitude grows to its next neighbour. rest is what is cut off, as a fraction of 2^64 whose lowest bit is 0.
ALWAYS_INLINE u64 rounds_up(Rounding rounding, u64 negative, u64 kept, u64 rest) {
  const u64 half = 1ull << 63;
  switch (rounding) {
  case ROUND_NEAREST: return (rest | (kept & 1)) > half ? 1 : 0;  // of a tie, the odd one grows
  case ROUND_ZERO: return 0;
  case ROUND_DOWN: return rest ? negative : 0;
  case ROUND_UP: return rest ? negative ^ 1 : 0;
  case ROUND_NEAREST_AWAY: return rest >= half ? 1 : 0;
  }
  return 0;
}

// Whether an overflow stays at the largest finite number.
ALWAYS_INLINE bool overflow_stays(Rounding rounding, u64 negative) {
  return rounding == ROUND_ZERO || (rounding == ROUND_DOWN && !negative) || (rounding == ROUND_UP && negative);
}

// x rounded once to the format. A number below the smallest normal loses more bits, and its exponent field is 0; a
// carry out of the fraction moves into the exponent, which is right in every case. satfinite: infinities and overflow
// give the largest finite number. There is no branch in it when rounding is a constant, so loops of it vectorise.
ALWAYS_INLINE u32 narrow(SmallFormat format, f64 x, Rounding rounding, bool satfinite) {
  const u64 f64_infinity = 0x7ffull << 52;
  u64 bits = f64_bits(x), magnitude = bits << 1 >> 1, negative = bits >> 63;
  s64 exponent = (s64)(magnitude >> 52), above = exponent - (1023 + 1 - format.bias);
  u64 significand = (magnitude & ((1ull << 52) - 1)) | (exponent ? 1ull << 52 : 0);
  s64 cut = 52 - format.fraction_bits + (above < 0 ? -above : 0);
  cut = cut < 63 ? cut : 63;
  u64 kept = significand >> cut, rest = significand << (64 - cut);
  u64 code = kept + rounds_up(rounding, negative, kept, rest) + ((u64)(above > 0 ? above : 0) << format.fraction_bits);
  u64 beyond = overflow_stays(rounding, negative) && magnitude != f64_infinity ? format.largest : format.infinity;
  code = code > format.largest ? (satfinite ? format.largest : beyond) : code;
  code |= negative << format.sign_bit;
  return (u32)(magnitude > f64_infinity ? format.nan : code);
}

// f32 to f16 to nearest, as narrow() does it, in 32-bit arithmetic: the conversion that kernels do most.
ALWAYS_INLINE u16 f16_from_f32(f32 x) {
  u32 bits = f32_bits(x), magnitude = bits & 0x7fffffff;
  // Normal results: rebias the exponent and round the 13 bits off, to even.
  u32 normal = (magnitude - (112u << 23) + 0xfff + (magnitude >> 13 & 1)) >> 13;
  // Subnormal results: 0.5 has an ulp of 2^-24, f16's smallest step, so the sum's low bits are the rounded result.
  u32 subnormal = f32_bits(f32_from_bits(magnitude) + 0.5f) - f32_bits(0.5f);
  u32 code = magnitude < 113u << 23 ? subnormal : normal;
  code =
      magnitude >= 143u << 23 ? 0x7c00 : code;  // 2^16 and more; from 65520 on the sum above has carried to it already
  code |= bits >> 16 & 0x8000;
  return (u16)(magnitude > 0x7f800000 ? 0x7fff : code);
}

// bf16 is the high half of an f32.
ALWAYS_INLINE u16 bf16_from_f32(f32 x) {
  u32 bits = f32_bits(x), rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  return (u16)((bits & 0x7fffffff) > 0x7f800000 ? 0x7fff : rounded);
}

// Rebiases the exponent; for an infinity or NaN, whose exponent is the highest in both formats, once more. A subnormal
// is its fraction times 2^-24.
ALWAYS_INLINE f32 f32_from_f16(u16 x) {
  const u32 rebias = 112u << 23;
  u32 magnitude = x & 0x7fff, normal = (magnitude << 13) + rebias, subnormal = f32_bits((f32)(s32)magnitude * 0x1p-24f);
  normal += magnitude >= 0x7c00 ? rebias : 0;
  u32 is_subnormal = magnitude < 0x0400 ? ~0u : 0;  // a mask, for the compiler would make a branch of a choice
  return f32_from_bits((subnormal & is_subnormal) | (normal & ~is_subnormal) | (u32)(x & 0x8000) << 16);
}

ALWAYS_INLINE f32 f32_from_bf16(u16 x) { return f32_from_bits((u32)x << 16); }

// e5m2 is the high half of an f16.
ALWAYS_INLINE u16 f16_from_e5m2(u8 x) {
  u32 magnitude = (u32)(x & 0x7f) << 8;
  return (u16)(magnitude > 0x7c00 ? 0x7fff : magnitude | (u32)(x & 0x80) << 8);
}

// e4m3 has the same exponent field less its top bit, with a bias 8 smaller; every value fits an f16.
ALWAYS_INLINE u16 f16_from_e4m3(u8 x) {
  u32 code = f16_from_f32(f32_from_f16((u16)((x & 0x7f) << 7)) * 256);
  return (u16)((x & 0x7f) == 0x7f ? 0x7fff : code | (u32)(x & 0x80) << 8);
}
