// Whom the race check follows: what it keeps of a launch, of each of its clusters and of each warp. The rooms above
// have these in their own launches, clusters and warps, and the check knows nothing else of those.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "../host/host_memory.h"

// How the race check remembers an access: its thread, its instruction, and the thread's clock.

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

// An instruction.
typedef struct Site {
  uint8_t size;      // of its access: bytes of an element, 0 for copies and the like
  bool stores;       // a plain store
  bool first_guess;  // a plain load that makes the first guess of a compare-and-swap (memory/passes.h). It counts
                     // as strong, for what others write by atomics does it no harm
  bool late_load;    // a load that may be under way when its thread hands the memory on: order.h
} Site;

struct CheckFinding;

typedef struct CheckLaunch {
  bool on;            // else nothing is checked, and no thread learns of another
  bool lane_by_lane;  // no rows: rows.h
  bool asynchronous;  // its threads begin asynchronous operations
  bool has_first_guesses, has_late_loads;
  uint32_t number;  // of the launch, from 1: the age of what shadow memory has
  EpochLayout epochs;
  const Site *sites;       // its instructions, by number
  struct SyncTable *sync;  // of global addresses: sync_table.h
  // Earlier launches, which may still run if it overlaps with them; and this one, for those that come after it:
  // overlap.h.
  bool overlaps;
  struct LaunchHistory *history;
  struct PastLaunch *past;
  // What the room above does with a finding (actor.h). Several host threads may call it at a time.
  void (*report)(const struct CheckFinding *finding);
} CheckLaunch;

typedef struct CheckCluster {
  const CheckLaunch *launch;
  uint32_t id;  // in the grid, from 0
  int block_count;
  int lane_count;              // of all its warps, also where the last warp of a block is not full
  int clock_count;             // those and the agents: the length of vector clocks
  int planes;                  // of those: clocks.h
  struct AgentTable *agents;   // threads.h; NULL without asynchronous operations
  struct ReadSets *read_sets;  // read_sets.h
  struct SyncTable *sync;      // of shared addresses
  struct Region **shared;      // memory of each block: region.h
  Usage *usage;                // counts vector clocks and sets of reads
} CheckCluster;

typedef struct CheckWarp {
  CheckCluster *cluster;
  int rank;                   // of its block in the cluster
  uint32_t first_thread;      // what its lane 0 is in the cluster
  const uint32_t *pc;         // the number behind that of the instruction which it executes
  struct LaneClocks *clocks;  // of each lane, what the thread knows of the others: clocks.h
  Mask unacquired;            // lanes that have read by strong loads what only a fence acquires
  Mask alike[2];              // lanes that have the same clock and know the same, or 0: race_alike
  struct Flights *flights;    // loads under way: order.h; NULL before the first
} CheckWarp;

// The thread's index in its cluster, which is how the check names threads.
static inline uint32_t thread_of_lane(const CheckWarp *warp, int lane) { return warp->first_thread + (uint32_t)lane; }
// Threads of a block, also where its last warp is not full.
static inline uint32_t threads_of_block(const CheckCluster *cluster) {
  return (uint32_t)(cluster->lane_count / cluster->block_count);
}

// A cluster of so many blocks of so many warps begins; its memory and the count of what it takes are the caller's.
void check_cluster_begin(CheckCluster *cluster, const CheckLaunch *launch, uint32_t id, int blocks, int block_warps,
                         Usage *usage);
void check_cluster_end(CheckCluster *cluster);
// Its warp of that number begins.
void check_warp_begin(CheckWarp *warp, CheckCluster *cluster, int number, const uint32_t *pc);
void check_warp_end(CheckWarp *warp);

// Asynchronous operations as the race check numbers them.
//
// An operation is a thread of its own, an agent: agents come after the lanes of a cluster, and one operation after
// the other is the same agent, at its next clock.

enum { ASYNC_AGENTS = 256 };

// The issue of an operation, as the race check numbers threads.
typedef struct AsyncIssue {
  uint32_t thread, clock;  // the first of the issuing lanes, and its clock then
  Mask mask;               // the lanes
  uint32_t warps;          // that issue it together: 1, or 4 of a warpgroup
} AsyncIssue;

typedef struct AgentTable AgentTable;

AgentTable *agents_new(Usage *usage);
void agents_free(AgentTable *table);

// What an operation is in the race check. wrapped: its agent has begun again at clock 1, after more operations than
// an epoch can count.
typedef struct AgentClock {
  uint32_t agent, clock;
  bool wrapped;
} AgentClock;

AgentClock agent_begin(const CheckCluster *cluster, AsyncIssue issue);
// The agent's operation is over.
void agent_end(const CheckCluster *cluster, uint32_t agent);
// The issue of the operation that an agent was at that clock.
AsyncIssue agent_issue(const CheckCluster *cluster, uint32_t agent, uint32_t clock);
