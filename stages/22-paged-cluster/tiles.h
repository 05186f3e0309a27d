// Sizes of what a cluster shares. kernel.cu and stage.c both include this.
#pragma once

#include "../13d-ragged/work.h"

enum { HEAD_DIM = 128 };      // so that a tile of 16 keys is 4 KiB, and lies in one page
enum { BLOCKS_AT_MOST = 8 };  // of a cluster: as many as every Hopper GPU allows
enum { GROUP_AT_MOST = 16 };  // query heads of a key head
// Of struct Exchange the log-sum-exps and the columns that blocks send each other, and the mbarrier that counts them.
enum { EXCHANGE_BYTES = 4 * BLOCKS_AT_MOST * GROUP_AT_MOST + 8 * (GROUP_AT_MOST * HEAD_DIM / 2 + BLOCKS_AT_MOST) + 8 };
