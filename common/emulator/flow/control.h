// Calls that a warp leaves behind.
#pragma once

#include "../warp/machine.h"

void call_stacks_free(Warp *warp);

// ---- threads exit ----

// Lanes of the running group exit.
void warp_exit(Warp *warp, Mask mask);
