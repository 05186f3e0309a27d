// Loads that are under way when their threads hand the tile on, and what fills it again.
#pragma once

#include "tile.h"

// Waits for the values.
static __device__ void use(const Vectors *read) {
  for (uint32_t i = 0; i < 8; i++)
    asm volatile("{\n.reg .pred p;\nsetp.eq.u32 p, %0, 0x12345678;\n@p trap;\n}" ::"r"(read->v[i].x) : "memory");
}

template <int WAY>
static __device__ __forceinline__ void release_tile(const Vectors *read, uint32_t empty, uint32_t lane) {
  if (WAY == 1) wgmma_fence();
  if (WAY == 2) __syncwarp();
  if (WAY == 4) asm volatile("fence.proxy.async;" ::: "memory");
  if (WAY == 5) use(read);
  if (WAY == 6) __syncthreads();
  if (WAY == 7) __threadfence_block();
  if (WAY < 3 ? lane == 0 : WAY != 6) arrive(empty);
}

// Fills the tile for the round, when it is free.
template <int WAY>
static __device__ __forceinline__ void refill(Tile tile, Handshake pair, const uint4 *source, bool copies,
                                              uint32_t lane, uint32_t round, Counts *counts) {
  if (WAY == 6 && round) __syncthreads();
  if (copies && lane) return;
  if (WAY != 6 && round) counts->late += !mbarrier_waits(pair.empty, (round - 1) & 1);
  if (WAY == 8) asm volatile("fence.proxy.async;" ::: "memory");
  if (copies) {
    mbarrier_expect(pair.full, TOGETHER_BYTES);
    bulk_copy(tile.shared, source, TOGETHER_BYTES, pair.full);
  } else {
    put_vectors<IN_OWN_SHARED>(tile, lane, narrow_word(round));
    __syncwarp();
    if (lane == 0) arrive(pair.full);
  }
}

template <int WAY>
static __device__ __forceinline__ void release_rounds(const RuleInput *in, Tile tile, Handshake pair, Counts *counts) {
  uint32_t lane = threadIdx.x % 32, rounds = in->program[0];
  for (uint32_t round = 0; round < rounds; round++) {
    if (threadIdx.x >= 128) {
      refill<WAY>(tile, pair, narrow_sources[blockIdx.x / 2][round & 1], in->variant % 2 == 0, lane, round, counts);
      continue;
    }
    counts->late += !mbarrier_waits(pair.full, round & 1);
    delay(in, round);
    Vectors read = get_vectors<IN_OWN_SHARED>(tile, lane);
    release_tile<WAY>(&read, pair.empty, lane);
    counts->mistakes += mistakes_in(&read, narrow_word(round));
  }
  if (WAY == 6 && threadIdx.x >= 128) __syncthreads();
}

extern "C" __global__ void __launch_bounds__(RELEASE_THREADS) release_rules(const RuleInput *in, uint32_t *out) {
  __shared__ alignas(128) uint4 tile[TOGETHER_BYTES / 16];
  __shared__ uint64_t mbarriers[2];
  __shared__ uint32_t counts_of_block[2];
  uint32_t way = in->variant / 2;
  Tile where = {shared_address(tile), NULL};
  Handshake pair = {shared_address(&mbarriers[0]), shared_address(&mbarriers[1])};
  Counts counts = {0, 0};
  if (threadIdx.x == 0) {
    counts_of_block[0] = counts_of_block[1] = 0;
    mbarrier_init(pair.full, 1);
    mbarrier_init(pair.empty, way < 3 ? 4 : 128);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  prepare_sources(0);
  __syncthreads();
  switch (way) {
  case 0: release_rounds<0>(in, where, pair, &counts); break;
  case 1: release_rounds<1>(in, where, pair, &counts); break;
  case 2: release_rounds<2>(in, where, pair, &counts); break;
  case 3: release_rounds<3>(in, where, pair, &counts); break;
  case 4: release_rounds<4>(in, where, pair, &counts); break;
  case 5: release_rounds<5>(in, where, pair, &counts); break;
  case 6: release_rounds<6>(in, where, pair, &counts); break;
  case 7: release_rounds<7>(in, where, pair, &counts); break;
  case 8: release_rounds<8>(in, where, pair, &counts); break;
  }
  atomicAdd(&counts_of_block[0], counts.late);
  atomicAdd(&counts_of_block[1], counts.mistakes);
  __syncthreads();
  if (threadIdx.x == 0) output_of_block(out)[0] = counts_of_block[0], output_of_block(out)[1] = counts_of_block[1] != 0;
}
