// Equal values that several warps or blocks store to one place, with nothing between; and what a barrier shows of them.
#pragma once

#include "fence_rules.h"

// Byte `at` of the tile in that round.
static __device__ uint32_t equal_byte(uint32_t round, uint32_t at) {
  return (round * 7 + at * 13 + (at >> 5) + 1) & 0xff;
}
static __device__ uint32_t equal_word(uint32_t round, uint32_t at) {
  return equal_byte(round, at) | equal_byte(round, at + 1) << 8 | equal_byte(round, at + 2) << 16 |
         equal_byte(round, at + 3) << 24;
}

template <bool IN_SHARED, int SIZE>
static __device__ __forceinline__ void store_equal(uint32_t shared, uint8_t *global, uint32_t at, uint32_t round) {
  uint32_t x = equal_word(round, at), y = equal_word(round, at + 4), z = equal_word(round, at + 8),
           w = equal_word(round, at + 12);
  if (SIZE == 1) x &= 0xff;
  if (IN_SHARED) {
    shared += at;
    if (SIZE == 1) asm volatile("st.shared.u8 [%0], %1;" ::"r"(shared), "r"(x) : "memory");
    if (SIZE == 2) asm volatile("st.shared.u16 [%0], %1;" ::"r"(shared), "h"((uint16_t)x) : "memory");
    if (SIZE == 4) asm volatile("st.shared.u32 [%0], %1;" ::"r"(shared), "r"(x) : "memory");
    if (SIZE == 8) asm volatile("st.shared.v2.u32 [%0], {%1, %2};" ::"r"(shared), "r"(x), "r"(y) : "memory");
    if (SIZE == 16)
      asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(shared), "r"(x), "r"(y), "r"(z), "r"(w) : "memory");
  } else {
    global += at;
    if (SIZE == 1) asm volatile("st.global.u8 [%0], %1;" ::"l"(global), "r"(x) : "memory");
    if (SIZE == 2) asm volatile("st.global.u16 [%0], %1;" ::"l"(global), "h"((uint16_t)x) : "memory");
    if (SIZE == 4) asm volatile("st.global.u32 [%0], %1;" ::"l"(global), "r"(x) : "memory");
    if (SIZE == 8) asm volatile("st.global.v2.u32 [%0], {%1, %2};" ::"l"(global), "r"(x), "r"(y) : "memory");
    if (SIZE == 16)
      asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(global), "r"(x), "r"(y), "r"(z), "r"(w) : "memory");
  }
}

// A lane's 16 bytes.
template <bool IN_SHARED, int SIZE>
static __device__ __forceinline__ void store_part(uint32_t shared, uint8_t *global, uint32_t lane, uint32_t round) {
  for (uint32_t i = 0; i < 16; i += SIZE) store_equal<IN_SHARED, SIZE>(shared, global, lane * 16 + i, round);
}

template <bool IN_SHARED>
static __device__ __forceinline__ void store_by_kind(uint32_t kind, uint32_t shared, uint8_t *global, uint32_t lane,
                                                     uint32_t storer, uint32_t round) {
  if (kind == 5) kind = storer % 2 ? 0 : 4;
  switch (kind) {
  case 0: store_part<IN_SHARED, 1>(shared, global, lane, round); break;
  case 1: store_part<IN_SHARED, 2>(shared, global, lane, round); break;
  case 2: store_part<IN_SHARED, 4>(shared, global, lane, round); break;
  case 3: store_part<IN_SHARED, 8>(shared, global, lane, round); break;
  case 4: store_part<IN_SHARED, 16>(shared, global, lane, round); break;
  default: store_part<IN_SHARED, 4>(shared, global, lane, round + storer); break;
  }
}

template <bool IN_SHARED>
static __device__ __forceinline__ uint32_t wrong_words(uint32_t shared, const uint8_t *global, uint32_t lane,
                                                       uint32_t round) {
  uint4 v = narrow_load(IN_SHARED ? IN_OWN_SHARED : IN_GLOBAL, shared, (const uint4 *)global, lane);
  uint32_t at = lane * 16;
  return (v.x != equal_word(round, at)) + (v.y != equal_word(round, at + 4)) + (v.z != equal_word(round, at + 8)) +
         (v.w != equal_word(round, at + 12));
}

static __device__ void meet(bool blocks) {
  if (blocks)
    cluster_sync();
  else
    __syncthreads();
}

// Words 0 and 1 of the output: 0, and whether a word was read that was not stored in the round. Group 2 has clusters of
// two.
extern "C" __global__ void __launch_bounds__(EQUAL_THREADS) equal_rules(const RuleInput *in, uint32_t *out) {
  __shared__ alignas(16) uint8_t tile[32 * 16];
  __shared__ uint32_t counts_of_block[2];
  uint32_t group = in->variant / EQUAL_KINDS, kind = in->variant % EQUAL_KINDS, rounds = in->program[0];
  uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32, here = shared_address(tile);
  bool blocks = group == 2;
  uint32_t block = blocks ? blockIdx.x / 2 * 2 : blockIdx.x, storer = blocks ? warp + blockIdx.x % 2 : warp;
  uint8_t *global = (uint8_t *)in->memory + (size_t)block * END_COPIES * END_WORDS * 4;
  Counts counts = {0, 0};
  if (threadIdx.x == 0) counts_of_block[0] = counts_of_block[1] = 0;
  meet(blocks);
  for (uint32_t round = 0; round < rounds; round++) {
    delay(in, round);
    if (group == 0)
      store_by_kind<true>(kind, here, global, lane, storer, round);
    else
      store_by_kind<false>(kind, here, global, lane, storer, round);
    meet(blocks);
    uint32_t reader = (lane + warp * 5 + 1) % 32;
    counts.mistakes +=
        group == 0 ? wrong_words<true>(here, global, reader, round) : wrong_words<false>(here, global, reader, round);
    meet(blocks);
  }
  add_counts(counts_of_block, &counts);
  __syncthreads();
  if (threadIdx.x == 0) put_counts(counts_of_block, out);
}
