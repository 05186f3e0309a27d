// The tensor core's arithmetic, bit for bit as the H200 computes it: the step that mma.sync, wmma and wgmma share.
//
//   D[m][n] = C[m][n] + sum over k < 16 of A[m][k] * B[k][n]
//
// Pure functions on tiles; they know nothing of warps, registers or memory. A and B are decoded once per tile, then a
// step costs a fraction of a nanosecond a product. notes/tensor-core-arithmetic.md tells how the rules were found.
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { TENSOR_DEPTH = 16, TENSOR_MAX_ROWS = 64, TENSOR_MAX_COLUMNS = 256 };

typedef enum TensorFormat { TENSOR_F16, TENSOR_BF16, TENSOR_F32 } TensorFormat;

// A tile of A, M rows of 16: each element is significand * 2^exponent, the significand with its sign.
typedef struct TensorA {
  int rows;
  TensorFormat format;
  bool any_special;               // an infinity or a NaN in some row
  bool special[TENSOR_MAX_ROWS];  // one in this row
  float significand[TENSOR_MAX_ROWS][TENSOR_DEPTH];
  int32_t exponent[TENSOR_MAX_ROWS][TENSOR_DEPTH];
  uint16_t bits[TENSOR_MAX_ROWS][TENSOR_DEPTH];
} TensorA;

// A tile of B, 16 rows of N, for the loop over a row's columns.
typedef struct TensorB {
  int columns;
  TensorFormat format;
  bool any_special;
  bool special[TENSOR_MAX_COLUMNS];
  float significand[TENSOR_DEPTH][TENSOR_MAX_COLUMNS];
  int32_t exponent[TENSOR_DEPTH][TENSOR_MAX_COLUMNS];
  uint16_t bits[TENSOR_DEPTH][TENSOR_MAX_COLUMNS];
} TensorB;

// Decodes rows x depth elements of format F16 or BF16; element (m, k) is bits[m * row_stride + k * k_stride]. A depth
// of 8 (m16n8k8) is filled up with zeros, as the hardware does. negate is wgmma's imm-scale of -1.
void tensor_decode_a(TensorA *a, TensorFormat format, int rows, int depth, const uint16_t *bits, int row_stride,
                     int k_stride, bool negate);
// The same for B, columns a multiple of 8: element (k, n) is bits[k * k_stride + n * column_stride].
void tensor_decode_b(TensorB *b, TensorFormat format, int columns, int depth, const uint16_t *bits, int k_stride,
                     int column_stride, bool negate);

// One step with fp32 accumulators: d, row-major a->rows x b->columns with row_stride elements between rows, holds C and
// receives D. Without accumulate (wgmma's scale-d = 0) C is not read.
void tensor_step_f32(const TensorA *a, const TensorB *b, float *d, int row_stride, bool accumulate);
// The same with fp16 accumulators, as bits.
void tensor_step_f16(const TensorA *a, const TensorB *b, uint16_t *d, int row_stride, bool accumulate);
