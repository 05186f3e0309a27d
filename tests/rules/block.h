// What every kernel of the rules needs: delays, its block's output, and an end for what waits forever.
#pragma once

#include "rules.h"

// Up to 4,096 clocks, other ones for each seed, block, warp and place in the program.
static __device__ void delay(const RuleInput *in, uint32_t place) {
  if (!in->seed) return;
  uint32_t x = in->seed * 2654435761u ^ (blockIdx.x * 32 + threadIdx.x / 32) * 40503u ^ place * 69069u;
  x ^= x >> 15;
  x *= 0x2c1b3c6du;
  x ^= x >> 12;
  int64_t clocks = x % 4 ? x >> 8 & 511 : x >> 8 & 4095, begin = clock64();
  while (clock64() - begin < clocks) {}
}

// Long enough for the other warps to do everything that they can.
static __device__ void long_delay() {
  int64_t begin = clock64();
  while (clock64() - begin < 20000) {}
}

static __device__ uint32_t shared_address(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }

static __device__ volatile uint32_t *output_of_block(uint32_t *out) { return out + blockIdx.x * RULE_WORDS; }

// The warps beyond in->threads: what the others have not done at the limit, they wait for forever.
static __device__ void watch(const RuleInput *in, volatile uint32_t *finished) {
  int64_t begin = clock64();
  while (*finished < in->threads)
    if (clock64() - begin > in->limit) __trap();
}
