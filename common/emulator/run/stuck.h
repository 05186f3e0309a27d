// Reports of a cluster whose threads cannot go on.
#pragma once

#include "../warp/machine.h"

// Every thread waits, and none polls.
void report_stuck(Cluster *cluster);
// Threads poll memory, and no cluster that could change it goes on. not_started: blocks of the grid for which there is no
// room while these wait.
void report_spinning(Cluster *cluster, uint64_t not_started);
