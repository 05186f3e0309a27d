// How a warp executes.
#pragma once

#include "../warp/machine.h"

// Runs until the warp waits, exits or has executed about `budget` instructions. Returns the number executed.
int warp_run(Warp *warp, int budget);

// ---- lanes that meet at an instruction ----

// Executes the instruction for lanes that wait there and together are a whole member mask, if there are such lanes:
// they go on.
void meet_held_lanes(Warp *warp);
