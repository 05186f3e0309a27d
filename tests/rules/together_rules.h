// Whether an instruction that the lanes of a warp execute together, as shfl.sync, orders their accesses to memory, too.
#pragma once

#include "tile.h"

enum TogetherInstruction { BY_SHUFFLE, BY_VOTE, BY_MATCH, BY_REDUX, BY_NOTHING, BY_ADDRESS };

// Returns 0. WAY differs on the two ways of a branch, or the compiler would make one instruction of two.
template <int INSTRUCTION, int WAY> static __device__ __forceinline__ uint32_t together(uint32_t lane) {
  uint32_t d = lane;
  if (INSTRUCTION == BY_SHUFFLE)
    asm volatile("shfl.sync.idx.b32 %0, %0, 0, 31, 0xffffffff; // %1" : "+r"(d) : "n"(WAY) : "memory");
  if (INSTRUCTION == BY_VOTE)
    asm volatile("{\n.reg .pred p;\nsetp.ne.u32 p, %0, 40;\nvote.sync.ballot.b32 %0, p, 0xffffffff; // %1\n}"
                 : "+r"(d)
                 : "n"(WAY)
                 : "memory");
  if (INSTRUCTION == BY_MATCH)
    asm volatile("match.any.sync.b32 %0, %0, 0xffffffff; // %1" : "+r"(d) : "n"(WAY) : "memory");
  if (INSTRUCTION == BY_REDUX)
    asm volatile("redux.sync.add.u32 %0, %0, 0xffffffff; // %1" : "+r"(d) : "n"(WAY) : "memory");
  if (INSTRUCTION == BY_NOTHING) asm volatile("// %1" : "+r"(d) : "n"(WAY) : "memory");
  if (INSTRUCTION != BY_ADDRESS) return 0;
  asm volatile("shfl.sync.idx.b32 %0, %0, 0, 31, 0xffffffff; // %1" : "+r"(d) : "n"(WAY) : "memory");
  return d;  // of lane 0
}

// ---- the patterns ----

static __device__ bool flag_waits(const uint32_t *flag, uint32_t value) {
  for (int i = 0; i < 20000; i++) {
    uint32_t seen;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
    if (seen == value) return true;
  }
  return false;
}

static __device__ void flag_set(uint32_t *flag, uint32_t value) {
  asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(flag), "r"(value) : "memory");
}

// All lanes store and read what their neighbours have stored; the next stores follow the reads in the same way.
template <TilePlace PLACE, int INSTRUCTION, int WAY>
static __device__ __forceinline__ void exchange(Tile tile, uint32_t lane, uint32_t word, Counts *counts) {
  put_vectors<PLACE>(tile, lane, word);
  lane += together<INSTRUCTION, 2 * WAY>(lane);
  Vectors read = get_vectors<PLACE>(tile, lane);
  lane += together<INSTRUCTION, 2 * WAY + 1>(lane);
  counts->mistakes += mistakes_in(&read, word);
}

template <TilePlace PLACE, int INSTRUCTION>
static __device__ __forceinline__ void exchange_by_two_ways(const RuleInput *in, Tile tile, uint32_t lane,
                                                            uint32_t round, Counts *counts) {
  if ((lane ^ round) & 1) {
    delay(in, round);
    exchange<PLACE, INSTRUCTION, 0>(tile, lane, narrow_word(round), counts);
  } else {
    exchange<PLACE, INSTRUCTION, 1>(tile, lane, narrow_word(round), counts);
  }
  __syncwarp();
}

// Warp 1 stores, and lane 0 of warp 0 alone waits.
template <int INSTRUCTION>
static __device__ __forceinline__ void wait_by_lane_0(const RuleInput *in, Tile tile, Handshake pair, uint32_t lane,
                                                      uint32_t round, Counts *counts) {
  uint32_t word = narrow_word(round);
  if (threadIdx.x >= 32) {
    if (round) counts->late += !mbarrier_waits(pair.empty, (round - 1) & 1);
    delay(in, round);
    put_vectors<IN_OWN_SHARED>(tile, lane, word);
    __syncwarp();
    if (lane == 0) arrive(pair.full);
    return;
  }
  Vectors read;
  if (lane == 0) {
    counts->late += !mbarrier_waits(pair.full, round & 1);
    lane += together<INSTRUCTION, 0>(lane);
    read = get_vectors<IN_OWN_SHARED>(tile, lane);
  } else {
    lane += together<INSTRUCTION, 1>(lane);
    read = get_vectors<IN_OWN_SHARED>(tile, lane);
  }
  counts->mistakes += mistakes_in(&read, word);
  __syncwarp();
  if (lane == 0) arrive(pair.empty);
}

// Warp 1 fills the tile, and lane 0 of warp 0 releases it for all.
template <int INSTRUCTION, bool COPIES>
static __device__ __forceinline__ void release_by_lane_0(const RuleInput *in, Tile tile,
                                                         const uint4 (*sources)[NARROW_BYTES / 16], Handshake pair,
                                                         uint32_t lane, uint32_t round, Counts *counts) {
  uint32_t word = narrow_word(round);
  if (threadIdx.x >= 32) {
    if (COPIES && lane) return;
    if (round) counts->late += !mbarrier_waits(pair.empty, (round - 1) & 1);
    if (COPIES) {
      mbarrier_expect(pair.full, TOGETHER_BYTES);
      bulk_copy(tile.shared, sources[round & 1], TOGETHER_BYTES, pair.full);
    } else {
      put_vectors<IN_OWN_SHARED>(tile, lane, word);
      __syncwarp();
      if (lane == 0) arrive(pair.full);
    }
    return;
  }
  Vectors read;
  counts->late += !mbarrier_waits(pair.full, round & 1);
  if (lane == 0) {
    read = get_vectors<IN_OWN_SHARED>(tile, lane);
    together<INSTRUCTION, 0>(lane);
    arrive(pair.empty);
  } else {
    delay(in, round);
    read = get_vectors<IN_OWN_SHARED>(tile, lane);
    together<INSTRUCTION, 1>(lane);
  }
  counts->mistakes += mistakes_in(&read, word);
  __syncwarp();
}

// All lanes of warp 0 store, its lane 0 arrives, and warp 1 reads.
template <int INSTRUCTION>
static __device__ __forceinline__ void hand_on_by_lane_0(const RuleInput *in, Tile tile, Handshake pair, uint32_t lane,
                                                         uint32_t round, Counts *counts) {
  uint32_t word = narrow_word(round);
  if (threadIdx.x >= 32) {
    counts->late += !mbarrier_waits(pair.full, round & 1);
    Vectors read = get_vectors<IN_OWN_SHARED>(tile, lane);
    counts->mistakes += mistakes_in(&read, word);
    __syncwarp();
    if (lane == 0) arrive(pair.empty);
    return;
  }
  if (round) counts->late += !mbarrier_waits(pair.empty, (round - 1) & 1);
  if (lane == 0) {
    put_vectors<IN_OWN_SHARED>(tile, lane, word);
    together<INSTRUCTION, 0>(lane);
    arrive(pair.full);
  } else {
    delay(in, round);
    put_vectors<IN_OWN_SHARED>(tile, lane, word);
    together<INSTRUCTION, 1>(lane);
  }
  __syncwarp();
}

// Of each cluster: flags that count the rounds of which the tile in global memory is written, and read.
static __device__ uint32_t together_flags[NARROW_CLUSTERS][2];

// Block 0 stores, and block 1 reads. ACQUIRES: only lane 0 of block 1 waits. Otherwise only lane 0 of block 0 hands on.
template <int INSTRUCTION, bool ACQUIRES>
static __device__ __forceinline__ void between_blocks(const RuleInput *in, Tile tile, uint32_t rank, uint32_t *flags,
                                                      uint32_t lane, uint32_t round, Counts *counts) {
  uint32_t word = narrow_word(round);
  if (threadIdx.x >= 32) return;
  if (rank == 0) {
    counts->late += !flag_waits(&flags[1], round);
    __syncwarp();
    if (lane == 0) {
      put_vectors<IN_GLOBAL>(tile, lane, word);
      if (!ACQUIRES) together<INSTRUCTION, 0>(lane);
      if (ACQUIRES) __syncwarp();
      flag_set(&flags[0], round + 1);
    } else {
      delay(in, round);
      put_vectors<IN_GLOBAL>(tile, lane, word);
      if (!ACQUIRES) together<INSTRUCTION, 1>(lane);
      if (ACQUIRES) __syncwarp();
    }
    __syncwarp();
    return;
  }
  Vectors read;
  if (!ACQUIRES || lane == 0) {
    counts->late += !flag_waits(&flags[0], round + 1);
    if (ACQUIRES) lane += together<INSTRUCTION, 2>(lane);
    read = get_vectors<IN_GLOBAL>(tile, lane);
  } else {
    lane += together<INSTRUCTION, 3>(lane);
    read = get_vectors<IN_GLOBAL>(tile, lane);
  }
  counts->mistakes += mistakes_in(&read, word);
  __syncwarp();
  if (lane == 0) flag_set(&flags[1], round + 1);
}

template <int INSTRUCTION>
static __device__ __forceinline__ void together_round(const RuleInput *in, uint32_t pattern, Tile tile, Handshake pair,
                                                      uint32_t rank, uint32_t round, Counts *counts) {
  uint32_t lane = threadIdx.x % 32, cluster = blockIdx.x / 2;
  switch (pattern) {
  case 0:
    if (threadIdx.x < 32) exchange_by_two_ways<IN_OWN_SHARED, INSTRUCTION>(in, tile, lane, round, counts);
    break;
  case 1: wait_by_lane_0<INSTRUCTION>(in, tile, pair, lane, round, counts); break;
  case 2: release_by_lane_0<INSTRUCTION, true>(in, tile, narrow_sources[cluster], pair, lane, round, counts); break;
  case 3: release_by_lane_0<INSTRUCTION, false>(in, tile, narrow_sources[cluster], pair, lane, round, counts); break;
  case 4: hand_on_by_lane_0<INSTRUCTION>(in, tile, pair, lane, round, counts); break;
  case 5:
    if (threadIdx.x < 32) exchange_by_two_ways<IN_GLOBAL, INSTRUCTION>(in, tile, lane, round, counts);
    break;
  case 6: between_blocks<INSTRUCTION, true>(in, tile, rank, together_flags[cluster], lane, round, counts); break;
  case 7: between_blocks<INSTRUCTION, false>(in, tile, rank, together_flags[cluster], lane, round, counts); break;
  }
}

// Words 0 and 1 of the output: waits that did not end, and whether anything was read that is not of the round. 64
// threads.
extern "C" __global__ void __launch_bounds__(64) together_rules(const RuleInput *in, uint32_t *out) {
  __shared__ alignas(128) uint4 tile[TOGETHER_BYTES / 16];
  __shared__ uint64_t mbarriers[2];
  __shared__ uint32_t counts_of_block[2];
  // A cluster has the tiles of two blocks; blocks without a cluster use that of their own.
  uint32_t pattern = in->variant / TOGETHER_INSTRUCTIONS, rounds = in->program[0];
  uint32_t rank = pattern < TOGETHER_OF_TWO_BLOCKS ? blockIdx.x % 2 : rank_in_cluster();
  Tile where = {shared_address(tile),
                narrow_tiles[blockIdx.x / 2] + (pattern < TOGETHER_OF_TWO_BLOCKS ? rank * 512 : 0)};
  Handshake pair = {shared_address(&mbarriers[0]), shared_address(&mbarriers[1])};
  Counts counts = {0, 0};
  if (threadIdx.x == 0) {
    counts_of_block[0] = counts_of_block[1] = 0;
    mbarrier_init(pair.full, 1);
    mbarrier_init(pair.empty, 1);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  prepare_sources(pattern == 2 ? 0 : rank);
  if (rank == 0 && threadIdx.x < 2) together_flags[blockIdx.x / 2][threadIdx.x] = 0;
  if (pattern < TOGETHER_OF_TWO_BLOCKS)
    __syncthreads();
  else
    cluster_sync();
  for (uint32_t round = 0; round < rounds; round++) {
    switch (in->variant % TOGETHER_INSTRUCTIONS) {
    case BY_SHUFFLE: together_round<BY_SHUFFLE>(in, pattern, where, pair, rank, round, &counts); break;
    case BY_VOTE: together_round<BY_VOTE>(in, pattern, where, pair, rank, round, &counts); break;
    case BY_MATCH: together_round<BY_MATCH>(in, pattern, where, pair, rank, round, &counts); break;
    case BY_REDUX: together_round<BY_REDUX>(in, pattern, where, pair, rank, round, &counts); break;
    case BY_ADDRESS: together_round<BY_ADDRESS>(in, pattern, where, pair, rank, round, &counts); break;
    case BY_NOTHING: together_round<BY_NOTHING>(in, pattern, where, pair, rank, round, &counts); break;
    }
  }
  atomicAdd(&counts_of_block[0], counts.late);
  atomicAdd(&counts_of_block[1], counts.mistakes);
  if (pattern < TOGETHER_OF_TWO_BLOCKS)
    __syncthreads();
  else
    cluster_sync();
  if (threadIdx.x == 0) output_of_block(out)[0] = counts_of_block[0], output_of_block(out)[1] = counts_of_block[1] != 0;
}
