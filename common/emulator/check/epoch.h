// How the race check remembers an access: its thread, its instruction, and the thread's clock.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// One access by one thread, in 64 bits: kernel bit, Strength, two bits more, then fields whose widths the launch
// chooses: cluster, instruction, clock of the thread, thread in the cluster, so that the lowest bits are the lane.
typedef uint64_t Epoch;
#define EPOCH_NONE 0ull  // never accessed
#define EPOCH_HOST 1ull  // by the host, or by an earlier launch: ordered before everything
#define EPOCH_KERNEL (1ull << 63)
#define EPOCH_STRENGTH_SHIFT 61
#define EPOCH_SET (1ull << 60)    // a Cell.read only: not one read but a set; index in the low bits
#define EPOCH_ASYNC (1ull << 59)  // through the async proxy: TMA, wgmma
#define EPOCH_FIELDS 59           // bits left for the fields
enum { LANE_BITS = 5 };
#define LANE_MASK ((1ull << LANE_BITS) - 1)

// Accesses that are atomic, volatile, relaxed or more do not race with each other, if the scope of each includes the
// thread that does the other. PTX ISA 8.7, "morally strong". The same of a fence is its scope.
typedef enum Strength { WEAK, STRONG_CTA, STRONG_CLUSTER, STRONG_GPU, SCOPES } Strength;

typedef struct EpochLayout {
  int clock_shift, pc_shift, cluster_shift;
  uint64_t clock_mask, pc_mask, thread_mask, cluster_mask;
  uint64_t set_mask;       // the index of an EPOCH_SET, in the place of thread and clock
  uint64_t identity_mask;  // equal bits: two accesses, none of them a set, are by one thread
} EpochLayout;

// False when the fields leave too few bits for the clock.
bool epoch_layout(EpochLayout *layout, uint64_t clusters, uint64_t threads, uint64_t instructions);

static inline uint32_t epoch_clock(const EpochLayout *l, Epoch e) {
  return (uint32_t)(e >> l->clock_shift & l->clock_mask);
}
static inline uint32_t epoch_pc(const EpochLayout *l, Epoch e) { return (uint32_t)(e >> l->pc_shift & l->pc_mask); }
static inline uint32_t epoch_thread(const EpochLayout *l, Epoch e) { return (uint32_t)(e & l->thread_mask); }
static inline uint32_t epoch_cluster(const EpochLayout *l, Epoch e) {
  return (uint32_t)(e >> l->cluster_shift & l->cluster_mask);
}
static inline Strength epoch_strength(Epoch e) { return (Strength)(e >> EPOCH_STRENGTH_SHIFT & 3); }
// Of an EPOCH_SET, read_sets.h: the chain, and its turn.
static inline uint32_t epoch_set(const EpochLayout *l, Epoch e) { return (uint32_t)((e & l->set_mask) >> LANE_BITS); }
static inline unsigned epoch_turn(Epoch e) { return (unsigned)(e & LANE_MASK); }
