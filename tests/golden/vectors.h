// The golden vectors: what they are made of, and how their files are laid out. Shared by the recorder (record.cu, runs
// on an H200) and the tests (test_golden.c, run anywhere). Inputs are generated on both sides from the same integer
// hash, so files hold results alone.
//
// Tensor-core vectors come in tiles of 64 x 64 results with K = 16: the size of an m64n64k16. Smaller instructions
// compute the same tile in pieces, which makes all of them comparable. Tile t has the kind t % KIND_COUNT; each kind is
// made to tell some models of the arithmetic apart.
#pragma once

#include <stdint.h>
#include <string.h>

#include "../../common/emulator/host/fnv.h"

enum { GOLDEN_M = 64, GOLDEN_N = 64, GOLDEN_K = 16, GOLDEN_RESULTS = GOLDEN_M * GOLDEN_N };

typedef enum GoldenFormat { GOLDEN_F16, GOLDEN_BF16, GOLDEN_F32 } GoldenFormat;

typedef enum GoldenKind {
  KIND_NARROW,            // exponents within a few bits: every term matters
  KIND_MIDDLE,            // within a dozen
  KIND_WIDE,              // over the whole range
  KIND_CANCEL,            // pairs of products cancel; C cancels the rest
  KIND_BOUNDARY,          // one huge product, the others 16 to 36 bits below: where are they cut?
  KIND_LARGE_C,           // C huge, all products around its last bits
  KIND_TIES,              // small integers onto a C whose last bit they halve
  KIND_SUBNORMAL_IN,      // subnormal factors
  KIND_SUBNORMAL_OUT,     // results around the smallest normal number
  KIND_OVERFLOW,          // results around the largest
  KIND_SPECIAL,           // infinities and NaNs here and there
  KIND_ZEROS,             // zeros of both signs, sums that cancel to zero
  KIND_RAW,               // random bits
  KIND_HUGE_PAIR,         // +huge and -huge at two places, small terms elsewhere: is K added in one go?
  KIND_SINGLE,            // one product and C
  KIND_LONG_SIGNIFICAND,  // products of two and more: are they normalised before the largest exponent is taken?
  KIND_COUNT,
} GoldenKind;

typedef struct GoldenTile {
  uint16_t a[GOLDEN_M][GOLDEN_K];
  uint16_t b[GOLDEN_N][GOLDEN_K];  // column n of B is b[n]
  uint32_t c[GOLDEN_M][GOLDEN_N];  // bits, in the accumulator's format
} GoldenTile;

// ---- random numbers ----

// 32 random bits that depend on all of the arguments (a 64-bit finaliser of the murmur kind).
static inline uint32_t golden_hash(uint32_t stream, uint32_t tile, uint32_t x, uint32_t y) {
  uint64_t h = ((uint64_t)stream << 56) ^ ((uint64_t)tile << 32) ^ ((uint64_t)x << 16) ^ y;
  h = (h ^ 0x9e3779b97f4a7c15u) * 0xff51afd7ed558ccdu;
  h = (h ^ h >> 32) * 0xc4ceb9fe1a85ec53u;
  h = (h ^ h >> 29) * 0xff51afd7ed558ccdu;
  return (uint32_t)(h >> 32);
}

// 0 <= result < count from part number i (0..3) of a hash.
static inline int golden_pick(uint32_t hash, int i, int count) {
  return (int)((hash >> (8 * i) & 0xff) * (uint32_t)count >> 8);
}

static inline int golden_between(uint32_t hash, int i, int low, int high) {
  return low + golden_pick(hash, i, high - low + 1);
}

// ---- numbers ----

static inline int golden_fraction_bits(GoldenFormat f) { return f == GOLDEN_F16 ? 10 : f == GOLDEN_BF16 ? 7 : 23; }
static inline int golden_bias(GoldenFormat f) { return f == GOLDEN_F16 ? 15 : 127; }

// (-1)^sign * 1.fraction * 2^exponent with fraction a 32-bit fraction, cut to the format; exponents too small make it
// subnormal or zero, too large ones become the largest finite exponent.
static inline uint32_t golden_encode(GoldenFormat f, uint32_t sign, int exponent, uint32_t fraction) {
  int bits = golden_fraction_bits(f), bias = golden_bias(f);
  uint32_t significand = 1u << bits | fraction >> (32 - bits);
  uint32_t magnitude;
  if (exponent > bias) exponent = bias;
  if (exponent < 1 - bias) {
    int shift = 1 - bias - exponent;
    magnitude = shift > 31 ? 0 : significand >> shift;
  } else {
    magnitude = (uint32_t)(exponent + bias - 1) * (1u << bits) + significand;
  }
  return magnitude | (sign & 1) << (f == GOLDEN_F32 ? 31 : 15);
}

// Infinities, NaNs quiet and signalling with payloads, zeros, the largest and smallest numbers.
static inline uint32_t golden_special(GoldenFormat f, int i) {
  int bits = golden_fraction_bits(f);
  uint32_t sign = 1u << (f == GOLDEN_F32 ? 31 : 15), quiet = 1u << (bits - 1);
  uint32_t infinity = (f == GOLDEN_F16 ? 31u : 255u) << bits;
  switch (i) {
  case 0:
  case 1:
  case 2: return infinity;
  case 3:
  case 4:
  case 5: return infinity | sign;
  case 6: return infinity | quiet;
  case 7: return infinity | 1;  // signalling
  case 8: return infinity | sign | quiet | 5;
  case 9: return infinity | sign | 3;
  case 10: return 0;
  case 11: return sign;
  case 12: return infinity - 1;  // the largest
  case 13: return (infinity - 1) | sign;
  case 14: return 1;                               // the smallest
  default: return infinity | (quiet - 1) | quiet;  // all ones
  }
}

// The value of a finite number, exact.
static inline double golden_value(GoldenFormat f, uint32_t bits) {
  int fraction_bits = golden_fraction_bits(f);
  uint32_t fraction = bits & ((1u << fraction_bits) - 1);
  int field = (int)(bits >> fraction_bits & (f == GOLDEN_F16 ? 31 : 255));
  double value = field ? (double)(fraction | 1u << fraction_bits) : (double)fraction;
  int exponent = (field ? field : 1) - golden_bias(f) - fraction_bits;
  // 2^exponent as a double's bits; the range -149 .. 104 is well inside.
  uint64_t power = (uint64_t)(exponent + 1023) << 52;
  double scale;
  memcpy(&scale, &power, sizeof scale);
  int negative = (int)(bits >> (f == GOLDEN_F32 ? 31 : 15) & 1);
  return negative ? -value * scale : value * scale;
}

// A double cut to the format (finite, toward zero).
static inline uint32_t golden_from_value(GoldenFormat f, double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  if (!(bits << 1)) return 0;
  int exponent = (int)(bits >> 52 & 0x7ff) - 1023;
  return golden_encode(f, (uint32_t)(bits >> 63), exponent, (uint32_t)(bits >> 20));
}

// ---- tiles ----

// Fractions come in four styles, so that bits far down are often all zeros or all ones.
static inline uint32_t golden_fraction(uint32_t hash, int style) {
  uint32_t random = hash * 0x9e3779b1u ^ hash << 13;
  switch (style & 7) {
  case 5: return 0;
  case 6: return 0xffffffffu;
  case 7: return random & 0xe0000000u;
  default: return random;
  }
}

// Half of an exponent's range [low, high], for A and B to share: bf16 moves it by an offset of the tile.
typedef struct GoldenRange {
  int low, high;
} GoldenRange;

// One element of A (operand 0: line is its row) or B (operand 1: line is its column).
static inline uint16_t golden_element(GoldenFormat f, GoldenFormat accumulator, int tile, int operand, int line,
                                      int k) {
  GoldenKind kind = (GoldenKind)(tile % KIND_COUNT);
  int bf16 = f == GOLDEN_BF16, round = tile / KIND_COUNT;
  uint32_t place = golden_hash(1, (uint32_t)tile, 0, 0);                             // decisions of the tile
  uint32_t own = golden_hash(2, (uint32_t)tile, (uint32_t)operand, (uint32_t)line);  // of the row or column
  uint32_t h = golden_hash(3 + (uint32_t)operand, (uint32_t)tile, (uint32_t)line, (uint32_t)k);
  uint32_t sign = h >> 31;
  int style = (int)(own >> 24);
  int special_place = golden_pick(place, 0, GOLDEN_K),
      other_place = (special_place + 1 + golden_pick(place, 1, GOLDEN_K - 1)) % GOLDEN_K;
  if (round & 1) special_place &= 7, other_place &= 7;  // both inside the K = 8 shapes in every second tile
  if (special_place == other_place) other_place ^= 1;
  int offset = bf16 ? golden_between(place, 2, -50, 50) * (operand ? -1 : 1) : 0;
  GoldenRange range = {-1, 1};
  switch (kind) {
  case KIND_NARROW:
  case KIND_SPECIAL: break;
  case KIND_MIDDLE: range.low = -5, range.high = 5; break;
  case KIND_WIDE:
    range.low = bf16 ? round & 1 ? -133 : -30 : -24;
    range.high = bf16 ? round & 1 ? 127 : 30 : 15;
    offset = 0;
    break;
  case KIND_CANCEL:
    // Products 2i and 2i+1 are equal with opposite signs, but for the last pair, which is small.
    range.low = -4, range.high = 4;
    if (k < 14 || !operand) {
      h = golden_hash(3 + (uint32_t)operand, (uint32_t)tile, (uint32_t)line, (uint32_t)k & ~1u);
      sign = operand ? h >> 31 : (uint32_t)k & 1;
    }
    if (k >= 14) range.low = -4 - (line & 7), range.high = range.low + 1;
    break;
  case KIND_BOUNDARY:
  case KIND_HUGE_PAIR:
  case KIND_LONG_SIGNIFICAND:
    if (k == special_place || (k == other_place && kind == KIND_HUGE_PAIR)) {
      range.low = range.high = 7;
      sign = operand ? own >> 8 & 1 : (own >> 9 & 1) ^ (k == other_place);
      if (kind == KIND_HUGE_PAIR)
        h = golden_hash(3 + (uint32_t)operand, (uint32_t)tile, (uint32_t)line, (uint32_t)special_place);
    } else {
      range.low = operand ? -3 - (line & 7) : -3 - (line & 3) * 2;
      range.high = range.low + (line >> 3 & 1);
    }
    if (kind == KIND_LONG_SIGNIFICAND) style = h >> 8 & 1 ? 6 : 0;
    break;
  case KIND_LARGE_C:
    range.low = operand ? -3 - (line & 3) : -(line & 7);
    range.high = range.low + 1;
    break;
  case KIND_TIES:
    // Integers of two bits.
    offset = 0;
    range.low = 0, range.high = 1;
    style = 5;
    if (operand == 0 && (h >> 4 & 3) == 0) return (uint16_t)(sign << 15);
    if ((h >> 6 & 3) == 0) return (uint16_t)golden_encode(f, sign, 1, 0x80000000u);
    break;
  case KIND_SUBNORMAL_IN:
    offset = 0;
    if (operand == 0 || (own & 3) == 0) {
      int digits = golden_fraction_bits(f);
      return (uint16_t)(sign << 15 | (h & ((1u << digits) - 1)) >> golden_pick(h, 2, digits));
    }
    range.low = bf16 ? -126 : -14, range.high = own & 4 ? 0 : bf16 ? 127 : 15;
    break;
  case KIND_SUBNORMAL_OUT:
    // Products just around the smallest normal number of the accumulator; half of the rows of A have a single element.
    offset = bf16 ? golden_between(place, 2, -20, 20) * (operand ? -1 : 1) : 0;
    if (operand == 0 && (line & 1) && k != special_place) return 0;
    if (accumulator == GOLDEN_F16)
      range.low = -14, range.high = -6;
    else if (bf16)
      range.low = -76, range.high = -62;
    else
      range.low = -24, range.high = -8;
    if (accumulator == GOLDEN_F32 && !bf16 && operand == 0 && (line & 2)) return (uint16_t)(sign << 15);
    break;
  case KIND_OVERFLOW:
    offset = bf16 ? golden_between(place, 2, -20, 20) * (operand ? -1 : 1) : 0;
    if ((own & 3) != 0) sign = operand ? 0 : own >> 4 & 1;
    if (accumulator == GOLDEN_F16)
      range.low = 4 + (line & 1), range.high = 6;
    else if (bf16)
      range.low = 60 + (line & 3), range.high = 64;
    else
      range.low = 13, range.high = 15;
    break;
  case KIND_ZEROS:
    // Rows and columns with more and more zeros, the rest ones; every fourth row all of one sign.
    if ((line & 3) == 3) sign = own & 1;
    if (golden_pick(h, 1, 8) < (line & 7) + 1) return (uint16_t)(sign << 15);
    return (uint16_t)golden_encode(f, sign, 0, 0);
  case KIND_RAW: return (uint16_t)(h >> 8);
  case KIND_SINGLE:
    if (operand == 0 && k != (round & 1 ? line & 7 : line & 15)) return (uint16_t)(sign << 15);
    range.low = -7, range.high = 7;
    break;
  default: break;
  }
  if (kind == KIND_SPECIAL && golden_pick(h, 0, 24) == 0) return (uint16_t)golden_special(f, golden_pick(h, 1, 16));
  return (uint16_t)golden_encode(f, sign, golden_between(h, 1, range.low, range.high) + offset,
                                 golden_fraction(h, style));
}

// Minus the sum of products, times factor, cut to the accumulator's format. In double, in order: the same bits
// everywhere, since each product is exact (so that fusing it into the addition changes nothing). For finite inputs.
static inline uint32_t golden_cancelling(GoldenFormat f, GoldenFormat accumulator, int depth, const uint16_t *a,
                                         const uint16_t *b, double factor) {
  double sum = 0;
  for (int k = 0; k < depth; k++) sum += golden_value(f, a[k]) * golden_value(f, b[k]);
  return golden_from_value(accumulator, -sum * factor);
}

// One element of C, given the tile's A and B.
static inline uint32_t golden_accumulator(GoldenFormat f, GoldenFormat accumulator, int depth, int tile,
                                          const GoldenTile *inputs, int m, int n) {
  GoldenKind kind = (GoldenKind)(tile % KIND_COUNT);
  int bf16 = f == GOLDEN_BF16, half = accumulator == GOLDEN_F16, round = tile / KIND_COUNT;
  uint32_t h = golden_hash(5, (uint32_t)tile, (uint32_t)m, (uint32_t)n);
  uint32_t sign = h >> 31, fraction = golden_fraction(h, golden_pick(h, 3, 8));
  GoldenRange range = {-3, 5};
  switch (kind) {
  case KIND_NARROW: break;
  case KIND_MIDDLE: range.low = -12, range.high = 12; break;
  case KIND_WIDE:
    range.low = half ? -24 : bf16 ? round & 1 ? -149 : -70 : -30;
    range.high = half ? 15 : bf16 ? round & 1 ? 127 : 70 : 31;
    break;
  case KIND_CANCEL:
    range.low = half ? -14 : -30, range.high = 8;
    if (n % 4 == 1) return golden_cancelling(f, accumulator, depth, inputs->a[m], inputs->b[n], 1);
    if (n % 4 == 2) return 0;
    if (n % 4 == 3) range.low = -4;
    break;
  case KIND_BOUNDARY:
  case KIND_HUGE_PAIR:
  case KIND_LONG_SIGNIFICAND:
    if (n % 4 == 0) return 0;
    if (n % 4 == 1) range.low = -20, range.high = -6;
    if (n % 4 == 2) range.low = 8, range.high = 16;
    if (n % 4 == 3) return golden_cancelling(f, accumulator, depth, inputs->a[m], inputs->b[n], 1);
    break;
  case KIND_LARGE_C: range.low = half ? 8 : 16, range.high = half ? 12 : 22; break;
  case KIND_TIES: range.low = half ? 9 : 22, range.high = half ? 13 : 27; break;
  case KIND_SUBNORMAL_IN:
    range.low = half ? -25 : bf16 ? -150 : -45, range.high = half ? -10 : bf16 ? -100 : -10;
    if (n % 4 == 0) return 0;
    break;
  case KIND_SUBNORMAL_OUT:
    range.low = half ? -26 : -150, range.high = half ? -12 : -122;
    if (n % 4 == 0) return sign << (half ? 15 : 31);
    if (n % 4 == 1 && (half || bf16)) return golden_cancelling(f, accumulator, depth, inputs->a[m], inputs->b[n], 1);
    break;
  case KIND_OVERFLOW:
    range.low = half ? 13 : bf16 ? 125 : 120, range.high = half ? 15 : 127;
    if (n % 4 == 0) return golden_special(accumulator, 12 + (int)(sign & 1));
    if (n % 4 == 1) return 0;
    if (n % 4 == 2) return golden_cancelling(f, accumulator, depth, inputs->a[m], inputs->b[n], 0.5);
    break;
  case KIND_SPECIAL:
    if (golden_pick(h, 0, 6) == 0) return golden_special(accumulator, golden_pick(h, 1, 16));
    break;
  case KIND_ZEROS:
    if (n % 4 != 0) return sign << (half ? 15 : 31);
    range.low = 0, range.high = 2, fraction = 0;
    break;
  case KIND_RAW: return half ? h >> 8 & 0xffff : golden_hash(6, (uint32_t)tile, (uint32_t)m, (uint32_t)n);
  case KIND_SINGLE:
    range.low = half ? -16 : -32, range.high = half ? 14 : 32;
    if (n % 4 == 0) return sign << (half ? 15 : 31);
    break;
  default: break;
  }
  return golden_encode(accumulator, sign, golden_between(h, 2, range.low, range.high), fraction);
}

// Fills in the tile; f is A's and B's format, accumulator C's (F16 or F32). depth, 16 or 8, is how much of K the
// instruction uses: C cancels the sum of that many products.
static inline void golden_tile(GoldenFormat f, GoldenFormat accumulator, int depth, int tile, GoldenTile *inputs) {
  for (int m = 0; m < GOLDEN_M; m++)
    for (int k = 0; k < GOLDEN_K; k++) inputs->a[m][k] = golden_element(f, accumulator, tile, 0, m, k);
  for (int n = 0; n < GOLDEN_N; n++)
    for (int k = 0; k < GOLDEN_K; k++) inputs->b[n][k] = golden_element(f, accumulator, tile, 1, n, k);
  for (int m = 0; m < GOLDEN_M; m++)
    for (int n = 0; n < GOLDEN_N; n++) inputs->c[m][n] = golden_accumulator(f, accumulator, depth, tile, inputs, m, n);
}

// ---- files ----

// A file is a sequence of records. A record is this header and, after it, a 64-bit hash of each of the tiles' results
// (fnv1a of the row-major bits) and the results themselves of the first `full` tiles.
typedef struct GoldenRecord {
  char magic[8];                         // "HLGOLD1"
  char name[64];                         // the instruction: "wgmma.m64n64k16.f32.f16 A registers"
  uint64_t input_hash;                   // of all tiles' inputs: the generators agree
  uint32_t format, accumulator, result;  // GoldenFormat of A and B, of C, of D
  uint32_t depth;                        // 16 or 8
  uint32_t flags;                        // GoldenFlags
  uint32_t tiles, full;
  uint32_t element_size;  // of a result: 4 or 2 bytes
} GoldenRecord;

typedef enum GoldenFlags { GOLDEN_NEGATE_A = 1, GOLDEN_NEGATE_B = 2, GOLDEN_NO_C = 4 } GoldenFlags;
