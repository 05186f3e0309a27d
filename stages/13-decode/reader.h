// A warp that reads its share of a key head's cache and answers all of the head's queries with it.
//
// The warp has a ring of its own in shared memory, and fills it by itself: one of its lanes asks TMA for a tile as soon
// as all lanes have used the one before in the slot. No other warp is waited for until the end.
//
// Both products have the cache as their first factor, so that all 16 rows of an mma have work, and the queries as its
// 8 columns:
//
//   S^T = K Q^T          16 keys x head_dim, times head_dim x 8 queries
//   O^T += V^T P^T       16 columns of V x 16 keys, times 16 keys x 8 queries
//
// In both results lane l has queries l % 4 * 2 and the next, so a query's maximum and sum are at hand for both.
#pragma once

#include "ptx/elect.h"
#include "ptx/ldmatrix.h"
#include "ptx/math.h"
#include "ptx/mbarrier.h"
#include "ptx/mma.h"
#include "ptx/ring.h"
#include "ptx/tile.h"
#include "ptx/tma.h"

#include "tiles.h"

// The tiles of one warp: first, first + WARPS, and so on, before `end`.
struct Share {
  int first, end;
};

// QUERIES is the group's size, rounded up to 8 or 16.
template <int HEAD_DIM, int QUERIES> struct Reader {
  static constexpr int KEYS = KEYS_OF(HEAD_DIM), STEPS = HEAD_DIM / 16, COLUMNS = QUERIES / 8;

  const Maps &maps;
  const Problem &problem;
  int batch, head;       // the key head
  uint32_t slots, full;  // shared memory: the warp's ring, and the mbarrier of each slot
  bool leader;           // one lane
  Ring<SLOTS> ring;      // the next slot to use

  uint32_t q[COLUMNS][STEPS][2];           // Q^T, as an mma's B
  float o[COLUMNS][STEPS][4];              // O^T, not divided by the sum
  float max[COLUMNS][2], sum[COLUMNS][2];  // of two queries; the sum is of this lane's keys

  __device__ Reader(const Maps &maps, const Problem &problem, int batch, int head, uint32_t slots, uint32_t full)
      : maps(maps), problem(problem), batch(batch), head(head), slots(slots), full(full), leader(elected()) {}

  // ---- loads ----

  __device__ void load(int slot, int tile) {
    uint32_t to = slots + slot * SLOT_BYTES, barrier = full + slot * sizeof(uint64_t);
    mbarrier_arrive_expect(barrier, SLOT_BYTES);
    tma_load(to, &maps.k, barrier, 0, tile * KEYS, 0, head, batch);
    tma_load(to + TILE_BYTES, &maps.v, barrier, 0, tile * KEYS, 0, head, batch);
  }

  // The first loads: all slots are empty.
  __device__ void begin(const Share &share) {
    if (leader) {
      for (int i = 0; i < SLOTS; i++) mbarrier_init(full + i * sizeof(uint64_t), 1);
      mbarrier_fence_init();
      for (int i = 0; i < SLOTS; i++)
        if (share.first + i * WARPS < share.end) load(i, share.first + i * WARPS);
    }
    __syncwarp();
  }

  // Column n of an mma's B is query n; those from `group` on are zeros.
  __device__ void load_queries() {
    int lane = threadIdx.x % WARP;
    const __nv_bfloat16 *from = problem.q + (size_t)(batch * problem.kv_heads + head) * problem.group * HEAD_DIM;
#pragma unroll
    for (int c = 0; c < COLUMNS; c++) {
      int query = 8 * c + lane / 4;
      bool exists = query < problem.group;
#pragma unroll
      for (int i = 0; i < STEPS * 2; i++)
        q[c][i / 2][i % 2] = exists ? *(const uint32_t *)(from + query * HEAD_DIM + i * 8 + lane % 4 * 2) : 0;
    }
  }

  // ---- a tile ----

  // s = K Q^T: lane l has keys l / 4 and l / 4 + 8 of each 16, and queries l % 4 * 2 and the next.
  __device__ void multiply_keys(uint32_t tile, float (&s)[KEYS / 16][COLUMNS][4]) {
    int lane = threadIdx.x % WARP;
#pragma unroll
    for (int m = 0; m < KEYS / 16; m++) {
#pragma unroll
      for (int c = 0; c < COLUMNS; c++)
#pragma unroll
        for (int i = 0; i < 4; i++) s[m][c][i] = 0;
#pragma unroll
      for (int k = 0; k < STEPS; k++) {
        uint32_t a[4];
        ldmatrix(a, tile + swizzled(KEYS, 16 * m + lane % 16, 2 * k + lane / 16));
#pragma unroll
        for (int c = 0; c < COLUMNS; c++) mma_bf16(s[m][c], a, q[c][k][0], q[c][k][1]);
      }
    }
  }

  // Keys that do not exist weigh nothing. Only the last tile has some.
  __device__ void mask(int tile, float (&s)[KEYS / 16][COLUMNS][4]) {
    int row = threadIdx.x % WARP / 4;
#pragma unroll
    for (int m = 0; m < KEYS / 16; m++)
#pragma unroll
      for (int c = 0; c < COLUMNS; c++)
#pragma unroll
        for (int i = 0; i < 4; i++)
          if (tile * KEYS + 16 * m + row + i / 2 * 8 >= problem.keys) s[m][c][i] = -INFINITY;
  }

  // The maximum of each query over this tile and all before. Where one has grown, sum and o shrink.
  __device__ void update_max(const float (&s)[KEYS / 16][COLUMNS][4]) {
    float factor[COLUMNS][2];
    bool grows = false;
#pragma unroll
    for (int c = 0; c < COLUMNS; c++)
#pragma unroll
      for (int h = 0; h < 2; h++) {
        float largest = fmaxf(s[0][c][h], s[0][c][h + 2]);
#pragma unroll
        for (int m = 1; m < KEYS / 16; m++) largest = fmaxf(largest, fmaxf(s[m][c][h], s[m][c][h + 2]));
#pragma unroll
        for (int distance = 4; distance < WARP; distance *= 2)
          largest = fmaxf(largest, __shfl_xor_sync(0xffffffff, largest, distance));
        largest = fmaxf(max[c][h], largest * problem.scale);
        factor[c][h] = power_of_two(max[c][h] - largest);
        grows |= largest > max[c][h];
        max[c][h] = largest;
      }
    if (!__any_sync(0xffffffff, grows)) return;
#pragma unroll
    for (int c = 0; c < COLUMNS; c++) {
      sum[c][0] *= factor[c][0];
      sum[c][1] *= factor[c][1];
#pragma unroll
      for (int m = 0; m < STEPS; m++)
#pragma unroll
        for (int i = 0; i < 4; i++) o[c][m][i] *= factor[c][i % 2];
    }
  }

  // s becomes the weights; p is P^T in bf16, as an mma's B, for which each 8 x 8 of it is transposed.
  __device__ void weigh(float (&s)[KEYS / 16][COLUMNS][4], uint32_t (&p)[KEYS / 16][COLUMNS][2]) {
#pragma unroll
    for (int m = 0; m < KEYS / 16; m++)
#pragma unroll
      for (int c = 0; c < COLUMNS; c++) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
          s[m][c][i] = power_of_two(s[m][c][i] * problem.scale - max[c][i % 2]);
          sum[c][i % 2] += s[m][c][i];
        }
        p[m][c][0] = transpose(pack_bf16(s[m][c][0], s[m][c][1]));
        p[m][c][1] = transpose(pack_bf16(s[m][c][2], s[m][c][3]));
      }
  }

  // o += V^T P^T. ldmatrix transposes V.
  __device__ void multiply_values(uint32_t tile, const uint32_t (&p)[KEYS / 16][COLUMNS][2]) {
    int lane = threadIdx.x % WARP;
#pragma unroll
    for (int m = 0; m < STEPS; m++)
#pragma unroll
      for (int k = 0; k < KEYS / 16; k++) {
        uint32_t a[4];
        ldmatrix_transposed(a, tile + swizzled(KEYS, 16 * k + lane / 16 * 8 + lane % 8, 2 * m + lane / 8 % 2));
#pragma unroll
        for (int c = 0; c < COLUMNS; c++) mma_bf16(o[c][m], a, p[k][c][0], p[k][c][1]);
      }
  }

  __device__ void use(uint32_t slot, int tile) {
    float s[KEYS / 16][COLUMNS][4];
    uint32_t p[KEYS / 16][COLUMNS][2];
    multiply_keys(slot, s);
    if ((tile + 1) * KEYS > problem.keys) mask(tile, s);
    update_max(s);
    weigh(s, p);
    multiply_values(slot + TILE_BYTES, p);
  }

  // ---- all tiles ----

  __device__ void run(const Share &share) {
    begin(share);
    load_queries();
#pragma unroll
    for (int c = 0; c < COLUMNS; c++) {
#pragma unroll
      for (int m = 0; m < STEPS; m++)
#pragma unroll
        for (int i = 0; i < 4; i++) o[c][m][i] = 0;
      max[c][0] = max[c][1] = -INFINITY;
      sum[c][0] = sum[c][1] = 0;
    }
    for (int tile = share.first; tile < share.end; tile += WARPS) {
      mbarrier_wait(full + ring.slot * sizeof(uint64_t), ring.parity);
      use(slots + ring.slot * SLOT_BYTES, tile);
      __syncwarp();  // all lanes have used the slot
      if (leader && tile + SLOTS * WARPS < share.end) load(ring.slot, tile + SLOTS * WARPS);
      ring.advance();
    }
#pragma unroll
    for (int c = 0; c < COLUMNS; c++)
#pragma unroll
      for (int h = 0; h < 2; h++)
#pragma unroll
        for (int distance = 4; distance < WARP; distance *= 2)
          sum[c][h] += __shfl_xor_sync(0xffffffff, sum[c][h], distance);
  }
};
