// Races, found by rule: two accesses of which one writes, by two threads, neither ordered before the other.
//
// "Ordered before" is the happens-before relation of the PTX memory model (PTX ISA chapter 8), kept with vector
// clocks as in FastTrack (Flanagan and Freund, PLDI 2009). A thread's own clock counts its releases (barriers,
// fences, ...). What a thread knows of the others is a vector of their clocks, joined at every acquire. An
// asynchronous operation is a thread of its own, an agent: it starts with what its issuer knows, and is known to the
// threads that wait for it. Each byte of memory has a cell that remembers its last write and the reads since; an
// access is ordered after a remembered one if the thread knows that thread's clock of that moment. So a race is
// reported in every schedule, not only in those where it bites.
#pragma once

#include "clocks.h"
#include "region.h"

// Which accesses count as over when only an arrival of too narrow a scope shows it (CLOCK_ENDED).
typedef enum Leniency { STRICT, LENIENT_TO_OPERATIONS, LENIENT } Leniency;

// An access to memory is made by a lane, or by an agent on its behalf.
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
  Leniency lenient;
  // If only this one's order comes after a write, a read is formal, and the text says why: a warpgroup's part of a wgmma's
  // operand that its warps have written.
  const struct Actor *own;
  const char *own_is_known;
  const char *
      unseen_is_known;  // why a write that the async proxy may not have seen is a note: it is known to be seen; or NULL
} Actor;

// An agent acts on behalf of the lane.
static inline void race_set_agent(Actor *actor, uint32_t agent, uint32_t clock) {
  actor->thread = agent;
  actor->clock = clock;
  actor->identity = (actor->place & actor->layout->identity_mask) | agent;
}

// Another lane of the warp acts.
static inline void race_set_lane(Actor *actor, int lane) {
  const LaneClocks *clocks = &actor->warp->clocks[lane];
  actor->lane = lane;
  actor->issuer = warp_thread(actor->warp, lane);
  race_set_agent(actor, actor->issuer, clocks->own);
  actor->known = clocks->known;
  actor->visible = clocks->covered[CLOCK_VISIBLE];
}

// Whether a plain load makes the first guess of a compare-and-swap (memory/first_guess.h). It counts as strong, for what others
// write by atomics does it no harm.
static inline bool race_is_guess(const Inst *inst, const Launch *launch) {
  const Program *program = launch->program;
  return program->first_guesses && program->first_guesses[inst - program->code];
}

// A lane that executes inst.
static inline Actor race_lane(Warp *warp, const Inst *inst, int lane, Strength strength) {
  const Cluster *cluster = warp->block->cluster;
  const Launch *launch = cluster->launch;
  uint64_t pc = (uint64_t)(inst - launch->program->code);
  Actor actor = {.warp = warp, .inst = inst, .cluster = cluster, .layout = launch->epochs, .strength = strength};
  if (race_is_guess(inst, launch)) actor.strength = STRONG_GPU;
  actor.place = EPOCH_KERNEL | (uint64_t)cluster->id << launch->epochs->cluster_shift | pc << launch->epochs->pc_shift;
  race_set_lane(&actor, lane);
  return actor;
}

// The access as shadow memory has it.
static inline Epoch race_epoch(const Actor *actor) {
  return actor->place | (uint64_t)actor->clock << actor->layout->clock_shift | actor->thread |
         (uint64_t)actor->strength << EPOCH_STRENGTH_SHIFT | (actor->async ? EPOCH_ASYNC : 0);
}

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

// Whether the actor comes after what the thread of its cluster did at the clock.
bool race_knows_thread(const Actor *actor, uint32_t thread, uint32_t clock);

// The last writes of some bytes.
typedef struct LastWrites {
  uint64_t hash;    // differs if they differ
  Epoch by_kernel;  // one of them by a thread of this launch, or EPOCH_NONE
  bool ordered;     // all come before the actor
} LastWrites;

// Adds those of the region bytes [offset, offset + size), on which nothing is reported.
void race_last_writes(const Actor *actor, const Region *region, uint64_t offset, int size, LastWrites *writes);

// ---- for rows.c ----

// A cell's reads, none or of this cluster, when the lanes of mask, which share the actor's warp and clock, have read it too: a
// set. With several turns it is that of a row's first lane, the actor, and the next ones are in the turns that follow; then
// step says whether the cells' reads follow each other too. EPOCH_NONE: they do not form a row.
Epoch race_add_reads(const Actor *actor, Mask mask, Epoch read, unsigned step, int turns);
// Keeps the set of reads that bytes of the region remember, if they remember one.
void race_keep_reads(const Cluster *cluster, const Region *region, Epoch read);
// Whether all reads of a set come before the writes of as many neighbouring lanes as there are turns, the actor first.
bool race_knows_reads(const Actor *actor, Epoch read, unsigned step, int turns);

// ---- the end of a block ----

// The actor, which knows what all threads of its block knew when they exited, is the last of them: reports a thread
// of another block that may still access the block's shared memory.
void race_end_block(const Actor *actor, const Region *shared);
