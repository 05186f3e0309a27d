// Vector clocks: what threads know of each other. race.h says what they are for.
#pragma once

#include "threads.h"

// Vector clocks: for each thread of the cluster, the clock up to which its accesses are ... Immutable once shared.
typedef enum ClockPlane {
  CLOCK_KNOWN,           // ordered before what the holder does
  CLOCK_VISIBLE,         // of those: made visible to the async proxy by a fence.proxy.async (PTX ISA 8.6)
  CLOCK_FENCED,          // of those: covered by a fence, so that a relaxed store hands them on inside the block
  CLOCK_FENCED_GPU,      // of those: by one of .gpu or .sys scope, so that it hands them on to other clusters
  CLOCK_LOADED,          // of those: the loads are over (order.h)
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

// What a relaxed store or atomic of the lane handed on last, and what it followed from. A thread that adds to many
// places hands on the same at each: one vector serves all of them.
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
void clocks_join(const CheckCluster *cluster, Clocks **holder, Clocks *more);
// A new reference to what each of the holders knows of their cluster.
Clocks *clocks_common(const CheckCluster *cluster, Clocks *const *holders, int count);
// Adds to what a holder hands on that the agent has done all up to the clock.
void clocks_add_agent(CheckCluster *cluster, Clocks **joined, uint32_t agent, uint32_t clock);

// ---- for the files that pass them on ----

static inline uint32_t *clocks_plane(Clocks *clocks, ClockPlane which) {
  return clocks->clock + (size_t)which * (size_t)clocks->count;
}

static inline bool has_several_blocks(const CheckCluster *cluster) { return cluster->block_count > 1; }

static inline uint32_t later_clock(uint32_t a, uint32_t b) { return a > b ? a : b; }
static inline uint32_t earlier_clock(uint32_t a, uint32_t b) { return a < b ? a : b; }

// Lanes of the warp may know more than they did, or have another clock.
static inline void forget_alike(CheckWarp *warp) { warp->alike[0] = warp->alike[1] = 0; }

static inline void clocks_replace(Clocks **holder, Clocks *with) {
  clocks_release(*holder);
  *holder = with;
}

// With nothing known.
Clocks *clocks_new(const CheckCluster *cluster);
// Adds an array of clocks, without imports, in those planes that both have.
void clocks_merge_array(Clocks *restrict into, const Clocks *restrict from);
void clocks_merge_import(Clocks *into, const Import *from);
// Adds everything that `from` knows to `into`, which has no other holder yet.
void clocks_merge(Clocks *into, Clocks *from);
// As another cluster has it: what a plane covers of what is known of the clocks' own cluster. NULL for nothing.
Clocks *clocks_as_import(const Clocks *from, ClockPlane covered);
// A new reference to what a and b know together.
Clocks *clocks_joined(const CheckCluster *cluster, Clocks *a, Clocks *b);
// Makes *holder a vector that has no other holder.
void clocks_make_own(const CheckCluster *cluster, Clocks **holder);
// Whether the plane covers all that is known, of other clusters too; makes it cover that, of clocks without other
// holders.
bool clocks_covered(Clocks *clocks, ClockPlane which);
void clocks_cover(Clocks *clocks, ClockPlane which);
// What a relaxed store hands on of what is known, that is, what the last fence has covered: a new reference, NULL for
// nothing.
Clocks *clocks_fenced_part(const Clocks *known, ClockPlane fence);
