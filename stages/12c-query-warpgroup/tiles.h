// How stage 12c cuts the problem into tiles: as 12b, with more slots. kernel.cu and stage.c both include this.
#pragma once
#include "../12b-one-pass/tiles.h"

enum { PAIR_SLOTS = 3, DS_SLOTS = 2 };         // for pairs of streamed tiles, and for dS
enum { WEIGHT_EXPONENT = 15 };                 // weights are 2^15 P, at most 2^15
enum { BLOCK_THREADS = THREADS + WARPGROUP };  // two warpgroups for keys, and one for queries

// Of a thread. Together at most 504, three times what the launch gives to each.
#define KEY_REGISTERS_OF(HEAD_DIM) ((HEAD_DIM) == 64 ? 216 : 208)
#define QUERY_REGISTERS_OF(HEAD_DIM) ((HEAD_DIM) == 64 ? 72 : 88)

// Bytes of a block's shared memory: struct BlockShared in query_warpgroup.h.
#define BLOCK_SHARED_BYTES(HEAD_DIM)                                                                                   \
  ((SHARED_BYTES(HEAD_DIM, PAIR_SLOTS) + 8 + 16 * DS_SLOTS + 1023) / 1024 * 1024 +                                     \
   DS_SLOTS * 2 * ROWS * COLUMNS_OF(HEAD_DIM))
