// Which warp of a cluster runs next, and when the cluster cannot go on alone.
#pragma once

#include "../warp/machine.h"

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
