// Special registers: %tid, %laneid and so on.
#pragma once

#include "machine.h"

// The id of a special register that keeps its value while a thread runs, -1 when there is none of that name.
int special_find(const char *name, int *size);
// Its value for a lane.
uint64_t special_value(const Warp *warp, int id, int component, int lane);
// Whether the program asks for the workspace of grid.sync().
bool special_knows_grid_sync(const Program *program);
// Whether it asks for shared memory of the system's.
bool special_knows_reserved_shared(const Program *program);
