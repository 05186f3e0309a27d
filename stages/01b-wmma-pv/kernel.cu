// Stage 01b: both products on the tensor cores. Three kernels as in stage 01:
//
//   scores   S = Q K^T * scale     [seqlen][seqlen], fp32, in device memory; as in stage 01
//   softmax  P = exp(S - max)      in place, row by row; the division by a row's sum comes later
//   output   O = P V / sum         new: 16 x 16 x 16 products of warps (wmma)
//
// Each launch computes a group of heads. Q, K, V and O point to the group's first head; S has one matrix for each head.
#include <cuda_fp16.h>
#include <mma.h>

#include "tiles.h"

using namespace nvcuda;

// PAD elements at the end of a row in shared memory shift the next one to other banks.
enum { WARPS = THREADS / WARP, PAD = 8 };
static_assert(ROWS == 16 * WARPS, "each warp computes 16 rows of a block's tile");

// Fragments: 16 x 16 elements, which a warp holds together in its registers. The columns of K^T are the rows of K, so K
// as it lies in memory is K^T in col_major order. P and V lie in memory as the product wants them, row by row.
typedef wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> LeftFragment;   // Q, P
typedef wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> KeyFragment;    // K^T
typedef wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> ValueFragment;  // V
typedef wmma::fragment<wmma::accumulator, 16, 16, 16, float> SumFragment;                 // S, O

// Copies TILE_ROWS rows to shared memory; each thread copies 16 bytes at a time. The matrix has only `rows` rows left.
// The tile's other rows become zeros. Rows of V with the weight 0 must be numbers as well: NaN times 0 is NaN.
template <int HEAD_DIM, int TILE_ROWS>
__device__ void load_tile(half (*tile)[HEAD_DIM + PAD], const half *from, int rows) {
  for (int first = 0; first < TILE_ROWS * HEAD_DIM; first += THREADS * 8) {
    int i = first + threadIdx.x * 8, row = i / HEAD_DIM, d = i % HEAD_DIM;
    *(uint4 *)&tile[row][d] = row < rows ? *(const uint4 *)(from + i) : make_uint4(0, 0, 0, 0);
  }
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

  SumFragment sum[KEYS / 16];
  for (int n = 0; n < KEYS / 16; n++) wmma::fill_fragment(sum[n], 0);
  for (int d = 0; d < HEAD_DIM; d += 16) {
    LeftFragment a;
    wmma::load_matrix_sync(a, &queries[16 * warp][d], HEAD_DIM + PAD);
    for (int n = 0; n < KEYS / 16; n++) {
      KeyFragment b;
      wmma::load_matrix_sync(b, &keys[16 * n][d], HEAD_DIM + PAD);
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

// The largest of 32 numbers, one from each lane of a warp. Every lane gets the result.
__device__ float warp_max(float x) {
  for (int distance = WARP / 2; distance > 0; distance /= 2) x = fmaxf(x, __shfl_xor_sync(0xffffffff, x, distance));
  return x;
}

// Each warp has one row i. It subtracts the row's maximum before exp, so the weights are between 0 and 1. A key that
// the causal mask hides from query i gets the weight 0. `output` divides by the sum of the weights.
//
// Grid: rows / 4, heads. Block: 32 x 4.
extern "C" __global__ void softmax(float *s, int seqlen, int causal) {
  int i = blockIdx.x * blockDim.y + threadIdx.y;
  if (i >= seqlen) return;
  int keys = causal ? i + 1 : seqlen;
  float *row = s + ((size_t)blockIdx.y * seqlen + i) * seqlen;

  float max = -INFINITY;
  for (int j = threadIdx.x; j < keys; j += WARP) max = fmaxf(max, row[j]);
  max = warp_max(max);
  for (int j = threadIdx.x; j < seqlen; j += WARP) row[j] = j < keys ? expf(row[j] - max) : 0;
}

// Copies a tile of weights to shared memory as fp16; each thread copies one number at a time. The matrix has only
// `rows` rows and `keys` columns left. The rest of the tile becomes zeros.
__device__ void load_weights(half (*tile)[KEYS + PAD], const float *from, int seqlen, int rows, int keys) {
  for (int i = threadIdx.x; i < ROWS * KEYS; i += THREADS) {
    int row = i / KEYS, j = i % KEYS;
    tile[row][j] = __float2half(row < rows && j < keys ? from[(size_t)row * seqlen + j] : 0);
  }
}

// Each block computes 64 rows of O. For each tile of 64 keys it copies weights and V to shared memory. Each warp
// multiplies 16 rows of P by all columns of V. It also multiplies them by a matrix of ones: every column of that
// product is the row sums of P. Fragments of one type lie in registers in the same way, so each element of O meets the
// sum of its own row.
//
// Grid: rows / 64, heads. Block: 128.
template <int HEAD_DIM> __device__ void output(const float *p, const half *v, half *o, int seqlen, int causal) {
  __shared__ __align__(32) half weights[ROWS][KEYS + PAD], values[KEYS][HEAD_DIM + PAD];
  __shared__ __align__(32) float results[WARPS][16][16 + PAD];
  int first_row = blockIdx.x * ROWS, keys = causal ? min(first_row + ROWS, seqlen) : seqlen;
  int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
  size_t head = blockIdx.y;
  p += (head * seqlen + first_row) * seqlen;
  v += head * seqlen * HEAD_DIM;
  o += head * seqlen * HEAD_DIM;

  ValueFragment ones;
  SumFragment sum[HEAD_DIM / 16], row_sum;
  wmma::fill_fragment(ones, 1);
  wmma::fill_fragment(row_sum, 0);
  for (int n = 0; n < HEAD_DIM / 16; n++) wmma::fill_fragment(sum[n], 0);
  for (int key = 0; key < keys; key += KEYS) {
    __syncthreads();  // all warps have multiplied the previous tiles
    load_weights(weights, p + key, seqlen, seqlen - first_row, seqlen - key);
    load_tile<HEAD_DIM, KEYS>(values, v + (size_t)key * HEAD_DIM, seqlen - key);
    __syncthreads();  // all threads have stored their part
    for (int j = 0; j < KEYS; j += 16) {
      LeftFragment a;
      wmma::load_matrix_sync(a, &weights[16 * warp][j], KEYS + PAD);
      wmma::mma_sync(row_sum, a, ones, row_sum);
      for (int n = 0; n < HEAD_DIM / 16; n++) {
        ValueFragment b;
        wmma::load_matrix_sync(b, &values[j][16 * n], HEAD_DIM + PAD);
        wmma::mma_sync(sum[n], a, b, sum[n]);
      }
    }
  }

  float(*result)[16 + PAD] = results[warp];
  for (int n = 0; n < HEAD_DIM / 16; n++) {
    for (int e = 0; e < row_sum.num_elements; e++) sum[n].x[e] /= row_sum.x[e];
    wmma::store_matrix_sync(&result[0][0], sum[n], 16 + PAD, wmma::mem_row_major);
    __syncwarp();  // all lanes have stored their part
    for (int row = lane / 16; row < 16; row += WARP / 16) {
      int i = first_row + 16 * warp + row, d = 16 * n + lane % 16;
      if (i < seqlen) o[(size_t)i * HEAD_DIM + d] = __float2half(result[row][lane % 16]);
    }
    __syncwarp();  // all lanes have read the results of this fragment
  }
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
