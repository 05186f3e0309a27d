// The rows of a key head: the queries of all query heads that share it.
#pragma once

#include "ptx/fence.h"
#include "ptx/tile.h"

#include "work.h"

static __device__ __forceinline__ int rows_of(const Work &work) { return work.problem.group * work.queries; }

// Where a row of Q or O begins, in elements.
static __device__ __forceinline__ long long row_offset(const Work &work, const Strides &strides, int batch, int head,
                                                       int row) {
  return batch * strides.batch + (head * work.problem.group + row / work.queries) * strides.head +
         row % work.queries * strides.query;
}

// From each lane's keys to all keys. Lanes l, l + 4, l + 8 and so on have the same queries.
template <int COLUMNS> __device__ void add_lanes(float (&sum)[COLUMNS][2]) {
#pragma unroll
  for (int c = 0; c < COLUMNS; c++)
#pragma unroll
    for (int h = 0; h < 2; h++)
#pragma unroll
      for (int distance = 4; distance < WARP; distance *= 2)
        sum[c][h] += __shfl_xor_sync(0xffffffff, sum[c][h], distance);
}

// Makes the keys from `first` on of a tile of values zeros: a weight of 0 times NaN would be NaN. The tile has PANELS
// panels of KEYS rows of ROW bytes. TMA writes here next, after what has been written here.
template <int PANELS, int KEYS, int ROW> __device__ void clear_keys(uint32_t tile, int first) {
  int chunks = (KEYS - first) * ROW / 16;
#pragma unroll
  for (int panel = 0; panel < PANELS; panel++)
    for (int i = threadIdx.x % WARP; i < chunks; i += WARP)
      *(uint4 *)__cvta_shared_to_generic(tile + (panel * KEYS + first) * ROW + i * 16) = uint4{0, 0, 0, 0};
  fence_async_proxy();
  __syncwarp();
}
