// How stage 11d cuts the problem into tiles: with HEAD_DIM = 64 it has four consumers instead of three. A launch gives each of
// the five warpgroups 96 registers a thread, and 4 * 112 + 32 = 5 * 96.
#pragma once

#define CONSUMERS_64 4
#define CONSUMER_REGISTERS_64 112
#include "../11-fp8/tiles.h"
