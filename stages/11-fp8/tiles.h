// How stages 11 to 11d cut the problem into tiles: as stage 10c, with rows of ones below each tile of V^T.
#pragma once

#define ONES 8
#include "../10c-fp8-values/tiles.h"
