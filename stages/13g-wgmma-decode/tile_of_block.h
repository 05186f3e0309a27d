// How stage 13g cuts the cache: a block is a worker, and its tiles are four times as large as those of a warp. kernel.cu
// and stage.c both include this.
#pragma once

#include "../13d-ragged/work.h"

enum { ROWS = 64 };  // of a wgmma: the queries of a key head that a block answers
enum { CONSUMERS = 4, BLOCK_THREADS = (CONSUMERS + 1) * WARP };  // a warpgroup that computes, and a warp that loads
#ifndef WIDE_SLOTS
#define WIDE_SLOTS 3
#define WIDE_BYTES 16384
#define WIDE_BLOCKS 2
#endif
enum { WIDE_TILE = WIDE_BYTES, WIDE_SLOT = 2 * WIDE_TILE };  // of K, and as many of V
#define WIDE_KEYS_OF(HEAD_DIM) (WIDE_TILE / 2 / (HEAD_DIM))  // of a tile
#define QUERY_BYTES_OF(HEAD_DIM) (ROWS * 2 * (HEAD_DIM))
#ifndef LEAST
#define LEAST 1
#endif
enum { LEAST_OF_BLOCK = LEAST };  // tiles of a worker
// Of struct Slots: the tiles, Q, a label and two mbarriers for each slot.
#define WIDE_SHARED(HEAD_DIM) (WIDE_SLOTS * (WIDE_SLOT + 16 + 2 * 8) + QUERY_BYTES_OF(HEAD_DIM))

// How many of `workers` have tiles. Host and device both ask.
#ifdef __CUDACC__
__host__ __device__
#endif
    static inline long long
    busy_blocks(long long total, int workers) {
  long long useful = (total + LEAST_OF_BLOCK - 1) / LEAST_OF_BLOCK;
  return workers < useful ? workers : useful;
}
