// The barriers of a block, when threads exit or cannot go on.
#pragma once

#include "../warp/machine.h"

// Completes the barriers that wait for no further thread: threads that have exited are not expected.
void barriers_after_exit(Block *block);
// The block has ended, or stands still: now it is known who uses which barrier, and what was reported of them names the
// cause. Warps that met at different places are noted when something in the block was a fault.
void barriers_check_end(Block *block);

// What to do about a warp that arrives twice in one phase, and about a count that is not that of the users.
extern const char *const barrier_wait_between, *const barrier_count_users;
