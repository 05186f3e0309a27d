// Stage 13's arithmetic for tiles of a sequence that may end anywhere, in pages whose unused rows may hold anything.
#pragma once

#include "../13-decode/reader.h"

#include "rows.h"

template <int HEAD_DIM, int QUERIES> struct PagedReader : Reader<HEAD_DIM, QUERIES> {
  typedef Reader<HEAD_DIM, QUERIES> Base;
  static constexpr int KEYS = Base::KEYS, STEPS = Base::STEPS, COLUMNS = Base::COLUMNS;
  using Base::max;
  using Base::o;
  using Base::q;
  using Base::sum;

  const Work &work;
  const int first;  // row of the block; in this stage 0

  __device__ PagedReader(const Maps &maps, const Work &work, int first = 0)
      : Base(maps, work.problem, 0, 0, 0, 0), work(work), first(first) {}

  __device__ void open(int batch, int head) {
    int lane = threadIdx.x % WARP;
    this->batch = batch, this->head = head;
#pragma unroll
    for (int c = 0; c < COLUMNS; c++) {
      int row = first + 8 * c + lane / 4;
      const __nv_bfloat16 *from = work.problem.q + row_offset(work, work.q, batch, head, row) + lane % 4 * 2;
#pragma unroll
      for (int i = 0; i < STEPS * 2; i++)
        q[c][i / 2][i % 2] = row < rows_of(work) ? *(const uint32_t *)(from + i * 8) : 0;
#pragma unroll
      for (int m = 0; m < STEPS; m++)
#pragma unroll
        for (int i = 0; i < 4; i++) o[c][m][i] = 0;
      max[c][0] = max[c][1] = -INFINITY;
      sum[c][0] = sum[c][1] = 0;
    }
  }

  // Keys that do not exist weigh nothing.
  __device__ void mask(int tile, int keys, float (&s)[KEYS / 16][COLUMNS][4]) {
    int row = threadIdx.x % WARP / 4;
#pragma unroll
    for (int m = 0; m < KEYS / 16; m++)
#pragma unroll
      for (int c = 0; c < COLUMNS; c++)
#pragma unroll
        for (int i = 0; i < 4; i++)
          if (tile * KEYS + 16 * m + row + i / 2 * 8 >= keys) s[m][c][i] = -INFINITY;
  }

  __device__ void use(uint32_t slot, int tile, int keys) {
    float s[KEYS / 16][COLUMNS][4];
    uint32_t p[KEYS / 16][COLUMNS][2];
    Base::multiply_keys(slot, s);
    if ((tile + 1) * KEYS > keys) {
      mask(tile, keys, s);
      clear_keys<HEAD_DIM / PANEL, KEYS, ROW_BYTES>(slot + TILE_BYTES, keys - tile * KEYS);
    }
    Base::update_max(s);
    Base::weigh(s, p);
    Base::multiply_values(slot + TILE_BYTES, p);
  }

  __device__ void finish() { add_lanes(sum); }

  // O^T has a query in each column. Transposed, each lane has two neighbouring numbers of a query.
  __device__ void store() {
    int lane = threadIdx.x % WARP;
#pragma unroll
    for (int c = 0; c < COLUMNS; c++) {
      int row = first + 8 * c + lane / 4;
      __nv_bfloat16 *to = work.problem.o + row_offset(work, work.o, this->batch, this->head, row) + lane % 4 * 2;
      float inverse[2] = {1 / sum[c][0], 1 / sum[c][1]};
#pragma unroll
      for (int m = 0; m < STEPS; m++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
          uint32_t pair = transpose(pack_bf16(o[c][m][2 * half] * inverse[0], o[c][m][2 * half + 1] * inverse[1]));
          if (row < rows_of(work)) *(uint32_t *)(to + 16 * m + 8 * half) = pair;
        }
    }
  }

  __device__ void store(const Leftovers &leftovers, int part) {
    int lane = threadIdx.x % WARP;
#pragma unroll
    for (int c = 0; c < COLUMNS; c++)
#pragma unroll
      for (int h = 0; h < 2; h++) {
        int row = first + 8 * c + lane % 4 * 2 + h;
        if (row >= rows_of(work)) continue;
        size_t at = (size_t)part * rows_of(work) + row;
        float *to = leftovers.o + at * HEAD_DIM + lane / 4, inverse = 1 / sum[c][h];
        if (lane < 4) leftovers.lse[at] = max[c][h] + log2f(sum[c][h]);
#pragma unroll
        for (int m = 0; m < STEPS; m++) {
          to[16 * m] = o[c][m][h] * inverse;
          to[16 * m + 8] = o[c][m][h + 2] * inverse;
        }
      }
  }
};
