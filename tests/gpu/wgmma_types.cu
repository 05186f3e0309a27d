// wgmma's other forms: bf16, f16 accumulators, A from registers, negated operands.
#include "wgmma.cuh"

#define BF16(N, GROUPS) SHARED_KERNEL(wgmma_n##N##_f32_bf16, N, GROUPS, f32, "f32.bf16.bf16", "1, 1", "0, 0")
#define F16(N, GROUPS) SHARED_KERNEL(wgmma_n##N##_f16_f16, N, GROUPS, f16, "f16.f16.f16", "1, 1", "0, 0")
#define REGISTERS(N, GROUPS) REGISTER_KERNEL(wgmma_n##N##_f32_f16_a_r, N, GROUPS, f32, "f32.f16.f16", "1, 1", "0")

#define SOME_N(FORM)                                                                                                   \
  FORM(8, 1)                                                                                                           \
  FORM(16, 2) FORM(24, 3) FORM(64, 8) FORM(96, 12) FORM(128, 16) FORM(176, 22) FORM(192, 24) FORM(256, 32)
SOME_N(BF16)
SOME_N(F16)
SOME_N(REGISTERS)

SHARED_KERNEL(wgmma_n64_f32_bf16_a_m_b_n, 64, 8, f32, "f32.bf16.bf16", "1, 1", "1, 1")
SHARED_KERNEL(wgmma_n64_f16_f16_a_m_b_n, 64, 8, f16, "f16.f16.f16", "1, 1", "1, 1")
REGISTER_KERNEL(wgmma_n64_f32_f16_a_r_b_n, 64, 8, f32, "f32.f16.f16", "1, 1", "1")
REGISTER_KERNEL(wgmma_n128_f32_f16_a_r_b_n, 128, 16, f32, "f32.f16.f16", "1, 1", "1")
REGISTER_KERNEL(wgmma_n64_f32_bf16_a_r_b_n, 64, 8, f32, "f32.bf16.bf16", "1, 1", "1")
REGISTER_KERNEL(wgmma_n64_f16_f16_a_r, 64, 8, f16, "f16.f16.f16", "1, 1", "0")

SHARED_KERNEL(wgmma_n64_f32_f16_minus_a, 64, 8, f32, "f32.f16.f16", "-1, 1", "0, 0")
SHARED_KERNEL(wgmma_n64_f32_f16_minus_b, 64, 8, f32, "f32.f16.f16", "1, -1", "0, 0")
SHARED_KERNEL(wgmma_n64_f32_f16_minus_both, 64, 8, f32, "f32.f16.f16", "-1, -1", "0, 0")
SHARED_KERNEL(wgmma_n64_f16_f16_minus_a, 64, 8, f16, "f16.f16.f16", "-1, 1", "0, 0")
SHARED_KERNEL(wgmma_n64_f32_bf16_minus_b, 64, 8, f32, "f32.bf16.bf16", "1, -1", "0, 0")
REGISTER_KERNEL(wgmma_n64_f32_f16_a_r_minus_a, 64, 8, f32, "f32.f16.f16", "-1, 1", "0")
REGISTER_KERNEL(wgmma_n64_f32_f16_a_r_minus_b, 64, 8, f32, "f32.f16.f16", "1, -1", "0")
