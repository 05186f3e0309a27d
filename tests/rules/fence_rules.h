// Stores through the generic proxy that the async proxy reads, and where a proxy fence stands between.
#pragma once

#include "end_rules.h"
#include "tile.h"

enum FenceUser { BULK_BY_WRITER, BULK_BY_OTHER, TENSOR_BY_OTHER, WGMMA_BY_WRITERS, WGMMA_BY_OTHERS };

// What a way consists of: bits.
enum FenceStep {
  BY_CP_ASYNC = 1,     // else by st.shared
  WAIT_GROUP = 2,      // for the thread's own cp.async
  FENCE_BEFORE = 4,    // by the writers
  SYNC = 8,            // __syncthreads; else the writers arrive at an mbarrier
  NOINC = 16,          // the copies' own arrival there
  FENCE_ALL = 32,      // by all threads, behind the barrier
  FENCE_USER = 64,     // by the threads that use the tile
  STORE_BEHIND = 128,  // the writers store when they have handed the tile on
};

static __constant__ const uint8_t fence_steps[FENCE_WAYS] = {
    FENCE_BEFORE | SYNC,
    SYNC | FENCE_ALL,
    SYNC | FENCE_USER,
    SYNC,
    FENCE_USER,
    0,
    FENCE_BEFORE | SYNC | STORE_BEHIND,
    BY_CP_ASYNC | WAIT_GROUP | FENCE_BEFORE | SYNC,
    BY_CP_ASYNC | WAIT_GROUP | SYNC | FENCE_USER,
    BY_CP_ASYNC | WAIT_GROUP | SYNC,
    BY_CP_ASYNC | NOINC | FENCE_USER,
    BY_CP_ASYNC | NOINC,
    BY_CP_ASYNC,
};

enum { TILE_VECTORS = END_WORDS / 4, THREAD_VECTORS = TILE_VECTORS / 128, TILE_MATRICES = END_WORDS * 4 / 2048 };

// What cp.async copies in even and in odd rounds: the same in all blocks.
static __device__ uint4 fence_sources[2][TILE_VECTORS];

static __device__ __forceinline__ void proxy_fence() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

static __device__ __forceinline__ void wait_for_stores() {
  asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" ::: "memory");
}

static __device__ float float_of_half(uint32_t bits) {
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"((uint16_t)bits));
  return x;
}

// The vectors of a thread follow each other, so that those of neighbours meet in the banks: the stores queue. The first
// vectors, which are used first, are stored last.
static __device__ __forceinline__ void write_by(uint32_t steps, uint32_t tile, uint32_t round) {
  uint32_t first = threadIdx.x * THREAD_VECTORS;
  if (steps & BY_CP_ASYNC) {
    for (uint32_t i = THREAD_VECTORS; i-- > 0;)
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(tile + 16 * (first + i)),
                   "l"(&fence_sources[round & 1][first + i])
                   : "memory");
  } else {
    for (uint32_t i = THREAD_VECTORS; i-- > 0;) narrow_store(IN_OWN_SHARED, tile, NULL, first + i, narrow_word(round));
  }
}

static __device__ __forceinline__ void write_and_hand_on(uint32_t steps, uint32_t tile, uint32_t mbarrier,
                                                         uint32_t round) {
  if (!(steps & STORE_BEHIND)) write_by(steps, tile, round);
  if (steps & WAIT_GROUP) asm volatile("cp.async.wait_all;" ::: "memory");
  if (steps & FENCE_BEFORE) proxy_fence();
  if (steps & NOINC)
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(mbarrier) : "memory");
  else if (!(steps & SYNC))
    arrive(mbarrier);
}

// The sum of the matrices of a tile, all of whose elements are equal.
static __device__ __forceinline__ uint32_t multiply_tile(uint32_t tile, uint64_t ones, uint32_t word) {
  float d[8], sum = float_of_half(word & 0xffff) * TILE_MATRICES;
  uint32_t mistakes = 0;
  zeros(d);
  for (uint32_t m = 0; m < TILE_MATRICES; m++)
    asm volatile("{\n.reg .pred p;\nsetp.eq.b32 p, 0, 0;\nwgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 "
                 "{" OPERANDS_0 "}, %8, %9, p, 1, 1, 0, 0;\n}"
                 : REGISTERS_8(d, 0)
                 : "l"(matrix_descriptor(tile + 2048 * m, 128, 256, SWIZZLE_NONE)), "l"(ones));
  wait_for_product(d);
  for (uint32_t i = 0; i < 8; i++) mistakes += d[i] != sum;
  return mistakes;
}

static __device__ __forceinline__ bool is_user(uint32_t user) {
  if (user == WGMMA_BY_WRITERS) return threadIdx.x < 128;
  if (user == WGMMA_BY_OTHERS) return threadIdx.x >= 128;
  return threadIdx.x == (user == BULK_BY_WRITER ? 0 : 128);
}

static __device__ __forceinline__ uint32_t use_tile(const RuleInput *in, uint32_t user, uint32_t tile, uint64_t ones,
                                                    uint4 *copy, uint32_t word) {
  if (user >= WGMMA_BY_WRITERS) return multiply_tile(tile, ones, word);
  if (user == TENSOR_BY_OTHER)
    tensor_store(in->map, tile, blockIdx.x * END_COPIES * (END_WORDS / END_ROW_WORDS));
  else
    bulk_store(copy, tile, END_WORDS * 4, false);
  wait_for_stores();
  return 0;
}

// Vectors of memory that TMA has stored to, not through the L1 cache.
static __device__ uint32_t mistakes_in_copy(const uint4 *copy, uint32_t count, uint32_t word) {
  uint32_t mistakes = 0;
  for (uint32_t i = threadIdx.x; i < count; i += blockDim.x) {
    uint4 v;
    asm volatile("ld.relaxed.gpu.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(copy + i)
                 : "memory");
    mistakes += v.x != word || v.y != word || v.z != word || v.w != word;
  }
  return mistakes;
}

static __device__ uint4 *memory_of_block(const RuleInput *in) {
  return (uint4 *)in->memory + (size_t)blockIdx.x * END_COPIES * TILE_VECTORS;
}

static __device__ void add_counts(uint32_t *of_block, const Counts *counts) {
  atomicAdd(&of_block[0], counts->late);
  atomicAdd(&of_block[1], counts->mistakes);
}

static __device__ void put_counts(const uint32_t *of_block, uint32_t *out) {
  output_of_block(out)[0] = of_block[0], output_of_block(out)[1] = of_block[1] != 0;
}

// Words 0 and 1 of the output: waits that did not end, and whether anything that was used is not of the round.
extern "C" __global__ void __launch_bounds__(FENCE_THREADS) fence_rules(const RuleInput *in, uint32_t *out) {
  __shared__ alignas(1024) uint4 tile[TILE_VECTORS];
  __shared__ alignas(128) uint16_t ones[256];
  __shared__ uint64_t mbarrier;
  __shared__ uint32_t counts_of_block[2];
  uint32_t user = in->variant % FENCE_USERS, steps = fence_steps[in->variant / FENCE_USERS], rounds = in->program[0];
  uint32_t here = shared_address(tile), full = shared_address(&mbarrier);
  bool writes = threadIdx.x < 128, uses = is_user(user);
  uint64_t desc_ones = matrix_descriptor(shared_address(ones), 128, 256, SWIZZLE_NONE);
  uint4 *copy = memory_of_block(in);
  Counts counts = {0, 0};
  if (threadIdx.x == 0) {
    counts_of_block[0] = counts_of_block[1] = 0;
    mbarrier_init(full, 128);
  }
  if (writes) {
    store_ones(ones);
    for (uint32_t odd = 0; odd < 2; odd++)
      for (uint32_t i = threadIdx.x; i < TILE_VECTORS; i += 128)
        narrow_store(IN_GLOBAL, 0, fence_sources[odd], i, narrow_word(odd));
    write_by(0, here, 1);
  }
  proxy_fence();
  __syncthreads();
  for (uint32_t round = 0; round < rounds; round++) {
    delay(in, round);
    if (writes) write_and_hand_on(steps, here, full, round);
    if (steps & SYNC) __syncthreads();
    if (writes && steps & STORE_BEHIND) write_by(steps, here, round);
    if (steps & FENCE_ALL) proxy_fence();
    if (uses) {
      if (!(steps & SYNC)) counts.late += !mbarrier_waits(full, round & 1);
      if (steps & FENCE_USER) proxy_fence();
      counts.mistakes += use_tile(in, user, here, desc_ones, copy, narrow_word(round));
    }
    if (writes) asm volatile("cp.async.wait_all;" ::: "memory");
    __syncthreads();
    if (user < WGMMA_BY_WRITERS) counts.mistakes += mistakes_in_copy(copy, TILE_VECTORS, narrow_word(round));
    __syncthreads();
  }
  add_counts(counts_of_block, &counts);
  __syncthreads();
  if (threadIdx.x == 0) put_counts(counts_of_block, out);
}

// In each round another warp, from the last one on, stores a tile and exits. Thread 0 stores the tile by TMA. The words
// of the output are those of fence_rules.
extern "C" __global__ void __launch_bounds__(LEAVE_WARPS * 32) leave_rules(const RuleInput *in, uint32_t *out) {
  __shared__ alignas(128) uint4 tile[TOGETHER_BYTES / 16];
  uint32_t variant = in->variant, warp = threadIdx.x / 32, lane = threadIdx.x % 32, mistakes = 0;
  Tile where = {shared_address(tile), NULL};
  uint4 *copy = memory_of_block(in);
  if (warp == 0) put_vectors<IN_OWN_SHARED>(where, lane, narrow_word(1));
  proxy_fence();
  __syncthreads();
  for (uint32_t round = 0; round < LEAVE_WARPS - 1; round++) {
    uint32_t word = narrow_word(round);
    delay(in, round);
    if (warp == LEAVE_WARPS - 1 - round) {
      put_vectors<IN_OWN_SHARED>(where, lane, word);
      if (variant == 0) proxy_fence();
      asm volatile("exit;");
    }
    if (variant != 3) __syncthreads();
    if (threadIdx.x == 0) {
      if (variant % 2) proxy_fence();
      bulk_store(copy, where.shared, TOGETHER_BYTES, false);
      wait_for_stores();
    }
    __syncwarp();
    for (uint32_t i = lane; warp == 0 && i < TOGETHER_BYTES / 16; i += 32) {
      uint4 v;
      asm volatile("ld.relaxed.gpu.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                   : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                   : "l"(copy + i)
                   : "memory");
      mistakes += v.x != word || v.y != word || v.z != word || v.w != word;
    }
    __syncthreads();
  }
  mistakes = __reduce_add_sync(~0u, mistakes);
  if (lane == 0) output_of_block(out)[0] = 0, output_of_block(out)[1] = mistakes != 0;
}
