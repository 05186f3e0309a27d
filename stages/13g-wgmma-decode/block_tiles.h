// How stage 13g cuts the cache: a block's tiles are four times as large as those of a warp. kernel.cu and stage.c both
// include this.
#pragma once

#include "../13d-ragged/work.h"

enum { ROWS = 64 };                       // of a wgmma: rows of a key head that a block answers
enum { BLOCK_THREADS = THREADS + WARP };  // a warpgroup that computes, and a warp that loads
enum { CLUSTER_AT_MOST = 16 };            // blocks
enum { BLOCK_SLOTS = 2 };                 // of a block's ring
enum { BLOCK_TILE_BYTES = 16384, BLOCK_SLOT_BYTES = 2 * BLOCK_TILE_BYTES };  // of K, and as many of V
#define BLOCK_KEYS_OF(HEAD_DIM) (BLOCK_TILE_BYTES / 2 / (HEAD_DIM))          // of a tile
#define QUERY_BYTES_OF(HEAD_DIM) (ROWS * 2 * (HEAD_DIM))
// Of struct Slots: the tiles, Q, and two mbarriers for each slot.
#define SLOTS_BYTES_OF(HEAD_DIM) (BLOCK_SLOTS * (BLOCK_SLOT_BYTES + 2 * 8) + QUERY_BYTES_OF(HEAD_DIM))
