// mma.sync: a warp multiplies matrices that lie in its registers, since Ampere. PTX ISA 9.7.14.5.8, "mma.m16n8k16".
#pragma once

#include <stdint.h>

// D += A B for A of 16 x 16, B of 16 x 8: fp16 factors, fp32 sums. Lane l holds
//   D and A  rows l / 4 and l / 4 + 8, columns l % 4 * 2 and the next; in A also the two 8 columns further on
//   B        column l / 4, rows l % 4 * 2 and the next, and the two 8 rows further on
static __device__ __forceinline__ void mma(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
               "{%0, %1, %2, %3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// The same for factors in bf16.
static __device__ __forceinline__ void mma_bf16(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
               "{%0, %1, %2, %3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Transposes an 8 x 8 matrix of 16-bit numbers that lies in a warp's registers: lane l holds row l / 4, columns
// l % 4 * 2 and the next, before and after. PTX ISA 9.7.14.5.17, "movmatrix".
static __device__ __forceinline__ uint32_t transpose(uint32_t pair) {
  uint32_t transposed;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(transposed) : "r"(pair));
  return transposed;
}
