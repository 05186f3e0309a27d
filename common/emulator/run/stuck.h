// Reports of a cluster whose threads cannot go on.
#pragma once

#include "../check/signals.h"
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

// ---- what other warps would still do ----

// Follows each warp of the cluster on, past every wait, to its end or for some thousand instructions, and notes what it
// would signal. Nothing that others see is changed, but the registers of the warps are: the launch must end after that.
// items is to be freed.
Foresight foresee_signals(Cluster *cluster);
