// Calls that a warp leaves behind.
#pragma once

#include "../warp/machine.h"

void call_stacks_free(Warp *warp);
