// The tensor core's dot product. A product or C enters as significand * 2^exponent, where a product's exponent is the
// sum of its factors' (it is not normalised) and a subnormal's is that of the smallest normal. Then, as the hardware
// does it:
//
//   1. top = the largest exponent among the terms that are not zero, and at least -133
//   2. each term's magnitude, in units of 2^(top - 25), is truncated to an integer
//   3. the integers are added exactly
//   4. the sum is rounded once: to fp32 toward zero, to fp16 to nearest even; a zero is always +0
//
// The rules stand here twice. dot_product and its helpers follow them one element at a time, in integers. The steps
// compute whole rows in loops that the compiler turns into vector instructions, in floating-point arithmetic that is
// exact by construction; where it would not be (infinities, NaNs, exponents very far apart), they call dot_product.
#include "tensor_core.h"

#if defined __GNUC__ && !defined __clang__
#pragma GCC optimize("O3")  // gcc 12 vectorises these loops from -O3 on, clang from -O2
#endif

#include <math.h>

#include "../parse/float_bits.h"

enum {
  FRACTION_BITS = 25,  // kept below the largest exponent
  SMALLEST_TOP = -133,
  ZERO_EXPONENT = -4096,  // of a zero: far below any other, and sums of it stay far below
};

typedef struct Layout {
  int exponent_bits, fraction_bits, bias;
} Layout;

static const Layout layouts[] = {
    [TENSOR_F16] = {5, 10, 15},
    [TENSOR_BF16] = {8, 7, 127},
    [TENSOR_F32] = {8, 23, 127},
};

ALWAYS_INLINE int smaller(int x, int y) { return x < y ? x : y; }
ALWAYS_INLINE int larger(int x, int y) { return x > y ? x : y; }

ALWAYS_INLINE uint32_t exponent_field(Layout layout, uint32_t bits) {
  return bits >> layout.fraction_bits & ((1u << layout.exponent_bits) - 1);
}

ALWAYS_INLINE uint32_t fraction_field(Layout layout, uint32_t bits) {
  return bits & ((1u << layout.fraction_bits) - 1);
}

ALWAYS_INLINE bool is_negative(Layout layout, uint32_t bits) {
  return (bits & 1u << (layout.exponent_bits + layout.fraction_bits)) != 0;
}

// True for an infinity or a NaN.
ALWAYS_INLINE bool is_special(Layout layout, uint32_t bits) {
  return exponent_field(layout, bits) == (1u << layout.exponent_bits) - 1;
}

// |value| = significand * 2^(exponent - fraction_bits).
ALWAYS_INLINE int32_t significand_of(Layout layout, uint32_t bits) {
  uint32_t leading = exponent_field(layout, bits) ? 1u << layout.fraction_bits : 0;
  return (int32_t)(fraction_field(layout, bits) | leading);
}

ALWAYS_INLINE int32_t exponent_of(Layout layout, uint32_t bits) {
  int32_t field = (int32_t)exponent_field(layout, bits);
  return (field | (int32_t)fraction_field(layout, bits)) == 0 ? ZERO_EXPONENT : larger(field, 1) - layout.bias;
}

// 2^exponent, which must be that of a normal number.
ALWAYS_INLINE float power_f32(int32_t exponent) { return f32_from_bits((uint32_t)(exponent + 127) << 23); }
ALWAYS_INLINE double power_f64(int32_t exponent) { return f64_from_bits((uint64_t)(exponent + 1023) << 52); }

// ---- step 4: rounding ----

// Toward zero: to nearest, and one back where that went away from zero. Sums of 2^128 and above become infinite.
ALWAYS_INLINE uint32_t round_to_f32(double sum) {
  float nearest = (float)sum;
  bool too_far = (fabs((double)nearest) > fabs(sum)) & (fabs(sum) < 0x1p128);
  float result = f32_from_bits(f32_bits(nearest) - too_far);
  return f32_bits(result + 0);  // -0 becomes +0
}

// To nearest even. Adding a power of two whose last bit is worth as much as the result's rounds the sum; scaled by
// 2^-112, the result has its fp16 fields where fp32 has its own, also when it is subnormal.
ALWAYS_INLINE uint16_t round_to_f16(double sum) {
  double magnitude = fabs(sum);
  int32_t exponent = larger((int32_t)(f64_bits(magnitude) >> 52) - 1023, -14);
  double rounder = power_f64(exponent - 10 + 52);
  double rounded = magnitude + rounder - rounder;
  int32_t bits = smaller((int32_t)(f32_bits((float)(rounded * 0x1p-112)) >> 13), 0x7c00);
  int32_t sign = bits ? (int32_t)(f64_bits(sum) >> 48 & 0x8000) : 0;
  return (uint16_t)(bits | sign);
}

// ---- the rules, one element at a time ----

typedef enum Special { FINITE, POSITIVE_INFINITY, NEGATIVE_INFINITY, NOT_A_NUMBER } Special;
static const uint32_t special_bits[][4] = {
    [TENSOR_F16] = {0, 0x7c00, 0xfc00, 0x7fff},
    [TENSOR_F32] = {0, 0x7f800000, 0xff800000, 0x7fffffff},
};

// significand * 2^(exponent - fraction_bits), the significand with its sign.
typedef struct Term {
  Special special;
  int64_t significand;
  int32_t exponent;
  int fraction_bits;
} Term;

static Term decode_term(Layout layout, uint32_t bits) {
  Special infinity = is_negative(layout, bits) ? NEGATIVE_INFINITY : POSITIVE_INFINITY;
  Term term = {FINITE, significand_of(layout, bits), exponent_of(layout, bits), layout.fraction_bits};
  if (is_special(layout, bits)) term.special = fraction_field(layout, bits) ? NOT_A_NUMBER : infinity;
  if (is_negative(layout, bits)) term.significand = -term.significand;
  return term;
}

// An infinity times a zero is NaN. Signs multiply, of infinities too: those have a significand.
static Term multiply(Term x, Term y) {
  Term product = {FINITE, x.significand * y.significand, x.exponent + y.exponent, x.fraction_bits + y.fraction_bits};
  if (x.special || y.special) product.special = product.significand > 0 ? POSITIVE_INFINITY : NEGATIVE_INFINITY;
  if (product.special && !product.significand) product.special = NOT_A_NUMBER;
  if (x.special == NOT_A_NUMBER || y.special == NOT_A_NUMBER) product.special = NOT_A_NUMBER;
  return product;
}

// Infinities of both signs make NaN. A finite sum never becomes infinite on the way.
static Special add_special(Special x, Special y) {
  if (x == FINITE || x == y) return y;
  return y == FINITE ? x : NOT_A_NUMBER;
}

// Step 2.
static int64_t truncate(Term term, int32_t top) {
  int shift = FRACTION_BITS - term.fraction_bits - (top - term.exponent);
  int64_t magnitude = term.significand < 0 ? -term.significand : term.significand;
  magnitude = shift >= 0 ? magnitude << shift : magnitude >> smaller(-shift, 63);
  return term.significand < 0 ? -magnitude : magnitude;
}

// The exact sum, before step 4, of element (m, n); c is C's bits.
static double dot_product(const TensorA *a, const TensorB *b, int m, int n, TensorFormat c_format, uint32_t c,
                          Special *special) {
  Term terms[TENSOR_DEPTH + 1];
  for (int k = 0; k < TENSOR_DEPTH; k++)
    terms[k] = multiply(decode_term(layouts[a->format], a->bits[k][m]), decode_term(layouts[b->format], b->bits[k][n]));
  terms[TENSOR_DEPTH] = decode_term(layouts[c_format], c);

  int32_t top = SMALLEST_TOP;
  int64_t total = 0;
  *special = FINITE;
  for (int k = 0; k <= TENSOR_DEPTH; k++) top = larger(top, terms[k].exponent);
  for (int k = 0; k <= TENSOR_DEPTH; k++) total += truncate(terms[k], top);
  for (int k = 0; k <= TENSOR_DEPTH; k++) *special = add_special(*special, terms[k].special);
  return (double)total * power_f64(top - FRACTION_BITS);
}

// ---- decoding ----

// Exponents in a line may lie this far apart. Then a product of values is at least 2^-90, and the powers of two in
// sum_products stay inside fp32's range.
enum { WIDEST = 45 };

// The number as a float, divided by 2^scale; exponent is its own, less scale. Numbers too small to be used (their line
// is hard) become zero: then no sum of products overflows.
ALWAYS_INLINE float scaled_value(Layout layout, uint16_t bits, int32_t exponent) {
  int32_t significand = significand_of(layout, bits) & -(exponent >= -WIDEST);
  float magnitude = (float)significand * power_f32(larger(exponent, -WIDEST) - layout.fraction_bits);
  return f32_from_bits(f32_bits(magnitude) | (uint32_t)(bits & 0x8000) << 16);
}

// 1 for infinities, NaNs and numbers too small for `value`.
ALWAYS_INLINE int32_t is_hard(Layout layout, uint16_t bits, int32_t exponent) {
  bool is_nonzero = bits << 1 & 0xffff;
  return is_special(layout, bits) | (is_nonzero & (exponent < -WIDEST));
}

ALWAYS_INLINE void include_exponents(int lines, Layout layout, const uint16_t *restrict bits, int32_t *restrict scale) {
  for (int i = 0; i < lines; i++) scale[i] = larger(scale[i], exponent_of(layout, bits[i]));
}

ALWAYS_INLINE void scale_numbers(int lines, Layout layout, const uint16_t *restrict bits, const int32_t *restrict scale,
                                 float *restrict value, int16_t *restrict exponents, int32_t *restrict hard) {
  for (int i = 0; i < lines; i++) {
    int32_t exponent = exponent_of(layout, bits[i]) - scale[i];
    value[i] = scaled_value(layout, bits[i], exponent);
    exponents[i] = (int16_t)exponent;
    hard[i] |= is_hard(layout, bits[i], exponent);
  }
}

// Loops over lines run to the next multiple of 16, so that they are all whole vectors; lines past the end are zeros.
ALWAYS_INLINE int padded(int lines) { return (lines + 15) & ~15; }

// Everything but the bits.
ALWAYS_INLINE void scale_lines(TensorOperand *o, Layout layout) {
  const int lines = padded(o->lines);
  for (int i = 0; i < lines; i++) o->scale[i] = ZERO_EXPONENT;
  for (int i = 0; i < lines; i++) o->hard[i] = 0;
  for (int k = 0; k < TENSOR_DEPTH; k++) include_exponents(lines, layout, o->bits[k], o->scale);
  for (int k = 0; k < TENSOR_DEPTH; k++)
    scale_numbers(lines, layout, o->bits[k], o->scale, o->value[k], o->exponent[k], o->hard);
  int32_t any_hard = 0;
  for (int i = 0; i < lines; i++) any_hard |= o->hard[i];
  o->any_hard = any_hard;
}

static void decode(TensorOperand *o, TensorFormat format, int lines, int depth, const uint16_t *bits, int line_stride,
                   int k_stride, bool negate) {
  const uint16_t sign = negate ? 0x8000 : 0;
  o->format = format;
  o->lines = lines;
  for (int k = 0; k < TENSOR_DEPTH; k++) {
    const int used = k < depth ? lines : 0;
    for (int i = 0; i < used; i++) o->bits[k][i] = bits[i * line_stride + k * k_stride] ^ sign;
    for (int i = used; i < padded(lines); i++) o->bits[k][i] = 0;
  }
  if (format == TENSOR_F16)
    scale_lines(o, layouts[TENSOR_F16]);
  else
    scale_lines(o, layouts[TENSOR_BF16]);
}

void tensor_decode_a(TensorA *a, TensorFormat format, int rows, int depth, const uint16_t *bits, int row_stride,
                     int k_stride, bool negate) {
  decode(a, format, rows, depth, bits, row_stride, k_stride, negate);
}

void tensor_decode_b(TensorB *b, TensorFormat format, int columns, int depth, const uint16_t *bits, int k_stride,
                     int column_stride, bool negate) {
  decode(b, format, columns, depth, bits, column_stride, k_stride, negate);
}

// ---- the rules, a row at a time ----

// Numbers for each column of a row of D.
typedef struct Row {
  uint32_t c[TENSOR_MAX_LINES];  // C's bits
  int32_t top[TENSOR_MAX_LINES];
  int32_t c_term[TENSOR_MAX_LINES];
  int32_t products[TENSOR_MAX_LINES];
  uint32_t d[TENSOR_MAX_LINES];  // D's bits
} Row;

#define EACH_K _Pragma("GCC unroll 16") for (int k = 0; k < TENSOR_DEPTH; k++)

// Step 1 for the products.
static void find_product_top(const TensorA *a, const TensorB *b, int m, Row *restrict row) {
  const int columns = padded(b->lines);
  const int32_t a_scale = a->scale[m];
  int16_t a_exponent[TENSOR_DEPTH], top[TENSOR_MAX_LINES];
  EACH_K a_exponent[k] = a->exponent[k][m];
  for (int n = 0; n < columns; n++) {
    int16_t largest = 2 * ZERO_EXPONENT;
    EACH_K {
      int16_t exponent = (int16_t)(a_exponent[k] + b->exponent[k][n]);
      largest = largest > exponent ? largest : exponent;
    }
    top[n] = largest;
  }
  for (int n = 0; n < columns; n++) row->top[n] = top[n] + a_scale + b->scale[n];
}

// Steps 1 and 2 for C.
ALWAYS_INLINE void align_c(int columns, Layout layout, Row *restrict row) {
  for (int n = 0; n < columns; n++) {
    uint32_t c = row->c[n];
    int32_t exponent = exponent_of(layout, c);
    int32_t top = larger(larger(row->top[n], exponent), SMALLEST_TOP);
    int32_t magnitude = significand_of(layout, c) << (FRACTION_BITS - layout.fraction_bits);
    int32_t term = magnitude >> smaller(top - exponent, 31);
    row->top[n] = top;
    row->c_term[n] = is_negative(layout, c) ? -term : term;
  }
}

// Step 2 for the products, and their part of step 3. The sum fits: 16 integers below 2^27. Powers of less than 2^-35
// make any product vanish, and for more than 2^115 all products are zeros, so that the limits change no result.
static void sum_products(const TensorA *a, const TensorB *b, int m, Row *restrict row) {
  const int columns = padded(b->lines);
  const int32_t a_scale = a->scale[m];
  float a_value[TENSOR_DEPTH];
  EACH_K a_value[k] = a->value[k][m];
  for (int n = 0; n < columns; n++) {
    int32_t exponent = a_scale + b->scale[n] + FRACTION_BITS - row->top[n];
    float power = power_f32(larger(smaller(exponent, 115), -35));
    int32_t products = 0;
    EACH_K products += (int32_t)(a_value[k] * power * b->value[k][n]);
    row->products[n] = products;
  }
}

// The rest of step 3.
ALWAYS_INLINE double row_sum(const Row *row, int n) {
  return ((double)row->products[n] + (double)row->c_term[n]) * power_f64(row->top[n] - FRACTION_BITS);
}

ALWAYS_INLINE uint32_t round_to(TensorFormat format, double sum) {
  return format == TENSOR_F16 ? round_to_f16(sum) : round_to_f32(sum);
}

// True when some element of row m needs dot_product. The loop looks for an infinity or a NaN in C.
ALWAYS_INLINE bool row_is_hard(const TensorA *a, const TensorB *b, int m, Layout layout, const Row *row) {
  const int columns = padded(b->lines);
  uint32_t largest = 0;
  for (int n = 0; n < columns; n++) {
    uint32_t field = exponent_field(layout, row->c[n]);
    largest = field > largest ? field : largest;
  }
  return a->hard[m] | b->any_hard | (largest == (1u << layout.exponent_bits) - 1);
}

static void redo_hard_elements(const TensorA *a, const TensorB *b, int m, TensorFormat format, Row *row) {
  for (int n = 0; n < b->lines; n++) {
    if (!a->hard[m] && !b->hard[n] && !is_special(layouts[format], row->c[n])) continue;
    Special special;
    double sum = dot_product(a, b, m, n, format, row->c[n], &special);
    row->d[n] = special ? special_bits[format][special] : round_to(format, sum);
  }
}

// Steps 1 to 4: row->d from row->c.
ALWAYS_INLINE void compute_row(const TensorA *a, const TensorB *b, int m, TensorFormat format, Row *restrict row) {
  const Layout layout = layouts[format];
  const int columns = padded(b->lines);
  find_product_top(a, b, m, row);
  align_c(columns, layout, row);
  sum_products(a, b, m, row);
  for (int n = 0; n < columns; n++) row->d[n] = round_to(format, row_sum(row, n));
  if (row_is_hard(a, b, m, layout, row)) redo_hard_elements(a, b, m, format, row);
}

void tensor_step_f32(const TensorA *a, const TensorB *b, float *d, int row_stride, bool accumulate) {
  const size_t size = (size_t)b->lines * sizeof *d;
  Row row;
  memset(row.c, 0, sizeof row.c);
  for (int m = 0; m < a->lines; m++, d += row_stride) {
    if (accumulate) memcpy(row.c, d, size);
    compute_row(a, b, m, TENSOR_F32, &row);
    memcpy(d, row.d, size);
  }
}

void tensor_step_f16(const TensorA *a, const TensorB *b, uint16_t *d, int row_stride, bool accumulate) {
  const int columns = b->lines;
  Row row;
  memset(row.c, 0, sizeof row.c);
  for (int m = 0; m < a->lines; m++, d += row_stride) {
    if (accumulate)
      for (int n = 0; n < columns; n++) row.c[n] = d[n];
    compute_row(a, b, m, TENSOR_F16, &row);
    for (int n = 0; n < columns; n++) d[n] = (uint16_t)row.d[n];
  }
}
