// How stage 21 cuts the problem into tiles. kernel.cu and stage.c both include this.
#pragma once

#include "harness/kernel.h"

enum { HEAD_DIM = 96 };
enum { COLUMNS = 32 };  // of a box, and of a panel: a row of it is 64 bytes, as wide as its swizzle
enum { PANELS = HEAD_DIM / COLUMNS };

enum { WARP = 32, WARPGROUP = 128, WARPGROUP_ROWS = 64 };
enum { CONSUMERS = 2, THREADS = (1 + CONSUMERS) * WARPGROUP };
enum { ROWS = CONSUMERS * WARPGROUP_ROWS };  // queries of a tile
enum { KEYS = 128 };                         // of a tile
enum { QUERY_SLOTS = 3, SLOTS = 3 };         // for tiles of queries; for tiles of K, and as many for those of V
enum { STORE_ROWS = 16 };                    // of a box of the output: a warp's

// Registers of a thread: of a consumer, and in the producer's warpgroup.
enum { CONSUMER_REGISTERS = 240, PRODUCER_REGISTERS = 24 };

// Bytes of a block's shared memory: struct Shared in kernel.cu.
enum {
  ROW_OF_TILE = 2 * HEAD_DIM,
  SHARED_BYTES = ROW_OF_TILE * (QUERY_SLOTS * ROWS + 2 * SLOTS * KEYS) + 24 * QUERY_SLOTS + 32 * SLOTS
};

// How TMA finds the tensors in global memory: [heads of all batches][seqlen][HEAD_DIM].
typedef struct Tensors {
  TensorMap q, k, v, o;
} Tensors;

typedef struct Problem {
  int window;      // query i sees the keys from max(0, i - window + 1) to i
  int tiles;       // of queries, in all heads
  int head_tiles;  // in one head
  float scale;     // log2(e) / sqrt(HEAD_DIM): exp(x) is computed as 2^(x log2 e)
} Problem;
