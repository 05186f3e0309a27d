// Tiles of fp16 in shared memory as TMA writes and wgmma reads them: panels of 64 columns, one after another. A row of
// a panel is 128 bytes, eight chunks of 16, which the 128-byte swizzle permutes. That pattern begins at multiples of
// 1024 bytes, and so must a tile.
#pragma once

#include <stdint.h>

#include "wgmma.h"

enum { PANEL = 64, ROW_BYTES = 2 * PANEL };

static __device__ __forceinline__ uint32_t shared_address(const void *pointer) {
  return (uint32_t)__cvta_generic_to_shared(pointer);
}

// Where in a tile of `rows` rows 16 bytes lie: `chunk` counts them along the columns, through all panels.
static __device__ __forceinline__ int swizzled(int rows, int row, int chunk) {
  return (chunk / 8 * rows + row) * ROW_BYTES + (chunk % 8 ^ row % 8) * 16;
}

// The descriptor of a tile that wgmma reads along its rows, as Q and K: sums run over columns. The next 8 rows are 1024
// bytes further on; the leading offset is ignored.
static __device__ __forceinline__ uint64_t k_major(uint32_t tile) {
  return matrix_descriptor(tile, 16, 8 * ROW_BYTES, SWIZZLE_128B);
}

// The descriptor of a tile of `rows` rows that is read across, as V: sums run over rows. The next 8 of them are 1024
// bytes further on, the next 64 columns a panel.
static __device__ __forceinline__ uint64_t mn_major(uint32_t tile, int rows) {
  return matrix_descriptor(tile, rows * ROW_BYTES, 8 * ROW_BYTES, SWIZZLE_128B);
}

// From a tile's descriptor to that of its i-th 16 columns: 32 bytes along the row, or the next panel. The hardware
// applies the swizzle to the final address, so a step inside the row is a plain addition.
static __device__ __forceinline__ uint64_t columns_16(uint64_t descriptor, int rows, int i) {
  return descriptor + ((i / 4 * rows * ROW_BYTES + i % 4 * 32) >> 4);
}

// The same for its i-th 16 rows.
static __device__ __forceinline__ uint64_t rows_16(uint64_t descriptor, int i) {
  return descriptor + (i * 16 * ROW_BYTES >> 4);
}
