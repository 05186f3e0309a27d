// Reports of a cluster whose threads cannot go on.
#pragma once

#include "../report/signals.h"
#include "../warp/machine.h"

// Every thread waits, and none polls.
void report_stuck(Cluster *cluster);
// What has become of the blocks of a grid.
typedef struct Standing {
  uint64_t waiting, ended, not_started;
} Standing;

// Threads poll memory, and no cluster that could change it goes on; blocks that have not started find no room while
// these wait.
void report_spinning(Cluster *cluster, Standing blocks);
