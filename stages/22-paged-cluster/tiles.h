// Sizes of what a cluster shares. kernel.cu and stage.c both include this.
#pragma once

#include "../13d-ragged/work.h"

enum { HEAD_DIM = 128 };      // so that a tile of 16 keys is 4 KiB, and lies in one page
enum { BLOCKS_AT_MOST = 8 };  // of a cluster: as many as every Hopper GPU allows
enum { GROUP_AT_MOST = 16 };  // query heads of a key head
// Of struct Exchange the log-sum-exps and the columns that blocks send each other, and the mbarrier that counts them.
enum { EXCHANGE_BYTES = 4 * BLOCKS_AT_MOST * GROUP_AT_MOST + 8 * (GROUP_AT_MOST * HEAD_DIM / 2 + BLOCKS_AT_MOST) + 8 };

// For sequences that have at most a tile of 16 keys for each warp of a cluster of BLOCKS_AT_MOST.
enum { FEW_WARPS = 8, FEW_TILE = 16, FEW_KEYS = FEW_WARPS * FEW_TILE };  // FEW_KEYS: of a block
enum { FEW_GROUP = 8, FEW_PITCH = 2 * FEW_KEYS + 16 };                   // query heads of a key head
// Of struct FewShared: tiles, weights, two numbers of each warp, what blocks send each other, and mbarriers.
enum {
  FEW_SHARED = FEW_WARPS * 2 * TILE_BYTES + FEW_GROUP * (FEW_PITCH + 8 * FEW_WARPS) +
               FEW_GROUP * (4 * HEAD_DIM + 8 * BLOCKS_AT_MOST) + 8 * (2 * FEW_WARPS + 1)
};
