// Stage 13d's reader for several queries of each sequence. The last query is that of the last key, and a query sees the
// keys up to its own. So queries differ in what they see only in the last tiles.
#pragma once

#include "../13d-ragged/paged_reader.h"

#include "halves.h"

template <int HEAD_DIM, int QUERIES> struct MultiReader : PagedReader<HEAD_DIM, QUERIES> {
  typedef PagedReader<HEAD_DIM, QUERIES> Base;
  static constexpr int KEYS = Base::KEYS, STEPS = Base::STEPS, COLUMNS = Base::COLUMNS;
  using Base::first;
  using Base::max;
  using Base::o;
  using Base::q;
  using Base::sum;
  using Base::work;

  // With 32 rows and a head_dim of 128, Q and O take 192 registers of each lane, and the rest does not fit. So half
  // of Q lies in shared memory: of mma columns 2 and 3.
  static constexpr bool HALF_SHARED = HALF_OF_Q_SHARED(HEAD_DIM, QUERIES);
  uint4 *half;  // this lane's, [step][lane]

  // `first`: the first of the rows that this block answers.
  __device__ MultiReader(const Maps &maps, const Work &work, int first, uint4 *half)
      : Base(maps, work, first), half(half + threadIdx.x % WARP) {}

  __device__ void open(int batch, int head) {
    Base::open(batch, head);
    if constexpr (HALF_SHARED)
#pragma unroll
      for (int k = 0; k < STEPS; k++) half[k * WARP] = uint4{q[2][k][0], q[2][k][1], q[3][k][0], q[3][k][1]};
  }

  __device__ void multiply_keys(uint32_t tile, float (&s)[KEYS / 16][COLUMNS][4]) {
    if constexpr (!HALF_SHARED) {
      Base::multiply_keys(tile, s);
    } else {
      static_assert(KEYS == 16);
      int lane = threadIdx.x % WARP;
#pragma unroll
      for (int c = 0; c < COLUMNS; c++)
#pragma unroll
        for (int i = 0; i < 4; i++) s[0][c][i] = 0;
#pragma unroll
      for (int k = 0; k < STEPS; k++) {
        uint32_t a[4];
        ldmatrix(a, tile + swizzled(KEYS, lane % 16, 2 * k + lane / 16));
        uint4 rest = half[k * WARP];
        mma_bf16(s[0][0], a, q[0][k][0], q[0][k][1]);
        mma_bf16(s[0][1], a, q[1][k][0], q[1][k][1]);
        mma_bf16(s[0][2], a, rest.x, rest.y);
        mma_bf16(s[0][3], a, rest.z, rest.w);
      }
    }
  }

  // Keys that do not exist, or that come after a query's own, weigh nothing.
  __device__ void mask(int tile, int keys, float (&s)[KEYS / 16][COLUMNS][4]) {
    int lane = threadIdx.x % WARP;
#pragma unroll
    for (int c = 0; c < COLUMNS; c++)
#pragma unroll
      for (int h = 0; h < 2; h++) {
        int query = (first + 8 * c + lane % 4 * 2 + h) % work.queries;
        int end = keys - (work.queries - 1 - query) - tile * KEYS - lane / 4;
#pragma unroll
        for (int m = 0; m < KEYS / 16; m++) {
          if (16 * m >= end) s[m][c][h] = -INFINITY;
          if (16 * m + 8 >= end) s[m][c][h + 2] = -INFINITY;
        }
      }
  }

  // A query that has seen no key yet has a maximum of -infinity. Differences from it would be NaN, so they are taken
  // from 0.
  static __device__ float finite(float maximum) { return maximum == -INFINITY ? 0 : maximum; }

  // The maximum of each query over this tile and all before. Where one has grown, sum and o shrink. One column of mma
  // tiles after another, because registers are scarce with four.
  __device__ void update_max(const float (&s)[KEYS / 16][COLUMNS][4]) {
#pragma unroll
    for (int c = 0; c < COLUMNS; c++) {
      float factor[2];
      bool grows = false;
#pragma unroll
      for (int h = 0; h < 2; h++) {
        float largest = fmaxf(s[0][c][h], s[0][c][h + 2]);
#pragma unroll
        for (int m = 1; m < KEYS / 16; m++) largest = fmaxf(largest, fmaxf(s[m][c][h], s[m][c][h + 2]));
#pragma unroll
        for (int distance = 4; distance < WARP; distance *= 2)
          largest = fmaxf(largest, __shfl_xor_sync(ALL_LANES, largest, distance));
        largest = fmaxf(max[c][h], largest * work.problem.scale);
        factor[h] = power_of_two(max[c][h] - finite(largest));
        grows |= largest > max[c][h];
        max[c][h] = largest;
      }
      if (!__any_sync(ALL_LANES, grows)) continue;
      sum[c][0] *= factor[0];
      sum[c][1] *= factor[1];
#pragma unroll
      for (int m = 0; m < STEPS; m++)
#pragma unroll
        for (int i = 0; i < 4; i++) o[c][m][i] *= factor[i % 2];
    }
  }

  // s becomes the weights; p is P^T in bf16, as an mma's B, for which each 8 x 8 of it is transposed.
  __device__ void weigh(float (&s)[KEYS / 16][COLUMNS][4], uint32_t (&p)[KEYS / 16][COLUMNS][2]) {
#pragma unroll
    for (int c = 0; c < COLUMNS; c++) {
      float base[2] = {finite(max[c][0]), finite(max[c][1])};
#pragma unroll
      for (int m = 0; m < KEYS / 16; m++) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
          s[m][c][i] = power_of_two(s[m][c][i] * work.problem.scale - base[i % 2]);
          sum[c][i % 2] += s[m][c][i];
        }
        p[m][c][0] = transpose(pack_bf16(s[m][c][0], s[m][c][1]));
        p[m][c][1] = transpose(pack_bf16(s[m][c][2], s[m][c][3]));
      }
    }
  }

  __device__ void use(uint32_t slot, int tile, int keys) {
    float s[KEYS / 16][COLUMNS][4];
    uint32_t p[KEYS / 16][COLUMNS][2];
    multiply_keys(slot, s);
    if ((tile + 1) * KEYS > keys - (work.queries - 1)) mask(tile, keys, s);
    if ((tile + 1) * KEYS > keys) clear_keys<HEAD_DIM / PANEL, KEYS, ROW_BYTES>(slot + TILE_BYTES, keys - tile * KEYS);
    update_max(s);
    weigh(s, p);
    Base::multiply_values(slot + TILE_BYTES, p);
  }

  // O of a query that sees no key is 0 over any sum.
  __device__ void finish() {
    Base::finish();
#pragma unroll
    for (int c = 0; c < COLUMNS; c++)
#pragma unroll
      for (int h = 0; h < 2; h++)
        if (max[c][h] == -INFINITY) sum[c][h] = 1;
  }
};
