// What the warps of a cluster that stands still would do if their waits ended.
#pragma once

#include "../check/signals.h"

// Follows each warp of the cluster on, past every wait, to its end or for some thousand instructions, and notes what it would
// signal. Nothing that others see is changed, but the registers of the warps are: the launch must end after that. items is to
// be freed.
Foresight foresee_signals(Cluster *cluster);
