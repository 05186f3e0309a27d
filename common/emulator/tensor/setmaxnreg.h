// What setmaxnreg.c is asked by the scheduler.
#pragma once

#include "../warp/machine.h"

// The last lanes of a warp exit: reports a setmaxnreg that others of its warpgroup have executed and it has not.
void setmaxnreg_check_exit(const Warp *warp);
// Nothing in the cluster moves: when a warp waits for registers, reports the sum that does not fit, and returns true.
bool setmaxnreg_explain_deadlock(const Cluster *cluster);
