// An actor: who accesses memory, and what comes before that access.
#pragma once

#include "threads.h"
#include "clocks.h"
#include "region.h"

// Which accesses count as over when only an arrival of too narrow a scope shows it (CLOCK_ENDED).
typedef enum Leniency { STRICT, LENIENT_TO_OPERATIONS, LENIENT } Leniency;

// An access to memory is made by a lane, or by an agent on its behalf.
typedef struct Actor {
  CheckWarp *warp;  // the lane to name in a report
  int lane;
  Site site;  // of its instruction
  const CheckCluster *cluster;
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
  Leniency lenient;
  // If only this one's order comes after a write, a read is formal, and the text says why: a warpgroup's part of a
  // wgmma's operand that its warps have written.
  const struct Actor *own;
  const char *own_is_known;
  const char *
      unseen_is_known;  // why a write that the async proxy may not have seen is a note: it is known to be seen; or NULL
} Actor;

// An agent acts on behalf of the lane.
static inline void actor_set_agent(Actor *actor, uint32_t agent, uint32_t clock) {
  actor->thread = agent;
  actor->clock = clock;
  actor->identity = (actor->place & actor->layout->identity_mask) | agent;
}

// Another lane of the warp acts.
static inline void actor_set_lane(Actor *actor, int lane) {
  const LaneClocks *clocks = &actor->warp->clocks[lane];
  actor->lane = lane;
  actor->issuer = thread_of_lane(actor->warp, lane);
  actor_set_agent(actor, actor->issuer, clocks->own);
  actor->known = clocks->known;
  actor->visible = clocks->covered[CLOCK_VISIBLE];
}

// A lane that executes the instruction of that number.
static inline Actor actor_of_lane(CheckWarp *warp, uint32_t pc, int lane, Strength strength) {
  const CheckCluster *cluster = warp->cluster;
  const CheckLaunch *launch = cluster->launch;
  const EpochLayout *layout = &launch->epochs;
  Actor actor = {.warp = warp, .site = launch->sites[pc], .cluster = cluster, .layout = layout, .strength = strength};
  if (actor.site.first_guess) actor.strength = STRONG_GPU;
  actor.place = EPOCH_KERNEL | (uint64_t)cluster->id << layout->cluster_shift | (uint64_t)pc << layout->pc_shift;
  actor_set_lane(&actor, lane);
  return actor;
}

// The access as shadow memory has it.
static inline Epoch actor_epoch(const Actor *actor) {
  return actor->place | (uint64_t)actor->clock << actor->layout->clock_shift | actor->thread |
         (uint64_t)actor->strength << EPOCH_STRENGTH_SHIFT | (actor->async ? EPOCH_ASYNC : 0);
}

// ---- what comes before ----
//
// "Remembered" is an access that shadow memory holds, by any thread of the launch.

static inline uint32_t actor_pc(const Actor *actor) { return epoch_pc(actor->layout, actor->place); }

// Whether the actor knows of the thread's accesses at that clock.
static inline bool actor_knows(const Actor *actor, uint32_t thread, uint32_t clock) {
  const Clocks *known = actor->known;
  if (thread == actor->thread || thread == actor->issuer) return true;
  if (!known) return false;
  if (known->clock[thread] >= clock) return true;
  if (actor->lenient == STRICT || known->planes <= CLOCK_ENDED) return false;
  if (actor->lenient == LENIENT_TO_OPERATIONS && thread < (uint32_t)actor->cluster->lane_count) return false;
  return known->clock[CLOCK_ENDED * known->count + (int)thread] >= clock;
}

// Whether the actor and another access, by a thread of the actor's cluster (`near`) or of another, need no order: both
// are strong, and the scope of each includes the other's thread. Of an asynchronous reduction that is its issuer.
static inline bool actor_both_strong(const Actor *actor, Strength other, bool near, uint32_t thread, uint32_t clock) {
  const CheckCluster *cluster = actor->cluster;
  Strength least = actor->strength < other ? actor->strength : other;
  if (least == WEAK || !near) return least == STRONG_GPU;
  if (least != STRONG_CTA) return true;
  uint32_t block_threads = threads_of_block(cluster);
  if (thread >= (uint32_t)cluster->lane_count) thread = agent_issue(cluster, thread, clock).thread;
  return actor->issuer / block_threads == thread / block_threads;
}

static inline const Site *actor_site(const Actor *actor, uint32_t pc) { return &actor->cluster->launch->sites[pc]; }

// Whether the actor and an access that overlaps it, by the instruction at pc, are of the same size, and so of the same
// place.
static inline bool actor_same_size(const Actor *actor, uint32_t pc) {
  int size = actor_site(actor, pc)->size;
  return !size || !actor->site.size || size == actor->site.size;
}

// Whether that is so of the actor and a remembered access.
static inline bool actor_is_strong_for(const Actor *actor, Epoch epoch) {
  if (actor->strength == WEAK || epoch_strength(epoch) == WEAK) return false;
  if (!actor_same_size(actor, epoch_pc(actor->layout, epoch))) return false;
  bool near = epoch_cluster(actor->layout, epoch) == actor->cluster->id;
  return actor_both_strong(actor, epoch_strength(epoch), near, epoch_thread(actor->layout, epoch),
                           epoch_clock(actor->layout, epoch));
}

// Whether the remembered access comes before what the actor does now.
static inline bool actor_follows(const Actor *actor, Epoch epoch) {
  const EpochLayout *layout = actor->layout;
  if (!(epoch & EPOCH_KERNEL) || (epoch & layout->identity_mask) == actor->identity) return true;
  uint32_t thread = epoch_thread(layout, epoch), clock = epoch_clock(layout, epoch);
  if (epoch_cluster(layout, epoch) == actor->cluster->id) return actor_knows(actor, thread, clock);
  const Clocks *clocks = clocks_imported(actor->known, epoch_cluster(layout, epoch));
  // Of another cluster's set only the cluster is left: knowing anything of it has to do.
  if (!clocks || epoch & EPOCH_SET) return clocks != NULL;
  return clocks->clock[thread] >= clock;
}

// The same, or it needs no order because both are strong.
static inline bool actor_is_ordered(const Actor *actor, Epoch epoch) {
  return actor_follows(actor, epoch) || actor_is_strong_for(actor, epoch);
}

// Whether the actor and the lanes that follow it, `count` in all, which have learnt the same from others, each know of
// the accesses at that clock by the lanes of mask of the warp whose first thread is `first`. With count 1 that includes
// the actor's own accesses.
bool actors_know(const Actor *actor, int count, uint32_t first, Mask mask, uint32_t clock);

// ---- what a strong load has seen ----
//
// A thread polls a flag by strong loads, and then sets it back by a plain store. The strong store that ended the
// polling comes before the plain one, also when it releases nothing (PTX ISA 8.9.5, causality order). Vector clocks
// cannot say that: what the other thread did before its strong store, since its last fence, does not come before. So
// the loads are kept beside them. A plain load after the polling is no matter of this: whether the poll saw the store
// is chance if nobody waits for it.

void actor_observe(const Actor *actor, const Region *region, uint64_t offset, int size, Epoch write);
bool actor_has_observed(const Actor *actor, const Region *region, uint64_t offset, Epoch write);
// Whether an ordered write may still be unseen by the actor: it used the async proxy, the write the generic one, and no
// fence.proxy.async stands between them. PTX ISA 8.6.
bool actor_may_not_see(const Actor *actor, Epoch write);

// What the race check finds, as plain values. The room above makes reports of it.

typedef enum FindingKind {
  FOUND_UNWRITTEN,    // a read of bytes that nothing has written
  FOUND_RACE,         // two accesses, of which at least one writes, and nothing orders them
  FOUND_EQUAL,        // the same, but both store the same bytes
  FOUND_GUESS,        // the same of a write by atomics and a plain load that makes the first guess of one
  FOUND_UNSEEN,       // the async proxy may not see the other, a write, which comes before
  FOUND_LATE_LOAD,    // the other, a load that comes before a write by the async proxy, may still be under way
  FOUND_OWN_PART,     // only the actor's `own` comes after the other, a write
  FOUND_NARROW,       // only an arrival of too narrow a scope orders the two
  FOUND_BLOCK_END,    // the actor's block ends, and the other access to its shared memory does not come before
  FOUND_PAST,         // the other access is an earlier launch's, `past`, and nothing orders the two
  FOUND_CLOCK_LIMIT,  // a lane has synchronised more often than a clock can count
  FOUND_SET_LIMIT,    // there are more sets of reads than an epoch can number
} FindingKind;

typedef struct CheckFinding {
  FindingKind kind;
  CheckWarp *warp;  // who
  int lane;
  const Actor *actor;         // the same; NULL: FOUND_CLOCK_LIMIT
  const Span *span;           // which bytes
  Epoch other;                // the remembered access
  bool writes, other_writes;  // the actor, and the other
  bool formal;                // of FOUND_BLOCK_END: an arrival of too narrow a scope orders the two
  const struct PastLaunch *past;
  bool has_waited, triggered;  // of FOUND_PAST
} CheckFinding;
