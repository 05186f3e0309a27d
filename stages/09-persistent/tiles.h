// How stage 09 cuts the problem into tiles. kernel.cu and stage.c both include this.
#pragma once

#include "harness/kernel.h"

enum { WARP = 32, WARPGROUP = 128, WARPGROUP_ROWS = 64 };
enum { KEYS = 128 };       // of a tile
enum { STORE_ROWS = 16 };  // of a box of the output: those of one warp

// Consumers, slots for tiles of queries, and slots for tiles of K and V.
#define CONSUMERS_OF(HEAD_DIM) ((HEAD_DIM) == 64 ? 3 : 2)
#define QUERY_SLOTS_OF(HEAD_DIM) 3
#define SLOTS_OF(HEAD_DIM) ((HEAD_DIM) == 64 ? 4 : 2)

#define THREADS_OF(HEAD_DIM) ((1 + CONSUMERS_OF(HEAD_DIM)) * WARPGROUP)
#define ROWS_OF(HEAD_DIM) (CONSUMERS_OF(HEAD_DIM) * WARPGROUP_ROWS)  // queries of a tile

// Registers of a thread: of a consumer, and in the producer's warpgroup.
#define CONSUMER_REGISTERS_OF(HEAD_DIM) ((HEAD_DIM) == 64 ? 160 : 240)
#define PRODUCER_REGISTERS_OF(HEAD_DIM) ((HEAD_DIM) == 64 ? 32 : 24)

// Bytes of a block's shared memory: struct Shared in producer.h.
#define SHARED_BYTES(HEAD_DIM)                                                                                         \
  (2 * (HEAD_DIM) * (QUERY_SLOTS_OF(HEAD_DIM) * ROWS_OF(HEAD_DIM) + 2 * SLOTS_OF(HEAD_DIM) * KEYS) +                   \
   8 * (2 * QUERY_SLOTS_OF(HEAD_DIM) + 4 * SLOTS_OF(HEAD_DIM)) + 8 * ((QUERY_SLOTS_OF(HEAD_DIM) + 1) / 2))

// The kernel's parameters. Tensors: how TMA finds them in global memory, [heads of all batches][seqlen][HEAD_DIM].
typedef struct Tensors {
  TensorMap q, k, v, o;
  // Causal: how many tiles the blocks have asked for; 0 before the launch and after it. Two launches at the same time
  // need two counters, so this is no __device__ variable.
  CounterPointer asked;
} Tensors;

typedef struct Problem {
  int seqlen, heads;  // heads of all batches
  int head_tiles;     // tiles of queries in a head
  int group;          // causal: heads that are worked on together, so that their K and V stay in the L2 cache
  float scale;        // log2(e) / sqrt(HEAD_DIM): exp(x) is computed as 2^(x log2 e)
} Problem;
