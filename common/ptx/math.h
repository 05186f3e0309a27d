// Arithmetic of a softmax, one instruction each.
#pragma once

#include <stdint.h>

// 2^x, on the special-function unit, which computes 16 per clock and SM. exp2f also computes results below 2^-126; here
// they become zero. PTX ISA 9.7.3.21, "ex2".
static __device__ __forceinline__ float power_of_two(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// Two numbers, rounded to fp16, in one register, the first in its lower half. PTX ISA 9.7.9.21, "cvt".
static __device__ __forceinline__ uint32_t pack(float low, float high) {
  uint32_t pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

// The same, rounded to bf16.
static __device__ __forceinline__ uint32_t pack_bf16(float low, float high) {
  uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}
