// The inputs of matrices.cu.
#pragma once

#include <stdint.h>

enum { FRAGMENT_CASES = 64, MATRIX_SIZE = 40, WMMA_RESULTS = 64 * 40 };

// Registers of a warp's fragments, and a shared memory image with the places of rows in it.
typedef struct FragmentCase {
  uint32_t a[32][4], b[32][2], c[32][4];
  uint32_t image[256 * 4];  // 256 rows of 16 bytes
  uint32_t row[32];         // distinct
} FragmentCase;

typedef struct FragmentResult {
  uint32_t f32_f16[32][4], f32_bf16[32][4], f16_f16[32][2], f32_f16_k8[32][4], f32_bf16_k8[32][4], f16_f16_k8[32][2];
  uint32_t load[32][14];  // x1, x2, x4, and the same transposed
  uint32_t moved[32];
  uint32_t stored[6][256 * 4];
} FragmentResult;

// A wmma: matrices with MATRIX_SIZE elements between rows (or columns), C and D in f32 or f16.
typedef struct WmmaInput {
  uint16_t a[MATRIX_SIZE * MATRIX_SIZE], b[MATRIX_SIZE * MATRIX_SIZE], c16[MATRIX_SIZE * MATRIX_SIZE];
  float c32[MATRIX_SIZE * MATRIX_SIZE];
} WmmaInput;
