// Vector clocks: what threads know of each other, and how synchronisation passes it on. race.h says what they are for.
#pragma once

#include "../warp/machine.h"
#include "epoch.h"

// Vector clocks: for each thread of the cluster, the clock up to which its accesses are ... Immutable once shared.
typedef enum ClockPlane {
  CLOCK_KNOWN,           // ordered before what the holder does
  CLOCK_VISIBLE,         // of those: made visible to the async proxy by a fence.proxy.async (PTX ISA 8.6)
  CLOCK_FENCED,          // of those: covered by a fence, so that a relaxed store hands them on inside the block
  CLOCK_FENCED_GPU,      // of those: by one of .gpu or .sys scope, so that it hands them on to other clusters
  CLOCK_LOADED,          // of those: the loads are over (flights.h)
  CLOCK_FENCED_CLUSTER,  // of those: by one of at least .cluster scope, so that it hands them on to other blocks
  CLOCK_ENDED,           // not of those: what an arrival of too narrow a scope would have handed on
  CLOCK_PLANES  // a cluster of one block does without the last two, and without late loads without CLOCK_LOADED
} ClockPlane;

typedef struct Clocks {
  _Atomic int references;
  uint32_t cluster;
  Usage *usage;  // counts it
  int import_count;
  struct Import *imports;  // the same of other clusters' threads, learnt through global memory; by cluster
  // What strong loads that come before have read, by the least scope of a fence.sc that acquires it: race_fence_sc.
  struct Clocks *observed[SCOPES];
  int count;  // threads: lanes of all warps, then agents
  int planes;
  uint32_t clock[];  // planes times count
} Clocks;

// Of another cluster. The clocks have the first two planes; what a fence covers of them is said by references.
typedef struct Import {
  uint32_t cluster;
  Clocks *clocks;
  Clocks *fenced[SCOPES];  // of that: covered by a fence of at least the scope; NULL for nothing
} Import;

// Whether they have so many threads from the first on at the clock, or beyond it.
static inline bool clocks_reach(const Clocks *clocks, uint32_t first, int count, uint32_t clock) {
  const uint32_t *known = clocks->clock + first;
  uint32_t behind = 0;
  if (count == LANES)
    for (int i = 0; i < LANES; i++) behind |= known[i] < clock;
  else
    for (int i = 0; i < count; i++) behind |= known[i] < clock;
  return !behind;
}

// Returns the clock that the thread knows of another cluster, or NULL.
const Clocks *clocks_imported(const Clocks *known, uint32_t cluster);

// The clock that the last strong load acquired. A load that polls need not acquire it again.
typedef struct Learnt {
  Clocks *from;
  bool acquired;  // into `known`, not into `pending`
} Learnt;

// What a relaxed store or atomic of the lane handed on last, and what it followed from. A thread that adds to many places
// hands on the same at each: one vector serves all of them.
typedef struct HandedOn {
  Clocks *clocks;
  Clocks *known;
  uint32_t covered[CLOCK_PLANES];
} HandedOn;

// What two vectors know together: an atomic of the lane joined them last.
typedef struct Joined {
  Clocks *a, *b;
  Clocks *both;
} Joined;

// A thread's side of the relation.
typedef struct LaneClocks {
  uint32_t own;                    // its clock, from 1
  uint32_t covered[CLOCK_PLANES];  // of its own accesses, which `known` leaves out: up to which clock a plane has them
  Clocks *known;                   // of the others; NULL knows nothing
  Clocks *pending[SCOPES];         // what strong loads have read, by the least scope of a fence that acquires it
  Learnt learnt[2];                // from what was released to its block, and to others
  HandedOn handed_on;
  Joined joined[2];  // of what was released to its block, and to others
} LaneClocks;

void clocks_retain(Clocks *clocks);
void clocks_release(Clocks *clocks);
// So often.
void clocks_retain_times(Clocks *clocks, int times);
void clocks_release_times(Clocks *clocks, int times);
// Adds to what a fence.sc of the scope acquires for those who have learnt `into`, which has no other holder yet.
void clocks_add_observed(Clocks *into, Strength scope, Clocks *more);
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
// The release half of an arrival whose scope leaves out the threads that wait. It orders nothing. What the lanes know and have
// done goes into CLOCK_ENDED of *joined: operations that they have waited for are over, and loads nearly (race.c, ended).
// shown: what race_show has given, NULL for nothing: that, too.
void race_release_narrow(Warp *warp, Mask mask, Clocks *shown, Clocks **joined);
// What the lanes know and have done when they execute an instruction together, in CLOCK_ENDED of a new reference: it orders
// nothing.
Clocks *race_show(Warp *warp, Mask mask);
// The lanes of the warp that have the lane's clock and know the same, the lane itself among them.
Mask race_alike(Warp *warp, int lane);
// A new reference to what a lane knows, with what its fences have covered of its own.
Clocks *race_lane_clocks(Warp *warp, int lane);
// Whether the lanes of mask know of all that joined holds; what their own warp did they know.
bool race_knows(const Warp *warp, Mask mask, const Clocks *joined);
// Both, among the lanes of mask: bar.warp.sync.
void race_warp_sync(Warp *warp, Mask mask);
// What the lanes do from here on has another clock.
void race_advance(Warp *warp, Mask mask);
// fence / membar by the lanes of mask.
void race_fence(Warp *warp, Mask mask, Strength scope);
// fence.sc, which membar is too: it also acquires what strong loads of other threads have read, if they come before it. Of a
// writer's fence.sc and this one the writer's is the first in the Fence-SC order: else the load would come before the store
// whose value it has read. And a fence.sc synchronises with those that follow it there (PTX ISA 8.9.3). Other fences do so
// only with loads of their own thread.
void race_fence_sc(Warp *warp, Mask mask, Strength scope);
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
// A strong load, store or read-modify-write by one lane: it learns from, or adds to, what is released at the places. A vector
// is several accesses of its elements (PTX ISA 8.2.2). Only an access of the same place and size synchronises with
// another: "morally strong" operations overlap completely, PTX ISA 8.7.1.
typedef struct Elements {
  const void *first;
  size_t size;
  int count;
} Elements;
void sync_load(SyncTable *table, const Elements *elements, Warp *warp, int lane, MemoryOrder order, Strength scope);
void sync_store(SyncTable *table, const Elements *elements, Warp *warp, int lane, MemoryOrder order, Strength scope);
void sync_atomic(SyncTable *table, const Elements *elements, Warp *warp, int lane, MemoryOrder order, Strength scope);
// A strong load of the place has returned what the write stored, which was strong for it: the write comes before what the load
// comes before, even if neither releases and acquires. PTX ISA 8.9.5, causality order. Of each write a few loads are kept.
enum { OBSERVERS = 8 };
void sync_observe(SyncTable *table, const void *place, Epoch write, Epoch load);
// Those loads. Returns how many.
int sync_observers(SyncTable *table, const void *place, Epoch write, Epoch loads[OBSERVERS]);
