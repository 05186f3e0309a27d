// A tile of fp16 with 96 columns in shared memory, as TMA writes and wgmma reads it: three panels of 32 columns, one
// after another. A row of a panel is 64 bytes, four chunks of 16, which the 64-byte swizzle permutes. That pattern
// begins at multiples of 512 bytes, and so must a tile.
#pragma once

#include "tiles.h"

#include "ptx/tile_bytes.h"

enum { ROW_OF_PANEL = 2 * COLUMNS };  // bytes

// Where in a tile of `rows` rows 16 bytes lie: `chunk` counts them along the columns, through all panels.
static __device__ __forceinline__ int chunk_of(int rows, int row, int chunk) {
  return chunk / 4 * rows * ROW_OF_PANEL + swizzled_bytes<ROW_OF_PANEL>(row, chunk % 4);
}

// The descriptor of a tile that wgmma reads along its rows, as Q and K.
static __device__ __forceinline__ uint64_t along_rows(uint32_t tile) { return k_major_bytes<ROW_OF_PANEL>(tile); }

// The descriptor of a tile of `rows` rows that is read across, as V. The next 8 rows are 512 bytes further on, the next
// 32 columns a panel.
static __device__ __forceinline__ uint64_t across_rows(uint32_t tile, int rows) {
  return matrix_descriptor(tile, rows * ROW_OF_PANEL, 8 * ROW_OF_PANEL, SWIZZLE_64B);
}

// From a tile's descriptor to that of its i-th 16 columns: 32 bytes along the row, or the next panel.
static __device__ __forceinline__ uint64_t next_columns(uint64_t descriptor, int rows, int i) {
  return descriptor + ((i / 2 * rows * ROW_OF_PANEL + i % 2 * 32) >> 4);
}

// From a tile's descriptor to that of its rows from `row` on, a multiple of 8.
static __device__ __forceinline__ uint64_t from_row(uint64_t descriptor, int row) {
  return descriptor + (row * ROW_OF_PANEL >> 4);
}
