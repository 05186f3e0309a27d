// What a warpgroup does with the tiles of a key head. Its rows, the queries of all heads that share it, are the 64 rows
// of a wgmma.
//
//   S = Q K^T     64 rows x head_dim, times head_dim x keys
//   O += P V      64 rows x keys, times keys x head_dim
//
// P is the first factor, so it stays in registers; K and V are read from the slot as TMA has written it.
#pragma once

#include "../13d-ragged/list.h"
#include "../13d-ragged/rows.h"
#include "ptx/barrier.h"
#include "ptx/math.h"
#include "ptx/quad.h"
#include "ptx/wgmma_bf16.h"

#include "block_tiles.h"

// Where the keys of a tile lie. A product reads them as two halves, and a half as groups of 8 keys at equal
// distances. A tile may be several boxes, one for each page, and a box with two panels has all keys of the first
// panel before those of the second. So boxes of 16 keys are read across: one half is the first 8 keys of each box,
// the other half the rest. The order of keys does not matter to a sum over all of them, if both products and the mask
// agree.
struct Order {
  int half, group, panel;     // bytes from one half, group, panel to the next
  int half_keys, group_keys;  // keys from one half, group to the next
};

template <int HEAD_DIM> __device__ Order order_of(int boxes) {
  constexpr int KEYS = BLOCK_KEYS_OF(HEAD_DIM), PANELS = HEAD_DIM / PANEL, HALF = KEYS / 2;
  int keys = KEYS / boxes;  // of a box
  if (PANELS > 1 && keys < HALF) return {8 * ROW_BYTES, keys * PANELS * ROW_BYTES, keys * ROW_BYTES, 8, keys};
  int half = keys == HALF ? HALF * PANELS * ROW_BYTES : HALF * ROW_BYTES;  // a box, or half of one
  return {half, 8 * ROW_BYTES, keys * ROW_BYTES, HALF, 8};
}
static_assert(BLOCK_KEYS_OF(128) == 4 * 16, "with two panels, a box has all keys, half of them, or 16");

static constexpr float LN_2 = 0.693147181f;

// What a block has of each row over its keys. It lies where the ring was.
template <int HEAD_DIM> struct RowParts {
  float o[ROWS][HEAD_DIM + 8];  // not divided by the sum; 8 floats more, so that rows begin in different banks
  float max[ROWS], sum[ROWS];
};

template <int HEAD_DIM> struct RowsConsumer {
  static constexpr int KEYS = BLOCK_KEYS_OF(HEAD_DIM), HALF = KEYS / 2, PANELS = HEAD_DIM / PANEL;
  enum { BARRIER = 1 };  // of the warpgroup

  const Work &work;
  const Order order;
  const uint32_t queries;  // shared memory
  const int first;         // row of the block

  float o[HEAD_DIM / 2];  // not divided by the sum
  float max[2], sum[2];   // of two rows; the sum is of this thread's keys

  __device__ RowsConsumer(const Work &work, uint32_t queries, int first)
      : work(work), order(order_of<HEAD_DIM>(work.boxes)), queries(queries), first(first) {}

  // The row of o[2 h] and others.
  __device__ int row_of(int h) const { return first + threadIdx.x / 4 % 8 + threadIdx.x / WARP * 16 + 8 * h; }

  // Whether any row of this warp exists. If none does, its weights are anything: nobody reads its O.
  __device__ bool has_rows() const { return first + (int)threadIdx.x / WARP * 16 < rows_of(work); }

  // Brings the head's queries to shared memory. Rows that do not exist are zeros.
  __device__ void open(int batch, int head) {
    constexpr int CHUNKS = HEAD_DIM / 8, STEP = THREADS / CHUNKS;  // chunks of 16 bytes; rows copied at a time
    int chunk = threadIdx.x % CHUNKS, begin = threadIdx.x / CHUNKS;
    uint4 x[ROWS / STEP];
#pragma unroll
    for (int i = 0; i < ROWS / STEP; i++) {  // all loads first: none waits for another
      int row = min(first + begin + i * STEP, rows_of(work) - 1);
      x[i] = *(const uint4 *)(work.problem.q + row_offset(work, work.q, batch, head, row) + chunk * 8);
    }
#pragma unroll
    for (int i = 0; i < ROWS / STEP; i++) {
      int row = begin + i * STEP;
      *(uint4 *)__cvta_shared_to_generic(queries + swizzled(ROWS, row, chunk)) =
          first + row < rows_of(work) ? x[i] : uint4{0, 0, 0, 0};
    }
#pragma unroll
    for (int i = 0; i < HEAD_DIM / 2; i++) o[i] = 0;
    max[0] = max[1] = -INFINITY;
    sum[0] = sum[1] = 0;
    fence_async_proxy();
    barrier_sync(BARRIER, THREADS);
  }

  __device__ void multiply_keys(uint32_t tile, float (&s)[2][HALF / 2]) {
    uint64_t q = k_major(queries);
    wgmma_fence();
#pragma unroll
    for (int h = 0; h < 2; h++) {
      uint64_t k = matrix_descriptor(tile + h * order.half, 16, order.group, SWIZZLE_128B);
#pragma unroll
      for (int i = 0; i < HEAD_DIM / 16; i++)
        wgmma_bf16<HALF>(s[h], columns_16(q, ROWS, i), k + ((i / 4 * order.panel + i % 4 * 32) >> 4), i > 0);
    }
    wgmma_commit();
    wgmma_wait<0>();
    wgmma_results(s[0]);
    wgmma_results(s[1]);
  }

  // Keys that do not exist, or that come after a query's own, weigh nothing.
  __device__ void mask(int tile, int keys, float (&s)[2][HALF / 2]) {
#pragma unroll
    for (int r = 0; r < 2; r++) {
      int end = keys - (work.queries - 1 - row_of(r) % work.queries) - tile * KEYS - threadIdx.x % 4 * 2;
#pragma unroll
      for (int h = 0; h < 2; h++)
#pragma unroll
        for (int i = 2 * r; i < HALF / 2; i += 4)
#pragma unroll
          for (int c = 0; c < 2; c++)
            if (h * order.half_keys + i / 4 * order.group_keys + c >= end) s[h][i + c] = -INFINITY;
    }
  }

  // Makes the keys from `first_key` on of a tile of values zeros: a weight of 0 times NaN would be NaN.
  __device__ void clear(uint32_t tile, int first_key) {
    int box = KEYS / work.boxes;
    for (int i = first_key * 8 + threadIdx.x; i < KEYS * 8; i += THREADS) {
      int key = i / 8;
#pragma unroll
      for (int panel = 0; panel < PANELS; panel++)
        *(uint4 *)__cvta_shared_to_generic(tile + (key / box * PANELS * box + panel * box + key % box) * ROW_BYTES +
                                           i % 8 * 16) = uint4{0, 0, 0, 0};
    }
    fence_async_proxy();
    barrier_sync(BARRIER, THREADS);
  }

  // A query that has seen no key yet has a maximum of -infinity. Differences from it would be NaN.
  static __device__ float finite(float maximum) { return maximum == -INFINITY ? 0 : maximum; }

  // s becomes the weights. Where a row's maximum has grown, sum and o shrink.
  __device__ void weigh(float (&s)[2][HALF / 2]) {
    float factor[2], base[2];
    bool grows = false;
#pragma unroll
    for (int r = 0; r < 2; r++) {
      float largest = -INFINITY;
#pragma unroll
      for (int h = 0; h < 2; h++)
#pragma unroll
        for (int i = 2 * r; i < HALF / 2; i += 4) largest = fmaxf(largest, fmaxf(s[h][i], s[h][i + 1]));
      largest = fmaxf(max[r], quad_max(largest) * work.problem.scale);
      base[r] = finite(largest);
      factor[r] = power_of_two(max[r] - base[r]);
      grows |= largest > max[r];
      max[r] = largest;
    }
    if (__any_sync(ALL_LANES, grows)) {
      sum[0] *= factor[0];
      sum[1] *= factor[1];
#pragma unroll
      for (int i = 0; i < HEAD_DIM / 2; i++) o[i] *= factor[i / 2 % 2];
    }
#pragma unroll
    for (int h = 0; h < 2; h++)
#pragma unroll
      for (int i = 0; i < HALF / 2; i++) {
        s[h][i] = power_of_two(s[h][i] * work.problem.scale - base[i / 2 % 2]);
        sum[i / 2 % 2] += s[h][i];
      }
  }

  __device__ void multiply_values(uint32_t tile, const float (&s)[2][HALF / 2]) {
    uint32_t p[2][HALF / 16][4];
#pragma unroll
    for (int h = 0; h < 2; h++)
#pragma unroll
      for (int i = 0; i < HALF / 4; i++) p[h][i / 4][i % 4] = pack_bf16(s[h][2 * i], s[h][2 * i + 1]);
    wgmma_fence();
#pragma unroll
    for (int h = 0; h < 2; h++) {
      uint64_t v = matrix_descriptor(tile + h * order.half, order.panel, order.group, SWIZZLE_128B);
#pragma unroll
      for (int i = 0; i < HALF / 16; i++) wgmma_bf16_values<HEAD_DIM>(o, p[h][i], v + (i * 2 * order.group >> 4));
    }
    wgmma_commit();
    wgmma_wait<0>();
    wgmma_results(o);
  }

  __device__ void use(uint32_t slot, int tile, int keys) {
    float s[2][HALF / 2];
    multiply_keys(slot, s);
    if ((tile + 1) * KEYS > keys) clear(slot + BLOCK_TILE_BYTES, keys - tile * KEYS);
    if (has_rows()) {
      if ((tile + 1) * KEYS > keys - (work.queries - 1)) mask(tile, keys, s);
      weigh(s);
    }
    multiply_values(slot + BLOCK_TILE_BYTES, s);
  }

  // Writes O, if this block has read all keys of the sequence. lse: where the caller wants the log-sum-exp, [batch][key
  // head][row]; else a null pointer.
  __device__ void store(int batch, int head, float *lse) {
    int lane = threadIdx.x % WARP;
#pragma unroll
    for (int r = 0; r < 2; r++) {
      int row = row_of(r);
      float total = quad_sum(sum[r]), inverse = total > 0 ? 1 / total : 0;
      if (row >= rows_of(work)) continue;
      __nv_bfloat16 *to = work.problem.o + row_offset(work, work.o, batch, head, row) + lane % 4 * 2;
#pragma unroll
      for (int i = 2 * r; i < HEAD_DIM / 2; i += 4)
        *(uint32_t *)(to + i / 4 * 8) = pack_bf16(o[i] * inverse, o[i + 1] * inverse);
      if (lse && lane % 4 == 0)
        lse[(size_t)(batch * work.problem.kv_heads + head) * rows_of(work) + row] = logf(total) + finite(max[r]) * LN_2;
    }
  }

  // Writes what this block has of each row to its shared memory.
  __device__ void put(RowParts<HEAD_DIM> &parts) {
    int lane = threadIdx.x % WARP;
    barrier_sync(BARRIER, THREADS);  // all warps have used the last tile, which lies where the parts go
    if (!has_rows()) return;
#pragma unroll
    for (int r = 0; r < 2; r++) {
      int row = row_of(r) - first;
      float total = quad_sum(sum[r]);
      if (lane % 4 == 0) parts.max[row] = max[r], parts.sum[row] = total;
#pragma unroll
      for (int i = 2 * r; i < HEAD_DIM / 2; i += 4)
        *(float2 *)(parts.o[row] + i / 4 * 8 + lane % 4 * 2) = float2{o[i], o[i + 1]};
    }
  }
};
