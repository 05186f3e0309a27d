// The life of a cluster.
#pragma once

#include "../warp/machine.h"

// A cluster whose threads all stand at the kernel's first instruction.
Cluster *cluster_start(Worker *worker, uint32_t id);
void cluster_end(Cluster *cluster);
