// ldmatrix: loads four 8 x 8 matrices of fp16 from shared memory, in the layout of a warp's mma. Lane l gives the
// address of row l % 8 of matrix l / 8, 16 bytes. In to[i] it receives two neighbours of matrix i: row l / 4, columns
// l % 4 * 2 and the next. PTX ISA 9.7.14.5.15, "ldmatrix".
#pragma once

#include <stdint.h>

static __device__ __forceinline__ void ldmatrix(uint32_t (&to)[4], uint32_t row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(row)
               : "memory");
}

// The same, but each matrix is transposed on its way.
static __device__ __forceinline__ void ldmatrix_transposed(uint32_t (&to)[4], uint32_t row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(row)
               : "memory");
}
