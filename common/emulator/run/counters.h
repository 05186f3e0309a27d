// Counters of an emulator's launches.
#pragma once

#include "state.h"

// Adds what the workers of a launch counted, and empties them.
void counters_collect(Emulator *emulator, const Program *program, Worker *workers, int worker_count);
