// wgmma with factors in bf16, as the decode stages have them: 8 bits of exponent, 7 of fraction. Everything else is as
// with fp16 (wgmma.h): depth 16, fp32 sums, B K-major or MN-major. PTX ISA 9.7.16.5.2, "wgmma.mma_async".
#pragma once

#include "wgmma.h"

#define OPERANDS_8x2 OPERANDS_0 ", " OPERANDS_1
#define REGISTERS_8x2(d, i) REGISTERS_8(d, i), REGISTERS_8(d, i + 8)

#define WGMMA_BF16_BEGIN(N, ACCUMULATE)                                                                                \
  "{\n.reg .pred accumulate;\nsetp.ne.b32 accumulate, " ACCUMULATE ", 0;\n"                                            \
  "wgmma.mma_async.sync.aligned.m64n" N "k16.f32.bf16.bf16 "

// D = A B + (accumulate ? D : 0) for A of 64 x 16 and B of 16 x N, both in shared memory and K-major.
template <int N>
static __device__ __forceinline__ void wgmma_bf16(float (&d)[N / 2], uint64_t a, uint64_t b, int accumulate) {
  static_assert(N == 32 || N == 64, "PTX allows every multiple of 8 up to 256; these are written out here");
  if constexpr (N == 32)
    asm volatile(WGMMA_BF16_BEGIN("32", "%18") "{" OPERANDS_8x2 "}, %16, %17, accumulate, 1, 1, 0, 0;\n}"
                 : REGISTERS_8x2(d, 0)
                 : "l"(a), "l"(b), "r"(accumulate));
  if constexpr (N == 64)
    asm volatile(WGMMA_BF16_BEGIN("64", "%34") "{" OPERANDS_8x4 "}, %32, %33, accumulate, 1, 1, 0, 0;\n}"
                 : REGISTERS_8x4(d, 0)
                 : "l"(a), "l"(b), "r"(accumulate));
}

// D += A B with A in registers, as in wgmma.h, and B MN-major: its rows lie along N, as those of V do.
template <int N>
static __device__ __forceinline__ void wgmma_bf16_values(float (&d)[N / 2], const uint32_t (&a)[4], uint64_t b) {
  static_assert(N == 64 || N == 128, "PTX allows every multiple of 8 up to 256; these are written out here");
  if constexpr (N == 64)
    asm volatile(WGMMA_BF16_BEGIN("64", "1") "{" OPERANDS_8x4 "}, {%32, %33, %34, %35}, %36, accumulate, 1, 1, 1;\n}"
                 : REGISTERS_8x4(d, 0)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
  if constexpr (N == 128)
    asm volatile(WGMMA_BF16_BEGIN("128", "1") "{" OPERANDS_8x8 "}, {%64, %65, %66, %67}, %68, accumulate, 1, 1, 1;\n}"
                 : REGISTERS_8x8(d, 0)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}
