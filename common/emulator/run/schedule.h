// Which warp of a cluster runs next, and when the cluster cannot go on alone.
#pragma once

#include "../warp/machine.h"

typedef enum Outcome { CLUSTER_GOES_ON, CLUSTER_DONE, CLUSTER_SPINS, CLUSTER_YIELDS, CLUSTER_STOPPED } Outcome;

// Runs until all threads have exited (CLUSTER_DONE), the launch stops (CLUSTER_STOPPED), the cluster can only wait for
// another to change memory (CLUSTER_SPINS), or it probably does (CLUSTER_YIELDS): then it may also go on at once.
Outcome cluster_run(Cluster *cluster);
