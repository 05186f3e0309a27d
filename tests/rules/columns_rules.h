// B of which each warp of the warpgroup has written a quarter, with nothing but __syncwarp before the product.
#pragma once

#include "fence_rules.h"

static __device__ __forceinline__ void write_quarter(uint32_t layout, uint16_t *b, uint32_t round) {
  uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (uint32_t i = warp * 256 + lane; i < warp * 256 + 256; i += 32)
    b[place_in_a(layout, i / 16, i % 16)] = (uint16_t)(RULE_FIRST_BITS + round * 256 + i);
}

template <bool MN_MAJOR, bool BEHIND>
static __device__ __forceinline__ uint32_t multiply_columns(uint32_t layout, uint16_t *b, uint64_t desc_b,
                                                            uint32_t round) {
  uint32_t lane = threadIdx.x % 32, mistakes = 0, a[4];
  float d[32];
  for (uint32_t j = 0; j < 4; j++) {  // ones on the diagonal of each warp's 16 rows
    uint32_t row = lane / 4 + 8 * (j % 2), k = 8 * (j / 2) + 2 * (lane % 4);
    a[j] = (row == k ? 0x3c00u : 0) | (row == k + 1 ? 0x3c00u << 16 : 0);
    asm volatile("" : "+r"(a[j]));  // computed before the fence
  }
  zeros(d);
  wgmma<64, MN_MAJOR>(d, a, desc_b, 0);
  wgmma_commit();
  if (BEHIND) write_quarter(layout, b, round + 1);
  wgmma_wait<0>();
  wgmma_results(d);
  for (uint32_t i = 0; i < 32; i++) {
    uint32_t k = lane / 4 + 8 * (i / 2 % 2), n = 8 * (i / 4) + 2 * (lane % 4) + i % 2;
    mistakes += half_bits(d[i]) != RULE_FIRST_BITS + round * 256 + n * 16 + k;
  }
  return mistakes;
}

// Words 0 and 1 of the output: 0, and whether an element of a product was wrong. The warps write B, and each goes on by
// itself.
extern "C" __global__ void __launch_bounds__(128) columns_rules(const RuleInput *in, uint32_t *out) {
  __shared__ alignas(1024) uint16_t b[RULE_ROWS * 64];
  __shared__ uint32_t counts_of_block[2];
  uint32_t variant = in->variant, layout = variant < 3 ? variant : 1, rounds = in->program[0];
  uint64_t desc_b = descriptor_of_a(layout, shared_address(b));
  Counts counts = {0, 0};
  if (threadIdx.x == 0) counts_of_block[0] = counts_of_block[1] = 0;
  for (uint32_t i = threadIdx.x; i < RULE_ROWS * 64; i += 128) b[i] = 0;
  proxy_fence();
  __syncthreads();
  for (uint32_t round = 0; round < rounds; round++) {
    delay(in, round);
    if (variant != 5 || round == 0) write_quarter(layout, b, round);
    if (variant != 4) __syncwarp();
    if (variant != 3) proxy_fence();
    if (variant == 2)
      counts.mistakes += multiply_columns<true, false>(layout, b, desc_b, round);
    else if (variant == 5)
      counts.mistakes += multiply_columns<false, true>(layout, b, desc_b, round);
    else
      counts.mistakes += multiply_columns<false, false>(layout, b, desc_b, round);
  }
  add_counts(counts_of_block, &counts);
  __syncthreads();
  if (threadIdx.x == 0) put_counts(counts_of_block, out);
}
