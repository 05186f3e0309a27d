// The tensor core's arithmetic on floating-point numbers, bit for bit as the H200 computes it: the step that mma.sync,
// wmma and wgmma share.
//
//   D[m][n] = C[m][n] + sum over k < depth of A[m][k] * B[k][n]
//
// The depth is 8 for tf32, 16 for fp16 and bf16, 32 for FP8, and of a sparse A twice that, of which it has half.
//
// Pure functions on tiles; they know nothing of warps, registers or memory. A and B are decoded once, then a step costs
// about 0.1 ns a product. notes/tensor-core-arithmetic.md has the rules and how they were found.
//
// wmma with C and D of different types is the f32 step between conversions: an f16 C is widened to f32 before, and for
// an f16 D the f32 result is rounded to nearest even after.
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { TENSOR_DEPTH = 16, TENSOR_MAX_DEPTH = 64, TENSOR_MAX_LINES = 256 };

typedef enum TensorFormat { TENSOR_F16, TENSOR_BF16, TENSOR_TF32, TENSOR_E4M3, TENSOR_E5M2, TENSOR_F32 } TensorFormat;

// A tile of A, whose lines are rows, or of B, whose lines are columns, of `depth` numbers each. Besides its bits,
// number k of a line is value * 2^scale of the line, with |value| < 2. It takes 160 KiB: not for the stack.
typedef struct TensorOperand {
  TensorFormat format;
  int lines, depth;
  uint32_t bits[TENSOR_MAX_DEPTH][TENSOR_MAX_LINES];
  float value[TENSOR_MAX_DEPTH][TENSOR_MAX_LINES];
  int16_t exponent[TENSOR_MAX_DEPTH][TENSOR_MAX_LINES];  // of value
  uint64_t absent[TENSOR_MAX_LINES];  // bit k: a sparse A has no number k: it counts as 0, even times an infinity
  int32_t scale[TENSOR_MAX_LINES];
  int32_t hard[TENSOR_MAX_LINES];  // 1: holds an infinity or a NaN, or exponents too far apart for `value`
  int32_t any_hard;
} TensorOperand;

typedef TensorOperand TensorA;
typedef TensorOperand TensorB;

// Decodes rows x depth numbers, of 8 bits each (FP8), 16 (fp16, bf16) or 32 (tf32); element (m, k) is number
// m * row_stride + k * k_stride. A depth that no instruction has is filled up with zeros to the next one. negate is
// wgmma's imm-scale of -1.
void tensor_decode_a(TensorA *a, TensorFormat format, int rows, int depth, const void *elements, int row_stride,
                     int k_stride, bool negate);
// The same for a sparse A: each row has depth / 2 numbers, neighbours, and places[m][i] is the k of number i of row m.
void tensor_decode_sparse_a(TensorA *a, TensorFormat format, int rows, int depth, const void *elements, int row_stride,
                            const uint8_t (*places)[TENSOR_MAX_DEPTH], bool negate);
// The same for B: element (k, n) is number k * k_stride + n * column_stride.
void tensor_decode_b(TensorB *b, TensorFormat format, int columns, int depth, const void *elements, int k_stride,
                     int column_stride, bool negate);

// One step with fp32 accumulators: d, row-major a->lines x b->lines with row_stride elements between rows, holds C and
// receives D. Without accumulate (wgmma's scale-d = 0) C is not read.
void tensor_step_f32(const TensorA *a, const TensorB *b, float *d, int row_stride, bool accumulate);
// The same with fp16 accumulators, as bits.
void tensor_step_f16(const TensorA *a, const TensorB *b, uint16_t *d, int row_stride, bool accumulate);
