// Arrivals of scope .cta at another block's mbarrier.
#pragma once

#include "mbarrier_rules.h"
#include "wgmma_rules.h"

enum TilePlace { IN_OWN_SHARED, IN_OTHER_SHARED, IN_GLOBAL };

// Of each cluster: what the multicast copy copies in even and in odd rounds; and the tile in global memory.
static __device__ uint4 narrow_sources[NARROW_CLUSTERS][2][NARROW_BYTES / 16];
static __device__ uint4 narrow_tiles[NARROW_CLUSTERS][NARROW_BYTES / 16];

// All words of the tile in that round: two fp16 numbers.
static __device__ uint32_t narrow_word(uint32_t round) { return 0x04000400u + round % 2 * 0x00010001u; }

// Reads and writes 16 bytes of the tile. tile: an address of shared::cta or shared::cluster, or none.
static __device__ uint4 narrow_load(TilePlace place, uint32_t tile, const uint4 *global, uint32_t i) {
  uint4 v;
  if (place == IN_OWN_SHARED)
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "r"(tile + 16 * i)
                 : "memory");
  else if (place == IN_OTHER_SHARED)
    asm volatile("ld.shared::cluster.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "r"(tile + 16 * i)
                 : "memory");
  else
    asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(global + i)
                 : "memory");
  return v;
}

static __device__ void narrow_store(TilePlace place, uint32_t tile, uint4 *global, uint32_t i, uint32_t word) {
  if (place == IN_OWN_SHARED)
    asm volatile("st.shared.v4.u32 [%0], {%1, %1, %1, %1};" ::"r"(tile + 16 * i), "r"(word) : "memory");
  else if (place == IN_OTHER_SHARED)
    asm volatile("st.shared::cluster.v4.u32 [%0], {%1, %1, %1, %1};" ::"r"(tile + 16 * i), "r"(word) : "memory");
  else
    asm volatile("st.global.v4.u32 [%0], {%1, %1, %1, %1};" ::"l"(global + i), "r"(word) : "memory");
}

static __device__ void arrive_narrowly(uint32_t mbarrier) {
  asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(mbarrier) : "memory");
}

static __device__ void arrive_for_cluster(uint32_t mbarrier) {
  asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(mbarrier) : "memory");
}

// Reads this thread's part of the tile, and arrives while the loads are under way. Returns how many vectors of it are
// not those of the round. Neighbouring threads meet in the banks of the shared memory: there the loads queue.
template <TilePlace PLACE, bool LATE>
static __device__ uint32_t read_and_arrive(uint32_t tile, const uint4 *global, uint32_t there, uint32_t word) {
  uint4 v[NARROW_VECTORS];
  uint32_t mistakes = 0;
  if (LATE) arrive_narrowly(there);
  for (uint32_t i = 0; i < NARROW_VECTORS; i++)
    v[i] = narrow_load(PLACE, tile, global, threadIdx.x * NARROW_VECTORS + i);
  if (!LATE) arrive_narrowly(there);
  for (uint32_t i = 0; i < NARROW_VECTORS; i++)
    mistakes += v[i].x != word || v[i].y != word || v[i].z != word || v[i].w != word;
  return mistakes;
}

static __device__ uint32_t multiply_and_arrive(uint32_t tile, uint64_t ones, uint32_t there, uint32_t word) {
  float d[8];
  uint32_t mistakes = 0;
  product_16<0, 0>(d, matrix_descriptor(tile, 128, 256, SWIZZLE_NONE), ones);
  arrive_narrowly(there);
  for (uint32_t i = 0; i < 8; i++) mistakes += half_bits(d[i]) != (word & 0xffff);
  return mistakes;
}

// From the last vector to the first: those that the readers have read last come first.
template <TilePlace PLACE> static __device__ void write_tile(uint32_t tile, uint4 *global, uint32_t word) {
  for (uint32_t i = NARROW_VECTORS; i-- > 0;) narrow_store(PLACE, tile, global, threadIdx.x * NARROW_VECTORS + i, word);
}

template <TilePlace PLACE> static __device__ uint32_t read_tile(uint32_t tile, const uint4 *global, uint32_t word) {
  uint32_t mistakes = 0;
  for (uint32_t i = 0; i < NARROW_VECTORS; i++) {
    uint4 v = narrow_load(PLACE, tile, global, threadIdx.x * NARROW_VECTORS + i);
    mistakes += v.x != word || v.y != word || v.z != word || v.w != word;
  }
  return mistakes;
}

// Words 0 and 1 of the output: waits that did not end, and whether anything was read that is not of the round.
extern "C" __global__ void __launch_bounds__(NARROW_THREADS) narrow_rules(const RuleInput *in, uint32_t *out) {
  __shared__ alignas(1024) uint4 tile[NARROW_BYTES / 16];
  __shared__ alignas(128) uint16_t ones[256];
  __shared__ uint64_t mbarriers[2];
  __shared__ uint32_t counts[2];
  uint32_t variant = in->variant, rank = rank_in_cluster(), late = 0, mistakes = 0, rounds = in->program[0];
  bool copies = variant == 0 || variant == 2;
  uint32_t bytes = variant == 2 ? NARROW_PRODUCT_BYTES : NARROW_BYTES;
  uint32_t here = shared_address(tile), other = address_in(1 - rank, here);
  uint32_t handed = shared_address(&mbarriers[0]), returned = shared_address(&mbarriers[1]);
  uint32_t handed_there = address_in(0, handed), returned_there = address_in(1, returned);
  uint4 *global = narrow_tiles[blockIdx.x / 2];
  uint64_t desc_ones = matrix_descriptor(shared_address(ones), 128, 256, SWIZZLE_NONE);
  if (threadIdx.x == 0) {
    counts[0] = counts[1] = 0;
    mbarrier_init(handed, NARROW_THREADS);
    mbarrier_init(returned, copies ? 1 : NARROW_THREADS);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  store_ones(ones);
  write_tile<IN_OWN_SHARED>(here, global, narrow_word(0));
  if (rank == 0) {
    write_tile<IN_GLOBAL>(here, global, narrow_word(0));
    for (uint32_t odd = 0; odd < 2; odd++)
      write_tile<IN_GLOBAL>(here, narrow_sources[blockIdx.x / 2][odd], narrow_word(odd));
  }
  asm volatile("fence.proxy.async;" ::: "memory");
  cluster_sync();
  for (uint32_t round = 0; round < rounds; round++) {
    uint32_t word = narrow_word(round), next = narrow_word(round + 1);
    if (rank == 1) {
      delay(in, round);
      if (copies && threadIdx.x == 0) mbarrier_expect(returned, bytes);
      switch (variant) {
      case 0:
      case 1: mistakes += read_and_arrive<IN_OWN_SHARED, false>(here, global, handed_there, word); break;
      case 2: mistakes += multiply_and_arrive(here, desc_ones, handed_there, word); break;
      case 3: mistakes += read_and_arrive<IN_OTHER_SHARED, false>(other, global, handed_there, word); break;
      case 4: mistakes += read_and_arrive<IN_GLOBAL, false>(here, global, handed_there, word); break;
      case 5: write_tile<IN_OWN_SHARED>(here, global, next), arrive_narrowly(handed_there); break;
      case 6: write_tile<IN_OTHER_SHARED>(other, global, next), arrive_narrowly(handed_there); break;
      case 7: write_tile<IN_GLOBAL>(here, global, next), arrive_narrowly(handed_there); break;
      case 8: mistakes += read_and_arrive<IN_OWN_SHARED, true>(here, global, handed_there, word); break;
      }
      late += !mbarrier_waits(returned, round & 1);
    } else if (!copies || threadIdx.x == 0) {
      late += !mbarrier_waits(handed, round & 1);
      switch (variant) {
      case 0:
      case 2: bulk_copy_to_all(here, narrow_sources[blockIdx.x / 2][(round + 1) & 1], bytes, returned, 1 << 1); break;
      case 1:
      case 8: write_tile<IN_OTHER_SHARED>(other, global, next); break;
      case 3: write_tile<IN_OWN_SHARED>(here, global, next); break;
      case 4: write_tile<IN_GLOBAL>(here, global, next); break;
      case 5: mistakes += read_tile<IN_OTHER_SHARED>(other, global, next); break;
      case 6: mistakes += read_tile<IN_OWN_SHARED>(here, global, next); break;
      case 7: mistakes += read_tile<IN_GLOBAL>(here, global, next); break;
      }
      if (!copies) arrive_for_cluster(returned_there);
    }
  }
  atomicAdd(&counts[0], late);
  atomicAdd(&counts[1], mistakes);
  cluster_sync();
  if (threadIdx.x == 0) output_of_block(out)[0] = counts[0], output_of_block(out)[1] = counts[1] != 0;
}

static __device__ void arrive_narrowly_with(uint32_t mbarrier, uint32_t count) {
  asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0], %1;" ::"r"(mbarrier), "r"(count) : "memory");
}

// Lanes 0 and 1 of block 1 arrive at block 0's mbarrier and at their own. A thread of block 0 waits for the first, and
// arrives at block 1's mbarrier for the next round: it has heard nothing of the second. Lane 1 counts twice. If it came
// after both arrivals of the thread, it would be more than what is left of the phase. Words 0 and 1 of the output:
// waits that did not end, and phases that ended without lane 1. 64 threads.
extern "C" __global__ void __launch_bounds__(64) chain_rules(const RuleInput *in, uint32_t *out) {
  __shared__ uint64_t mbarrier;
  __shared__ volatile uint32_t arrived;
  uint32_t rank = rank_in_cluster(), here = shared_address(&mbarrier), rounds = in->program[0], late = 0, wrong = 0;
  if (threadIdx.x == 0) {
    arrived = 0;
    mbarrier_init(here, rank == 0 ? 1 : 2 + in->variant);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  cluster_sync();
  for (uint32_t round = 0; round < rounds; round++) {
    if (rank == 0) {
      if (threadIdx.x == 0) {
        arrive_narrowly(address_in(1, here));
        late += !mbarrier_waits(here, round & 1);
      }
      __syncwarp();
      continue;
    }
    if (threadIdx.x < 2) {
      delay(in, round);
      if (threadIdx.x == 1) arrived = round + 1;
      __syncwarp(3);
      if (in->variant)
        arrive_narrowly_with(address_in(threadIdx.x, here), threadIdx.x + 1);
      else
        arrive_narrowly(address_in(threadIdx.x, here));
    }
    __syncwarp();
    if (threadIdx.x == 32) {
      late += !mbarrier_waits(here, round & 1);
      wrong += arrived != round + 1;
    }
    __syncthreads();
  }
  cluster_sync();
  if (threadIdx.x == 0 && rank == 0) output_of_block(out)[0] = late, output_of_block(out)[1] = 0;
  if (threadIdx.x == 32 && rank == 1) output_of_block(out)[0] = late, output_of_block(out)[1] = wrong;
}
