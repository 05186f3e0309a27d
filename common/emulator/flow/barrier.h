// The barriers of a block, when threads exit.
#pragma once

#include "../warp/machine.h"

// Completes the barriers that wait for no further thread: threads that have exited are not expected.
void barriers_after_exit(Block *block);
