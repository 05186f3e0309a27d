// Whom the race check follows: what it keeps of a launch, of each of its clusters and of each warp. The rooms above
// have these in their own launches, clusters and warps, and the check knows nothing else of those.
#pragma once

#include <stdbool.h>

#include "../host/host_memory.h"
#include "../host/mask.h"
#include "epoch.h"

// An instruction.
typedef struct Site {
  uint8_t size;      // of its access: bytes of an element, 0 for copies and the like
  bool stores;       // a plain store
  bool first_guess;  // a plain load that makes the first guess of a compare-and-swap (memory/passes.h). It counts
                     // as strong, for what others write by atomics does it no harm
  bool late_load;    // a load that may be under way when its thread hands the memory on: flights.h
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
  // What the room above does with a finding (finding.h). Several host threads may call it at a time.
  void (*report)(const struct CheckFinding *finding);
} CheckLaunch;

typedef struct CheckCluster {
  const CheckLaunch *launch;
  uint32_t id;  // in the grid, from 0
  int block_count;
  int lane_count;              // of all its warps, also where the last warp of a block is not full
  int clock_count;             // those and the agents: the length of vector clocks
  int planes;                  // of those: clocks.h
  struct AgentTable *agents;   // agents.h; NULL without asynchronous operations
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
  struct Flights *flights;    // loads under way: flights.h; NULL before the first
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
