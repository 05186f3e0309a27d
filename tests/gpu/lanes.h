// The inputs of lanes.cu: warps whose lanes work together, and atomic operations.
#pragma once

#include <stdint.h>

enum { LANE_CASES = 128, LANE_RESULTS = 96 };

// One warp: a block of its own.
typedef struct LaneCase {
  uint32_t value[32], other[32];  // per lane
  uint32_t mask;                  // lanes that take part in what needs no full warp; not empty
  uint32_t clamp;                 // shfl's c
  uint32_t unused[2];
} LaneCase;

// Atomic operations, each on `ATOMIC_INPUTS` places of its own: A(letter of instructions.h, operation) with one
// operand, and "cas" with two.
enum { ATOMIC_INPUTS = 1024, ATOMIC_THREADS = 128, ATOMIC_BLOCKS = ATOMIC_INPUTS / ATOMIC_THREADS };

typedef struct AtomicResult {
  uint64_t old, now;
} AtomicResult;

// clang-format off
#define ATOMICS_IN(A, space)                                                                                           \
  A(R, "atom." space ".add.u32") A(R, "atom." space ".min.u32") A(R, "atom." space ".max.u32")                         \
  A(R, "atom." space ".inc.u32") A(R, "atom." space ".dec.u32") A(R, "atom." space ".and.b32")                         \
  A(R, "atom." space ".or.b32") A(R, "atom." space ".xor.b32") A(R, "atom." space ".exch.b32")                         \
  A(R, "atom." space ".add.s32") A(R, "atom." space ".min.s32") A(R, "atom." space ".max.s32")                         \
  A(L, "atom." space ".add.u64") A(L, "atom." space ".min.u64") A(L, "atom." space ".max.u64")                         \
  A(L, "atom." space ".min.s64") A(L, "atom." space ".max.s64") A(L, "atom." space ".and.b64")                         \
  A(L, "atom." space ".or.b64") A(L, "atom." space ".xor.b64") A(L, "atom." space ".exch.b64")                         \
  A(F, "atom." space ".add.f32") A(D, "atom." space ".add.f64") A(H, "atom." space ".add.noftz.f16")                   \
  A(H, "atom." space ".add.noftz.bf16") A(P, "atom." space ".add.noftz.f16x2") A(P, "atom." space ".add.noftz.bf16x2")
#define COMPARE_AND_SWAPS(C, space) C(H, "atom." space ".cas.b16") C(R, "atom." space ".cas.b32") C(L, "atom." space ".cas.b64")
#define GLOBAL_ATOMICS(A, C) ATOMICS_IN(A, "global") COMPARE_AND_SWAPS(C, "global")
#define SHARED_ATOMICS(A, C) ATOMICS_IN(A, "shared") COMPARE_AND_SWAPS(C, "shared")
// clang-format on
