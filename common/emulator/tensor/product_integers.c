// Matrix products of integers and single bits: the exact sum of products, and C, once. See product.h.
#include <string.h>

#include "product.h"

#if defined __GNUC__ && !defined __clang__
#pragma GCC optimize("O3")  // as in tensor_core.c
#endif

#include "../warp/lanes.h"

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
