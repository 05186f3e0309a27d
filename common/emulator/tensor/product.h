// A matrix product of any element types, as one instruction computes it: what mma.sync, wmma and wgmma share between
// their registers and the arithmetic of tensor_core.h. PTX ISA 9.7.15, 9.7.16.
//
// A operand's elements lie packed: line after line (a row of A, a column of B), k after k, as little-endian bits.
#pragma once

#include "../warp/decoder.h"
#include "fragment.h"
#include "tensor_core.h"

typedef enum ElementType {
  ELEMENT_F16,
  ELEMENT_BF16,
  ELEMENT_TF32,
  ELEMENT_E4M3,
  ELEMENT_E5M2,
  ELEMENT_S8,
  ELEMENT_U8,
  ELEMENT_S4,
  ELEMENT_U4,
  ELEMENT_B1,
  ELEMENT_F64,
  ELEMENT_F32,
  ELEMENT_S32,
  ELEMENT_TYPES,
} ElementType;

int element_bits(ElementType type);
bool element_is_integer(ElementType type);  // S8 to B1
// The element types among an instruction's modifiers, in order: their number, at most 4 of them in types[].
int element_types(const PtxInstruction *source, ElementType types[4]);
// False after decoder_error when it has a modifier that is no element type, no shape and not in the NULL-ended list.
bool element_modifiers(Decoder *decoder, const PtxInstruction *source, const char *const *allowed);

// The shape among an instruction's modifiers, as the numbers in "m16n8k32". False when there is none, or several.
bool shape_of(const PtxInstruction *source, int *m, int *n, int *k);

typedef struct Product {
  ElementType a, b, d;  // d is C's type too: f16, f32 or s32
  int depth;            // K
  bool sparse;          // of A, half of the elements are stored
  bool negate_a, negate_b;
  bool saturate;      // s32: instead of wrapping around
  bool exclusive_or;  // b1: bits that differ are counted, not bits that are both set
  bool converted;     // FP8 on mma.sync, which on Hopper is made of steps of fp16
} Product;

enum { PRODUCT_MAX_STORED = 64, PRODUCT_MAX_DEPTH = 256, PRODUCT_ROWS = 16 };

// Of a warp's 16 rows of a sparse A, the k of each stored element.
typedef struct SparsePlaces {
  uint8_t k[PRODUCT_ROWS][PRODUCT_MAX_STORED];
} SparsePlaces;

// Where the metadata of a warp, a register of each lane, puts the stored elements. The selector says which lanes of
// four have it. False when some of it is not valid: of each four (of tf32, two) elements two (one) in order.
bool product_places(const Product *product, const uint32_t metadata[LANES], int selector, SparsePlaces *places);
// What valid metadata names: "two of each four elements, in order".
const char *product_places_rule(const Product *product);
// How many values the selector may have: 4 when one lane of four holds the metadata, 2 when two do, else 1.
int product_selectors(const Product *product);

// A decoded operand. It takes 320 KiB: not for the stack, but in the scratch below.
typedef struct ProductOperand {
  int lines;
  union {
    TensorOperand numbers[2];  // one for each step
    int16_t integers[TENSOR_MAX_LINES][PRODUCT_MAX_DEPTH];
  };
} ProductOperand;

// places is NULL for a dense A.
void product_decode_a(const Product *product, ProductOperand *a, int rows, const void *packed,
                      const SparsePlaces *places);
void product_decode_b(const Product *product, ProductOperand *b, int columns, const void *packed);
// d, row-major with row_stride elements of d's type between rows, holds C and receives D. Without accumulate C is
// zeros.
void product_multiply(const Product *product, const ProductOperand *a, const ProductOperand *b, void *d, int row_stride,
                      bool accumulate);

// What a host thread computes products in: 1 MiB, allocated at its first product and freed with the thread. b is kept
// from one wgmma to the next: the four warps of a warpgroup multiply with the same one.
typedef struct ProductScratch {
  ProductOperand a, b;
  int b_columns;  // 0: b is nothing to keep
  Product b_product;
  uint8_t b_packed[TENSOR_MAX_LINES * 64];
  union {
    float f32[PRODUCT_ROWS * TENSOR_MAX_LINES];
    uint16_t f16[PRODUCT_ROWS * TENSOR_MAX_LINES];
  } sums;
} ProductScratch;

ProductScratch *product_scratch(void);

// Their parts for integers and single bits, in product.c: type is A's or B's, and pitch the bytes of a line.
void integers_decode(const Product *product, ElementType type, ProductOperand *o, const uint8_t *packed, int pitch,
                     const SparsePlaces *places);
void integers_multiply(const Product *product, const ProductOperand *a, const ProductOperand *b, int32_t *d,
                       int row_stride, bool accumulate);

// ---- f64 ----

// D = C + first * second: line i of D has the products of line i of `first` with each line of `second`. first is A and
// second B; but the tensor core has at least 16 rows, so wmma's m8n32k16 is the product of B's columns with A's rows,
// and a line of its C and D is a column. The fragments of inputs count elements of 16 bits.
typedef struct Multiply {
  Product product;  // a and b are first and second
  int steps;        // along K, which follow each other
  Fragment first, second, c, d;
  Slot metadata;  // of a sparse A
  int selector;
} Multiply;

// Executes the Multiply in inst->extra.
Execute multiply_fragments;

// The same of f64, m8n8k4 or m16n8kK: mma and wmma. The operands are lists of registers, or one of
// them.
DecodeResult decode_multiply_f64(Decoder *decoder, const PtxInstruction *source, int m, int k, Inst *inst);
