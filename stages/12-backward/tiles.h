// How stage 12 cuts the problem into tiles. kernel.cu and stage.c both include this.
#pragma once

#include "harness/kernel.h"

enum { WARP = 32, WARPGROUP = 128, WARPGROUP_ROWS = 64, WARPGROUPS = 2, THREADS = WARPGROUPS * WARPGROUP };
enum { ROWS = WARPGROUPS * WARPGROUP_ROWS };  // of a block's own tile
enum { SLOTS = 2 };                           // for streamed tiles
enum { STORE_ROWS = 16 };                     // of a box of a gradient: those of one warp

// Rows of a streamed tile, which are columns of the products.
#define COLUMNS_OF(HEAD_DIM) ((HEAD_DIM) == 64 ? 128 : 64)

// Bytes of a block's shared memory: struct Shared in warpgroup.h.
#define SHARED_BYTES(HEAD_DIM, SLOTS)                                                                                  \
  (2 * 2 * (HEAD_DIM) * (ROWS + SLOTS * COLUMNS_OF(HEAD_DIM)) + 2 * 4 * SLOTS * COLUMNS_OF(HEAD_DIM) +                 \
   8 * (1 + 2 * SLOTS))

// The kernels' parameters. Tensors: how TMA finds them in global memory, [heads of all batches][seqlen][HEAD_DIM].
//
//                        own       streamed   out
//   pass over queries    Q, dO     K, V       dQ
//   pass over keys       K, V      Q, dO      dK, dV
typedef struct Tensors {
  TensorMap own[2], streamed[2], out[2];
} Tensors;

typedef struct Problem {
  int seqlen;
  int head_tiles;            // own tiles in a head
  float scale, log2e_scale;  // 1 / sqrt(HEAD_DIM), and log2(e) times that: exp(x) is computed as 2^(x log2 e)
  HalfPointer o, d_o;
  FloatOutput lse;  // log of the sum of exp(score), [heads][seqlen]
  // For each query, [heads][head_tiles * ROWS]: -lse log2(e) + weight_exponent, and the sum over d of dO O, divided by
  // 2^weight_exponent.
  FloatOutput shift, delta;
  float weight_exponent;
  int64_t o_head, o_row, d_o_head, d_o_row;  // strides of o and d_o: elements from one head or row to the next
} Problem;
