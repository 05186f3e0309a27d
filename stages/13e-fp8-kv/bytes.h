// e4m3 numbers as fp16, which has all of them: nothing is rounded. PTX ISA 9.7.9.22, "cvt".
#pragma once

#include <stdint.h>

// The values of the two low bytes, and of the two high bytes.
static __device__ __forceinline__ void widen(uint32_t bytes, uint32_t &low, uint32_t &high) {
  asm("{\n"
      ".reg .b16 pair<2>;\n"
      "mov.b32 {pair0, pair1}, %2;\n"
      "cvt.rn.f16x2.e4m3x2 %0, pair0;\n"
      "cvt.rn.f16x2.e4m3x2 %1, pair1;\n"
      "}"
      : "=r"(low), "=r"(high)
      : "r"(bytes));
}
