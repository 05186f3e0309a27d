// How a warp executes.
#pragma once

#include "../warp/machine.h"

// Runs until the warp waits, exits or has executed about `budget` instructions. Returns the number executed.
int warp_run(Warp *warp, int budget);
