// stmatrix: stores four 8 x 8 matrices of fp16, which a warp holds in the layout of an mma's or wgmma's result. Lane l
// gives the address of row l % 8 of matrix l / 8, 16 bytes. It holds two neighbours of each matrix: row l / 4, columns
// l % 4 * 2 and the next. PTX ISA 9.7.14.5.16, "stmatrix".
#pragma once

#include <stdint.h>

static __device__ __forceinline__ void stmatrix(uint32_t row, uint32_t m0, uint32_t m1, uint32_t m2, uint32_t m3) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row), "r"(m0), "r"(m1), "r"(m2),
               "r"(m3)
               : "memory");
}

// The same, but stores the transposes: the address is that of a row of a matrix's transpose.
static __device__ __forceinline__ void stmatrix_transposed(uint32_t row, uint32_t m0, uint32_t m1, uint32_t m2,
                                                           uint32_t m3) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row), "r"(m0), "r"(m1),
               "r"(m2), "r"(m3)
               : "memory");
}
