// The inputs of matrix_forms.h: tiles of one instruction each. Tile t is of kind t % MATRIX_KINDS, and each kind is made
// to tell some models of the arithmetic apart. Generated on both sides from the same integer hash: vectors.h.
#pragma once

#include "matrix_forms.h"
#include "vectors.h"

typedef enum MatrixKind {
  MATRIX_NARROW,            // exponents within a few bits: every term matters
  MATRIX_MIDDLE,            // within a dozen
  MATRIX_WIDE,              // over the whole range
  MATRIX_CANCEL,            // pairs of products cancel; C cancels the rest
  MATRIX_BOUNDARY,          // one huge product, the others around the last bit that is kept
  MATRIX_LARGE_C,           // C huge, all products around its last bits
  MATRIX_TIES,              // small integers onto a C whose last bit they halve
  MATRIX_SUBNORMAL_IN,      // subnormal factors
  MATRIX_SUBNORMAL_OUT,     // results around the smallest normal number, or the smallest products
  MATRIX_OVERFLOW,          // results around the largest, or the largest products
  MATRIX_SPECIAL,           // infinities and NaNs here and there
  MATRIX_ZEROS,             // zeros of both signs, sums that cancel to zero
  MATRIX_RAW,               // random bits
  MATRIX_HUGE_PAIR,         // +huge and -huge at two places, small terms elsewhere: is K added in one go?
  MATRIX_SINGLE,            // one product and C
  MATRIX_LONG_SIGNIFICAND,  // products of two and more: are they normalised before the largest exponent is taken?
  MATRIX_KINDS,
} MatrixKind;

// Elements as bits. A's are those that are stored: of a sparse A, half of K.
typedef struct MatrixTile {
  uint64_t a[MATRIX_MAX_M][MATRIX_MAX_K], b[MATRIX_MAX_N][MATRIX_MAX_K], c[MATRIX_MAX_M][MATRIX_MAX_N];
  uint32_t metadata[128];  // one register of each thread: any that are valid
} MatrixTile;

static inline uint64_t matrix_hash(uint32_t stream, int tile, int x, int y) {
  return (uint64_t)golden_hash(stream, (uint32_t)tile, (uint32_t)x, (uint32_t)y) << 32 |
         golden_hash(stream + 100, (uint32_t)tile, (uint32_t)x, (uint32_t)y);
}

// ---- numbers ----

static inline int matrix_bias(MatrixType type) { return (1 << (matrix_numbers[type].exponent - 1)) - 1; }

static inline int matrix_largest_exponent(MatrixType type) { return type == E4M3 ? 8 : matrix_bias(type); }

static inline uint64_t matrix_sign(MatrixType type, uint64_t sign) {
  return (sign & 1) << (matrix_numbers[type].bits - 1);
}

// (-1)^sign * 1.fraction * 2^exponent, fraction of 64 bits, cut; too small ones become subnormal or zero, too large ones
// get the largest exponent.
static inline uint64_t matrix_encode(MatrixType type, uint64_t sign, int exponent, uint64_t fraction) {
  int bits = matrix_numbers[type].fraction, bias = matrix_bias(type), largest = matrix_largest_exponent(type);
  uint64_t significand = (uint64_t)1 << bits | fraction >> (64 - bits), magnitude;
  if (exponent > largest) exponent = largest;
  if (exponent < 1 - bias)
    magnitude = 1 - bias - exponent > 63 ? 0 : significand >> (1 - bias - exponent);
  else
    magnitude = ((uint64_t)(exponent + bias - 1) << bits) + significand;
  if (type == E4M3 && magnitude == 0x7f) magnitude = 0x7e;
  return magnitude | matrix_sign(type, sign);
}

static inline uint64_t matrix_special(MatrixType type, int i) {
  int bits = matrix_numbers[type].fraction;
  uint64_t all = ((uint64_t)1 << (matrix_numbers[type].bits - 1)) - 1, sign = matrix_sign(type, (uint64_t)i);
  uint64_t infinity = type == E4M3 ? all : all >> bits << bits;
  switch (i / 2) {
  case 0:
  case 1:
  case 2: return infinity | sign;
  case 3: return infinity | sign | 1;
  case 4: return infinity | sign | (uint64_t)1 << (bits - 1);
  case 5: return sign;
  case 6: return (infinity - 1) | sign;
  default: return all | sign;
  }
}

// The value of a finite number.
static inline double matrix_value(MatrixType type, uint64_t bits) {
  int fraction_bits = matrix_numbers[type].fraction;
  uint64_t fraction = bits & (((uint64_t)1 << fraction_bits) - 1);
  int field = (int)(bits >> fraction_bits & ((1u << matrix_numbers[type].exponent) - 1));
  uint64_t significand = field ? fraction | (uint64_t)1 << fraction_bits : fraction;
  double value = (double)significand;
  int exponent = (field ? field : 1) - matrix_bias(type) - fraction_bits;
  uint64_t power = (uint64_t)(exponent + 1023) << 52;
  double scale;
  memcpy(&scale, &power, sizeof scale);
  return bits >> (matrix_numbers[type].bits - 1) & 1 ? -value * scale : value * scale;
}

static inline uint64_t matrix_from_value(MatrixType type, double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  if (!(bits << 1)) return 0;
  return matrix_encode(type, bits >> 63, (int)(bits >> 52 & 0x7ff) - 1023, bits << 12);
}

// Fractions are often all zeros or all ones.
static inline uint64_t matrix_fraction(uint64_t h, int style) {
  uint64_t random = h * 0x9e3779b97f4a7c15u;
  switch (style & 7) {
  case 5: return 0;
  case 6: return ~(uint64_t)0;
  case 7: return random & (uint64_t)7 << 61;
  default: return random;
  }
}

// ---- elements of A and B ----

// How many bits below the largest term a step keeps, by the format: where the kinds put their boundaries.
static inline int matrix_kept(const MatrixForm *f) {
  return f->a == F64 ? 52 : f->wgmma && (f->a == E4M3 || f->a == E5M2) ? 13 : 25;
}

static inline uint64_t matrix_integer_element(MatrixType type, int tile, int operand, int line, int k, int depth) {
  uint64_t h = matrix_hash(3 + (uint32_t)operand, tile, line, k), all = ((uint64_t)1 << matrix_numbers[type].bits) - 1;
  uint64_t lowest = type == S4 || type == S8 ? all / 2 + 1 : 0, highest = type == S4 || type == S8 ? all / 2 : all;
  switch (tile % MATRIX_KINDS) {
  case 0: return highest;
  case 1: return lowest;
  case 2: return operand ? highest : k < depth / 2 ? highest : lowest;  // both signs, one after the other
  case 3: return operand ? highest : k < depth / 2 ? lowest : highest;
  case 4: return h & 1;
  case 5: return h & 2 ? highest : lowest;
  case 6: return k == (line * 7 + tile) % depth ? h & all : 0;
  default: return h & all;
  }
}

static inline uint64_t matrix_element(const MatrixForm *f, MatrixType type, int tile, int operand, int line, int k,
                                      int depth) {
  if (!matrix_numbers[type].fraction) return matrix_integer_element(type, tile, operand, line, k, depth);
  MatrixKind kind = (MatrixKind)(tile % MATRIX_KINDS);
  int round = tile / MATRIX_KINDS, bias = matrix_bias(type), kept = matrix_kept(f);
  uint64_t place = matrix_hash(1, tile, 0, 0), own = matrix_hash(2, tile, operand, line);
  // Where products cancel, a column of a sparse product's B is all one number: any two of A's find it.
  bool alike = operand && f->sparse && (kind == MATRIX_CANCEL || kind == MATRIX_HUGE_PAIR);
  uint64_t h = matrix_hash(3 + (uint32_t)operand, tile, line, alike ? 0 : k), sign = h >> 63;
  int style = (int)(own >> 24);
  int special_place = (int)(place % (uint64_t)depth), other_place = (special_place + 1 + (int)(place >> 32) % (depth - 1)) % depth;
  int span = type == F64 ? 300 : bias > 100 ? 50 : 0;
  int offset = span ? (int)(place >> 40) % span * (operand ? -1 : 1) : 0;
  int low = -1, high = 1;
  if (other_place < 0) other_place += depth;
  switch (kind) {
  case MATRIX_NARROW:
  case MATRIX_SPECIAL: break;
  case MATRIX_MIDDLE: low = -5, high = 5; break;
  case MATRIX_WIDE:
    low = round & 1 && bias > 100 ? -30 : 1 - bias - matrix_numbers[type].fraction;
    high = round & 1 && bias > 100 ? 30 : bias + 1;
    offset = 0;
    break;
  case MATRIX_CANCEL:
    // Products 2i and 2i+1 are equal with opposite signs, but for the last pair, which is small.
    low = -4, high = 4;
    if (!alike && (k < depth - 2 || !operand)) {
      h = matrix_hash(3 + (uint32_t)operand, tile, line, k & ~1);
      sign = operand ? h >> 63 : (uint64_t)k & 1;
    }
    if (k >= depth - 2 && !alike) low = -4 - (line & 7), high = low + 1;
    break;
  case MATRIX_BOUNDARY:
  case MATRIX_HUGE_PAIR:
  case MATRIX_LONG_SIGNIFICAND:
    if (k == special_place || (k == other_place && kind == MATRIX_HUGE_PAIR)) {
      low = high = 7;
      sign = operand ? own >> 8 & 1 : (own >> 9 & 1) ^ (k == other_place);
      if (kind == MATRIX_HUGE_PAIR)
        h = matrix_hash(3 + (uint32_t)operand, tile, line, alike ? 0 : special_place);
    } else if (alike) {
      low = high = 7;
    } else {
      low = 9 - kept / 2 - (operand ? line & 7 : (line & 3) * 2);
      high = low + (line >> 3 & 1);
    }
    if (alike) sign = own >> 8 & 1;
    if (kind == MATRIX_LONG_SIGNIFICAND) style = h >> 8 & 1 ? 6 : 0;
    break;
  case MATRIX_LARGE_C:
    low = operand ? -3 - (line & 3) : -(line & 7);
    high = low + 1;
    break;
  case MATRIX_TIES:
    // Integers of two bits.
    offset = 0, low = 0, high = 1, style = 5;
    if (operand == 0 && (h >> 4 & 3) == 0) return matrix_sign(type, sign);
    if ((h >> 6 & 3) == 0) return matrix_encode(type, sign, 1, (uint64_t)1 << 63);
    break;
  case MATRIX_SUBNORMAL_IN:
    offset = 0;
    if (operand == 0 || (own & 3) == 0) {
      int digits = matrix_numbers[type].fraction;
      return matrix_sign(type, sign) | (h & (((uint64_t)1 << digits) - 1)) >> (h >> 56) % (uint64_t)digits;
    }
    low = 1 - bias, high = own & 4 ? 0 : bias;
    break;
  case MATRIX_SUBNORMAL_OUT:
    offset = 0;
    if (operand == 0 && (line & 1) && k != special_place) return 0;
    low = bias < 100 ? 1 - bias - matrix_numbers[type].fraction : -bias * 3 / 5, high = low + (bias < 100 ? 4 : bias / 9);
    break;
  case MATRIX_OVERFLOW:
    offset = 0;
    if ((own & 3) != 0) sign = operand ? 0 : own >> 4 & 1;
    low = bias > 100 ? bias / 2 - 2 + (line & 3) : matrix_largest_exponent(type) - 3;
    high = bias > 100 ? bias / 2 + 1 : matrix_largest_exponent(type);
    if (f->d == F16 && round & 1) low = 4 + (line & 1), high = 6;
    break;
  case MATRIX_ZEROS:
    // Rows and columns with more and more zeros, the rest ones; every fourth row all of one sign.
    if ((line & 3) == 3) sign = own & 1;
    if ((h >> 8 & 7) < (uint64_t)(line & 7) + 1) return matrix_sign(type, sign);
    return matrix_encode(type, sign, 0, 0);
  case MATRIX_RAW: return h >> (64 - matrix_numbers[type].bits);
  case MATRIX_SINGLE:
    if (operand == 0 && k != (line + tile / MATRIX_KINDS) % depth) return matrix_sign(type, sign);
    low = -7, high = 7;
    break;
  default: break;
  }
  if (kind == MATRIX_SPECIAL && h % 47 == 0) return matrix_special(type, (int)(h >> 32 & 15));
  uint64_t exponent = (h >> 16 & 0xffff) % (uint64_t)(high - low + 1);
  return matrix_encode(type, sign, low + (int)exponent + offset, matrix_fraction(h, style));
}

// ---- elements of C ----

// Minus the sum of products times factor, cut. In double, in order; each product is exact but for f64, which is left out.
static inline uint64_t matrix_cancelling(const MatrixForm *f, const MatrixTile *tile, int m, int n, double factor) {
  double sum = 0;
  for (int k = 0; k < f->k; k++) {
    int stored = f->sparse ? k / 2 : k;
    if (f->sparse && k % 2) continue;
    sum += matrix_value(f->a, tile->a[m][stored]) * matrix_value(f->b, tile->b[n][k]);
  }
  return matrix_from_value(f->d, -sum * factor);
}

static inline uint64_t matrix_integer_accumulator(int tile, int m, int n) {
  uint64_t h = matrix_hash(5, tile, m, n);
  switch (n % 4) {
  case 0: return h & 0xffffffff;
  case 1: return 0x7fffffff - (h & 0xffff);
  case 2: return 0x80000000 + (h & 0xffff);
  default: return h & 0xff;
  }
}

static inline uint64_t matrix_accumulator(const MatrixForm *f, int number, const MatrixTile *tile, int m, int n) {
  if (f->d == S32) return matrix_integer_accumulator(number, m, n);
  MatrixType type = f->d;
  MatrixKind kind = (MatrixKind)(number % MATRIX_KINDS);
  int round = number / MATRIX_KINDS, half = type == F16, wide = matrix_bias(f->a) > 100, kept = matrix_kept(f);
  uint64_t h = matrix_hash(5, number, m, n), sign = h >> 63, fraction = matrix_fraction(h, (int)(h >> 3 & 7));
  int low = -3, high = 5, smallest = 1 - matrix_bias(type);
  bool cancels = type != F64;
  switch (kind) {
  case MATRIX_NARROW: break;
  case MATRIX_MIDDLE: low = -12, high = 12; break;
  case MATRIX_WIDE:
    low = half ? -24 : wide ? round & 1 ? -70 : smallest - 20 : -30;
    high = half ? 15 : wide ? round & 1 ? 70 : -smallest : 31;
    break;
  case MATRIX_CANCEL:
    low = half ? -14 : -30, high = 8;
    if (n % 4 == 1 && cancels) return matrix_cancelling(f, tile, m, n, 1);
    if (n % 4 == 2) return 0;
    if (n % 4 == 3) low = -4;
    break;
  case MATRIX_BOUNDARY:
  case MATRIX_HUGE_PAIR:
  case MATRIX_LONG_SIGNIFICAND:
    if (n % 4 == 0) return 0;
    if (n % 4 == 1) low = 7 - kept, high = 19 - kept;
    if (n % 4 == 2) low = 8, high = 16;
    if (n % 4 == 3 && cancels) return matrix_cancelling(f, tile, m, n, 1);
    break;
  case MATRIX_LARGE_C: low = half ? 8 : kept - 9, high = half ? 12 : kept - 2; break;
  case MATRIX_TIES: low = half ? 9 : kept - 3, high = half ? 13 : kept + 2; break;
  case MATRIX_SUBNORMAL_IN:
    low = half ? -25 : wide ? smallest - 24 : -45, high = half ? -10 : wide ? smallest + 26 : -10;
    if (n % 4 == 0) return 0;
    break;
  case MATRIX_SUBNORMAL_OUT:
    low = smallest - matrix_numbers[type].fraction - 1, high = smallest + 4;
    if (n % 4 == 0) return matrix_sign(type, sign);
    if (n % 4 == 1 && cancels) return matrix_cancelling(f, tile, m, n, 1);
    if (n % 4 == 2 && !half) low = -40, high = -14;
    break;
  case MATRIX_OVERFLOW:
    low = -smallest - (half ? 2 : 7), high = -smallest + 1;
    if (n % 4 == 0) return matrix_special(type, 12 + (int)(sign & 1));
    if (n % 4 == 1) return 0;
    if (n % 4 == 2 && cancels) return matrix_cancelling(f, tile, m, n, 0.5);
    break;
  case MATRIX_SPECIAL:
    if (h % 6 == 0) return matrix_special(type, (int)(h >> 32 & 15));
    break;
  case MATRIX_ZEROS:
    if (n % 4 != 0) return matrix_sign(type, sign);
    low = 0, high = 2, fraction = 0;
    break;
  case MATRIX_RAW: return h >> (64 - matrix_numbers[type].bits);
  case MATRIX_SINGLE:
    low = half ? -16 : -32, high = half ? 14 : 32;
    if (n % 4 == 0) return matrix_sign(type, sign);
    break;
  default: break;
  }
  return matrix_encode(type, sign, low + (int)((h >> 16 & 0xffff) % (uint64_t)(high - low + 1)), fraction);
}

// Which of four elements two are stored of, 2 bits each: every group of 4 bits has one of six valid values; of tf32, which
// of two elements one is stored of, one of two values.
static inline uint32_t matrix_metadata(const MatrixForm *f, int tile, int thread) {
  static const uint32_t pairs[] = {4, 8, 9, 12, 13, 14}, singles[] = {4, 14};
  uint32_t bits = 0;
  for (int i = 0; i < 8; i++) {
    uint64_t h = matrix_hash(6, tile, thread, i);
    bits |= (f->a == TF32 ? singles[h & 1] : pairs[h % 6]) << 4 * i;
  }
  return bits;
}

static inline void matrix_tile(const MatrixForm *f, int number, MatrixTile *tile) {
  int depth = f->sparse ? f->k / 2 : f->k;
  memset(tile, 0, sizeof *tile);
  for (int m = 0; m < f->m; m++)
    for (int k = 0; k < depth; k++) tile->a[m][k] = matrix_element(f, f->a, number, 0, m, k, depth);
  for (int n = 0; n < f->n; n++)
    for (int k = 0; k < f->k; k++) tile->b[n][k] = matrix_element(f, f->b, number, 1, n, k, f->k);
  for (int m = 0; m < f->m; m++)
    for (int n = 0; n < f->n; n++) tile->c[m][n] = matrix_accumulator(f, number, tile, m, n);
  for (int t = 0; t < f->threads; t++) tile->metadata[t] = matrix_metadata(f, number, t);
}

// ---- a tile as the kernel reads it: PTX ISA 9.7.15.5, 9.7.15.6, 9.7.16.5 ----

// Puts an element at bit number `bit`.
static inline void matrix_put(uint8_t *bytes, int bit, int size, uint64_t value) {
  if (size < 8)
    bytes[bit / 8] |= (uint8_t)(value << bit % 8);
  else
    memcpy(bytes + bit / 8, &value, (size_t)size / 8);  // little-endian
}

// Register r of a lane holds `own` neighbours along K, four lanes those of a line, and eight lines make a block; A has a
// second block of lines before the next one along K.
static inline void matrix_put_operand(const MatrixForm *f, const uint64_t lines[][MATRIX_MAX_K], MatrixType type,
                                      int registers, bool is_a, uint8_t *bytes) {
  int size = matrix_numbers[type].bits, own = f->register_bits / size, blocks = is_a && f->m > 8 ? 2 : 1;
  for (int thread = 0; thread < f->threads; thread++)
    for (int r = 0; r < registers; r++)
      for (int e = 0; e < own; e++) {
        int line = thread / 32 * 16 + thread % 32 / 4 + r % blocks * 8, k = (r / blocks * 4 + thread % 4) * own + e;
        matrix_put(bytes, (r * f->threads + thread) * f->register_bits + e * size, size, lines[line][k]);
      }
}

// The row and column of element e of register r: C's and D's.
static inline void matrix_result_place(const MatrixForm *f, int thread, int r, int e, int *m, int *n) {
  int i = r * (f->register_bits / matrix_numbers[f->d].bits) + e;
  *m = thread / 32 * 16 + thread % 32 / 4 + (f->m > 8 ? i / 2 % 2 * 8 : 0);
  *n = thread % 4 * 2 + i % 2 + (f->m > 8 ? i / 4 : i / 2) * 8;
}

// A matrix in shared memory without swizzle: K-major, or core matrices of 8 along K, each of 8 neighbours along N.
static inline void matrix_put_image(const MatrixForm *f, const uint64_t lines[][MATRIX_MAX_K], MatrixType type, int count,
                                    int depth, bool mn_major, uint8_t *bytes) {
  int size = matrix_numbers[type].bits, row_bits = depth * size;
  for (int line = 0; line < count; line++)
    for (int k = 0; k < depth; k++) {
      int along = mn_major ? k % 8 : line % 8, inside = mn_major ? line % 8 * size : k * size % 128;
      int core = mn_major ? k / 8 : k * size / 128;
      matrix_put(bytes, line / 8 * row_bits * 8 + core * 1024 + along * 128 + inside, size, lines[line][k]);
    }
  (void)f;
}

// A matrix of wmma in memory, packed; across: its lines are not contiguous, but their first elements, second, ...
static inline int matrix_put_lines(const uint64_t lines[][MATRIX_MAX_K], MatrixType type, int count, int depth,
                                   bool across, uint8_t *bytes) {
  int size = matrix_numbers[type].bits;
  for (int line = 0; line < count; line++)
    for (int k = 0; k < depth; k++)
      matrix_put(bytes, (across ? k * count + line : line * depth + k) * size, size, lines[line][k]);
  return count * depth * size / 8;
}

static inline void matrix_lay_out_wmma(const MatrixForm *f, const MatrixTile *tile, uint8_t *bytes) {
  int size = matrix_numbers[f->d].bits;
  bytes += matrix_put_lines(tile->a, f->a, f->m, f->k, f->a_across, bytes);
  bytes += matrix_put_lines(tile->b, f->b, f->n, f->k, f->b_across, bytes);
  for (int m = 0; m < f->m; m++)
    for (int n = 0; n < f->n; n++) matrix_put(bytes, (m * f->n + n) * size, size, tile->c[m][n]);
}

static inline void matrix_lay_out(const MatrixForm *f, const MatrixTile *tile, uint8_t *bytes) {
  memset(bytes, 0, (size_t)f->block_in);
  if (f->wmma) {
    matrix_lay_out_wmma(f, tile, bytes);
    return;
  }
  if (f->image_a) matrix_put_image(f, tile->a, f->a, f->m, f->sparse ? f->k / 2 : f->k, false, bytes);
  bytes += f->image_a;
  if (f->image_b) matrix_put_image(f, tile->b, f->b, f->n, f->k, f->n_major, bytes);
  bytes += f->image_b;
  if (f->sparse) {
    memcpy(bytes, tile->metadata, (size_t)f->threads * 4);
    bytes += f->threads * 4;
  }
  int size = matrix_numbers[f->d].bits;
  for (int thread = 0; thread < f->threads; thread++)
    for (int r = 0; r < f->d_registers; r++)
      for (int e = 0; e < f->register_bits / size; e++) {
        int m, n;
        matrix_result_place(f, thread, r, e, &m, &n);
        matrix_put(bytes, (r * f->threads + thread) * f->register_bits + e * size, size, tile->c[m][n]);
      }
  bytes += f->block_out;
  matrix_put_operand(f, tile->a, f->a, f->a_registers, true, bytes);
  bytes += f->threads * f->a_registers * f->register_bits / 8;
  matrix_put_operand(f, tile->b, f->b, f->b_registers, false, bytes);
}

// ---- files ----

// A file is a sequence of records, one for each form: this header.
typedef struct MatrixRecord {
  char magic[8];  // "HLMATR1"
  char name[104];
  uint64_t input_hash;               // of all tiles' bytes
  uint64_t hashes[MATRIX_KINDS];     // of the results of all tiles of a kind
} MatrixRecord;

// Tiles of a form: about as many results of each.
static inline int matrix_tile_count(const MatrixForm *f) {
  int results = matrix_numbers[f->a].fraction ? 1 << 17 : 1 << 14;
  if (f->a == F64) results = 1 << 15;
  return results / (f->m * f->n) < MATRIX_KINDS ? MATRIX_KINDS : results / (f->m * f->n);
}
