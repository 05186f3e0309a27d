// How stage 07 cuts the problem into tiles. kernel.cu and stage.c both include this.
#pragma once

#include "harness/kernel.h"

enum { WARP = 32, WARPGROUP = 128, WARPGROUP_ROWS = 64, CONSUMERS = 2, THREADS = CONSUMERS * WARPGROUP + WARP };
enum { ROWS = CONSUMERS * WARPGROUP_ROWS };  // queries of a block

// Keys of a tile, and slots for tiles of K and V. For D = 64 two blocks fit on an SM.
#define KEYS_OF(HEAD_DIM) ((HEAD_DIM) == 64 ? 64 : 128)
#define SLOTS_OF(HEAD_DIM) ((HEAD_DIM) == 64 ? 4 : 3)

// Bytes of a block's shared memory: struct Shared in kernel.cu.
#define SHARED_BYTES(HEAD_DIM)                                                                                         \
  (2 * (HEAD_DIM) * (ROWS + 2 * SLOTS_OF(HEAD_DIM) * KEYS_OF(HEAD_DIM)) + 8 * (2 + 4 * SLOTS_OF(HEAD_DIM)))

// The kernel's parameters. Tensors: how TMA finds them in global memory, [heads of all batches][seqlen][HEAD_DIM].
typedef struct Tensors {
  TensorMap q, k, v;
} Tensors;

typedef struct Problem {
  int seqlen, causal;
  int head_tiles;  // tiles of queries in a head
  float scale;     // log2(e) / sqrt(HEAD_DIM): exp(x) is computed as 2^(x log2 e)
  HalfPointer o;
} Problem;
