// The host threads of a launch.
#pragma once

#include "../warp/machine.h"

// Runs all clusters of the launch to their ends, or until it stops. resident: how many may be under way at a time.
void launch_run(Launch *launch, uint32_t clusters, uint32_t resident);

// ---- clusters begin and end ----

// A cluster whose threads all stand at the kernel's first instruction.
Cluster *cluster_start(Worker *worker, uint32_t id);
void cluster_end(Cluster *cluster);
