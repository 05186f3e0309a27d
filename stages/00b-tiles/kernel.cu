// Stage 00b: the scores from tiles in shared memory. Three kernels as in stage 00, of which the first is new:
//
//   scores   S = Q K^T * scale     [seqlen][seqlen], fp32, in device memory; 64 x 64 of them by each block
//   softmax  P = softmax(S)        in place, row by row; as in stage 00
//   output   O = P V               as in stage 00
//
// Each launch computes a group of heads. Q, K, V and O point to the group's first head; S has one matrix for each head.
#include <cuda_fp16.h>

#include "tiles.h"

// PAD elements at the end of a row in shared memory shift the next one to other banks.
enum { PAD = 8 };

// A thread computes THREAD_ROWS x THREAD_KEYS of the block's scores. The functions say which rows and keys of the tile
// these are. A warp has 16 rows and all keys. 16 neighbouring lanes have neighbouring keys. So the pieces of keys that
// they load together lie in different banks, and the scores that they store together are neighbours in device memory.
enum { THREAD_ROWS = 8, THREAD_KEYS = 4 };
static_assert(THREAD_ROWS * THREAD_KEYS * THREADS == ROWS * KEYS, "the threads compute all scores of a tile");

__device__ int tile_row(int r) { return 16 * (threadIdx.x / WARP) + 2 * r + threadIdx.x % WARP / 16; }

__device__ int tile_key(int n) { return 16 * n + threadIdx.x % 16; }

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

// Copies TILE_ROWS rows to shared memory; each thread copies 16 bytes at a time. The matrix has only `rows` rows left.
// The tile's other rows stay as they are; their scores are computed, but not stored.
template <int HEAD_DIM, int TILE_ROWS>
__device__ void load_tile(half (*tile)[HEAD_DIM + PAD], const half *from, int rows) {
  for (int first = 0; first < TILE_ROWS * HEAD_DIM; first += THREADS * 8) {
    int i = first + threadIdx.x * 8, row = i / HEAD_DIM, d = i % HEAD_DIM;
    if (row < rows) *(uint4 *)&tile[row][d] = *(const uint4 *)(from + i);
  }
}

// Each block computes a tile of 64 x 64 scores. It copies 64 rows of Q and of K to shared memory. Each thread computes
// 8 x 4 of the scores, and keeps their sums in registers. It takes eight columns of Q and K at a time. From them it
// loads the pieces of its 4 keys, and one after another those of its 8 queries. So each number of a query that it loads
// serves 4 scores, and each number of a key serves 8.
//
// Grid: keys / 64, rows / 64, heads. Block: 128.
template <int HEAD_DIM>
__device__ void scores(const half *q, const half *k, float *s, int seqlen, float scale, int causal) {
  __shared__ __align__(16) half queries[ROWS][HEAD_DIM + PAD], keys[KEYS][HEAD_DIM + PAD];
  int first_key = blockIdx.x * KEYS, first_row = blockIdx.y * ROWS;
  if (causal && first_key >= first_row + ROWS) return;
  size_t head = blockIdx.z;
  q += (head * seqlen + first_row) * HEAD_DIM;
  k += (head * seqlen + first_key) * HEAD_DIM;
  s += head * seqlen * seqlen;

  load_tile<HEAD_DIM, ROWS>(queries, q, seqlen - first_row);
  load_tile<HEAD_DIM, KEYS>(keys, k, seqlen - first_key);
  __syncthreads();

  float sum[THREAD_ROWS][THREAD_KEYS] = {};
  for (int d = 0; d < HEAD_DIM; d += 8) {
    float key[THREAD_KEYS][8];
    for (int n = 0; n < THREAD_KEYS; n++) load8(key[n], &keys[tile_key(n)][d]);
    for (int r = 0; r < THREAD_ROWS; r++) {
      float query[8];
      load8(query, &queries[tile_row(r)][d]);
      for (int n = 0; n < THREAD_KEYS; n++)
        for (int e = 0; e < 8; e++) sum[r][n] += query[e] * key[n][e];
    }
  }

  for (int r = 0; r < THREAD_ROWS; r++)
    for (int n = 0; n < THREAD_KEYS; n++) {
      int i = first_row + tile_row(r), j = first_key + tile_key(n);
      if (i < seqlen && j < seqlen) s[(size_t)i * seqlen + j] = sum[r][n] * scale;
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
