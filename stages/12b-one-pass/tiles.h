// How stages 12b and up cut the problem into tiles: as stage 12's pass over keys. kernel.cu and stage.c both include
// this.
#pragma once
#include "../12-backward/tiles.h"

// Floats of a query tile's dQ: of one warpgroup's part, and of both.
enum { PART_FLOATS = 64 * 64, SUM_FLOATS = WARPGROUPS * PART_FLOATS };

// Bytes of a block's shared memory: struct OnePassShared in one_pass.h. SLOTS are for streamed tiles, DS_SLOTS for dS.
#define ONE_PASS_SHARED_BYTES(HEAD_DIM, SLOTS, DS_SLOTS)                                                               \
  ((SHARED_BYTES(HEAD_DIM, SLOTS) + 1023) / 1024 * 1024 + DS_SLOTS * 2 * ROWS * COLUMNS_OF(HEAD_DIM))

// A kernel's parameter: the sums of dQ, to which all blocks of a head add. All are 0 before the pass.
typedef struct QuerySums {
  FloatOutput sums;      // SUM_FLOATS for each query tile, in an order of their own (part_of)
  CounterPointer turns;  // NULL, or for each warp of each query tile how many blocks have added to its part
  CounterPointer begun;  // with turns: how many blocks have begun
} QuerySums;
