// Bulk and tensor copies that all lanes of a warp start by one instruction.
#pragma once

#include "fence_rules.h"

static __device__ uint32_t same_word(uint32_t round, uint32_t i) { return (round + 1) * 40503u + i * 69069u; }

static __device__ void tensor_reduce(const void *map, uint32_t from, uint32_t row) {
  asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(map),
               "r"(0), "r"(row), "r"(from)
               : "memory");
}

static __device__ void tensor_load(uint32_t to, const void *map, uint32_t row, uint32_t mbarrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
          to),
      "l"(map), "r"(0), "r"(row), "r"(mbarrier)
      : "memory");
}

static __device__ __forceinline__ void copy_by_all_lanes(const RuleInput *in, uint32_t tile, uint32_t *place,
                                                         uint32_t mbarrier) {
  uint32_t lane = threadIdx.x % 32, row = blockIdx.x * END_COPIES * (END_WORDS / END_ROW_WORDS);
  switch (in->variant) {
  case 0:
  case 6: bulk_store(place, tile, SAME_BYTES, false); break;
  case 1: tensor_store(in->map, tile, row); break;
  case 2: bulk_store(place, tile, SAME_BYTES, true); break;
  case 3: tensor_reduce(in->map, tile, row); break;
  case 4: bulk_copy(tile, place, SAME_BYTES, mbarrier); break;
  case 5:
    if (lane < 16) tensor_load(tile, in->map, row, mbarrier);
    break;
  case 7: bulk_store(place, tile + 16 * lane, SAME_BYTES, false); break;
  }
  wait_for_stores();
}

static __device__ uint32_t load_relaxed(const uint32_t *place) {
  uint32_t x;
  asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(x) : "l"(place) : "memory");
  return x;
}

// Words 0 and 1 of the output: waits that did not end, and whether a word was copied or added wrongly. 64 threads.
extern "C" __global__ void __launch_bounds__(64) same_rules(const RuleInput *in, uint32_t *out) {
  __shared__ alignas(128) uint32_t tile[END_WORDS];
  __shared__ uint64_t mbarrier;
  __shared__ uint32_t counts_of_block[2];
  uint32_t variant = in->variant, rounds = in->program[0], full = shared_address(&mbarrier);
  bool adds = variant == 2 || variant == 3, loads = variant == 4 || variant == 5;
  bool is_tensor = variant == 1 || variant == 3 || variant == 5;
  uint32_t words = is_tensor ? END_WORDS : SAME_BYTES / 4, *place = (uint32_t *)memory_of_block(in);
  Counts counts = {0, 0};
  if (threadIdx.x == 0) {
    counts_of_block[0] = counts_of_block[1] = 0;
    mbarrier_init(full, 1);
  }
  for (uint32_t round = 0; round < rounds; round++) {
    for (uint32_t i = threadIdx.x; i < END_WORDS; i += 64) tile[i] = loads ? 0 : same_word(round, i);
    for (uint32_t i = threadIdx.x; i < words; i += 64) place[i] = loads ? same_word(round, i) : 0;
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
    delay(in, round);
    if (loads && threadIdx.x == 0) mbarrier_expect(full, words * 4 * (is_tensor ? 16 : 32));
    __syncwarp();
    if (threadIdx.x < 32 || variant == 6) copy_by_all_lanes(in, shared_address(tile), place, full);
    if (loads) counts.late += !mbarrier_waits(full, round & 1);
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < words; i += 64) {
      uint32_t word = loads ? ((volatile uint32_t *)tile)[i] : load_relaxed(place + i);
      counts.mistakes += word != same_word(round, i) * (adds ? 32 : 1);
    }
    __syncthreads();
  }
  add_counts(counts_of_block, &counts);
  __syncthreads();
  if (threadIdx.x == 0) put_counts(counts_of_block, out);
}
