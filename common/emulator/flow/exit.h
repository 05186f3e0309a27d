// The exit of threads: barriers no longer expect them, and other blocks may still use their memory.
#pragma once

#include "../warp/machine.h"

// Lanes of the running group exit.
void warp_exit(Warp *warp, Mask mask);
