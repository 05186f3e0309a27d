// wgmma with factors in e4m3, an 8-bit floating-point type: sign, 4 bits of exponent, 3 of fraction. One instruction
// goes 32 deep, twice as far as with fp16. Both factors must be K-major: sums run along rows. PTX ISA 9.7.16.5.2,
// "wgmma.mma_async".
//
// D is spread over the threads as with fp16 (wgmma.h).
#pragma once

#include "wgmma.h"

#define WGMMA_E4M3_BEGIN(N, ACCUMULATE)                                                                                \
  "{\n.reg .pred accumulate;\nsetp.ne.b32 accumulate, " ACCUMULATE ", 0;\n"                                            \
  "wgmma.mma_async.sync.aligned.m64n" N "k32.f32.e4m3.e4m3 "

#define REGISTERS_4(d, i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])

// D = A B + (accumulate ? D : 0) for A of 64 x 32 and B of 32 x N, both in shared memory.
template <int N>
static __device__ __forceinline__ void wgmma_e4m3(float (&d)[N / 2], uint64_t a, uint64_t b, int accumulate) {
  static_assert(N == 64 || N == 72 || N == 128, "PTX allows every multiple of 8 up to 256; these are written out here");
  if constexpr (N == 64)
    asm volatile(WGMMA_E4M3_BEGIN("64", "%34") "{" OPERANDS_8x4 "}, %32, %33, accumulate, 1, 1;\n}"
                 : REGISTERS_8x4(d, 0)
                 : "l"(a), "l"(b), "r"(accumulate));
  if constexpr (N == 72)
    asm volatile(WGMMA_E4M3_BEGIN("72", "%38") "{" OPERANDS_8x4 ", %32, %33, %34, %35}, %36, %37, accumulate, 1, 1;\n}"
                 : REGISTERS_8x4(d, 0), REGISTERS_4(d, 32)
                 : "l"(a), "l"(b), "r"(accumulate));
  if constexpr (N == 128)
    asm volatile(WGMMA_E4M3_BEGIN("128", "%66") "{" OPERANDS_8x8 "}, %64, %65, accumulate, 1, 1;\n}"
                 : REGISTERS_8x8(d, 0)
                 : "l"(a), "l"(b), "r"(accumulate));
}

// The same with A in registers, four of them with four numbers each:
//
//   a[j] is row 16 w + l / 4 + 8 (j % 2), columns 16 (j / 2) + 4 (l % 4) and the three after it
template <int N>
static __device__ __forceinline__ void wgmma_e4m3(float (&d)[N / 2], const uint32_t (&a)[4], uint64_t b,
                                                  int accumulate) {
  static_assert(N == 64 || N == 72 || N == 136, "PTX allows every multiple of 8 up to 256; these are written out here");
  if constexpr (N == 64)
    asm volatile(WGMMA_E4M3_BEGIN("64", "%37") "{" OPERANDS_8x4 "}, {%32, %33, %34, %35}, %36, accumulate, 1, 1;\n}"
                 : REGISTERS_8x4(d, 0)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate));
  if constexpr (N == 72)
    asm volatile(WGMMA_E4M3_BEGIN("72", "%41") "{" OPERANDS_8x4 ", %32, %33, %34, %35}, {%36, %37, %38, %39}, %40, "
                                               "accumulate, 1, 1;\n}"
                 : REGISTERS_8x4(d, 0), REGISTERS_4(d, 32)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate));
  if constexpr (N == 136)
    asm volatile(WGMMA_E4M3_BEGIN("136", "%73") "{" OPERANDS_8x8 ", %64, %65, %66, %67}, {%68, %69, %70, %71}, %72, "
                                                "accumulate, 1, 1;\n}"
                 : REGISTERS_8x8(d, 0), REGISTERS_4(d, 64)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate));
}

// Four numbers, rounded to e4m3, in one register, the first in its lowest byte. What exceeds 448 becomes 448. PTX ISA
// 9.7.9.21, "cvt".
static __device__ __forceinline__ uint32_t pack_e4m3(float x0, float x1, float x2, float x3) {
  uint32_t four;
  asm("{\n.reg .b16 low, high;\n"
      "cvt.rn.satfinite.e4m3x2.f32 low, %2, %1;\n"
      "cvt.rn.satfinite.e4m3x2.f32 high, %4, %3;\n"
      "mov.b32 %0, {low, high};\n}"
      : "=r"(four)
      : "f"(x0), "f"(x1), "f"(x2), "f"(x3));
  return four;
}

// The four numbers of such a register in fp32: first as fp16, which holds them exactly.
static __device__ __forceinline__ void unpack_e4m3(float (&x)[4], uint32_t four) {
  asm("{\n.reg .b16 low, high, h0, h1, h2, h3;\n.reg .b32 first, second;\n"
      "mov.b32 {low, high}, %4;\n"
      "cvt.rn.f16x2.e4m3x2 first, low;\n"
      "cvt.rn.f16x2.e4m3x2 second, high;\n"
      "mov.b32 {h0, h1}, first;\n"
      "mov.b32 {h2, h3}, second;\n"
      "cvt.f32.f16 %0, h0;\n"
      "cvt.f32.f16 %1, h1;\n"
      "cvt.f32.f16 %2, h2;\n"
      "cvt.f32.f16 %3, h3;\n}"
      : "=f"(x[0]), "=f"(x[1]), "=f"(x[2]), "=f"(x[3])
      : "r"(four));
}
