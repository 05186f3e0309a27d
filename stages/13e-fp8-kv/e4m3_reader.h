// Stage 13d's reader for a cache of e4m3. A warp widens what it has loaded to fp16, and multiplies in fp16.
//
// An 8 x 8 matrix of ldmatrix is 8 rows of 16 bytes, so here of 16 numbers. Lane l receives four neighbours of row
// l / 4. An mma wants two neighbours there, and two others 8 columns further on. Which columns these are does not
// matter to a sum over all columns, if both factors agree. So Q is loaded in the order in which K comes: of each 16
// numbers, 4 (l % 4) and the next are an mma's columns 2 (l % 4) and the next, and the two after them the same + 8.
//
// For V the columns of ldmatrix.trans are pairs of bytes: lane l receives columns 2 (l / 4) and the next of keys
// 2 (l % 4) and the next. Row l / 4 of the mma's A is then an even column of V, and row l / 4 + 8 the next, odd one.
#pragma once

#include "../13-decode/reader.h"
#include "../13d-ragged/list.h"
#include "../13d-ragged/rows.h"
#include "ptx/tile_bytes.h"

#include "bytes.h"
#include "scales.h"

template <int HEAD_DIM, int QUERIES> struct E4m3Reader {
  static constexpr int KEYS = E4M3_KEYS_OF(HEAD_DIM), STEPS = HEAD_DIM / 16, COLUMNS = QUERIES / 8;
  // Weights are 2^10 at most, so that small ones keep their bits in fp16. O and the sum have this factor, too.
  static constexpr int LARGEST_WEIGHT = 10;

  const Work &work;
  const Scales &scales;
  int batch, head;
  float v_scale;

  uint32_t q[COLUMNS][STEPS][2];           // Q^T in fp16, times a power of two for each query
  float scale[COLUMNS][2];                 // of the scores of two queries
  float o[COLUMNS][STEPS][4];              // O^T, not divided by the sum
  float max[COLUMNS][2], sum[COLUMNS][2];  // of two queries; the sum is of this lane's keys

  __device__ E4m3Reader(const Work &work, const Scales &scales) : work(work), scales(scales) {}

  // ---- a head's queries ----

  // bf16 has more exponents than fp16. Multiplied by 2^(14 - exponent of the largest), a query's numbers fit fp16, and
  // are exact unless they are 2^31 times smaller than the largest. The scores' scale undoes it.
  __device__ void load_queries(int c, float k_scale) {
    int lane = threadIdx.x % WARP, row = 8 * c + lane / 4;
    const __nv_bfloat16 *from = work.problem.q + row_offset(work, work.q, batch, head, row) + lane % 4 * 4;
    float x[STEPS][4], largest = 0;
#pragma unroll
    for (int k = 0; k < STEPS; k++) {
      uint2 four = row < rows_of(work) ? *(const uint2 *)(from + 16 * k) : uint2{0, 0};
      x[k][0] = __uint_as_float(four.x << 16), x[k][1] = __uint_as_float(four.x & 0xffff0000);
      x[k][2] = __uint_as_float(four.y << 16), x[k][3] = __uint_as_float(four.y & 0xffff0000);
#pragma unroll
      for (int i = 0; i < 4; i++) largest = fmaxf(largest, fabsf(x[k][i]));
    }
    largest = fmaxf(largest, __shfl_xor_sync(ALL_LANES, largest, 1));
    largest = fmaxf(largest, __shfl_xor_sync(ALL_LANES, largest, 2));
    int exponent = min(max_of(__float_as_uint(largest) >> 23, 15), 254) - 127;
    float down = __uint_as_float((14 - exponent + 127) << 23), up = __uint_as_float((exponent - 14 + 127) << 23);
#pragma unroll
    for (int k = 0; k < STEPS; k++) {
      q[c][k][0] = pack(x[k][0] * down, x[k][1] * down);
      q[c][k][1] = pack(x[k][2] * down, x[k][3] * down);
    }
#pragma unroll
    for (int h = 0; h < 2; h++)
      scale[c][h] = __shfl_sync(ALL_LANES, up, 4 * (lane % 4 * 2 + h)) * (work.problem.scale * k_scale);
  }
  static __device__ int max_of(int a, int b) { return a > b ? a : b; }

  __device__ void open(int of_batch, int of_head) {
    batch = of_batch, head = of_head;
    int at = (batch * work.problem.kv_heads + head) * scales.stride;
    float k_scale = scales.k[at];
    v_scale = scales.v[at];
#pragma unroll
    for (int c = 0; c < COLUMNS; c++) {
      load_queries(c, k_scale);
#pragma unroll
      for (int m = 0; m < STEPS; m++)
#pragma unroll
        for (int i = 0; i < 4; i++) o[c][m][i] = 0;
      max[c][0] = max[c][1] = -INFINITY;
      sum[c][0] = sum[c][1] = 0;
    }
  }

  // ---- a tile ----

  // s = K Q^T, for 32 numbers of each key at a time.
  __device__ void multiply_keys(uint32_t tile, float (&s)[KEYS / 16][COLUMNS][4]) {
    int lane = threadIdx.x % WARP;
#pragma unroll
    for (int m = 0; m < KEYS / 16; m++) {
#pragma unroll
      for (int c = 0; c < COLUMNS; c++)
#pragma unroll
        for (int i = 0; i < 4; i++) s[m][c][i] = 0;
#pragma unroll
      for (int k = 0; k < STEPS; k += 2) {
        uint32_t bytes[4], a[2][4];
        ldmatrix(bytes, tile + swizzled_bytes<HEAD_DIM>(16 * m + lane % 16, k + lane / 16));
#pragma unroll
        for (int i = 0; i < 4; i++) widen(bytes[i], a[i / 2][i % 2], a[i / 2][i % 2 + 2]);
#pragma unroll
        for (int c = 0; c < COLUMNS; c++) {
          mma(s[m][c], a[0], q[c][k][0], q[c][k][1]);
          mma(s[m][c], a[1], q[c][k + 1][0], q[c][k + 1][1]);
        }
      }
#pragma unroll
      for (int c = 0; c < COLUMNS; c++)
#pragma unroll
        for (int i = 0; i < 4; i++) s[m][c][i] *= scale[c][i % 2];
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

  // The maximum of each query over this tile and all before. Where one has grown, sum and o shrink.
  __device__ void update_max(const float (&s)[KEYS / 16][COLUMNS][4]) {
    float factor[COLUMNS][2];
    bool grows = false;
#pragma unroll
    for (int c = 0; c < COLUMNS; c++)
#pragma unroll
      for (int h = 0; h < 2; h++) {
        float largest = max[c][h];
#pragma unroll
        for (int m = 0; m < KEYS / 16; m++) largest = fmaxf(largest, fmaxf(s[m][c][h], s[m][c][h + 2]));
#pragma unroll
        for (int distance = 4; distance < WARP; distance *= 2)
          largest = fmaxf(largest, __shfl_xor_sync(ALL_LANES, largest, distance));
        factor[c][h] = power_of_two(max[c][h] - largest);
        grows |= largest > max[c][h];
        max[c][h] = largest;
      }
    if (!__any_sync(ALL_LANES, grows)) return;
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

  // s becomes the weights; p is P^T in fp16, as an mma's B, for which each 8 x 8 of it is transposed.
  __device__ void weigh(float (&s)[KEYS / 16][COLUMNS][4], uint32_t (&p)[KEYS / 16][COLUMNS][2]) {
#pragma unroll
    for (int m = 0; m < KEYS / 16; m++)
#pragma unroll
      for (int c = 0; c < COLUMNS; c++) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
          s[m][c][i] = power_of_two(s[m][c][i] - (max[c][i % 2] - LARGEST_WEIGHT));
          sum[c][i % 2] += s[m][c][i];
        }
        p[m][c][0] = transpose(pack(s[m][c][0], s[m][c][1]));
        p[m][c][1] = transpose(pack(s[m][c][2], s[m][c][3]));
      }
  }

  // o += V^T P^T: 16 columns of V by 16 keys. Of the four matrices, two are of 8 keys each, two of the next 16 columns.
  __device__ void multiply_values(uint32_t tile, const uint32_t (&p)[KEYS / 16][COLUMNS][2]) {
    int lane = threadIdx.x % WARP;
#pragma unroll
    for (int m = 0; m < STEPS; m += 2)
#pragma unroll
      for (int k = 0; k < KEYS / 16; k++) {
        uint32_t bytes[4], a[2][4];
        ldmatrix_transposed(bytes, tile + swizzled_bytes<HEAD_DIM>(16 * k + lane % 16, m + lane / 16));
#pragma unroll
        for (int i = 0; i < 4; i++)  // the even columns' bytes, of two keys, then the odd columns'
          widen(__byte_perm(bytes[i], 0, 0x3120), a[i / 2][i % 2 * 2], a[i / 2][i % 2 * 2 + 1]);
#pragma unroll
        for (int c = 0; c < COLUMNS; c++) {
          mma(o[c][m], a[0], p[k][c][0], p[k][c][1]);
          mma(o[c][m + 1], a[1], p[k][c][0], p[k][c][1]);
        }
      }
  }

  __device__ void use(uint32_t slot, int tile, int keys) {
    float s[KEYS / 16][COLUMNS][4];
    uint32_t p[KEYS / 16][COLUMNS][2];
    multiply_keys(slot, s);
    if ((tile + 1) * KEYS > keys) {
      mask(tile, keys, s);
      clear_keys<1, KEYS, HEAD_DIM>(slot + TILE_BYTES, keys - tile * KEYS);
    }
    update_max(s);
    weigh(s, p);
    multiply_values(slot + TILE_BYTES, p);
  }

  // ---- the answer ----

  __device__ void finish() { add_lanes(sum); }

  // Lane l has columns 2 (l / 4) and the next of each 16, of queries 2 (l % 4) and the next.
  __device__ void store() {
    int lane = threadIdx.x % WARP;
#pragma unroll
    for (int c = 0; c < COLUMNS; c++)
#pragma unroll
      for (int h = 0; h < 2; h++) {
        int row = 8 * c + lane % 4 * 2 + h;
        if (row >= rows_of(work)) continue;
        __nv_bfloat16 *to = work.problem.o + row_offset(work, work.o, batch, head, row) + lane / 4 * 2;
        float factor = v_scale / sum[c][h];
#pragma unroll
        for (int m = 0; m < STEPS; m++)
          *(uint32_t *)(to + 16 * m) = pack_bf16(o[c][m][h] * factor, o[c][m][h + 2] * factor);
      }
  }

  __device__ void store(const Leftovers &leftovers, int part) {
    int lane = threadIdx.x % WARP;
#pragma unroll
    for (int c = 0; c < COLUMNS; c++)
#pragma unroll
      for (int h = 0; h < 2; h++) {
        int row = 8 * c + lane % 4 * 2 + h;
        if (row >= rows_of(work)) continue;
        size_t at = (size_t)part * rows_of(work) + row;
        float *to = leftovers.o + at * HEAD_DIM + lane / 4 * 2, factor = v_scale / sum[c][h];
        if (lane < 4) leftovers.lse[at] = max[c][h] + log2f(sum[c][h]);
#pragma unroll
        for (int m = 0; m < STEPS; m++) *(float2 *)(to + 16 * m) = float2{o[c][m][h] * factor, o[c][m][h + 2] * factor};
      }
  }
};
