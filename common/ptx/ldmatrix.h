// ldmatrix: loads four 8 x 8 matrices of fp16 from shared memory, as a warp's mma wants them. Lane l gives the address of
// 16 bytes, row l % 8 of matrix l / 8; it gets, of each matrix i in to[i], the two neighbours in row l / 4 from column
// l % 4 * 2 on. PTX ISA 9.7.14.5.15, "ldmatrix".
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
