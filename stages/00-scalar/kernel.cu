// Stage 00: attention as three plain kernels. It uses no tensor cores and no shared memory.
//
//   scores   S = Q K^T * scale     [seqlen][seqlen], fp32, in device memory
//   softmax  P = softmax(S)        in place, row by row
//   output   O = P V
//
// Each launch computes a group of heads. Q, K, V and O point to the group's first head; S has one matrix for each head.
#include <cuda_fp16.h>

#include "tiles.h"

// Eight fp16 numbers in one 16-byte load, widened to fp32.
__device__ void load8(float *to, const half *from) {
  uint4 bits = *(const uint4 *)from;
  const half2 *pairs = (const half2 *)&bits;
  for (int i = 0; i < 4; i++) {
    float2 pair = __half22float2(pairs[i]);
    to[2 * i] = pair.x;
    to[2 * i + 1] = pair.y;
  }
}

// Each thread has one key j. It keeps K[j] in registers and computes S[i][j] for each of the block's 32 rows i. The
// threads of a warp have neighbouring keys, so they store neighbouring scores. All of them read the same query.
//
// Grid: keys / 128, rows / 32, heads. Block: 128.
template <int HEAD_DIM>
__device__ void scores(const half *q, const half *k, float *s, int seqlen, float scale, int causal) {
  int j = blockIdx.x * KEYS + threadIdx.x;
  int first_row = blockIdx.y * SCORE_ROWS, last_row = min(first_row + SCORE_ROWS, seqlen) - 1;
  if (j >= seqlen || (causal && j > last_row)) return;
  size_t head = blockIdx.z;
  q += head * seqlen * HEAD_DIM;
  k += head * seqlen * HEAD_DIM;
  s += head * seqlen * seqlen;

  float key[HEAD_DIM];
  for (int d = 0; d < HEAD_DIM; d += 8) load8(key + d, k + (size_t)j * HEAD_DIM + d);

  for (int i = first_row; i <= last_row; i++) {
    float sum = 0;
    for (int d = 0; d < HEAD_DIM; d += 8) {
      float query[8];
      load8(query, q + (size_t)i * HEAD_DIM + d);
      for (int e = 0; e < 8; e++) sum += query[e] * key[d + e];
    }
    s[(size_t)i * seqlen + j] = sum * scale;
  }
}

// warp_max: the largest of 32 numbers, one from each lane of a warp. warp_sum: their sum. Every lane gets the result.
__device__ float warp_max(float x) {
  for (int distance = WARP / 2; distance > 0; distance /= 2) x = fmaxf(x, __shfl_xor_sync(0xffffffff, x, distance));
  return x;
}

__device__ float warp_sum(float x) {
  for (int distance = WARP / 2; distance > 0; distance /= 2) x += __shfl_xor_sync(0xffffffff, x, distance);
  return x;
}

// Each warp has one row i. It subtracts the row's maximum before exp, so that nothing overflows; the quotient stays the
// same. A key that the causal mask hides from query i gets the weight 0.
//
// Grid: rows / 4, heads. Block: 32 x 4.
extern "C" __global__ void softmax(float *s, int seqlen, int causal) {
  int i = blockIdx.x * blockDim.y + threadIdx.y;
  if (i >= seqlen) return;
  int keys = causal ? i + 1 : seqlen;
  float *row = s + ((size_t)blockIdx.y * seqlen + i) * seqlen;

  float max = -INFINITY, sum = 0;
  for (int j = threadIdx.x; j < keys; j += WARP) max = fmaxf(max, row[j]);
  max = warp_max(max);
  for (int j = threadIdx.x; j < keys; j += WARP) {
    float weight = expf(row[j] - max);
    row[j] = weight;
    sum += weight;
  }
  float scale = 1 / warp_sum(sum);
  for (int j = threadIdx.x; j < seqlen; j += WARP) row[j] = j < keys ? row[j] * scale : 0;
}

// Each thread has one column d of V. It adds up O[i][d] for the block's 8 rows i: it loads each element of V once, and
// uses it for all 8 rows. All threads of a block read the same weights at the same time.
//
// Grid: rows / 8, heads. Block: HEAD_DIM.
template <int HEAD_DIM> __device__ void output(const float *p, const half *v, half *o, int seqlen, int causal) {
  int first_row = blockIdx.x * OUTPUT_ROWS, last_row = min(first_row + OUTPUT_ROWS, seqlen) - 1;
  int keys = causal ? last_row + 1 : seqlen;
  int d = threadIdx.x;
  size_t head = blockIdx.y;
  p += head * seqlen * seqlen;
  v += head * seqlen * HEAD_DIM;
  o += head * seqlen * HEAD_DIM;

  // The block may have rows past the end of the matrix. The last row takes their place; it is computed, but not stored.
  const float *row[OUTPUT_ROWS];
  for (int r = 0; r < OUTPUT_ROWS; r++) row[r] = p + (size_t)min(first_row + r, last_row) * seqlen;

  float sum[OUTPUT_ROWS] = {0};
  for (int j = 0; j < keys; j++) {
    float value = __half2float(v[(size_t)j * HEAD_DIM + d]);
    for (int r = 0; r < OUTPUT_ROWS; r++) sum[r] += row[r][j] * value;
  }
  for (int r = 0; r < OUTPUT_ROWS; r++)
    if (first_row + r <= last_row) o[(size_t)(first_row + r) * HEAD_DIM + d] = __float2half(sum[r]);
}

// The entry points, one for each head dimension. The compiler knows the length of the loops over d, so it unrolls them
// and keeps the arrays above in registers.
extern "C" __global__ void scores_64(const half *q, const half *k, float *s, int seqlen, float scale, int causal) {
  scores<64>(q, k, s, seqlen, scale, causal);
}

extern "C" __global__ void scores_128(const half *q, const half *k, float *s, int seqlen, float scale, int causal) {
  scores<128>(q, k, s, seqlen, scale, causal);
}

extern "C" __global__ void output_64(const float *p, const half *v, half *o, int seqlen, int causal) {
  output<64>(p, v, o, seqlen, causal);
}

extern "C" __global__ void output_128(const float *p, const half *v, half *o, int seqlen, int causal) {
  output<128>(p, v, o, seqlen, causal);
}
