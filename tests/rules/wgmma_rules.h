// What a product reads: rows of A that each warp has written itself, and matrices through any descriptor.
#pragma once

#include "../../common/ptx/fence.h"
#include "../../common/ptx/wgmma.h"
#include "block.h"

// Before the fence, or ptxas moves zeros into the registers behind it.
template <int COUNT> static __device__ __forceinline__ void zeros(float (&d)[COUNT]) {
  for (int i = 0; i < COUNT; i++) asm volatile("mov.f32 %0, 0f00000000;" : "=f"(d[i]));
  wgmma_fence();
}

template <int COUNT> static __device__ __forceinline__ void wait_for_product(float (&d)[COUNT]) {
  wgmma_commit();
  wgmma_wait<0>();
  wgmma_results(d);
}

template <int A_MN_MAJOR, int B_MN_MAJOR>
static __device__ __forceinline__ void product_16(float (&d)[8], uint64_t a, uint64_t b) {
  zeros(d);
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, 0, 0;\nwgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 "
               "{" OPERANDS_0 "}, %8, %9, p, 1, 1, %10, %11;\n}"
               : REGISTERS_8(d, 0)
               : "l"(a), "l"(b), "n"(A_MN_MAJOR), "n"(B_MN_MAJOR));
  wait_for_product(d);
}

template <bool B_MN_MAJOR>
static __device__ __forceinline__ void product_64(float (&d)[32], uint32_t (&a)[4], uint64_t b) {
  for (uint32_t j = 0; j < 4; j++) asm volatile("" : "+r"(a[j]));  // computed before the fence
  zeros(d);
  wgmma<64, B_MN_MAJOR>(d, a, b, 0);
  wait_for_product(d);
}

// B or A of ones on its diagonal, 16 columns: K-major, not swizzled.
static __device__ void store_ones(uint16_t *matrix) {
  for (uint32_t i = threadIdx.x; i < 256; i += 128) {
    uint32_t row = i / 16, k = i % 16;
    matrix[row / 8 * 128 + k / 8 * 64 + row % 8 * 8 + k % 8] = row == k ? 0x3c00 : 0;
  }
}

static __device__ uint16_t half_bits(float x) {
  uint16_t bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
}

// Where element (row, k) of A lies, in elements.
static __device__ uint32_t place_in_a(uint32_t variant, uint32_t row, uint32_t k) {
  if (variant == 0) return row / 8 * 128 + k / 8 * 64 + row % 8 * 8 + k % 8;
  uint32_t byte = variant == 2 ? row / 16 * 512 + k * 32 + row % 16 * 2 : row * 128 + k * 2;
  byte ^= variant == 2 ? (byte >> 7 & 1) << 4 : (byte >> 7 & 7) << 4;
  return byte / 2;
}

static __device__ uint64_t descriptor_of_a(uint32_t variant, uint32_t address) {
  return variant == 0   ? matrix_descriptor(address, 128, 256, SWIZZLE_NONE)
         : variant == 2 ? matrix_descriptor(address, 512, 256, SWIZZLE_32B)
                        : matrix_descriptor(address, 16, 1024, SWIZZLE_128B);
}

// Word 0 of the output: elements of the products that are not those of the rows that the warp has just written. The
// warps write A, and each goes on by itself.
extern "C" __global__ void rows_rules(const RuleInput *in, uint32_t *out) {
  __shared__ alignas(1024) uint16_t a[RULE_ROWS * 64];
  __shared__ alignas(128) uint16_t ones[256];
  __shared__ uint32_t wrong;
  uint32_t variant = in->variant, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  uint32_t written = variant == 4 ? (warp + 1) % 4 : warp, mistakes = 0;
  if (threadIdx.x == 0) wrong = 0;
  store_ones(ones);
  for (uint32_t i = threadIdx.x; i < RULE_ROWS * 64; i += 128) a[i] = 0;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  uint64_t desc_a = descriptor_of_a(variant, shared_address(a)),
           desc_b = matrix_descriptor(shared_address(ones), 128, 256, SWIZZLE_NONE);
  for (uint32_t round = 1; round <= ROWS_ROUNDS; round++) {
    delay(in, round);
    for (uint32_t i = lane; i < 256; i += 32)
      a[place_in_a(variant, written * 16 + i / 16, i % 16)] = (uint16_t)(RULE_FIRST_BITS + round * 256 + i);
    __syncwarp();
    if (variant != 3) asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    float d[8];
    if (variant == 2)
      product_16<1, 0>(d, desc_a, desc_b);
    else
      product_16<0, 0>(d, desc_a, desc_b);
    for (uint32_t i = 0; i < 8; i++) {
      uint32_t row = lane / 4 + 8 * (i / 2 % 2), column = 8 * (i / 4) + 2 * (lane % 4) + i % 2;
      mistakes += half_bits(d[i]) != RULE_FIRST_BITS + round * 256 + row * 16 + column;
    }
  }
  atomicAdd(&wrong, mistakes);
  __syncthreads();
  if (threadIdx.x == 0) output_of_block(out)[0] = wrong;
}

// ---- what descriptors read ----

// A or B, 64 x 16, times ones on a diagonal, is what the descriptor reads. Block i takes cases[i], and writes for each
// row and depth which element of the shared memory it was: 1,024 numbers.
static __device__ void read_a(const DescriptorCase *c, uint64_t desc, uint64_t ones, uint16_t *out) {
  float d[8];
  uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (c->mn_major)
    product_16<1, 0>(d, desc, ones);
  else
    product_16<0, 0>(d, desc, ones);
  for (uint32_t i = 0; i < 8; i++) {
    uint32_t row = 16 * warp + lane / 4 + 8 * (i / 2 % 2), k = 8 * (i / 4) + 2 * (lane % 4) + i % 2;
    out[row * RULE_DEPTH + k] = (uint16_t)(half_bits(d[i]) - RULE_FIRST_BITS);
  }
}

static __device__ void read_b(const DescriptorCase *c, uint64_t desc, uint16_t *out) {
  float d[32];
  uint32_t lane = threadIdx.x % 32, a[4] = {0, 0, 0, 0};
  for (uint32_t j = 0; j < 4 && threadIdx.x < 32; j++) {
    uint32_t row = lane / 4 + 8 * (j % 2), k = 8 * (j / 2) + 2 * (lane % 4);
    a[j] = (row == k ? 0x3c00u : 0) | (row == k + 1 ? 0x3c00u << 16 : 0);
  }
  if (c->mn_major)
    product_64<true>(d, a, desc);
  else
    product_64<false>(d, a, desc);
  for (uint32_t i = 0; i < 32 && threadIdx.x < 32; i++) {
    uint32_t k = lane / 4 + 8 * (i / 2 % 2), n = 8 * (i / 4) + 2 * (lane % 4) + i % 2;
    out[n * RULE_DEPTH + k] = (uint16_t)(half_bits(d[i]) - RULE_FIRST_BITS);
  }
}

extern "C" __global__ void __launch_bounds__(128) descriptor_rules(const DescriptorCase *cases, uint16_t *out) {
  extern __shared__ uint8_t memory[];
  const DescriptorCase *c = &cases[blockIdx.x];
  uint32_t begin = (shared_address(memory) + 1023) / 1024 * 1024;
  uint16_t *elements = (uint16_t *)(memory + (begin - shared_address(memory)));
  for (uint32_t i = threadIdx.x; i < RULE_ELEMENTS; i += 128) elements[i] = (uint16_t)(RULE_FIRST_BITS + i);
  store_ones(elements + RULE_ELEMENTS);
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  uint64_t desc = c->bits + (begin >> 4), ones = matrix_descriptor(begin + RULE_BYTES, 128, 256, SWIZZLE_NONE);
  out += (size_t)blockIdx.x * RULE_ROWS * RULE_DEPTH;
  if (c->of_b)
    read_b(c, desc, out);
  else
    read_a(c, desc, ones, out);
}
