// How a launch runs: its clusters on host threads, the warps of a cluster, the instructions of a warp.
#pragma once

#include "../warp/machine.h"

// ---- the host threads: workers.c ----

// Runs all clusters of the launch to their ends, or until it stops. resident: how many may be under way at a time.
void launch_run(Launch *launch, uint32_t clusters, uint32_t resident);

// ---- clusters begin and end ----

// A cluster whose threads all stand at the kernel's first instruction.
Cluster *cluster_start(Worker *worker, uint32_t id);
void cluster_end(Cluster *cluster);

// ---- which warp of a cluster runs next, and when the cluster cannot go on alone: schedule.c ----

typedef enum Outcome {
  CLUSTER_GOES_ON,
  CLUSTER_DONE,      // all threads have exited
  CLUSTER_STOPPED,   // the launch has
  CLUSTER_SPINS,     // it can only wait for another cluster to change memory
  CLUSTER_YIELDS,    // it probably does, but may also go on at once
  CLUSTER_HAS_NEWS,  // it has read something that others may wait for
} Outcome;

// Runs until any but the first.
Outcome cluster_run(Cluster *cluster);

// ---- how a warp executes: interpreter.c ----

// Runs until the warp waits, exits or has executed about `budget` instructions. Returns the number executed.
int warp_run(Warp *warp, int budget);

// ---- lanes that meet at an instruction ----

// Executes the instruction for lanes that wait there and together are a whole member mask, if there are such lanes:
// they go on.
void meet_held_lanes(Warp *warp);
