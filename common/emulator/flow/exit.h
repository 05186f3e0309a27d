// What happens when threads exit.
#pragma once

#include "../warp/machine.h"

// Lanes of the running group exit.
void warp_exit(Warp *warp, Mask mask);
