// How the decode stages cut the cache into tiles. Their kernel.cu and stage.c include this.
#pragma once

#include "harness/kernel.h"

#ifdef __CUDACC__
#include <cuda_bf16.h>

#include "harness/read.h"  // each decode stage has these kernels
typedef __nv_bfloat16 *Bf16Pointer;
#else
typedef DeviceAddress Bf16Pointer;
#endif

enum { WARP = 32, WARPS = 4, THREADS = WARPS * WARP };
enum { SLOTS = 3 };          // of each warp's ring: tiles of K and V that it has or that are on their way
enum { TILE_BYTES = 4096 };  // of K, and as many of V
enum { BLOCKS_PER_SM = 2 };  // which the kernels' registers and shared memory allow
enum { SLOT_BYTES = 2 * TILE_BYTES, RING_BYTES = SLOTS * SLOT_BYTES };
#define KEYS_OF(HEAD_DIM) (TILE_BYTES / 2 / (HEAD_DIM))  // of a tile

// The tensor maps of K and V. A box is a tile.
typedef struct Maps {
  TensorMap k, v;
} Maps;

typedef struct Problem {
  Bf16Pointer q, o;     // [batch][kv_heads][group][head_dim]: a key head's queries lie one after another
  int kv_heads, group;  // group: query heads of each key head, 1 to 16
  int keys;
  float scale;  // of the scores, times log2(e): the weights are powers of two
} Problem;
