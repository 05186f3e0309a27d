// How stage 12d cuts the problem into tiles: as 12c, with a third slot for pairs. kernel.cu and stage.c both include
// this.
#pragma once
#include "../12c-query-warpgroup/tiles.h"

enum { PAIR_SLOTS = 3 };         // for pairs of streamed tiles
enum { WEIGHT_EXPONENT = 15 };   // weights are 2^15 P, at most 2^15
enum { TURNS = 1, V_FREE = 3 };  // named barriers: the first of two, one for each key warpgroup
