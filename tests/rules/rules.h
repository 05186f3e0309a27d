// The rules that tests/rules settles on a GPU: what its kernels are given, and the cases of each.
//
// record.cu runs the cases on the GPU and writes h200.txt, one line for each outcome of a case; h100.txt has the
// families that an H100 ran instead. tests/test_rules.c holds the emulator to these files.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "../../common/emulator/host/fnv.h"

enum {
  RULE_WORDS = 64,         // of output for each block
  RULE_BYTES = 60 * 1024,  // of shared memory that the descriptor cases read
  RULE_ELEMENTS = RULE_BYTES / 2,
  RULE_FIRST_BITS = 0x0400,  // element i of it has these bits, plus i: each is another normal fp16 number
  RULE_ROWS = 64,
  RULE_DEPTH = 16,
  RULE_SHARED = RULE_BYTES + 1024 + 1024,  // with B or A of ones on a diagonal, and room to align
};

typedef struct RuleInput {
  uint32_t threads;  // that take part; the warps from there on watch
  uint32_t seed;     // of the delays; 0: none
  uint32_t limit;    // clocks after which those that watch give up
  uint32_t variant;
  uint64_t memory;  // the address of what the blocks store to, of which there is a tensor map
  uint64_t unused[5];
  uint32_t map[32];
  uint32_t program[32];  // of barrier_rules; of init_rules what is copied; else the rounds
} RuleInput;
#ifdef __cplusplus
#define _Static_assert static_assert
#endif
_Static_assert(offsetof(RuleInput, map) % 64 == 0, "a tensor map begins at a multiple of 64 bytes");

// ---- named barriers: what each warp does, an instruction a word ----

enum { BARRIER_WARPS = 4, BARRIER_STEPS = 6 };
enum { OP_NONE, OP_ARRIVE, OP_SYNC, OP_RED, OP_DELAY };
#define STEP(op, count) ((op) << 16 | (count))

typedef struct BarrierCase {
  const char *name;
  uint32_t steps[BARRIER_WARPS][BARRIER_STEPS];
} BarrierCase;

#define A(count) STEP(OP_ARRIVE, count)
#define S(count) STEP(OP_SYNC, count)
#define R(count) STEP(OP_RED, count)
#define D STEP(OP_DELAY, 0)
static const BarrierCase barrier_cases[] = {
    {"arrive 64, sync 64 by one warp", {{A(64), S(64)}}},
    {"warp 0 arrives and syncs, warp 1 syncs, 96", {{A(96), S(96)}, {S(96)}}},
    {"the same, warp 1 late", {{A(96), S(96)}, {D, S(96)}}},
    {"the same, warp 0 late", {{A(96), D, S(96)}, {S(96)}}},
    {"warp 0 arrives twice, warp 1 syncs, 96", {{A(96), A(96)}, {S(96)}}},
    {"the same, warp 1 late", {{A(96), A(96)}, {D, S(96)}}},
    {"warp 0 arrives three times, warp 1 syncs, 128", {{A(128), A(128), A(128)}, {S(128)}}},
    {"two phases by one warp, 64", {{A(64), S(64), A(64), S(64)}}},
    {"warp 0 arrives twice, warp 1 syncs, 64", {{A(64), A(64)}, {D, S(64)}}},
    {"warp 0 syncs 64, warp 1 late arrives 32", {{S(64)}, {D, A(32)}}},
    {"warp 0 syncs 64, warp 1 late arrives 96", {{S(64)}, {D, A(96)}}},
    {"warp 0 syncs 96, warp 1 late arrives 64", {{S(96)}, {D, A(64)}}},
    {"warp 0 syncs 32, warp 1 late syncs 64", {{S(32)}, {D, S(64)}}},
    {"warp 0 syncs 64, warp 1 late syncs 96, warp 2 later syncs 96", {{S(64)}, {D, S(96)}, {D, D, S(96)}}},
    {"warp 0 syncs 96, warp 1 late syncs 64, warp 2 later syncs 96", {{S(96)}, {D, S(64)}, {D, D, S(96)}}},
    {"warp 0 syncs 64, warp 1 late syncs 64, warp 2 later syncs 64", {{S(64)}, {D, S(64)}, {D, D, S(64)}}},
    {"warp 0 syncs 40 of a register, warp 1 late syncs 40", {{S(40)}, {D, S(40)}}},
    {"warp 0 syncs 0 of a register, warp 1 late syncs 0", {{S(0)}, {D, S(0)}}},
    {"warp 0 syncs 64, warp 1 late bar.red 64", {{S(64)}, {D, R(64)}}},
    {"warp 0 arrives 64, warp 1 late bar.red 64", {{A(64)}, {D, R(64)}}},
    {"warp 0 arrives and bar.red 64", {{A(64), R(64)}}},
};
#undef A
#undef S
#undef R
#undef D
enum { BARRIER_CASES = sizeof barrier_cases / sizeof *barrier_cases };

// ---- lanes that have exited, or are elsewhere ----

static const char *const lane_cases[] = {
    "16-31 exited: shfl.bfly 16, all",
    "16-31 exited: shfl.down 8, all",
    "16-31 exited: shfl.up 3, all",
    "16-31 exited: shfl.idx 20, all",
    "16-31 exited: shfl.bfly 16, members 0-15",
    "odd exited: shfl.bfly 1, all",
    "16-31 exited: vote.ballot, all",
    "16-31 exited: vote.all, all",
    "16-31 exited: vote.any of false, all",
    "16-31 exited: match.any, all",
    "16-31 exited: match.all, all",
    "16-31 exited: redux.add, all",
    "16-31 exited: redux.min, all",
    "16-31 exited: redux.and, all",
    "16-31 exited: bar.warp.sync, all",
    "16-31 elsewhere: shfl.bfly 16, members 0-15",
    "16-31 elsewhere: shfl.idx 20, members 0-15",
    "16-31 exit late: shfl.bfly 16, all",
    "16-31 exit late: redux.add, all",
};
enum { LANE_CASES = sizeof lane_cases / sizeof *lane_cases };

// Half a warp exits while the other half and another warp are at a barrier.
static const char *const exit_cases[] = {
    "16-31 exit late: bar.sync 1, 64 by the others and another warp",
    "16-31 exit late: bar.arrive 1, 64 by the others, bar.sync by another warp",
    "16-31 exit late: bar.sync 0 by the others and another warp",
};
enum { EXIT_CASES = sizeof exit_cases / sizeof *exit_cases };

// The lanes execute one instruction at two places of the program.
static const char *const place_cases[] = {
    "shfl.bfly 16", "shfl.idx 0", "vote.ballot", "match.any", "redux.add", "bar.warp.sync",
};
enum { PLACE_CASES = sizeof place_cases / sizeof *place_cases };

// ---- arrivals at several blocks' mbarriers by one instruction ----

static const char *const remote_cases[] = {
    "mbarrier.arrive.release.cluster",
    "mbarrier.arrive.release.cluster of a count in a register",
    "mbarrier.arrive.expect_tx.release.cluster",
};
enum { REMOTE_CASES = sizeof remote_cases / sizeof *remote_cases, REMOTE_BLOCKS = 4, REMOTE_PHASES = 32 };

// ---- arrivals of scope .cta at another block's mbarrier ----

// What the threads of block 1 do to a tile before they arrive at block 0's mbarrier, and what block 0 does to the tile
// when it has waited there.
static const char *const narrow_cases[] = {
    "ld.shared, then a multicast copy",
    "ld.shared, then st.shared::cluster",
    "wgmma and its wait, then a multicast copy",
    "ld.shared::cluster of block 0's tile, then st.shared",
    "ld.global, then st.global",
    "st.shared, then ld.shared::cluster",
    "st.shared::cluster into block 0's tile, then ld.shared",
    "st.global, then ld.global",
    "ld.shared behind the arrival, then st.shared::cluster",
};
enum {
  NARROW_CASES = sizeof narrow_cases / sizeof *narrow_cases,
  NARROW_THREADS = 128,
  NARROW_VECTORS = 8,  // of 16 bytes that each thread reads or writes
  NARROW_BYTES = NARROW_THREADS * NARROW_VECTORS * 16,
  NARROW_PRODUCT_BYTES = 64 * 16 * 2,  // of them, what the wgmma reads
  NARROW_CLUSTERS = 66,                // at most
};

// ---- an instruction that the lanes of a warp execute together ----

// A pattern says what lanes do before an instruction with .sync, and what other lanes do after it. The lanes reach it
// by two branches, so that nothing else brings them together.
static const char *const together_patterns[] = {
    "st.shared, %s, ld.shared by other lanes",
    "mbarrier wait by lane 0, %s, ld.shared by all lanes",
    "ld.shared, %s, lane 0 arrives, bulk copy",
    "ld.shared, %s, lane 0 arrives, st.shared by another warp",
    "st.shared, %s, lane 0 arrives, ld.shared by another warp",
    "st.global, %s, ld.global by other lanes",
    "ld.acquire by lane 0, %s, ld.global by all lanes of another block's stores",
    "st.global, %s, st.release by lane 0, ld.global by another block",
};
static const char *const together_instructions[] = {"shfl.sync",  "vote.sync", "match.sync",
                                                    "redux.sync", "nothing",   "shfl.sync for the address"};
enum {
  TOGETHER_PATTERNS = sizeof together_patterns / sizeof *together_patterns,
  TOGETHER_INSTRUCTIONS = sizeof together_instructions / sizeof *together_instructions,
  TOGETHER_CASES = TOGETHER_PATTERNS * TOGETHER_INSTRUCTIONS,
  TOGETHER_OF_TWO_BLOCKS = 6,  // the patterns from here on
  TOGETHER_BYTES = 32 * 8 * 16,
};
static inline int together_name(int i, char *name, size_t size) {
  return snprintf(name, size, together_patterns[i / TOGETHER_INSTRUCTIONS],
                  together_instructions[i % TOGETHER_INSTRUCTIONS]);
}

// ---- loads that are under way when their threads hand the slot over ----

// 128 threads read a tile, all with conflicts of banks, and say so. Then a fifth warp fills it again.
static const char *const release_ways[] = {
    "first lanes arrive",
    "wgmma.fence, first lanes arrive",
    "__syncwarp, first lanes arrive",
    "all lanes arrive",
    "fence.proxy.async, all lanes arrive",
    "values used, all lanes arrive",
    "__syncthreads",
    "__threadfence_block, all lanes arrive",
    "all lanes arrive, fence.proxy.async before the copy",
};
enum {
  RELEASE_WAYS = sizeof release_ways / sizeof *release_ways,
  RELEASE_CASES = RELEASE_WAYS * 2,
  RELEASE_THREADS = 160,
};
static inline int release_name(int i, char *name, size_t size) {
  return snprintf(name, size, "ld.shared, %s, %s", release_ways[i / 2], i % 2 ? "st.shared" : "bulk copy");
}

// ---- stores that the async proxy reads ----

// How the writers hand a tile to those that use it: what they store by, and where a proxy fence stands.
static const char *const fence_ways[] = {
    "st.shared, fence, __syncthreads",
    "st.shared, __syncthreads, fence by all",
    "st.shared, __syncthreads, fence by the user",
    "st.shared, __syncthreads",
    "st.shared, all arrive, fence by the user",
    "st.shared, all arrive",
    "st.shared behind the barrier",
    "cp.async, wait_group, fence, __syncthreads",
    "cp.async, wait_group, __syncthreads, fence by the user",
    "cp.async, wait_group, __syncthreads",
    "cp.async, arrive.noinc, fence by the user",
    "cp.async, arrive.noinc",
    "cp.async, all arrive",
};
static const char *const fence_users[] = {
    "bulk store by a writer", "bulk store by another warp", "tensor store by another warp",
    "wgmma by the writers",   "wgmma by another warpgroup",
};
enum {
  FENCE_WAYS = sizeof fence_ways / sizeof *fence_ways,
  FENCE_USERS = sizeof fence_users / sizeof *fence_users,
  FENCE_CASES = FENCE_WAYS * FENCE_USERS,
  FENCE_THREADS = 256,  // a warpgroup that writes, and another one
};
static inline int fence_name(int i, char *name, size_t size) {
  return snprintf(name, size, "%s, %s", fence_ways[i / FENCE_USERS], fence_users[i % FENCE_USERS]);
}

// Warps that store a part of the tile and exit, before the others store the part by TMA.
static const char *const leave_cases[] = {
    "st.shared, fence, exit, __syncthreads, bulk store",
    "st.shared, exit, __syncthreads, fence, bulk store",
    "st.shared, exit, __syncthreads, bulk store",
    "st.shared, exit, fence, bulk store",
};
enum { LEAVE_CASES = sizeof leave_cases / sizeof *leave_cases, LEAVE_WARPS = 16 };

// ---- copies that all lanes of one instruction start ----

static const char *const same_cases[] = {
    "bulk stores of one tile to one place",
    "tensor stores of one tile to one place",
    "bulk reductions, counted 32 times",
    "tensor reductions, counted 32 times",
    "bulk loads, 32 times the bytes",
    "tensor loads, 16 times the bytes by 16 lanes",
    "bulk stores by two warps of one tile to one place",
    "bulk stores of other tiles to one place",
};
enum { SAME_CASES = sizeof same_cases / sizeof *same_cases, SAME_BYTES = 2048 };

// ---- B that each warp of a warpgroup has written a part of ----

static const char *const columns_cases[] = {
    "K-major, no swizzle, a quarter by each warp",
    "K-major 128B, a quarter by each warp",
    "MN-major 32B, a quarter by each warp",
    "K-major 128B, a quarter by each warp, no fence.proxy.async",
    "K-major 128B, a quarter by each warp, no __syncwarp",
    "K-major 128B, a quarter by each warp, behind the product's beginning",
};
enum { COLUMNS_CASES = sizeof columns_cases / sizeof *columns_cases };

// ---- accesses of a warp's lanes to each other's places, in the order of the program ----

static const char *const converged_cases[] = {
    "ldmatrix, st.shared",
    "ldmatrix, st.shared, round and round",
    "ldmatrix, st.shared by two ways",
    "ldmatrix, mma, st.shared",
    "ldmatrix, cp.async",
    "st.shared, ldmatrix",
    "stmatrix, ldmatrix",
    "ld.shared, st.shared",
    "ld.shared, mma, st.shared",
    "st.shared, ld.shared",
    "ld.shared, st.shared, round and round",
    "half the lanes late, ld.shared, st.shared",
    "half the lanes late, st.shared, ld.shared",
    "ld.shared, st.shared by two ways",
    "st.shared, ld.shared by two ways",
    "ld.global, st.global",
    "st.global, ld.global",
    "st.shared, ldmatrix of addresses that are known to differ",
    "st.shared, ld.shared of addresses that are known to differ",
};
enum { CONVERGED_CASES = sizeof converged_cases / sizeof *converged_cases, CONVERGED_THREADS = 128 };

// ---- equal values ----

static const char *const equal_groups[] = {"warps, shared", "warps, global", "blocks, global"};
static const char *const equal_kinds[] = {
    "1 byte", "2 bytes", "4 bytes", "8 bytes", "16 bytes", "1 byte and 16 bytes", "other values"};
enum {
  EQUAL_GROUPS = sizeof equal_groups / sizeof *equal_groups,
  EQUAL_KINDS = sizeof equal_kinds / sizeof *equal_kinds,
  EQUAL_CASES = EQUAL_GROUPS * EQUAL_KINDS,
  EQUAL_THREADS = 128,
};
static inline int equal_name(int i, char *name, size_t size) {
  return snprintf(name, size, "%s, %s", equal_groups[i / EQUAL_KINDS], equal_kinds[i % EQUAL_KINDS]);
}

// ---- a first guess by a plain load ----

static const char *const guess_cases[] = {
    "16 bits, global",
    "32 bits, global",
    "64 bits, global",
    "double, global",
    "half a word, global",
    "16 bits, shared",
    "32 bits, shared",
    "64 bits, shared",
    "double, shared",
    "half a word, shared",
    "maximum that ends by the guess, global",
    "32 bits, global, no atomicCAS",
};
enum {
  GUESS_CASES = sizeof guess_cases / sizeof *guess_cases,
  GUESS_WORDS = 8,
  GUESS_THREADS = 64,
};

// ---- a phase's parity that is neither 0 nor 1 ----

static const uint32_t parities[] = {0, 1, 2, 3, 0x7ffffffe, 0xfffffffe, 0xffffffff};
enum {
  PARITY_CASES = sizeof parities / sizeof *parities,
  PARITY_PHASES = 4,
  PARITY_WORDS = 2 * PARITY_PHASES,  // by test_wait, and by try_wait
};
static inline int parity_name(int i, char *name, size_t size) {
  return snprintf(name, size, "mbarrier.test_wait and try_wait.parity of 0x%x", parities[i]);
}

// ---- an arrival that follows from another lane's ----

static const char *const chain_cases[] = {
    "two lanes arrive at two blocks' mbarriers, and who waits for one arrives at the other again",
    "the same, with a count",
};
enum { CHAIN_CASES = sizeof chain_cases / sizeof *chain_cases };

// ---- blocks that exit while TMA uses their shared memory ----

static const char *const end_cases[] = {
    "bulk stores, not waited for",
    "tensor stores, not waited for",
    "bulk reductions, not waited for",
    "bulk loads, not waited for",
    "bulk stores, not waited for, and then stores to the tile",
};
enum {
  END_CASES = sizeof end_cases / sizeof *end_cases,
  END_THREADS = 128,
  END_WORDS = 8 * 1024,  // of a tile
  END_ROW_WORDS = 256,
  END_COPIES = 4,  // of it, which a block stores
};

// ---- A's rows that each warp has written itself ----

static const char *const rows_cases[] = {
    "K-major, no swizzle, own rows", "K-major 128B, own rows",
    "MN-major 32B, own rows",        "K-major 128B, own rows, no fence.proxy.async",
    "K-major 128B, another's rows",
};
enum { ROWS_CASES = sizeof rows_cases / sizeof *rows_cases, ROWS_ROUNDS = 64 };

// ---- an mbarrier that is new to the async proxy ----

static const char *const init_cases[] = {
    "init, __syncthreads, copy by another warp",
    "init, fence.mbarrier_init, __syncthreads, copy by another warp",
    "init, copy by the same thread",
    "stores of ones, init, __syncthreads, copy by another warp",
    "init, barrier.cluster, multicast copy by block 0",
    "init again and again of one mbarrier, without inval",
};
enum { INIT_CASES = sizeof init_cases / sizeof *init_cases, INIT_BARRIERS = 64 };

// ---- registers ----

static const char *const register_cases[] = {
    "__maxnreg__(64), 256 threads: .dec 24, .inc 104",
    "__maxnreg__(64), 256 threads: .dec 24, .inc 112",
    "__maxnreg__(64), 128 threads: .inc 72",
    "__maxnreg__(64), 256 threads: .dec 24, .inc 104, the same twice more by warps that do not meet",
    "__maxnreg__(64), 256 threads: .dec 24, .inc 104, the odd warps by other instructions than the even ones",
};
enum { REGISTER_CASES = sizeof register_cases / sizeof *register_cases };

// ---- matrix descriptors ----

// One read of a matrix of 64 x 16 through a descriptor, without the address of the shared memory.
typedef struct DescriptorCase {
  uint64_t bits;  // start: bytes from the beginning of the shared memory
  uint32_t of_b, mn_major;
} DescriptorCase;

static inline uint64_t descriptor_bits(uint32_t start, uint32_t leading, uint32_t stride, uint32_t base,
                                       uint32_t swizzle) {
  return (uint64_t)(start >> 4) | (uint64_t)(leading >> 4) << 16 | (uint64_t)(stride >> 4) << 32 |
         (uint64_t)base << 49 | (uint64_t)swizzle << 62;
}

enum { SWEEP_STARTS = 64, SWEEP_STRIDES = 2, SWEEP_CASES = SWEEP_STARTS * SWEEP_STRIDES, SWEEPS = 2 * 2 * 4 * 8 };

// Case i of a sweep: an operand, a major, a swizzle (0 none, 1 128 bytes, 2 64, 3 32) and a base offset, over all
// starts in 1,024 bytes and over two pairs of strides.
static inline DescriptorCase sweep_case(int sweep, int i) {
  uint32_t of_b = (uint32_t)sweep & 1, mn_major = (uint32_t)sweep >> 1 & 1, swizzle = (uint32_t)sweep >> 2 & 3,
           base = (uint32_t)sweep >> 4 & 7;
  uint32_t start = (uint32_t)(i % SWEEP_STARTS) * 16;
  uint32_t odd = (uint32_t)(i / SWEEP_STARTS);
  uint32_t leading = odd ? 2 * 1024 + 336 : 4096, stride = odd ? 1024 + 208 : 1024;
  DescriptorCase result = {descriptor_bits(1024 + start, leading, stride, base, swizzle), of_b, mn_major};
  return result;
}

// Bits of a descriptor that PTX ISA 9.7.16.5.1 does not name.
static const uint8_t unnamed_bits[] = {14, 15, 30, 31, 46, 47, 48, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61};
enum { UNNAMED_BITS = sizeof unnamed_bits };

