// The tensor core's dot product. A product or C enters as significand * 2^exponent, where a product's exponent is the
// sum of its factors' (it is not normalised) and a subnormal's is that of the smallest normal. Then, as the hardware
// does it:
//
//   1. top = the largest exponent among the terms that are not zero, and at least -133
//   2. each term's magnitude, in units of 2^(top - 25), is truncated to an integer
//   3. the integers are added exactly
//   4. the sum is rounded once: to fp32 toward zero, to fp16 to nearest even
//
// Steps 1 and 2 cost nearly all of the time. They run over CHUNK columns at a time in float and int32 arithmetic that
// is exact by construction: a product of significands has at most 22 bits, a scale is a power of two, and 16 products
// below 2^27 fit an int32.
#include "tensor_core.h"

#include <string.h>

enum {
  CHUNK = 8,              // columns a loop works on: one AVX2 register of floats; N is always a multiple of 8
  FRACTION_BITS = 25,     // kept below the largest exponent
  ZERO_EXPONENT = -4096,  // of a zero: far below any other, and sums of it stay far below
  SMALLEST_TOP = -133,
  F32_BIAS = 127,
};

typedef struct Layout {
  int exponent_bits, fraction_bits, bias;
} Layout;

static const Layout layouts[] = {
    [TENSOR_F16] = {5, 10, 15},
    [TENSOR_BF16] = {8, 7, 127},
    [TENSOR_F32] = {8, 23, 127},
};

static uint32_t exponent_field(Layout layout, uint32_t bits) {
  return bits >> layout.fraction_bits & ((1u << layout.exponent_bits) - 1);
}

// True for an infinity or a NaN.
static bool is_special(Layout layout, uint32_t bits) {
  return exponent_field(layout, bits) == (1u << layout.exponent_bits) - 1;
}

static bool is_nan(Layout layout, uint32_t bits) {
  return is_special(layout, bits) && (bits & ((1u << layout.fraction_bits) - 1));
}

static bool is_negative(Layout layout, uint32_t bits) {
  return bits >> (layout.exponent_bits + layout.fraction_bits) & 1;
}

// The significand as an integer and its exponent: |value| = significand * 2^(exponent - fraction_bits).
static inline uint32_t decode_magnitude(Layout layout, uint32_t bits, int32_t *exponent) {
  uint32_t field = exponent_field(layout, bits), fraction = bits & ((1u << layout.fraction_bits) - 1);
  uint32_t significand = fraction | (field ? 1u << layout.fraction_bits : 0);
  *exponent = significand ? (int32_t)(field ? field : 1) - layout.bias : ZERO_EXPONENT;
  return significand;
}

// Decodes one element of A or B. Infinities and NaNs count as zero here; their rows and columns are done again by
// special_result.
static bool decode_element(Layout layout, uint16_t bits, float *significand, int32_t *exponent) {
  bool special = is_special(layout, bits);
  float magnitude = (float)decode_magnitude(layout, special ? 0 : bits, exponent) / (float)(1 << layout.fraction_bits);
  *significand = is_negative(layout, bits) ? -magnitude : magnitude;
  return special;
}

static const uint16_t sign_16 = 0x8000;

void tensor_decode_a(TensorA *a, TensorFormat format, int rows, int depth, const uint16_t *bits, int row_stride,
                     int k_stride, bool negate) {
  Layout layout = layouts[format];
  a->rows = rows;
  a->format = format;
  a->any_special = false;
  for (int m = 0; m < rows; m++) {
    a->special[m] = false;
    for (int k = 0; k < TENSOR_DEPTH; k++) {
      uint16_t element = k < depth ? bits[m * row_stride + k * k_stride] ^ (negate ? sign_16 : 0) : 0;
      a->bits[m][k] = element;
      a->special[m] |= decode_element(layout, element, &a->significand[m][k], &a->exponent[m][k]);
    }
    a->any_special |= a->special[m];
  }
}

void tensor_decode_b(TensorB *b, TensorFormat format, int columns, int depth, const uint16_t *bits, int k_stride,
                     int column_stride, bool negate) {
  Layout layout = layouts[format];
  b->columns = columns;
  b->format = format;
  b->any_special = false;
  memset(b->special, 0, sizeof b->special);
  for (int k = 0; k < TENSOR_DEPTH; k++)
    for (int n = 0; n < columns; n++) {
      uint16_t element = k < depth ? bits[k * k_stride + n * column_stride] ^ (negate ? sign_16 : 0) : 0;
      b->bits[k][n] = element;
      bool special = decode_element(layout, element, &b->significand[k][n], &b->exponent[k][n]);
      b->special[n] |= special;
      b->any_special |= special;
    }
}

// ---- the sum ----

// Steps 1 to 3 for CHUNK neighbouring elements of one row: total * 2^(top - 25) is what step 4 rounds.
typedef struct Sum {
  int32_t top[CHUNK];
  int64_t total[CHUNK];
} Sum;

// c: the accumulators' bits, in the layout's format.
static inline __attribute__((always_inline)) void add_products(const TensorA *a, const TensorB *b, int m, int n,
                                                               Layout layout, const uint32_t *c, Sum *sum) {
  int32_t c_exponent[CHUNK], c_significand[CHUNK], top[CHUNK], products[CHUNK] = {0};
  for (int j = 0; j < CHUNK; j++) {
    c_significand[j] = (int32_t)decode_magnitude(layout, c[j], &c_exponent[j]);
    top[j] = c_exponent[j] > SMALLEST_TOP ? c_exponent[j] : SMALLEST_TOP;
  }
  for (int k = 0; k < TENSOR_DEPTH; k++) {
    const int32_t *b_exponent = &b->exponent[k][n];
    int32_t a_exponent = a->exponent[m][k];
    for (int j = 0; j < CHUNK; j++) {
      int32_t exponent = a_exponent + b_exponent[j];
      top[j] = top[j] > exponent ? top[j] : exponent;
    }
  }
  // Scales are built as floats' bits. One below 2^-40 makes every term vanish, so that is where they stop: smaller ones
  // would be subnormal, and slow.
  enum { SMALLEST_SCALE = F32_BIAS - 40 };
  for (int k = 0; k < TENSOR_DEPTH; k++) {
    const float *b_significand = &b->significand[k][n];
    const int32_t *b_exponent = &b->exponent[k][n];
    float a_significand = a->significand[m][k];
    int32_t a_exponent = a->exponent[m][k] + FRACTION_BITS + F32_BIAS;
    for (int j = 0; j < CHUNK; j++) {
      int32_t field = a_exponent + b_exponent[j] - top[j];
      union {
        int32_t bits;
        float value;
      } scale = {(field > SMALLEST_SCALE ? field : SMALLEST_SCALE) << 23};
      products[j] += (int32_t)(a_significand * b_significand[j] * scale.value);
    }
  }
  for (int j = 0; j < CHUNK; j++) {
    int32_t distance = top[j] - c_exponent[j] < 31 ? top[j] - c_exponent[j] : 31;
    int32_t term = c_significand[j] << (FRACTION_BITS - layout.fraction_bits) >> distance;
    sum->top[j] = top[j];
    sum->total[j] = (int64_t)products[j] + (is_negative(layout, c[j]) ? -term : term);
  }
}

// ---- step 4 ----

// |total| as a double, which is exact: its fraction field and, in *exponent, the exponent of total * 2^(top - 25).
static inline uint64_t normalise(int64_t total, int32_t top, int64_t *exponent) {
  union {
    double value;
    uint64_t bits;
  } magnitude = {(double)(total < 0 ? -total : total)};
  *exponent = (int64_t)(magnitude.bits >> 52) - 1023 + top - FRACTION_BITS;
  return magnitude.bits & 0xfffffffffffffu;
}

// Rounds toward zero to fp32. Results below the normal range stay subnormal; above it they become infinite. A
// zero is always +0, also one that a small negative sum is rounded to.
static inline uint32_t round_to_f32(int64_t total, int32_t top) {
  int64_t exponent;
  uint64_t fraction = normalise(total, top, &exponent) >> 29;
  int64_t below = -126 - exponent;
  below = below < 0 ? 0 : below > 31 ? 31 : below;
  uint32_t normal = (uint32_t)((exponent + F32_BIAS) << 23 | (int64_t)fraction);
  uint32_t subnormal = (uint32_t)((fraction | 1u << 23) >> below);
  uint32_t magnitude = exponent < -126 ? subnormal : exponent > 127 ? 0x7f800000u : normal;
  return magnitude == 0 || total == 0 ? 0 : magnitude | (total < 0 ? 0x80000000u : 0);
}

// Rounds to nearest even to fp16. One addition rounds, and a carry out of the fraction moves into the exponent.
static inline uint16_t round_to_f16(int64_t total, int32_t top) {
  enum { DROPPED = 52 - 10 };
  int64_t exponent;
  uint64_t fraction = normalise(total, top, &exponent);
  int64_t below = -14 - exponent;
  below = below < 0 ? 0 : below > 20 ? 20 : below;
  uint64_t significand = (fraction | (uint64_t)1 << 52);
  int64_t dropped = DROPPED + below;
  uint64_t odd = significand >> dropped & 1;
  uint64_t rounded = (significand + odd + (((uint64_t)1 << (dropped - 1)) - 1)) >> dropped;
  // A normal significand has its leading bit at 10, which adds one to the exponent field.
  uint64_t field = below ? 0 : (uint64_t)(exponent + 14) << 10;
  uint64_t magnitude = exponent > 15 ? 0x7c00u : field + rounded;
  return magnitude == 0 || total == 0 ? 0 : (uint16_t)(magnitude | (total < 0 ? 0x8000u : 0));
}

// ---- infinities and NaNs ----

typedef enum Special { FINITE, POSITIVE_INFINITY, NEGATIVE_INFINITY, NOT_A_NUMBER } Special;

static Special add_special(Special x, Special y) {
  if (x == FINITE || x == y) return y;
  return y == FINITE ? x : NOT_A_NUMBER;
}

// An infinity counts as such however the sum would go on; NaN: any NaN, infinity times zero, infinities of both signs.
static Special special_result(const TensorA *a, const TensorB *b, int m, int n, Layout c_layout, uint32_t c) {
  Layout layout = layouts[a->format];
  Special sum = FINITE;
  if (is_special(c_layout, c))
    sum = is_nan(c_layout, c) ? NOT_A_NUMBER : is_negative(c_layout, c) ? NEGATIVE_INFINITY : POSITIVE_INFINITY;
  for (int k = 0; k < TENSOR_DEPTH; k++) {
    uint32_t x = a->bits[m][k], y = b->bits[k][n];
    if (!is_special(layout, x) && !is_special(layout, y)) continue;
    bool zero = !(x & 0x7fff) || !(y & 0x7fff);
    if (zero || is_nan(layout, x) || is_nan(layout, y)) return NOT_A_NUMBER;
    sum = add_special(sum, (x ^ y) & sign_16 ? NEGATIVE_INFINITY : POSITIVE_INFINITY);
  }
  return sum;
}

// True when some of the CHUNK elements may have an infinite or NaN input.
static inline bool chunk_has_special(const TensorA *a, const TensorB *b, int m, int n, Layout c_layout,
                                     const uint32_t *c) {
  if (a->special[m]) return true;
  bool found = false;
  for (int j = 0; j < CHUNK; j++) found |= is_special(c_layout, c[j]);
  for (int j = 0; b->any_special && j < CHUNK; j++) found |= b->special[n + j];
  return found;
}

static const uint32_t special_f32[] = {0, 0x7f800000, 0xff800000, 0x7fffffff};
static const uint16_t special_f16[] = {0, 0x7c00, 0xfc00, 0x7fff};

void tensor_step_f32(const TensorA *a, const TensorB *b, float *d, int row_stride, bool accumulate) {
  Layout layout = layouts[TENSOR_F32];
  for (int m = 0; m < a->rows; m++)
    for (int n = 0; n < b->columns; n += CHUNK) {
      float *element = d + m * row_stride + n;
      uint32_t c[CHUNK] = {0}, result[CHUNK];
      if (accumulate) memcpy(c, element, sizeof c);
      Sum sum;
      add_products(a, b, m, n, layout, c, &sum);
      for (int j = 0; j < CHUNK; j++) result[j] = round_to_f32(sum.total[j], sum.top[j]);
      if (chunk_has_special(a, b, m, n, layout, c))
        for (int j = 0; j < CHUNK; j++) {
          Special special = special_result(a, b, m, n + j, layout, c[j]);
          if (special) result[j] = special_f32[special];
        }
      memcpy(element, result, sizeof result);
    }
}

void tensor_step_f16(const TensorA *a, const TensorB *b, uint16_t *d, int row_stride, bool accumulate) {
  Layout layout = layouts[TENSOR_F16];
  for (int m = 0; m < a->rows; m++)
    for (int n = 0; n < b->columns; n += CHUNK) {
      uint16_t *element = d + m * row_stride + n;
      uint32_t c[CHUNK] = {0};
      for (int j = 0; accumulate && j < CHUNK; j++) c[j] = element[j];
      Sum sum;
      add_products(a, b, m, n, layout, c, &sum);
      for (int j = 0; j < CHUNK; j++) element[j] = round_to_f16(sum.total[j], sum.top[j]);
      if (chunk_has_special(a, b, m, n, layout, c))
        for (int j = 0; j < CHUNK; j++) {
          Special special = special_result(a, b, m, n + j, layout, c[j]);
          if (special) element[j] = special_f16[special];
        }
    }
}
