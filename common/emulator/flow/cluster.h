// A cluster's barrier and its blocks' shared memory, when threads exit.
#pragma once

#include "../warp/machine.h"

// Completes barrier.cluster when it waits for no further thread.
void cluster_barrier_after_exit(Cluster *cluster);
// Lanes of the warp exit: other blocks of the cluster must be done with the block's shared memory.
void cluster_check_exit(Warp *warp, Mask mask);
