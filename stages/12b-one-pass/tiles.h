// How stages 12b and up cut the problem into tiles: as stage 12's pass over keys. kernel.cu and stage.c both include this.
#pragma once

#include "../12-backward/tiles.h"

enum { PART_FLOATS = 64 * 64 };  // of dQ, that a warpgroup computes for each streamed tile
enum { SUM_FLOATS = WARPGROUPS * PART_FLOATS, SUM_WARPS = WARPGROUPS * 4 };  // of one streamed tile's dQ

// Bytes of a block's shared memory: struct OnePassShared in query_gradient.h.
#define ONE_PASS_SHARED_BYTES(HEAD_DIM)                                                                                \
  ((SHARED_BYTES(HEAD_DIM) + 1023) / 1024 * 1024 + 2 * ROWS * COLUMNS_OF(HEAD_DIM))

// A kernel's parameter: the sums of dQ, which the blocks of a head make together. All are 0 before the pass.
typedef struct QuerySums {
  FloatOutput sums;  // dS K of each query tile, SUM_FLOATS in an order of their own (part_of)
  // With a fixed order alone, else NULL:
  CounterPointer turns;    // [query tiles][SUM_WARPS]: how many blocks' warps have added to their part of the sums
  CounterPointer started;  // blocks that have begun
} QuerySums;
