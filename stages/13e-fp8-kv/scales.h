// What an e4m3 cache's numbers are multiplied with. kernel.cu and stage.c both include this.
#pragma once

#include "../13d-ragged/work.h"

// Element (b * kv_heads + h) * stride is the scale of K, of V, in key head h of sequence b.
typedef struct Scales {
  FloatPointer k, v;
  int stride;
} Scales;

#define E4M3_KEYS_OF(HEAD_DIM) (TILE_BYTES / (HEAD_DIM))  // of a tile
