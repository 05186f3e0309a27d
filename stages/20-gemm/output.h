// From a consumer's sums to C in global memory. The kernel includes tiles.h and the PTX headers first.
#pragma once

// A warp's 16 rows of a tile of C, in boxes of 64 columns. Its sums become fp16 in shared memory, and TMA stores them
// from there, while the warp goes on. Rows and columns behind the end of C are not written.
//
// Each warp has room for STORE_PANELS boxes. Before it writes one it waits until TMA has read what was there, which is
// the box STORE_PANELS before: `elected`, the thread that asks for all stores of its warp, waits for them.
static __device__ __forceinline__ void store_rows(const uint32_t (&packed)[COLUMNS / 4], const TensorMap *map,
                                                  uint32_t boxes, int row, int column, bool elected) {
  int lane = threadIdx.x % WARP;
#pragma unroll
  for (int panel = 0; panel < COLUMNS / PANEL; panel++) {
    uint32_t box = boxes + panel % STORE_PANELS * STORE_BYTES;
    if (elected) tma_store_wait_read<STORE_PANELS - 1>();
    __syncwarp();
#pragma unroll
    for (int i = 0; i < PANEL / 16; i++) {
      const uint32_t *x = packed + 16 * panel + 4 * i;
      stmatrix(box + swizzled(STORE_ROWS, lane % 16, 2 * i + lane / 16), x[0], x[1], x[2], x[3]);
    }
    fence_async_proxy();
    __syncwarp();
    if (elected) {
      tma_store(map, box, column + panel * PANEL, row);
      tma_store_commit();
    }
  }
}
