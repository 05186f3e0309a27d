// Blocks that exit while TMA still reads or writes their shared memory. The next block on the SM has the same memory.
#pragma once

#include "mbarrier_rules.h"

// What a block's tile has in that word: other numbers in each block and in each launch.
static __device__ uint32_t end_word(uint32_t block, uint32_t seed, uint32_t i) {
  return (seed * 4096 + block) * END_WORDS + i;
}

static __device__ void bulk_store(void *to, uint32_t from, uint32_t bytes, bool adds) {
  if (adds)
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%0], [%1], %2;" ::"l"(to), "r"(from),
                 "r"(bytes)
                 : "memory");
  else
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(from), "r"(bytes)
                 : "memory");
}

static __device__ void tensor_store(const void *map, uint32_t from, uint32_t row) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(map), "r"(0),
               "r"(row), "r"(from)
               : "memory");
}

// Whether the copies of the launch before, which had the seed before, are in global memory. Of reductions they are
// added to zeros, and this makes zeros of them again.
static __device__ bool stored_rightly(uint32_t *copies, uint32_t seed, bool adds) {
  bool right = true;
  for (uint32_t i = threadIdx.x; i < END_COPIES * END_WORDS; i += END_THREADS) {
    right &= copies[i] == end_word(blockIdx.x, seed, i % END_WORDS);
    if (adds) copies[i] = 0;
  }
  return right;
}

// The first launch, of seed 0, has nothing to compare with, and zeros to add to. Word 0 of the output, which 132 blocks
// share with those that come after them: whether what an earlier block stored was wrong, or its loads came into this
// one's memory.
extern "C" __global__ void __launch_bounds__(END_THREADS) end_rules(const RuleInput *in, uint32_t *out) {
  __shared__ alignas(128) uint32_t tile[END_WORDS];
  __shared__ uint64_t mbarrier;
  uint32_t variant = in->variant, seed = in->seed, from = shared_address(tile);
  uint32_t *copies = (uint32_t *)in->memory + (size_t)blockIdx.x * END_COPIES * END_WORDS;
  bool adds = variant == 2, loads = variant == 3, right = true;
  for (uint32_t i = threadIdx.x; i < END_WORDS; i += END_THREADS) tile[i] = end_word(blockIdx.x, seed, i);
  if (threadIdx.x == 0) mbarrier_init(shared_address(&mbarrier), 1);
  asm volatile("fence.proxy.async;" ::: "memory");
  __syncthreads();
  if (!loads && seed) right = stored_rightly(copies, seed - 1, adds);
  if (loads) {
    long_delay();
    for (uint32_t i = threadIdx.x; i < END_WORDS; i += END_THREADS)
      right &= ((volatile uint32_t *)tile)[i] == end_word(blockIdx.x, seed, i);
  }
  if (adds) asm volatile("fence.proxy.async;" ::: "memory");
  right = __syncthreads_and(right);
  if (threadIdx.x) return;
  if (!right) out[blockIdx.x % 132 * RULE_WORDS] = 1;
  if (loads) mbarrier_expect(shared_address(&mbarrier), END_WORDS * 4);
  enum { PART = END_WORDS * 4 / END_COPIES };  // of the tile, which a load writes
  for (uint32_t copy = 0; copy < END_COPIES; copy++) {
    uint32_t *place = copies + copy * END_WORDS;
    if (loads)
      bulk_copy(from + copy * PART, place, PART, shared_address(&mbarrier));
    else if (variant == 1)
      tensor_store(in->map, from, (blockIdx.x * END_COPIES + copy) * (END_WORDS / END_ROW_WORDS));
    else
      bulk_store(place, from, END_WORDS * 4, adds);
  }
  if (!loads) asm volatile("cp.async.bulk.commit_group;" ::: "memory");
  for (uint32_t i = END_WORDS; variant == 4 && i-- > 0;) ((volatile uint32_t *)tile)[i] = 0;
}
