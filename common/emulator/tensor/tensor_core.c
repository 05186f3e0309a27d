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
  SMALLEST_TOP = -133,
  ZERO_EXPONENT = -4096,  // of a zero: far below any other, and sums of it stay far below
};

typedef struct Layout {
  int exponent_bits, fraction_bits, bias;
  bool has_infinity;  // or else the largest exponent is of numbers too, and all ones of NaN
} Layout;

static const Layout layouts[] = {
    [TENSOR_F16] = {5, 10, 15, true}, [TENSOR_BF16] = {8, 7, 127, true}, [TENSOR_TF32] = {8, 23, 127, true},
    [TENSOR_E4M3] = {4, 3, 7, false}, [TENSOR_E5M2] = {5, 2, 15, true},  [TENSOR_F32] = {8, 23, 127, true},
};

// What differs between instructions.
typedef struct Rules {
  int depth;
  int fraction_bits;  // kept below the largest exponent
  int result_bits;    // kept below the result's leading bit
} Rules;

ALWAYS_INLINE Rules rules_of(TensorFormat format, int depth) {
  bool is_fp8 = format == TENSOR_E4M3 || format == TENSOR_E5M2;
  return is_fp8 ? (Rules){depth, 13, 13} : (Rules){depth, 25, 52};
}

ALWAYS_INLINE int smaller_of(int x, int y) { return x < y ? x : y; }
ALWAYS_INLINE int larger_of(int x, int y) { return x > y ? x : y; }

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
  return (int)(exponent_field(layout, bits) == (1u << layout.exponent_bits) - 1) &
         (layout.has_infinity | (fraction_field(layout, bits) == (1u << layout.fraction_bits) - 1));
}

// |value| = significand * 2^(exponent - fraction_bits).
ALWAYS_INLINE int32_t significand_of(Layout layout, uint32_t bits) {
  uint32_t leading = exponent_field(layout, bits) ? 1u << layout.fraction_bits : 0;
  return (int32_t)(fraction_field(layout, bits) | leading);
}

ALWAYS_INLINE int32_t exponent_of(Layout layout, uint32_t bits) {
  int32_t field = (int32_t)exponent_field(layout, bits);
  return (field | (int32_t)fraction_field(layout, bits)) == 0 ? ZERO_EXPONENT : larger_of(field, 1) - layout.bias;
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
  int32_t exponent = larger_of((int32_t)(f64_bits(magnitude) >> 52) - 1023, -14);
  double rounder = power_f64(exponent - 10 + 52);
  double rounded = magnitude + rounder - rounder;
  int32_t bits = smaller_of((int32_t)(f32_bits((float)(rounded * 0x1p-112)) >> 13), 0x7c00);
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

ALWAYS_INLINE Term decode_term(Layout layout, uint32_t bits) {
  Special infinity = is_negative(layout, bits) ? NEGATIVE_INFINITY : POSITIVE_INFINITY;
  Term term = {FINITE, significand_of(layout, bits), exponent_of(layout, bits), layout.fraction_bits};
  if (is_special(layout, bits)) term.special = fraction_field(layout, bits) ? NOT_A_NUMBER : infinity;
  if (is_negative(layout, bits)) term.significand = -term.significand;
  return term;
}

// An infinity times a zero is NaN. Signs multiply, of infinities too: those have a significand.
ALWAYS_INLINE Term multiply_terms(Term x, Term y) {
  Term product = {FINITE, x.significand * y.significand, x.exponent + y.exponent, x.fraction_bits + y.fraction_bits};
  if (x.special || y.special) product.special = product.significand > 0 ? POSITIVE_INFINITY : NEGATIVE_INFINITY;
  if (product.special && !product.significand) product.special = NOT_A_NUMBER;
  if (x.special == NOT_A_NUMBER || y.special == NOT_A_NUMBER) product.special = NOT_A_NUMBER;
  return product;
}

// Infinities of both signs make NaN. A finite sum never becomes infinite on the way.
ALWAYS_INLINE Special add_special(Special x, Special y) {
  if (x == FINITE || x == y) return y;
  return y == FINITE ? x : NOT_A_NUMBER;
}

// Step 2.
ALWAYS_INLINE int64_t truncate(Term term, int32_t top, int fraction_bits) {
  int shift = fraction_bits - term.fraction_bits - (top - term.exponent);
  int64_t magnitude = term.significand < 0 ? -term.significand : term.significand;
  magnitude = shift >= 0 ? magnitude << shift : magnitude >> smaller_of(-shift, 63);
  return term.significand < 0 ? -magnitude : magnitude;
}

// The numbers that a row of A has, decoded.
typedef struct TermRow {
  int count;
  uint8_t k[TENSOR_MAX_DEPTH];
  Term terms[TENSOR_MAX_DEPTH];
} TermRow;

static void decode_row(const TensorA *a, int m, TermRow *row) {
  row->count = 0;
  for (int k = 0; k < a->depth; k++) {
    if (a->absent[m] >> k & 1) continue;
    row->k[row->count] = (uint8_t)k;
    row->terms[row->count++] = decode_term(layouts[a->format], a->bits[k][m]);
  }
}

// The exact sum, before step 4, of the row and column n; c is C's bits.
static double dot_product(const TermRow *row, const TensorB *b, int n, Rules rules, TensorFormat c_format, uint32_t c,
                          Special *special) {
  const Layout layout = layouts[b->format];
  Term terms[TENSOR_MAX_DEPTH + 1];
  int count = row->count;
  for (int i = 0; i < count; i++) terms[i] = multiply_terms(row->terms[i], decode_term(layout, b->bits[row->k[i]][n]));
  terms[count++] = decode_term(layouts[c_format], c);

  int32_t top = SMALLEST_TOP;
  int64_t total = 0;
  *special = FINITE;
  for (int i = 0; i < count; i++) top = larger_of(top, terms[i].exponent);
  for (int i = 0; i < count; i++) total += truncate(terms[i], top, rules.fraction_bits);
  for (int i = 0; i < count; i++) *special = add_special(*special, terms[i].special);
  return (double)total * power_f64(top - rules.fraction_bits);
}

// ---- decoding ----

// Exponents in a line may lie this far apart. Then a product of values is at least 2^-90, and the powers of two in
// sum_products stay inside fp32's range.
enum { WIDEST = 45 };

// The number as a float, divided by 2^scale; exponent is its own, less scale. Numbers too small to be used (their line
// is hard) become zero: then no sum of products overflows.
ALWAYS_INLINE float scaled_value(Layout layout, uint32_t bits, int32_t exponent) {
  int32_t significand = significand_of(layout, bits) & -(exponent >= -WIDEST);
  float magnitude = (float)significand * power_f32(larger_of(exponent, -WIDEST) - layout.fraction_bits);
  return f32_from_bits(f32_bits(magnitude) | (uint32_t)is_negative(layout, bits) << 31);
}

// 1 for infinities, NaNs and numbers too small for `value`.
ALWAYS_INLINE int32_t is_hard(Layout layout, uint32_t bits, int32_t exponent) {
  bool is_nonzero = (exponent_field(layout, bits) | fraction_field(layout, bits)) != 0;
  return is_special(layout, bits) | (is_nonzero & (exponent < -WIDEST));
}

ALWAYS_INLINE void include_exponents(int lines, Layout layout, const uint32_t *restrict bits, int32_t *restrict scale) {
  for (int i = 0; i < lines; i++) scale[i] = larger_of(scale[i], exponent_of(layout, bits[i]));
}

ALWAYS_INLINE void scale_numbers(int lines, Layout layout, const uint32_t *restrict bits, const int32_t *restrict scale,
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
  for (int k = 0; k < o->depth; k++) include_exponents(lines, layout, o->bits[k], o->scale);
  for (int k = 0; k < o->depth; k++)
    scale_numbers(lines, layout, o->bits[k], o->scale, o->value[k], o->exponent[k], o->hard);
  int32_t any_hard = 0;
  for (int i = 0; i < lines; i++) any_hard |= o->hard[i];
  o->any_hard = any_hard;
}

static void scale_operand(TensorOperand *o) {
  switch (o->format) {
  case TENSOR_F16: scale_lines(o, layouts[TENSOR_F16]); break;
  case TENSOR_BF16: scale_lines(o, layouts[TENSOR_BF16]); break;
  case TENSOR_TF32: scale_lines(o, layouts[TENSOR_TF32]); break;
  case TENSOR_E4M3: scale_lines(o, layouts[TENSOR_E4M3]); break;
  case TENSOR_E5M2: scale_lines(o, layouts[TENSOR_E5M2]); break;
  default: scale_lines(o, layouts[TENSOR_F32]); break;
  }
}

// Number i of an array; sign is that of a product that is to be negated, and the low bits of tf32 are not looked at.
ALWAYS_INLINE uint32_t element_at(const void *elements, int i, int size, uint32_t sign) {
  if (size == 1) return ((const uint8_t *)elements)[i] ^ sign;
  if (size == 2) return ((const uint16_t *)elements)[i] ^ sign;
  return (((const uint32_t *)elements)[i] ^ sign) & 0xffffe000;
}

ALWAYS_INLINE void copy_operand(TensorOperand *o, int depth, const void *elements, int size, int line_stride,
                                int k_stride, bool negate) {
  const uint32_t sign = negate ? 1u << (8 * size - 1) : 0;
  for (int k = 0; k < o->depth; k++) {
    const int used = k < depth ? o->lines : 0;
    for (int i = 0; i < used; i++) o->bits[k][i] = element_at(elements, i * line_stride + k * k_stride, size, sign);
    for (int i = used; i < padded(o->lines); i++) o->bits[k][i] = 0;
  }
}

static void begin_operand(TensorOperand *o, TensorFormat format, int lines, int depth) {
  o->format = format;
  o->lines = lines;
  o->depth = depth <= 8 && format == TENSOR_TF32 ? 8 : depth <= 16 ? 16 : depth <= 32 ? 32 : 64;
  for (int i = 0; i < lines; i++) o->absent[i] = 0;
}

static void decode(TensorOperand *o, TensorFormat format, int lines, int depth, const void *elements, int line_stride,
                   int k_stride, bool negate) {
  begin_operand(o, format, lines, depth);
  if (format == TENSOR_F16 || format == TENSOR_BF16)
    copy_operand(o, depth, elements, 2, line_stride, k_stride, negate);
  else if (format == TENSOR_TF32)
    copy_operand(o, depth, elements, 4, line_stride, k_stride, negate);
  else
    copy_operand(o, depth, elements, 1, line_stride, k_stride, negate);
  scale_operand(o);
}

void tensor_decode_a(TensorA *a, TensorFormat format, int rows, int depth, const void *elements, int row_stride,
                     int k_stride, bool negate) {
  decode(a, format, rows, depth, elements, row_stride, k_stride, negate);
}

void tensor_decode_sparse_a(TensorA *a, TensorFormat format, int rows, int depth, const void *elements, int row_stride,
                            const uint8_t (*places)[TENSOR_MAX_DEPTH], bool negate) {
  const int size = format == TENSOR_TF32 ? 4 : format == TENSOR_F16 || format == TENSOR_BF16 ? 2 : 1;
  const uint32_t sign = negate ? 1u << (8 * size - 1) : 0;
  begin_operand(a, format, rows, depth);
  for (int k = 0; k < a->depth; k++)
    for (int m = 0; m < padded(rows); m++) a->bits[k][m] = 0;
  for (int m = 0; m < rows; m++) {
    a->absent[m] = ~0ull;
    for (int i = 0; i < depth / 2; i++) {
      a->bits[places[m][i]][m] = element_at(elements, m * row_stride + i, size, sign);
      a->absent[m] &= ~(1ull << places[m][i]);
    }
  }
  scale_operand(a);
}

void tensor_decode_b(TensorB *b, TensorFormat format, int columns, int depth, const void *elements, int k_stride,
                     int column_stride, bool negate) {
  decode(b, format, columns, depth, elements, column_stride, k_stride, negate);
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

#define EACH_K(rules) _Pragma("GCC unroll 64") for (int k = 0; k < (rules).depth; k++)

// Step 1 for the products.
ALWAYS_INLINE void find_product_top(const TensorA *a, const TensorB *b, int m, Rules rules, Row *restrict row) {
  const int columns = padded(b->lines);
  const int32_t a_scale = a->scale[m];
  int16_t a_exponent[TENSOR_MAX_DEPTH], top[TENSOR_MAX_LINES];
  EACH_K(rules) a_exponent[k] = a->exponent[k][m];
  for (int n = 0; n < columns; n++) {
    int16_t largest = 2 * ZERO_EXPONENT;
    EACH_K(rules) {
      int16_t exponent = (int16_t)(a_exponent[k] + b->exponent[k][n]);
      largest = largest > exponent ? largest : exponent;
    }
    top[n] = largest;
  }
  for (int n = 0; n < columns; n++) row->top[n] = top[n] + a_scale + b->scale[n];
}

// Steps 1 and 2 for C.
ALWAYS_INLINE void align_c(int columns, Layout layout, Rules rules, Row *restrict row) {
  const int up = larger_of(rules.fraction_bits - layout.fraction_bits, 0);
  const int down = larger_of(layout.fraction_bits - rules.fraction_bits, 0);
  for (int n = 0; n < columns; n++) {
    uint32_t c = row->c[n];
    int32_t exponent = exponent_of(layout, c);
    int32_t top = larger_of(larger_of(row->top[n], exponent), SMALLEST_TOP);
    int32_t term = significand_of(layout, c) << up >> smaller_of(top - exponent + down, 31);
    row->top[n] = top;
    row->c_term[n] = is_negative(layout, c) ? -term : term;
  }
}

// Step 2 for the products, and their part of step 3. The sum fits: 32 integers below 2^27. Powers of less than 2^-35
// make any product vanish, and for more than 2^115 all products are zeros, so that the limits change no result.
ALWAYS_INLINE void sum_products(const TensorA *a, const TensorB *b, int m, Rules rules, Row *restrict row) {
  const int columns = padded(b->lines);
  const int32_t a_scale = a->scale[m];
  float a_value[TENSOR_MAX_DEPTH];
  EACH_K(rules) a_value[k] = a->value[k][m];
  for (int n = 0; n < columns; n++) {
    int32_t exponent = a_scale + b->scale[n] + rules.fraction_bits - row->top[n];
    float power = power_f32(larger_of(smaller_of(exponent, 115), -35));
    int32_t products = 0;
    EACH_K(rules) products += (int32_t)(a_value[k] * power * b->value[k][n]);
    row->products[n] = products;
  }
}

// The rest of step 3.
ALWAYS_INLINE double row_sum(const Row *row, int n, Rules rules) {
  return ((double)row->products[n] + (double)row->c_term[n]) * power_f64(row->top[n] - rules.fraction_bits);
}

// Step 4. Of an fp32 result, what lies result_bits below the leading bit is cut off.
ALWAYS_INLINE uint32_t round_to(TensorFormat format, Rules rules, double sum) {
  if (format == TENSOR_F16) return round_to_f16(sum);
  double cut = f64_from_bits(f64_bits(sum) >> (52 - rules.result_bits) << (52 - rules.result_bits));
  return round_to_f32(cut);
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

static void redo_hard_elements(const TensorA *a, const TensorB *b, int m, Rules rules, TensorFormat format, Row *row) {
  TermRow terms;
  decode_row(a, m, &terms);
  for (int n = 0; n < b->lines; n++) {
    if (!a->hard[m] && !b->hard[n] && !is_special(layouts[format], row->c[n])) continue;
    Special special;
    double sum = dot_product(&terms, b, n, rules, format, row->c[n], &special);
    row->d[n] = special ? special_bits[format][special] : round_to(format, rules, sum);
  }
}

// Steps 1 to 4: row->d from row->c. Inlined for every set of rules.
ALWAYS_INLINE void compute_row(const TensorA *a, const TensorB *b, int m, Rules rules, TensorFormat format,
                               Row *restrict row) {
  const Layout layout = layouts[format];
  const int columns = padded(b->lines);
  find_product_top(a, b, m, rules, row);
  align_c(columns, layout, rules, row);
  sum_products(a, b, m, rules, row);
  for (int n = 0; n < columns; n++) row->d[n] = round_to(format, rules, row_sum(row, n, rules));
  if (row_is_hard(a, b, m, layout, row)) redo_hard_elements(a, b, m, rules, format, row);
}

// One row with constant rules.
typedef void ComputeRow(const TensorA *a, const TensorB *b, int m, Row *row);
#define COMPUTE_ROW(name, a_format, depth, format)                                                                     \
  static void name(const TensorA *a, const TensorB *b, int m, Row *row) {                                              \
    compute_row(a, b, m, rules_of(a_format, depth), format, row);                                                      \
  }
COMPUTE_ROW(compute_f32_8, TENSOR_F16, 8, TENSOR_F32)
COMPUTE_ROW(compute_f32_16, TENSOR_F16, 16, TENSOR_F32)
COMPUTE_ROW(compute_f32_32, TENSOR_F16, 32, TENSOR_F32)
COMPUTE_ROW(compute_f16_16, TENSOR_F16, 16, TENSOR_F16)
COMPUTE_ROW(compute_f16_32, TENSOR_F16, 32, TENSOR_F16)
COMPUTE_ROW(compute_f32_fp8_32, TENSOR_E4M3, 32, TENSOR_F32)
COMPUTE_ROW(compute_f32_fp8_64, TENSOR_E4M3, 64, TENSOR_F32)
COMPUTE_ROW(compute_f16_fp8_32, TENSOR_E4M3, 32, TENSOR_F16)
COMPUTE_ROW(compute_f16_fp8_64, TENSOR_E4M3, 64, TENSOR_F16)

static ComputeRow *row_function(const TensorA *a, TensorFormat format) {
  bool half = format == TENSOR_F16;
  if (a->format == TENSOR_E4M3 || a->format == TENSOR_E5M2) {
    if (a->depth == 32) return half ? compute_f16_fp8_32 : compute_f32_fp8_32;
    return half ? compute_f16_fp8_64 : compute_f32_fp8_64;
  }
  if (a->depth == 8) return compute_f32_8;
  if (a->depth == 16) return half ? compute_f16_16 : compute_f32_16;
  return half ? compute_f16_32 : compute_f32_32;
}

void tensor_step_f32(const TensorA *a, const TensorB *b, float *d, int row_stride, bool accumulate) {
  const size_t size = (size_t)b->lines * sizeof *d;
  ComputeRow *compute = row_function(a, TENSOR_F32);
  Row row;
  memset(row.c, 0, sizeof row.c);
  for (int m = 0; m < a->lines; m++, d += row_stride) {
    if (accumulate) memcpy(row.c, d, size);
    compute(a, b, m, &row);
    memcpy(d, row.d, size);
  }
}

void tensor_step_f16(const TensorA *a, const TensorB *b, uint16_t *d, int row_stride, bool accumulate) {
  const int columns = b->lines;
  ComputeRow *compute = row_function(a, TENSOR_F16);
  Row row;
  memset(row.c, 0, sizeof row.c);
  for (int m = 0; m < a->lines; m++, d += row_stride) {
    if (accumulate)
      for (int n = 0; n < columns; n++) row.c[n] = d[n];
    compute(a, b, m, &row);
    for (int n = 0; n < columns; n++) d[n] = (uint16_t)row.d[n];
  }
}
