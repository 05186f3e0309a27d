// Stage 02: attention as one kernel. A block has 64 queries and takes keys and values 64 at a time. A softmax can begin
// before its row is complete if it corrects itself: when a tile brings a larger maximum, the sums so far are multiplied
// by exp(old maximum - new maximum). So scores and weights exist for one tile only, in shared memory.
//
//   for each tile of keys:   S = Q K^T            tensor cores, to shared memory (fp32)
//                            P = exp(S - max)     two lanes a row, to shared memory (fp16)
//                            O = O * factor + P V tensor cores; O stays in registers (fp32)
//   at the end:              O / sum
#include <cuda_fp16.h>
#include <float.h>
#include <mma.h>

#include "tiles.h"

using namespace nvcuda;

enum { WARP = 32, WARP_ROWS = 16 };
static_assert(WARP_ROWS * THREADS / WARP == ROWS, "each warp has 16 of the block's queries");

// Fragments of 16 x 16 elements each. The columns of K^T are the rows of K; everything else lies row by row.
typedef wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> LeftFragment;   // Q, P
typedef wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> KeyFragment;    // K^T
typedef wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> ValueFragment;  // V
typedef wmma::fragment<wmma::accumulator, 16, 16, 16, float> SumFragment;                 // S, O

// ---- tiles in shared memory ----

// The shared memory of a block. PAD elements at the end of a row shift the next one to other banks. Each warp has 16
// rows of s and p to itself.
template <int HEAD_DIM> struct Shared {
  half q[ROWS][HEAD_DIM + PAD], k[KEYS][HEAD_DIM + PAD], v[KEYS][HEAD_DIM + PAD];
  half p[ROWS][KEYS + PAD];
  float s[ROWS][KEYS + PAD];
};
static_assert(sizeof(Shared<64>) == SHARED_BYTES(64) && sizeof(Shared<128>) == SHARED_BYTES(128), "see tiles.h");

// Copies TILE_ROWS rows to shared memory; each thread copies 16 bytes at a time. The matrix has only `rows` rows left.
// The tile's other rows become zeros. Rows of V with the weight 0 must be numbers as well: NaN times 0 is NaN.
template <int HEAD_DIM, int TILE_ROWS>
__device__ void load_tile(half (*tile)[HEAD_DIM + PAD], const half *from, int rows) {
  for (int first = 0; first < TILE_ROWS * HEAD_DIM; first += THREADS * 8) {
    int i = first + threadIdx.x * 8, row = i / HEAD_DIM, d = i % HEAD_DIM;
    *(uint4 *)&tile[row][d] = row < rows ? *(const uint4 *)(from + i) : make_uint4(0, 0, 0, 0);
  }
}

// ---- a warp's part ----

// S = Q K^T for a warp's 16 rows and 64 keys.
template <int HEAD_DIM>
__device__ void scores(float (*s)[KEYS + PAD], const half (*q)[HEAD_DIM + PAD], const half (*k)[HEAD_DIM + PAD]) {
  SumFragment sum[KEYS / 16];
  for (int n = 0; n < KEYS / 16; n++) wmma::fill_fragment(sum[n], 0);
  for (int d = 0; d < HEAD_DIM; d += 16) {
    LeftFragment a;
    wmma::load_matrix_sync(a, &q[0][d], HEAD_DIM + PAD);
    for (int n = 0; n < KEYS / 16; n++) {
      KeyFragment b;
      wmma::load_matrix_sync(b, &k[16 * n][d], HEAD_DIM + PAD);
      wmma::mma_sync(sum[n], a, b, sum[n]);
    }
  }
  for (int n = 0; n < KEYS / 16; n++) wmma::store_matrix_sync(&s[0][16 * n], sum[n], KEYS + PAD, wmma::mem_row_major);
}

// Two neighbouring lanes share a row of S. They take groups of four columns alternately; this is column number e of
// this lane. (With one half of the row for each lane, both would read from the same banks.)
__device__ int column(int e) { return e / 4 * 8 + threadIdx.x % 2 * 4 + e % 4; }

// The state of a lane's row: the maximum of all scores so far, and the sum of this lane's own weights.
struct Row {
  float max, sum;
};

// P = exp(S - maximum). exp(x) is computed as 2^(x log2 e), and `scale` includes the factor log2 e. The row sees only
// the first `keys` keys of the tile. Returns the factor for the sums of all earlier tiles.
__device__ float online_softmax(half *p, const float *s, Row *row, int keys, float scale) {
  float score[KEYS / 2], old_max = row->max;
  for (int e = 0; e < KEYS / 2; e++) score[e] = s[column(e)];
  if (keys < KEYS)
    for (int e = 0; e < KEYS / 2; e++)
      if (column(e) >= keys) score[e] = -INFINITY;

  for (int e = 0; e < KEYS / 2; e++) row->max = fmaxf(row->max, score[e]);
  row->max = fmaxf(row->max, __shfl_xor_sync(0xffffffff, row->max, 1));
  float factor = exp2f((old_max - row->max) * scale);
  row->sum *= factor;
  for (int e = 0; e < KEYS / 2; e++) {
    score[e] = exp2f((score[e] - row->max) * scale);
    row->sum += score[e];
  }
  for (int e = 0; e < KEYS / 2; e += 4) {
    half2 weights[2] = {__floats2half2_rn(score[e], score[e + 1]), __floats2half2_rn(score[e + 2], score[e + 3])};
    *(uint2 *)&p[column(e)] = *(uint2 *)weights;
  }
  return factor;
}

// Multiplies row i of a warp's O by the factor that lanes 2 i and 2 i + 1 pass. The lanes do not know which rows their
// registers belong to. But fragments of one type lie in registers in the same way. So the factors are loaded as such a
// fragment, a matrix with factor i everywhere in row i, and each element of O meets its own factor. The matrix passes
// through s, which must be free.
template <int HEAD_DIM> __device__ void scale_rows(SumFragment *o, float factor, float (*s)[KEYS + PAD]) {
  int lane = threadIdx.x % WARP;
  for (int e = 0; e < 8; e++) s[lane / 2][column(e)] = factor;
  __syncwarp();
  SumFragment factors;
  wmma::load_matrix_sync(factors, &s[0][0], KEYS + PAD, wmma::mem_row_major);
  for (int n = 0; n < HEAD_DIM / 16; n++)
    for (int e = 0; e < factors.num_elements; e++) o[n].x[e] *= factors.x[e];
}

// O += P V for a warp's 16 rows and 64 keys.
template <int HEAD_DIM>
__device__ void output(SumFragment *o, const half (*p)[KEYS + PAD], const half (*v)[HEAD_DIM + PAD]) {
  for (int j = 0; j < KEYS; j += 16) {
    LeftFragment a;
    wmma::load_matrix_sync(a, &p[0][j], KEYS + PAD);
    for (int n = 0; n < HEAD_DIM / 16; n++) {
      ValueFragment b;
      wmma::load_matrix_sync(b, &v[j][16 * n], HEAD_DIM + PAD);
      wmma::mma_sync(o[n], a, b, o[n]);
    }
  }
}

// Writes `rows` rows of a warp's O to device memory, KEYS columns at a time. They pass through s, because in shared
// memory the lanes know the place of each element.
template <int HEAD_DIM> __device__ void store_rows(half *to, const SumFragment *o, float (*s)[KEYS + PAD], int rows) {
  for (int first = 0; first < HEAD_DIM; first += KEYS) {
    __syncwarp();  // all lanes have read s
    for (int n = 0; n < KEYS / 16; n++)
      wmma::store_matrix_sync(&s[0][16 * n], o[first / 16 + n], KEYS + PAD, wmma::mem_row_major);
    __syncwarp();
    int d = threadIdx.x % WARP * 2;
    for (int row = 0; row < min(rows, WARP_ROWS); row++)
      *(half2 *)&to[row * HEAD_DIM + first + d] = __floats2half2_rn(s[row][d], s[row][d + 1]);
  }
}

// ---- the kernel ----

// Each block has 64 queries of one head.
//
// Grid: query tiles, head after head. Block: 128.
template <int HEAD_DIM>
__device__ void attention(const half *q, const half *k, const half *v, half *o, int seqlen, float scale, int causal) {
  extern __shared__ __align__(128) unsigned char memory[];
  Shared<HEAD_DIM> *shared = (Shared<HEAD_DIM> *)memory;
  int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
  int blocks = (seqlen + ROWS - 1) / ROWS, block_row = blockIdx.x % blocks * ROWS;
  size_t head = blockIdx.x / blocks * (size_t)seqlen * HEAD_DIM;
  int row = block_row + warp * WARP_ROWS, i = row + lane / 2;  // the warp's first query, and this lane's
  k += head;
  v += head;
  float(*s)[KEYS + PAD] = shared->s + warp * WARP_ROWS;
  half(*p)[KEYS + PAD] = shared->p + warp * WARP_ROWS;

  load_tile<HEAD_DIM, ROWS>(shared->q, q + head + (size_t)block_row * HEAD_DIM, seqlen - block_row);
  SumFragment out[HEAD_DIM / 16];
  for (int n = 0; n < HEAD_DIM / 16; n++) wmma::fill_fragment(out[n], 0);

  // The maximum begins at the lowest finite number, not at -INFINITY: in a row that has seen no key yet, score - max
  // would be NaN.
  Row state = {-FLT_MAX, 0};
  scale *= 1.44269504f;  // log2 e

  int keys = causal ? min(block_row + ROWS, seqlen) : seqlen;  // the most a row of the block sees
  int row_keys = causal ? min(i + 1, seqlen) : seqlen;         // how many this lane's row sees
  for (int key = 0; key < keys; key += KEYS) {
    __syncthreads();  // all warps have multiplied the previous tiles
    load_tile<HEAD_DIM, KEYS>(shared->k, k + (size_t)key * HEAD_DIM, seqlen - key);
    load_tile<HEAD_DIM, KEYS>(shared->v, v + (size_t)key * HEAD_DIM, seqlen - key);
    __syncthreads();  // all threads have stored their part
    scores<HEAD_DIM>(s, shared->q + warp * WARP_ROWS, shared->k);
    __syncwarp();  // all of s is written
    float factor = online_softmax(p[lane / 2], s[lane / 2], &state, row_keys - key, scale);
    __syncwarp();  // all of p is written
    scale_rows<HEAD_DIM>(out, factor, s);
    output<HEAD_DIM>(out, p, shared->v);
  }
  state.sum += __shfl_xor_sync(0xffffffff, state.sum, 1);
  __syncwarp();  // all lanes have read s
  scale_rows<HEAD_DIM>(out, 1 / state.sum, s);
  store_rows<HEAD_DIM>(o + head + (size_t)row * HEAD_DIM, out, s, seqlen - row);
}

extern "C" __global__ void attention_64(const half *q, const half *k, const half *v, half *o, int seqlen, float scale,
                                        int causal) {
  attention<64>(q, k, v, o, seqlen, scale, causal);
}

extern "C" __global__ void attention_128(const half *q, const half *k, const half *v, half *o, int seqlen, float scale,
                                         int causal) {
  attention<128>(q, k, v, o, seqlen, scale, causal);
}
