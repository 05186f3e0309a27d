// Loads from shared memory whose value is used only behind an instruction that hands memory on.
#pragma once

#include "../warp/program.h"

// Called after a program is decoded: finds such loads, if the program has copies that could overwrite what they read,
// and has them and the first uses of their values watched. check/flights.h says why.
void find_late_loads(Program *program);
