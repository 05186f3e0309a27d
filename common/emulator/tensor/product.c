// Matrix products of any element types: see product.h.
#include "product.h"

#include <fenv.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../warp/float16.h"
#include "../warp/floating.h"
#include "../warp/fused.h"
#include "../warp/rounded.h"
#include "../host/host_memory.h"
#include "../warp/lanes.h"
#include "../warp/decoder.h"
#include "../warp/warp.h"

// ---- types ----

static const struct {
  const char *name;
  int bits;
} types_of_elements[ELEMENT_TYPES] = {
    [ELEMENT_F16] = {"f16", 16},  [ELEMENT_BF16] = {"bf16", 16}, [ELEMENT_TF32] = {"tf32", 32},
    [ELEMENT_E4M3] = {"e4m3", 8}, [ELEMENT_E5M2] = {"e5m2", 8},  [ELEMENT_S8] = {"s8", 8},
    [ELEMENT_U8] = {"u8", 8},     [ELEMENT_S4] = {"s4", 4},      [ELEMENT_U4] = {"u4", 4},
    [ELEMENT_B1] = {"b1", 1},     [ELEMENT_F64] = {"f64", 64},   [ELEMENT_F32] = {"f32", 32},
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

static bool shape_from_name(const char *name, int shape[3]) {
  int used = 0;
  return sscanf(name, "m%dn%dk%d%n", &shape[0], &shape[1], &shape[2], &used) == 3 && !name[used];
}

bool shape_of(const PtxInstruction *source, int *m, int *n, int *k) {
  int found = 0, shape[3];
  for (int i = 0; i < source->modifier_count; i++) {
    if (!shape_from_name(source->modifiers[i], shape)) continue;
    *m = shape[0], *n = shape[1], *k = shape[2];
    found++;
  }
  return found == 1;
}

bool element_modifiers(Decoder *decoder, const PtxInstruction *source, const char *const *allowed) {
  for (int m = 0; m < source->modifier_count; m++) {
    const char *text = source->modifiers[m];
    int shape[3];
    bool known = shape_from_name(text, shape) || type_from_name(text) < ELEMENT_TYPES;
    for (int i = 0; allowed[i] && !known; i++) known = !strcmp(text, allowed[i]);
    if (known) continue;
    decoder_error(decoder, source, "unknown modifier .%s", text);
    return false;
  }
  return true;
}

static TensorFormat format_of(ElementType type) {
  static const TensorFormat formats[] = {[ELEMENT_F16] = TENSOR_F16,
                                         [ELEMENT_BF16] = TENSOR_BF16,
                                         [ELEMENT_TF32] = TENSOR_TF32,
                                         [ELEMENT_E4M3] = TENSOR_E4M3,
                                         [ELEMENT_E5M2] = TENSOR_E5M2};
  return formats[type];
}

// ---- metadata, PTX ISA 9.7.15.6.2 and 9.7.16.6 ----

// Metadata bits of a row.
static int row_bits(const Product *product) {
  int bits = element_bits(product->a);
  return product->depth * (bits == 32 ? 4 : bits == 4 ? 1 : 2) / 2;
}

int product_selectors(const Product *product) { return 64 / row_bits(product); }

const char *product_places_rule(const Product *product) {
  switch (element_bits(product->a)) {
  case 32: return "one of each two elements by 0100 or 1110";
  case 4: return "two of each four pairs of elements, in order";
  default: return "two of each four elements, in order";
  }
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
    integers_decode(product, product->a, a, packed, depth / (places ? 2 : 1) * element_bits(product->a) / 8, places);
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
    integers_decode(product, product->b, b, packed, depth * element_bits(product->b) / 8, NULL);
  else if (product->converted)
    decode_converted(product, product->b, b, packed, NULL, true);
  else
    tensor_decode_b(&b->numbers[0], format_of(product->b), columns, depth, packed, 1, depth, product->negate_b);
}

// ---- memory ----

static pthread_key_t scratch_key;
static void make_key(void) { pthread_key_create(&scratch_key, free); }

ProductScratch *product_scratch(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  static _Thread_local ProductScratch *own;
  if (own) return own;
  own = host_allocate(1, sizeof *own);
  pthread_once(&once, make_key);
  pthread_setspecific(scratch_key, own);
  return own;
}

// ---- the product ----

// Two steps from zero, and then C is added as by add.f32 and add.f16.
static void multiply_converted(const Product *product, const ProductOperand *a, const ProductOperand *b, void *d,
                               int row_stride) {
  f32 *wide = product_scratch()->sums.f32;
  u16 *narrow = product_scratch()->sums.f16;
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
    integers_multiply(product, a, b, d, row_stride, accumulate);
  else if (product->converted)
    multiply_converted(product, a, b, d, row_stride);
  else if (product->d == ELEMENT_F16)
    tensor_step_f16(&a->numbers[0], &b->numbers[0], d, row_stride, accumulate);
  else
    tensor_step_f32(&a->numbers[0], &b->numbers[0], d, row_stride, accumulate);
}

// ---- integers ----

#if defined __GNUC__ && !defined __clang__
#pragma GCC optimize("O3")  // as in tensor_core.c
#endif

// ---- decoding ----

// The line's elements, one after the other.
static void unpack_line(ElementType type, const uint8_t *line, int count, int16_t *values) {
  switch (type) {
  case ELEMENT_S8:
    for (int k = 0; k < count; k++) values[k] = (int8_t)line[k];
    break;
  case ELEMENT_U8:
    for (int k = 0; k < count; k++) values[k] = line[k];
    break;
  case ELEMENT_S4:
    for (int k = 0; k < count; k++) values[k] = (int8_t)(line[k / 2] << (k % 2 ? 0 : 4)) >> 4;
    break;
  case ELEMENT_U4:
    for (int k = 0; k < count; k++) values[k] = line[k / 2] >> (k % 2 * 4) & 15;
    break;
  default:
    for (int k = 0; k < count; k++) values[k] = line[k / 8] >> k % 8 & 1;
    break;
  }
}

void integers_decode(const Product *product, ElementType type, ProductOperand *o, const uint8_t *packed, int pitch,
                     const SparsePlaces *places) {
  int stored = places ? product->depth / 2 : product->depth;
  for (int i = 0; i < o->lines; i++, packed += pitch) {
    int16_t values[PRODUCT_MAX_DEPTH], *line = o->integers[i];
    unpack_line(type, packed, stored, places ? values : line);
    if (places) {
      memset(line, 0, (size_t)product->depth * sizeof *line);
      for (int k = 0; k < stored; k++) line[places->k[i][k]] = values[k];
    }
    // .xor counts the bits that differ: with +1 and -1 for the bits, half of depth less the product.
    for (int k = 0; k < stored && product->exclusive_or; k++) line[k] = (int16_t)(1 - 2 * line[k]);
  }
}

// ---- the product ----

static s32 saturated(int64_t sum) { return sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : (s32)sum; }

// No sum of products is larger than 64 * 255 * 255.
ALWAYS_INLINE void multiply_rows(const Product *product, int depth, const ProductOperand *a, const ProductOperand *b,
                                 s32 *d, int row_stride, bool accumulate) {
  for (int m = 0; m < a->lines; m++, d += row_stride)
    for (int n = 0; n < b->lines; n++) {
      const int16_t *x = a->integers[m], *y = b->integers[n];
      s32 sum = 0;
      for (int k = 0; k < depth; k++) sum += x[k] * y[k];
      if (product->exclusive_or) sum = (depth - sum) / 2;
      s32 c = accumulate ? d[n] : 0;
      d[n] = product->saturate ? saturated((int64_t)c + sum) : (s32)((u32)c + (u32)sum);
    }
}

void integers_multiply(const Product *product, const ProductOperand *a, const ProductOperand *b, s32 *d, int row_stride,
                       bool accumulate) {
  if (product->depth == 32)  // the commonest, of a constant depth
    multiply_rows(product, 32, a, b, d, row_stride, accumulate);
  else
    multiply_rows(product, product->depth, a, b, d, row_stride, accumulate);
}

// ---- f64 ----
//
// The tensor core adds one product after another to C, in the order of K, each by a fused multiply-add.

enum { COLUMNS = 8, MAX_ROWS = 16, MAX_K = 16, MAX_OWN = 8 };

typedef struct MultiplyF64 {
  int rows, depth;
  int host_mode;      // in which the product is computed,
  Rounding rounding;  // or to nearest and by software
  void (*multiply)(Warp *warp, const struct MultiplyF64 *plan);
  Slot d[4], a[MAX_OWN], b[4], c[4];
} MultiplyF64;

// Lane l has A's element (l / 4, l % 4), B's (l % 4, l / 4), and of C and D two neighbours of row l / 4. Of 16 rows
// each second register is 8 rows further, of C and D each second pair; otherwise the next one is 4 further along K.
static f64 *element_of_a(f64 a[MAX_ROWS][MAX_K], const MultiplyF64 *plan, int i, int lane) {
  int blocks = plan->rows / 8;
  return &a[lane / 4 + i % blocks * 8][lane % 4 + i / blocks * 4];
}

// fma.f64: of NaNs the second factor's comes first, then the addend's. An invalid operation gives a negative NaN.
static f64 fma_f64_nan(f64 x, f64 y, f64 z, Rounding rounding) {
  f64 result = rounding == ROUND_NEAREST ? fused_f64(x, y, z) : rounded_fma(x, y, z, rounding);
  if (result == result) return result;
  if (x == x && y == y && z == z) return f64_from_bits(0xfff8000000000000);
  return y != y ? quiet_f64(y) : z != z ? quiet_f64(z) : quiet_f64(x);
}

static void multiply_lanes(Warp *warp, const MultiplyF64 *plan) {
  f64 a[MAX_ROWS][MAX_K], b[MAX_K][COLUMNS];
  int rows = plan->rows, depth = plan->depth;
  for (int i = 0; i < rows * depth / LANES; i++)
    for (int lane = 0; lane < LANES; lane++) *element_of_a(a, plan, i, lane) = SLOT(warp, plan->a[i], const f64)[lane];
  for (int i = 0; i < depth / 4; i++)
    for (int lane = 0; lane < LANES; lane++) b[lane % 4 + i * 4][lane / 4] = SLOT(warp, plan->b[i], const f64)[lane];
  for (int i = 0; i < rows / 4; i++)
    for (int lane = 0; lane < LANES; lane++) {
      int m = lane / 4 + i / 2 * 8, n = lane % 4 * 2 + i % 2;
      f64 sum = SLOT(warp, plan->c[i], const f64)[lane];
      for (int k = 0; k < depth; k++) sum = fma_f64_nan(a[m][k], b[k][n], sum, plan->rounding);
      SLOT(warp, plan->d[i], f64)[lane] = sum;
    }
}

static void execute_multiply_f64(Warp *warp, const Inst *inst, Mask mask) {
  const MultiplyF64 *plan = inst->extra;
  if (!fragment_whole_warp(warp, inst, mask)) return;
  fesetround(plan->host_mode);
  plan->multiply(warp, plan);  // by a pointer, so that no compiler moves it out from between
  fesetround(FE_TONEAREST);
  warp_counts(warp, inst)->flops += 2u * (unsigned)(plan->rows * COLUMNS * plan->depth);
}

static bool decode_registers(Decoder *decoder, const PtxInstruction *source, int operand, int count, Slot *slots) {
  const PtxOperand *o = &source->operands[operand];
  int have = o->kind == PTX_OPERAND_VECTOR ? o->item_count : 0;
  if (have != count) {
    decoder_error(decoder, source, "operand %d must be a vector of %d register%s, has %d", operand + 1, count,
                  count > 1 ? "s" : "", have);
    return false;
  }
  for (int i = 0; i < count; i++)
    slots[i] = operand == 0 ? decoder_destination(decoder, &o->items[i], PTX_F64)
                            : decoder_source(decoder, &o->items[i], PTX_F64);
  return true;
}

DecodeResult decode_multiply_f64(Decoder *decoder, const PtxInstruction *source, int m, int k, Inst *inst) {
  static const char *const roundings[] = {"rn", "rz", "rm", "rp", NULL};
  static const char *const allowed[] = {"sync", "aligned", "row", "col", "mma", "rn", "rz", "rm", "rp", NULL};
  bool exists = m == 8 ? k == 4 : m == 16 && (k == 4 || k == 8 || k == 16);
  ElementType types[4] = {ELEMENT_F64};
  for (int i = 0; i < element_types(source, types); i++)
    if (types[i] != ELEMENT_F64) return decoder_error(decoder, source, "the types must all be .f64");
  if (!exists) return decoder_error(decoder, source, "the shape must be .m8n8k4, .m16n8k4, .m16n8k8 or .m16n8k16");
  if (!element_modifiers(decoder, source, allowed)) return DECODE_FAILED;
  MultiplyF64 *plan = decoder_allocate(decoder, sizeof *plan);
  int found = fragment_modifier(source, roundings);
  Rounding rounding = found < 0 ? ROUND_NEAREST : (Rounding)found;
  plan->rows = m;
  plan->depth = k;
  plan->rounding = rounds_by_software() ? rounding : ROUND_NEAREST;
  plan->host_mode = host_mode(rounds_by_software() ? ROUND_NEAREST : rounding);
  plan->multiply = multiply_lanes;
  inst->extra = plan;
  inst->execute = execute_multiply_f64;
  bool fit = decode_registers(decoder, source, 0, m / 4, plan->d) &&
             decode_registers(decoder, source, 1, m * k / LANES, plan->a) &&
             decode_registers(decoder, source, 2, k / 4, plan->b) &&
             decode_registers(decoder, source, 3, m / 4, plan->c);
  return fit ? DECODED : DECODE_FAILED;
}
