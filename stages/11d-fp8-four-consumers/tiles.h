// How stage 11d cuts the problem into tiles: it has one consumer more than stage 11c. With HEAD_DIM = 64 a launch gives
// each of the five warpgroups 96 registers a thread, and 4 * 112 + 32 = 5 * 96. With 128 it gives each of four
// warpgroups 128, and 3 * 160 + 32 = 4 * 128. A third slot for 192 queries of 128 elements would not fit into shared
// memory.
#pragma once

#define CONSUMERS_64 4
#define CONSUMERS_128 3
#define QUERY_SLOTS_128 2
#define CONSUMER_REGISTERS_64 112
#define CONSUMER_REGISTERS_128 160
#define PRODUCER_REGISTERS_128 32
#include "../11-fp8/tiles.h"
