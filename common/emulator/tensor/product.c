// Matrix products of any element types: see product.h.
#include "product.h"

#include <string.h>

#include "../warp/float16.h"

// ---- types ----

static const struct {
  const char *name;
  int bits;
} types_of_elements[ELEMENT_TYPES] = {
    [ELEMENT_F16] = {"f16", 16}, [ELEMENT_BF16] = {"bf16", 16}, [ELEMENT_TF32] = {"tf32", 32},
    [ELEMENT_E4M3] = {"e4m3", 8}, [ELEMENT_E5M2] = {"e5m2", 8}, [ELEMENT_S8] = {"s8", 8},
    [ELEMENT_U8] = {"u8", 8},    [ELEMENT_S4] = {"s4", 4},      [ELEMENT_U4] = {"u4", 4},
    [ELEMENT_B1] = {"b1", 1},    [ELEMENT_F64] = {"f64", 64},   [ELEMENT_F32] = {"f32", 32},
    [ELEMENT_S32] = {"s32", 32},
};

int element_bits(ElementType type) { return types_of_elements[type].bits; }

bool element_is_integer(ElementType type) { return type >= ELEMENT_S8 && type <= ELEMENT_B1; }

static int type_from_name(const char *name) {
  int type = 0;
  while (type < ELEMENT_TYPES && strcmp(name, types_of_elements[type].name)) type++;
  return type;
}

int element_types(const PtxInstruction *source, ElementType types[4]) {
  int count = 0;
  for (int m = 0; m < source->modifier_count; m++) {
    int type = type_from_name(source->modifiers[m]);
    if (type < ELEMENT_TYPES && count++ < 4) types[count - 1] = (ElementType)type;
  }
  return count;
}

bool element_modifiers(Decoder *decoder, const PtxInstruction *source, const char *const *allowed) {
  for (int m = 0; m < source->modifier_count; m++) {
    bool known = type_from_name(source->modifiers[m]) < ELEMENT_TYPES;
    for (int i = 0; allowed[i] && !known; i++) known = !strcmp(source->modifiers[m], allowed[i]);
    if (known) continue;
    decoder_error(decoder, source, "unknown modifier .%s", source->modifiers[m]);
    return false;
  }
  return true;
}

static TensorFormat format_of(ElementType type) {
  static const TensorFormat formats[] = {[ELEMENT_F16] = TENSOR_F16,   [ELEMENT_BF16] = TENSOR_BF16,
                                         [ELEMENT_TF32] = TENSOR_TF32, [ELEMENT_E4M3] = TENSOR_E4M3,
                                         [ELEMENT_E5M2] = TENSOR_E5M2};
  return formats[type];
}

// ---- metadata, PTX ISA 9.7.15.6.2 and 9.7.16.6 ----

// Metadata bits of a row.
static int row_bits(const Product *product) {
  int bits = element_bits(product->a);
  return product->depth * (bits == 32 ? 4 : bits == 4 ? 1 : 2) / 2;
}

// The four bits number i of row `row` (of 16).
static uint32_t row_nibble(const Product *product, const uint32_t metadata[LANES], int selector, int row, int i) {
  int group = row % 8 * 4, below = row / 8, bits = row_bits(product);
  if (bits == 16) return metadata[group + selector] >> (16 * below + 4 * i) & 15;
  if (bits == 32 && element_bits(product->a) >= 16)
    return metadata[group + 2 * selector + i / 4] >> (16 * below + 4 * (i % 4)) & 15;
  if (bits == 32) return metadata[group + 2 * selector + below] >> 4 * i & 15;
  return metadata[group + below + 2 * (i / 8)] >> 4 * (i % 8) & 15;
}

bool product_places(const Product *product, const uint32_t metadata[LANES], int selector, SparsePlaces *places) {
  int size = element_bits(product->a);
  bool valid = true;
  for (int row = 0; row < PRODUCT_ROWS; row++)
    for (int i = 0; i < row_bits(product) / 4; i++) {
      uint32_t nibble = row_nibble(product, metadata, selector, row, i), low = nibble & 3, high = nibble >> 2;
      uint8_t *k = places->k[row];
      valid &= size == 32 ? nibble == 4 || nibble == 14 : low < high;
      if (size == 32) {
        k[i] = (uint8_t)(2 * i + (int)(low >> 1));
      } else if (size == 4) {  // neighbours stay together
        for (int e = 0; e < 4; e++) k[4 * i + e] = (uint8_t)(8 * i + 2 * (int)(e < 2 ? low : high) + e % 2);
      } else {
        k[2 * i] = (uint8_t)(4 * i + (int)low);
        k[2 * i + 1] = (uint8_t)(4 * i + (int)high);
      }
    }
  return valid;
}

// ---- decoding ----

// Element k of a packed line of integers.
static int integer_at(ElementType type, const uint8_t *line, int k) {
  switch (type) {
  case ELEMENT_S8: return (int8_t)line[k];
  case ELEMENT_U8: return line[k];
  case ELEMENT_S4: return (int8_t)(line[k / 2] << (k % 2 ? 0 : 4)) >> 4;
  case ELEMENT_U4: return line[k / 2] >> (k % 2 * 4) & 15;
  default: return line[k / 8] >> k % 8 & 1;
  }
}

// b1 with .xor counts the bits that differ: with +1 and -1 for the bits, that is half of depth less the product.
static int16_t integer_value(const Product *product, ElementType type, const uint8_t *line, int k) {
  int value = integer_at(type, line, k);
  return (int16_t)(product->exclusive_or ? 1 - 2 * value : value);
}

static void decode_integers(const Product *product, ElementType type, ProductOperand *o, const uint8_t *packed,
                            const SparsePlaces *places) {
  int stored = places ? product->depth / 2 : product->depth, pitch = stored * element_bits(type) / 8;
  for (int i = 0; i < o->lines; i++, packed += pitch) {
    if (places) memset(o->integers[i], 0, (size_t)product->depth * sizeof o->integers[i][0]);
    for (int k = 0; k < stored; k++) o->integers[i][places ? places->k[i][k] : k] = integer_value(product, type, packed, k);
  }
}

// FP8 on mma.sync: of each four neighbours in memory the first two are a step's and the last two the next one's. Of a
// sparse A these are the elements of every second group of four k, which then follow each other.
static void decode_converted(const Product *product, ElementType type, ProductOperand *o, const uint8_t *packed,
                             const SparsePlaces *places, bool is_b) {
  int stored = places ? product->depth / 2 : product->depth, half = stored / 2;
  int together = is_b && product->sparse ? 4 : 2;  // neighbours of a step
  for (int step = 0; step < 2; step++) {
    uint16_t numbers[TENSOR_MAX_LINES][TENSOR_MAX_DEPTH / 2];
    uint8_t k_places[PRODUCT_ROWS][TENSOR_MAX_DEPTH];
    for (int line = 0; line < o->lines; line++)
      for (int i = 0; i < half; i++) {
        int from = i / together * 2 * together + step * together + i % together;
        u8 byte = packed[line * stored + from];
        numbers[line][i] = type == ELEMENT_E4M3 ? f16_from_e4m3(byte) : f16_from_e5m2(byte);
        if (places) k_places[line][i] = (uint8_t)(places->k[line][from] / 8 * 4 + places->k[line][from] % 4);
      }
    if (places)
      tensor_decode_sparse_a(&o->numbers[step], TENSOR_F16, o->lines, product->depth / 2, numbers, TENSOR_MAX_DEPTH / 2,
                             (const uint8_t(*)[TENSOR_MAX_DEPTH])k_places, false);
    else
      tensor_decode_a(&o->numbers[step], TENSOR_F16, o->lines, half, numbers, TENSOR_MAX_DEPTH / 2, 1, false);
  }
}

void product_decode_a(const Product *product, ProductOperand *a, int rows, const void *packed,
                      const SparsePlaces *places) {
  int depth = product->depth;
  a->lines = rows;
  if (element_is_integer(product->a))
    decode_integers(product, product->a, a, packed, places);
  else if (product->converted)
    decode_converted(product, product->a, a, packed, places, false);
  else if (places)
    tensor_decode_sparse_a(&a->numbers[0], format_of(product->a), rows, depth, packed, depth / 2, places->k,
                           product->negate_a);
  else
    tensor_decode_a(&a->numbers[0], format_of(product->a), rows, depth, packed, depth, 1, product->negate_a);
}

void product_decode_b(const Product *product, ProductOperand *b, int columns, const void *packed) {
  int depth = product->depth;
  b->lines = columns;
  if (element_is_integer(product->b))
    decode_integers(product, product->b, b, packed, NULL);
  else if (product->converted)
    decode_converted(product, product->b, b, packed, NULL, true);
  else
    tensor_decode_b(&b->numbers[0], format_of(product->b), columns, depth, packed, 1, depth, product->negate_b);
}

// ---- the product ----

static s32 saturated(int64_t sum) {
  return sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : (s32)sum;
}

// No sum of products is larger than 64 * 255 * 255.
static void multiply_integers(const Product *product, const ProductOperand *a, const ProductOperand *b, s32 *d,
                              int row_stride, bool accumulate) {
  for (int m = 0; m < a->lines; m++, d += row_stride)
    for (int n = 0; n < b->lines; n++) {
      const int16_t *x = a->integers[m], *y = b->integers[n];
      s32 sum = 0;
      for (int k = 0; k < product->depth; k++) sum += x[k] * y[k];
      if (product->exclusive_or) sum = (product->depth - sum) / 2;
      s32 c = accumulate ? d[n] : 0;
      d[n] = product->saturate ? saturated((int64_t)c + sum) : (s32)((u32)c + (u32)sum);
    }
}

// Two steps from zero, and then C is added as by add.f32 and add.f16.
static void multiply_converted(const Product *product, const ProductOperand *a, const ProductOperand *b, void *d,
                               int row_stride) {
  static _Thread_local f32 wide[PRODUCT_ROWS * TENSOR_MAX_LINES];
  static _Thread_local u16 narrow[PRODUCT_ROWS * TENSOR_MAX_LINES];
  bool is_f16 = product->d == ELEMENT_F16;
  for (int step = 0; step < 2; step++)
    if (is_f16)
      tensor_step_f16(&a->numbers[step], &b->numbers[step], narrow, TENSOR_MAX_LINES, step > 0);
    else
      tensor_step_f32(&a->numbers[step], &b->numbers[step], wide, TENSOR_MAX_LINES, step > 0);
  for (int m = 0; m < a->lines; m++)
    for (int n = 0; n < b->lines; n++) {
      int i = m * TENSOR_MAX_LINES + n;
      if (is_f16) {
        u16 *c = (u16 *)d + m * row_stride + n;
        *c = f16_from_f32(f32_from_f16(*c) + f32_from_f16(narrow[i]));
      } else {
        f32 *c = (f32 *)d + m * row_stride + n;
        f32 sum = *c + wide[i];
        *c = sum != sum ? f32_from_bits(0x7fffffff) : sum;
      }
    }
}

void product_multiply(const Product *product, const ProductOperand *a, const ProductOperand *b, void *d, int row_stride,
                      bool accumulate) {
  if (product->d == ELEMENT_S32)
    multiply_integers(product, a, b, d, row_stride, accumulate);
  else if (product->converted)
    multiply_converted(product, a, b, d, row_stride);
  else if (product->d == ELEMENT_F16)
    tensor_step_f16(&a->numbers[0], &b->numbers[0], d, row_stride, accumulate);
  else
    tensor_step_f32(&a->numbers[0], &b->numbers[0], d, row_stride, accumulate);
}
