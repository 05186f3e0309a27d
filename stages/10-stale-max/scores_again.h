// Computes a warp's part of S = Q K^T once more, when its scores are gone. The warp does that alone, by mma.sync as in
// stage 03, from the tiles that TMA has loaded for wgmma.
#pragma once

#include "../09b-diagonal/tiles.h"  // KEYS

#include "ptx/ldmatrix.h"
#include "ptx/mma.h"
#include "ptx/tile.h"

// S for 16 queries, from row `first` of a tile of ROWS rows on, and all KEYS keys. It comes into the registers where
// wgmma puts it.
template <int HEAD_DIM, int ROWS>
__device__ void scores_again(float (&s)[KEYS / 2], uint32_t queries, int first, uint32_t keys, int lane) {
  // ldmatrix: lane l gives the address of row l % 8 of matrix l / 8. The matrices of a are rows 0-7 and 8-15 of the
  // first 8 columns, then of the next 8; those of b are the two halves of the columns for keys 0-7, then for keys 8-15.
  int query = first + lane % 16, key = lane / 16 * 8 + lane % 8;
#pragma unroll
  for (int i = 0; i < KEYS / 2; i++) s[i] = 0;
#pragma unroll 1  // this code rarely runs, so it is kept short
  for (int d = 0; d < HEAD_DIM / 16; d++) {
    uint32_t a[4], b[4];
    ldmatrix(a, queries + swizzled(ROWS, query, 2 * d + lane / 16));
#pragma unroll
    for (int n = 0; n < KEYS / 16; n++) {
      ldmatrix(b, keys + swizzled(KEYS, 16 * n + key, 2 * d + lane / 8 % 2));
      mma(slice<4>(s, 8 * n), a, b[0], b[1]);
      mma(slice<4>(s, 8 * n + 4), a, b[2], b[3]);
    }
  }
  __syncwarp();  // all lanes have read the keys, before one of them releases their slot
}
