// How stages 10c to 11d cut the problem into tiles. Their kernels and their launches include this.
#pragma once

#include "harness/kernel.h"

enum { WARP = 32, WARPGROUP = 128, WARPGROUP_ROWS = 64 };
enum { KEYS = 128 };               // of a tile
enum { WEIGHTS_OF_REGISTER = 4 };  // e4m3
enum { TRANSPOSED_KEYS = 64 };     // by a block of transpose_values

// Rows of ones below each tile of V^T. Stage 11 has some, and defines their number before.
#ifndef ONES
#define ONES 0
#endif

// Consumers, and slots for tiles of queries. Registers of a consumer's thread; with CUDA 12 a thread in the producer's
// warpgroup needs more. A later stage defines all of these before.
#ifndef CONSUMERS_64
#define CONSUMERS_64 3
#define CONSUMERS_128 2
#define QUERY_SLOTS_128 3
#define CONSUMER_REGISTERS_64 160
#define CONSUMER_REGISTERS_128 (__CUDACC_VER_MAJOR__ >= 13 ? 240 : 232)
#define PRODUCER_REGISTERS_128 (__CUDACC_VER_MAJOR__ >= 13 ? 24 : 40)
#endif
#define CONSUMERS_OF(HEAD_DIM) ((HEAD_DIM) == 64 ? CONSUMERS_64 : CONSUMERS_128)
#define QUERY_SLOTS_OF(HEAD_DIM) ((HEAD_DIM) == 64 ? 3 : QUERY_SLOTS_128)
#define SLOTS_OF(HEAD_DIM) 4  // for tiles of K and V

#define THREADS_OF(HEAD_DIM) ((1 + CONSUMERS_OF(HEAD_DIM)) * WARPGROUP)
#define ROWS_OF(HEAD_DIM) (CONSUMERS_OF(HEAD_DIM) * WARPGROUP_ROWS)  // queries of a tile

// Registers of a consumer's thread, and of a thread in the producer's warpgroup.
#define CONSUMER_REGISTERS_OF(HEAD_DIM) ((HEAD_DIM) == 64 ? CONSUMER_REGISTERS_64 : CONSUMER_REGISTERS_128)
#define PRODUCER_REGISTERS_OF(HEAD_DIM) ((HEAD_DIM) == 64 ? 32 : PRODUCER_REGISTERS_128)

// Bytes of a block's shared memory: struct Shared in shared.h.
#define SHARED_BYTES(HEAD_DIM)                                                                                         \
  ((HEAD_DIM)*QUERY_SLOTS_OF(HEAD_DIM) * ROWS_OF(HEAD_DIM) + KEYS * (2 * (HEAD_DIM) + ONES) * SLOTS_OF(HEAD_DIM) +     \
   8 * (2 * QUERY_SLOTS_OF(HEAD_DIM) + 4 * SLOTS_OF(HEAD_DIM)) + 8 * ((3 * QUERY_SLOTS_OF(HEAD_DIM) + 1) / 2))

// The kernel's parameters. Tensors: how TMA finds them in global memory, [heads of all batches][seqlen][HEAD_DIM].
typedef struct Tensors {
  TensorMap q, k, v;
  HalfPointer o;
  FloatPointer q_scale, k_scale, v_scale;  // one for each head, or one for the tensor
  // Causal: how many tiles the blocks have asked for; 0 before the launch and after it. Two launches at the same time
  // need two counters, so this is no __device__ variable.
  CounterPointer asked;
  int64_t o_head, o_row;  // strides of o, which stage 11d obeys: elements from one head or row to the next
} Tensors;

typedef struct Problem {
  int seqlen, heads;  // heads of all batches
  int head_tiles;     // tiles of queries in a head
  int group;          // causal: heads that are worked on together, so that their K and V stay in the L2 cache
  int lead;           // causal: rows by which a head's first tile begins before the first row
  int scale_stride;   // from one head's scales to the next head's: 1, or 0
  float scale;        // log2(e) / sqrt(HEAD_DIM): exp(x) is computed as 2^(x log2 e)
} Problem;
