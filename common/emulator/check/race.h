// Races, found by rule: two accesses of which one writes, by two threads, neither ordered before the other.
//
// "Ordered before" is the happens-before relation of the PTX memory model (PTX ISA chapter 8), kept with vector clocks as
// in FastTrack (Flanagan and Freund, PLDI 2009). A thread's own clock counts its releases (barriers, fences, ...). What a
// thread knows of the others is a vector of their clocks, joined at every acquire. An asynchronous operation is a thread of
// its own, an agent: it starts with what its issuer knows, and is known to those who wait for it. Each byte of memory has a cell that
// remembers its last write and the reads since; an access is ordered after a remembered one if the thread knows that
// thread's clock of that moment. So a race is reported in every schedule, not only in those where it bites.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "usage.h"

typedef struct Warp Warp;
typedef struct Inst Inst;
typedef struct Region Region;
typedef struct Launch Launch;
typedef struct Cluster Cluster;
typedef struct ReadSets ReadSets;  // read_sets.h
typedef uint32_t Mask;

// One access by one thread, in 64 bits: kernel bit, Strength, two bits more, then fields whose widths the launch chooses:
// cluster, instruction, clock of the thread, thread in the cluster, so that the lowest bits are the lane.
typedef uint64_t Epoch;
#define EPOCH_NONE 0ull  // never accessed
#define EPOCH_HOST 1ull  // by the host, or by an earlier launch: ordered before everything
#define EPOCH_KERNEL (1ull << 63)
#define EPOCH_STRENGTH_SHIFT 61
#define EPOCH_SET (1ull << 60)    // a Cell.read only: not one read but a set; index in the low bits
#define EPOCH_ASYNC (1ull << 59)  // through the async proxy: TMA, wgmma
#define EPOCH_FIELDS 59           // bits left for the fields

// Accesses that are atomic, volatile, relaxed or more do not race with each other, if the scope of each includes the
// thread that does the other. PTX ISA 8.7, "morally strong". The same of a fence is its scope.
typedef enum Strength { WEAK, STRONG_CTA, STRONG_CLUSTER, STRONG_GPU, SCOPES } Strength;

typedef struct EpochLayout {
  int clock_shift, pc_shift, cluster_shift;
  uint64_t clock_mask, pc_mask, thread_mask, cluster_mask;
  uint64_t set_mask;       // the index of an EPOCH_SET, in the place of thread and clock
  uint64_t identity_mask;  // what tells that two accesses, none of them a set, are by one thread
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

// Vector clocks: for each thread of the cluster, the clock up to which its accesses are ... Immutable once shared.
typedef enum ClockPlane {
  CLOCK_KNOWN,           // ordered before what the holder does
  CLOCK_VISIBLE,         // of those: made visible to the async proxy by a fence.proxy.async (PTX ISA 8.6)
  CLOCK_FENCED,          // of those: covered by a fence, so that a relaxed store hands them on inside the block
  CLOCK_FENCED_GPU,      // of those: by one of .gpu or .sys scope, so that it hands them on to other clusters
  CLOCK_FENCED_CLUSTER,  // of those: by one of at least .cluster scope, so that it hands them on to other blocks
  CLOCK_PLANES           // a cluster of one block does without the last
} ClockPlane;

typedef struct Clocks {
  _Atomic int references;
  uint32_t cluster;
  Usage *usage;  // counts it
  int import_count;
  struct Import *imports;  // the same of other clusters' threads, learnt through global memory
  int count;               // threads: lanes of all warps, then agents
  int planes;
  uint32_t clock[];  // planes times count
} Clocks;

typedef struct Import {
  uint32_t cluster;
  Clocks *clocks;
} Import;

// What the last strong load learnt from: one that polls need not learn it again.
typedef struct Learnt {
  Clocks *from;
  bool acquired;  // into `known`, not into `pending`
} Learnt;

// A thread's side of the relation.
typedef struct LaneClocks {
  uint32_t own;                    // its clock, from 1
  uint32_t covered[CLOCK_PLANES];  // of its own accesses, which `known` leaves out: up to which clock a plane has them
  Clocks *known;                   // of the others; NULL knows nothing
  Clocks *pending[SCOPES];         // what strong loads have read, by the least scope of a fence that acquires it
  Learnt learnt[2];                // from what was released to its block, and to others
} LaneClocks;

// ---- vector clocks: clocks.c ----

void clocks_retain(Clocks *clocks);
void clocks_release(Clocks *clocks);
// *holder, which may be NULL, becomes what it and `more` know together.
void clocks_join(const Cluster *cluster, Clocks **holder, Clocks *more);
// A new reference to what each of the holders knows of their cluster.
Clocks *clocks_common(const Cluster *cluster, Clocks *const *holders, int count);

// Adds to *joined what the lanes of mask know and have done, then advances their clocks: the release half of a barrier.
void race_release(Warp *warp, Mask mask, Clocks **joined);
// The lanes of mask learn what joined holds (which may be NULL: nothing): the acquire half.
void race_acquire(Warp *warp, Mask mask, Clocks *joined);
// The relaxed halves: what the lanes knew at their last fence is handed on, what they read counts from their next fence.
// scope: of the fence, at least.
void race_release_relaxed(Warp *warp, Mask mask, Clocks **joined, Strength scope);
void race_acquire_relaxed(Warp *warp, Mask mask, Clocks *joined);
// A new reference to what a lane knows, with what its fences have covered of its own.
Clocks *race_lane_clocks(Warp *warp, int lane);
// Whether the lanes of mask know of all that joined holds; what their own warp did they know.
bool race_knows(const Warp *warp, Mask mask, const Clocks *joined);
// Both, among the lanes of mask: bar.warp.sync.
void race_warp_sync(Warp *warp, Mask mask);
// fence / membar by the lanes of mask.
void race_fence(Warp *warp, Mask mask, Strength scope);
// fence.proxy.async: what the lanes know becomes visible to the async proxy.
void race_proxy_fence(Warp *warp, Mask mask);
// The lanes learn that the agent has done all up to the clock.
void race_learn_agent(Warp *warp, Mask mask, uint32_t agent, uint32_t clock);
// The same for what an mbarrier or another holder hands on.
void clocks_add_agent(Cluster *cluster, Clocks **joined, uint32_t agent, uint32_t clock);

// Orders of a strong access; a weak one is the plain ld or st. PTX ISA 8.9.
typedef enum MemoryOrder { ORDER_WEAK, ORDER_RELAXED, ORDER_ACQUIRE, ORDER_RELEASE, ORDER_ACQ_REL } MemoryOrder;

// What strong stores have released, by place: of a cluster's shared memory, or of global memory. A place is where the
// emulator has the bytes, and not an address: one of shared memory means other bytes in each block, and bytes have several.
typedef struct SyncTable SyncTable;
SyncTable *sync_table_new(Usage *usage);
void sync_table_free(SyncTable *table);
// A strong load, store or read-modify-write of the place by one lane: it learns from, or adds to, what is released
// there.
void sync_load(SyncTable *table, const void *place, Warp *warp, int lane, MemoryOrder order, Strength scope);
void sync_store(SyncTable *table, const void *place, Warp *warp, int lane, MemoryOrder order, Strength scope);
void sync_atomic(SyncTable *table, const void *place, Warp *warp, int lane, MemoryOrder order, Strength scope);

// ---- accesses: race.c ----

// Who accesses memory: a lane, or an agent on its behalf.
typedef struct Actor {
  Warp *warp;  // the lane to name in a report
  int lane;
  const Inst *inst;
  const Cluster *cluster;
  const EpochLayout *layout;
  Epoch place;      // cluster and instruction, as an epoch has them
  Epoch identity;   // an epoch's bits of identity_mask
  uint32_t thread;  // in the cluster
  uint32_t clock;
  uint32_t issuer;  // of an agent: the lane whose accesses so far come before; else the thread itself
  const Clocks *known;
  uint32_t visible;  // the clock up to which the issuer has made its own accesses visible to the async proxy
  Strength strength;
  bool async;  // through the async proxy
} Actor;

// A lane that executes inst.
Actor race_lane(Warp *warp, const Inst *inst, int lane, Strength strength);
// The same for another lane of the warp.
void race_set_lane(Actor *actor, int lane);
// An agent acts on behalf of the lane.
void race_set_agent(Actor *actor, uint32_t agent, uint32_t clock);

// Checks and remembers a read or a write of region bytes [offset, offset + size) by the actor; value and reports are those of
// race_write.
void race_read_by(const Actor *actor, Region *region, uint64_t offset, int size);
void race_write_by(const Actor *actor, Region *region, uint64_t offset, int size, const void *value);

// Checks and remembers a read of region bytes [offset, offset + size) by the lanes of mask, which all read the same bytes.
// Reports uninitialised reads and races.
void race_read(Warp *warp, const Inst *inst, Mask mask, Region *region, uint64_t offset, int size, Strength strength);
// The same of a weak write by one lane, before it happens. value: the bytes to be written; lanes of one instruction may write
// the same value to one place (CUDA C++ programming guide, SIMT architecture).
void race_write(Warp *warp, const Inst *inst, int lane, Region *region, uint64_t offset, int size, const void *value);
// The same of an atomic read-modify-write by one lane.
void race_atomic(Warp *warp, const Inst *inst, int lane, Region *region, uint64_t offset, int size, Strength strength);
// The actor, who knows what all threads of its block knew when they exited, is the last of them: reports a thread of another
// block that may still access the block's shared memory.
void race_end_block(const Actor *actor, const Region *shared);
