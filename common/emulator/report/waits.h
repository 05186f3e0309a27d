// Words of a report on threads that wait.
#pragma once

#include "../warp/machine.h"

typedef struct WaitText {
  char text[HAZARD_DETAIL];  // cut off if it is longer
  size_t used;
} WaitText;

void text_put(WaitText *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
// "warp 3", "warps 4 to 7", "warps 0, 2 to 5": a bit each.
void text_warps(WaitText *text, uint32_t warps);
// "line 5", and "line 5, called at 17 from 24" where a function of the kernel's own file has it: the two calls that are
// next.
void text_line(WaitText *text, const Launch *launch, const Inst *inst);

// Warps of a cluster: of each block, a bit for each of its warps.
enum { MOST_BLOCKS = 16 };  // of a cluster

typedef struct WarpSet {
  uint32_t warps[MOST_BLOCKS];
} WarpSet;

void set_add(WarpSet *set, const Warp *warp);
bool set_has(const WarpSet *set, const Warp *warp);
bool set_is_empty(const WarpSet *set);
int set_count(const WarpSet *set);
// Those of a that are not in b.
WarpSet set_without(const WarpSet *a, const WarpSet *b);
// Whether a has all that b has.
bool set_contains(const WarpSet *a, const WarpSet *b);
// "warps 0 to 3", and in a cluster of several blocks "block 1's warps 0 to 3 and block 0's warp 4".
void text_set(WaitText *text, const Cluster *cluster, const WarpSet *set);

// Signals: the arrivals at barriers and mbarriers that warps have made, and those that they would still make. The
// report of a hang is made of them.

// A barrier or mbarrier that threads wait for, as one number. For an mbarrier it is its shared::cluster address.
typedef uint64_t Target;

// One of the block's barriers, or CLUSTER_BARRIER.
static inline Target target_of_barrier(const Block *block, int number) {
  bool is_cluster = number == CLUSTER_BARRIER;
  return 1ull << 40 | (uint64_t)(is_cluster ? 0 : block->rank) << 8 | (uint64_t)number;
}

// ---- what was ----

// What a warp has done at a barrier or an mbarrier.
typedef struct Use {
  const Inst *arrival;  // its last one; NULL: none
  uint32_t phase;       // of that, from 0
  uint32_t arrivals;    // instructions
  const Inst *twice;    // an arrival without knowing that the phase of its arrival before was over; NULL: none
  Mask passed;          // lanes that have waited at an mbarrier since its last phase ended, or before its first did
  uint32_t over;        // the phases that were over then
  const Inst *early;    // a wait that ended at once though it waited for nothing new; NULL: none
  uint32_t early_over;  // the phases that were over then
} Use;

// Of a list with an element for each warp of the cluster, made when it is NULL: that of the warp.
Use *use_of(Use **uses, const Warp *warp);
// The warp has arrived in that phase.
void use_arrive(Use **uses, const Warp *warp, const Inst *inst, uint32_t phase);
// Lanes of the warp have found that a phase of an mbarrier is over, of so many.
void use_pass(Use **uses, const Warp *warp, const Inst *inst, Mask lanes, uint32_t over);

static inline int warp_number(const Warp *warp) { return (int)(warp->check.first_thread / LANES); }
static inline int cluster_warps(const Cluster *cluster) { return cluster->check.lane_count / LANES; }
static inline const Warp *cluster_warp(const Cluster *cluster, int number) {
  int per_block = cluster->blocks[0].warp_count;
  return &cluster->blocks[number / per_block].warps[number % per_block];
}

// ---- what would be: run/waiters.h ----

typedef struct Signal {
  Target target;
  const Warp *warp;
  uint32_t pc;
  bool is_copy;  // its bytes complete there; else an arrival
} Signal;

typedef struct Foresight {
  Signal *items;
  int count, capacity;
  bool cut_short;  // some warp was not followed to its end, only for some thousand instructions
  bool failed;     // some warp stopped on the way, with what the others did not store
} Foresight;

// False in a launch that runs. Else instructions are only looked at: notes that the warp would signal the target, and
// returns true. The instruction must then do nothing.
bool foresee(const Warp *warp, const Inst *inst, Target target, bool is_copy);
