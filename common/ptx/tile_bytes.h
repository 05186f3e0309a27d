// Tiles of bytes in shared memory as TMA writes and wgmma reads them: rows of 64 or 128 bytes, with a swizzle as wide
// as a row. Sums run along the rows. A tile begins at a multiple of 1024 bytes (of 512 if its rows have 64).
#pragma once

#include "tile.h"

// Where in a tile 16 bytes lie: `chunk` counts them along the row.
template <int WIDTH> static __device__ __forceinline__ int swizzled_bytes(int row, int chunk) {
  static_assert(WIDTH == 64 || WIDTH == 128, "bytes of a row");
  return row * WIDTH + (chunk ^ (WIDTH == 128 ? row % 8 : row / 2 % 4)) * 16;
}

// The tile's descriptor. The next 8 rows follow at once; the leading offset is ignored.
template <int WIDTH> static __device__ __forceinline__ uint64_t k_major_bytes(uint32_t tile) {
  return matrix_descriptor(tile, 16, 8 * WIDTH, WIDTH == 128 ? SWIZZLE_128B : SWIZZLE_64B);
}

// From a tile's descriptor to that of its i-th 32 columns, one wgmma's depth.
static __device__ __forceinline__ uint64_t columns_32(uint64_t descriptor, int i) { return descriptor + (32 * i >> 4); }
