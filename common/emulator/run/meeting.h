// Lanes that come to a .sync instruction at several places of the program.
#pragma once

#include "../warp/machine.h"

// Executes the instruction for lanes that wait there and together are a whole member mask, if there are such lanes: they go on.
void meet_held_lanes(Warp *warp);
