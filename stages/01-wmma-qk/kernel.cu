// Stage 01: the scores on the tensor cores. Three kernels as in stage 00, of which the first is new:
//
//   scores   S = Q K^T * scale     [seqlen][seqlen], fp32, in device memory; 16 x 16 x 16 products of warps (wmma)
//   softmax  P = softmax(S)        in place, row by row; as in stage 00
//   output   O = P V               as in stage 00
//
// Each launch computes a group of heads. Q, K, V and O point to the group's first head; S has one matrix for each head.
#include <cuda_fp16.h>
#include <mma.h>

#include "tiles.h"

using namespace nvcuda;

// PAD elements at the end of a row in shared memory shift the next one to other banks.
enum { WARPS = THREADS / WARP, PAD = 8 };
static_assert(ROWS == 16 * WARPS, "each warp computes 16 rows of a block's scores");

// Fragments: 16 x 16 elements of Q, K^T and S, which a warp holds together in its registers. K^T[d][j] is K[j][d]. So
// the columns of K^T are the rows of K, and K as it lies in memory is K^T in col_major order. Nothing is transposed.
typedef wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> QueryFragment;
typedef wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> KeyFragment;
typedef wmma::fragment<wmma::accumulator, 16, 16, 16, float> ScoreFragment;

// Copies TILE_ROWS rows to shared memory; each thread copies 16 bytes at a time. The matrix has only `rows` rows left.
// The tile's other rows become zeros, because a fragment always has all its rows.
template <int HEAD_DIM, int TILE_ROWS>
__device__ void load_tile(half (*tile)[HEAD_DIM + PAD], const half *from, int rows) {
  for (int first = 0; first < TILE_ROWS * HEAD_DIM; first += THREADS * 8) {
    int i = first + threadIdx.x * 8, row = i / HEAD_DIM, d = i % HEAD_DIM;
    *(uint4 *)&tile[row][d] = row < rows ? *(const uint4 *)(from + i) : make_uint4(0, 0, 0, 0);
  }
}

// Loads a fragment of K^T, of rows `row` to row + 15 and columns `column` to column + 15, from a tile of K.
template <int HEAD_DIM>
__device__ void load_keys(KeyFragment &b, const half (*keys)[HEAD_DIM + PAD], int row, int column) {
  wmma::load_matrix_sync(b, &keys[column][row], HEAD_DIM + PAD);
}

// Each block computes a tile of 64 x 64 scores. It copies 64 rows of Q and of K to shared memory. Each warp multiplies
// 16 rows of Q by the tile of K^T and keeps the sums in registers. A lane does not know which elements of a fragment it
// holds. Therefore each warp stores its sums to shared memory, one fragment at a time, and reads them back as numbers
// whose row and key it knows.
//
// Grid: keys / 64, rows / 64, heads. Block: 128.
template <int HEAD_DIM>
__device__ void scores(const half *q, const half *k, float *s, int seqlen, float scale, int causal) {
  __shared__ __align__(32) half queries[ROWS][HEAD_DIM + PAD], keys[KEYS][HEAD_DIM + PAD];
  __shared__ __align__(32) float results[WARPS][16][16 + PAD];  // a matrix for each warp
  int first_key = blockIdx.x * KEYS, first_row = blockIdx.y * ROWS;
  if (causal && first_key >= first_row + ROWS) return;
  int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
  size_t head = blockIdx.z;
  q += (head * seqlen + first_row) * HEAD_DIM;
  k += (head * seqlen + first_key) * HEAD_DIM;
  s += head * seqlen * seqlen;

  load_tile<HEAD_DIM, ROWS>(queries, q, seqlen - first_row);
  load_tile<HEAD_DIM, KEYS>(keys, k, seqlen - first_key);
  __syncthreads();

  ScoreFragment sum[KEYS / 16];
  for (int n = 0; n < KEYS / 16; n++) wmma::fill_fragment(sum[n], 0);
  for (int d = 0; d < HEAD_DIM; d += 16) {
    QueryFragment a;
    wmma::load_matrix_sync(a, &queries[16 * warp][d], HEAD_DIM + PAD);
    for (int n = 0; n < KEYS / 16; n++) {
      KeyFragment b;
      load_keys<HEAD_DIM>(b, keys, d, 16 * n);
      wmma::mma_sync(sum[n], a, b, sum[n]);
    }
  }

  float(*result)[16 + PAD] = results[warp];
  for (int n = 0; n < KEYS / 16; n++) {
    wmma::store_matrix_sync(&result[0][0], sum[n], 16 + PAD, wmma::mem_row_major);
    __syncwarp();  // all lanes have stored their part
    for (int row = lane / 16; row < 16; row += WARP / 16) {
      int i = first_row + 16 * warp + row, j = first_key + 16 * n + lane % 16;
      if (i < seqlen && j < seqlen) s[(size_t)i * seqlen + j] = result[row][lane % 16] * scale;
    }
    __syncwarp();  // all lanes have read the results of this fragment
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
