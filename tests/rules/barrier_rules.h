// Named barriers, and lanes that have exited or are elsewhere.
#pragma once

#include "block.h"

// ---- named barriers ----

static __device__ void barrier_step(uint32_t op, uint32_t count) {
  if (op == OP_ARRIVE) asm volatile("bar.arrive 1, %0;" ::"r"(count) : "memory");
  if (op == OP_SYNC) asm volatile("bar.sync 1, %0;" ::"r"(count) : "memory");
  if (op == OP_RED)
    asm volatile("{\n.reg .b32 d; .reg .pred p;\nsetp.eq.u32 p, 0, 0;\nbar.red.popc.u32 d, 1, %0, p;\n}" ::"r"(count)
                 : "memory");
}

// Word w of the output: the steps that warp w has done. With delays the steps before a long one come before all later.
extern "C" __global__ void barrier_rules(const RuleInput *in, uint32_t *out) {
  __shared__ uint32_t finished;
  volatile uint32_t *done = output_of_block(out);
  uint32_t warp = threadIdx.x / 32;
  if (threadIdx.x == 0) finished = 0;
  __syncthreads();
  if (threadIdx.x >= in->threads) {
    watch(in, &finished);
    return;
  }
  uint32_t steps = 0;
  for (uint32_t i = 0; i < BARRIER_STEPS; i++) {
    uint32_t word = __shfl_sync(~0u, in->program[warp * BARRIER_STEPS + i], 0), op = word >> 16;
    if (op == OP_NONE) break;
    if (op == OP_DELAY)
      long_delay();
    else
      delay(in, i), barrier_step(op, word & 0xffff);
    steps++;
    if (threadIdx.x % 32 == 0) done[warp] = steps;
    __threadfence_system();
    __syncwarp();
  }
  atomicAdd(&finished, 1);
}

// ---- lanes ----

static __device__ uint32_t shuffle_case(uint32_t variant, uint32_t value) {
  uint32_t d = value;
  switch (variant) {
  case 0:
  case 17: asm volatile("shfl.sync.bfly.b32 %0, %0, 16, 31, 0xffffffff;" : "+r"(d)); break;
  case 1: asm volatile("shfl.sync.down.b32 %0, %0, 8, 31, 0xffffffff;" : "+r"(d)); break;
  case 2: asm volatile("shfl.sync.up.b32 %0, %0, 3, 0, 0xffffffff;" : "+r"(d)); break;
  case 3: asm volatile("shfl.sync.idx.b32 %0, %0, 20, 31, 0xffffffff;" : "+r"(d)); break;
  case 4:
  case 15: asm volatile("shfl.sync.bfly.b32 %0, %0, 16, 31, 0xffff;" : "+r"(d)); break;
  case 5: asm volatile("shfl.sync.bfly.b32 %0, %0, 1, 31, 0xffffffff;" : "+r"(d)); break;
  case 16: asm volatile("shfl.sync.idx.b32 %0, %0, 20, 31, 0xffff;" : "+r"(d)); break;
  }
  return d;
}

static __device__ uint32_t collective_case(uint32_t variant, uint32_t lane, uint32_t value) {
  switch (variant) {
  case 6: return __ballot_sync(~0u, lane % 3 == 0);
  case 7: return __all_sync(~0u, lane < 16);
  case 8: return __any_sync(~0u, lane >= 16);
  case 9: return __match_any_sync(~0u, lane % 4);
  case 10: {
    int same;
    uint32_t members = __match_all_sync(~0u, lane / 16, &same);
    return members + (uint32_t)same;
  }
  case 11:
  case 18: return __reduce_add_sync(~0u, value);
  case 12: return __reduce_min_sync(~0u, 1000 - value);
  case 13: return __reduce_and_sync(~0u, lane < 16 ? 0x30f0u | lane : 0);
  case 14: __syncwarp(); return value;
  }
  return shuffle_case(variant, value);
}

// Word l of the output: the result of lane l.
extern "C" __global__ void lane_rules(const RuleInput *in, uint32_t *out) {
  volatile uint32_t *results = output_of_block(out);
  uint32_t lane = threadIdx.x, variant = in->variant;
  uint32_t value = 100 + lane;
  bool leaves = variant == 5 ? lane % 2 == 1 : lane >= 16;
  results[lane] = 0;
  if (leaves && (variant == 15 || variant == 16)) {
    long_delay();
    results[lane] = 1;
    return;
  }
  if (leaves && variant >= 17) long_delay();
  if (leaves) asm volatile("exit;");
  delay(in, 0);
  results[lane] = collective_case(variant, lane, value);
}

// WAY makes another instruction of it in each branch.
template <int WAY>
static __device__ __forceinline__ uint32_t place_case(uint32_t variant, uint32_t lane, uint32_t other) {
  uint32_t d = 100 + lane;
  switch (variant) {
  case 0: asm volatile("shfl.sync.bfly.b32 %0, %0, 16, 31, 0xffffffff; // %1" : "+r"(d) : "n"(WAY)); break;
  case 1: asm volatile("shfl.sync.idx.b32 %0, %0, 0, 31, 0xffffffff; // %1" : "+r"(d) : "n"(WAY)); break;
  case 2:
    asm volatile("{\n.reg .pred p;\nsetp.lt.u32 p, %1, 24;\nvote.sync.ballot.b32 %0, p, 0xffffffff; // %2\n}"
                 : "=r"(d)
                 : "r"(lane), "n"(WAY));
    break;
  case 3: asm volatile("match.any.sync.b32 %0, %1, 0xffffffff; // %2" : "=r"(d) : "r"(lane % 4), "n"(WAY)); break;
  case 4: asm volatile("redux.sync.add.u32 %0, %0, 0xffffffff; // %1" : "+r"(d) : "n"(WAY)); break;
  case 5:
    asm volatile("bar.warp.sync 0xffffffff; // %0" ::"n"(WAY) : "memory");
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(d) : "r"(other) : "memory");
    break;
  }
  return d;
}

// Word l of the output: the result of lane l. Lanes come to the instruction by two ways, in either order.
extern "C" __global__ void place_rules(const RuleInput *in, uint32_t *out) {
  __shared__ uint32_t words[32];
  uint32_t lane = threadIdx.x, d, other = shared_address(&words[lane ^ 16]);
  words[lane] = 0;
  __syncwarp();
  if (lane < 16) {
    delay(in, 0);
    ((volatile uint32_t *)words)[lane] = 100 + lane;
    d = place_case<0>(in->variant, lane, other);
  } else {
    delay(in, 1);
    ((volatile uint32_t *)words)[lane] = 100 + lane;
    d = place_case<1>(in->variant, lane, other);
  }
  output_of_block(out)[lane] = d;
}

// Words 0 and 1 of the output: how many threads of each warp have passed the barrier.
extern "C" __global__ void exit_rules(const RuleInput *in, uint32_t *out) {
  __shared__ uint32_t finished;
  uint32_t *passed = out + blockIdx.x * RULE_WORDS, warp = threadIdx.x / 32;
  if (threadIdx.x == 0) finished = 0;
  asm volatile("bar.sync 2;" ::: "memory");
  if (threadIdx.x >= in->threads) {
    watch(in, &finished);
    return;
  }
  if (warp == 0 && threadIdx.x >= 16) {
    long_delay();
    atomicAdd(&finished, 1);
    asm volatile("exit;");
  }
  delay(in, 0);
  if (in->variant == 0) asm volatile("bar.sync 1, 64;" ::: "memory");
  if (in->variant == 1 && warp == 0) asm volatile("bar.arrive 1, 64;" ::: "memory");
  if (in->variant == 1 && warp == 1) asm volatile("bar.sync 1, 64;" ::: "memory");
  if (in->variant == 2) asm volatile("bar.sync 0;" ::: "memory");
  atomicAdd(&passed[warp], 1);
  __threadfence_system();
  atomicAdd(&finished, 1);
}
