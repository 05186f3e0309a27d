// Stage 02b: scores and weights stay in registers. PTX documents which lane holds which element of a fragment of
// mma.sync. So a lane turns its scores into weights in place, and P V takes the weights from the same registers.
//
// A block has 64 queries of one head, and each of its 4 warps has 16. For each tile of 64 keys:
//
//   scores   S = Q K^T                   mma: Q and K from shared memory, by ldmatrix
//   softmax  P = exp(S - max), sum += P  in registers, with a running maximum and sum, as in stage 02
//   output   O += P V                    mma: P from the registers where S was, V from shared memory
#include <cuda_fp16.h>
#include <float.h>
#include <stdint.h>

#include "ptx/ldmatrix.h"
#include "ptx/math.h"
#include "ptx/mma.h"
#include "ptx/quad.h"
#include "tiles.h"

enum { WARP = 32, WARP_ROWS = 16 };
static_assert(WARP_ROWS * THREADS / WARP == ROWS, "each warp has 16 of the block's queries");

// ---- tiles in shared memory ----

// A block's shared memory. PAD elements at the end of a row shift the next one to other banks.
template <int HEAD_DIM> struct Shared {
  half q[ROWS][HEAD_DIM + PAD], k[KEYS][HEAD_DIM + PAD], v[KEYS][HEAD_DIM + PAD];
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

__device__ uint32_t shared_address(const void *pointer) { return (uint32_t)__cvta_generic_to_shared(pointer); }

// The address that this lane gives to an ldmatrix of rows 0 to 15 and columns 0 to 15 of a tile. The four matrices come
// from top to bottom, then from left to right: the order of A, and of V when ldmatrix transposes it.
template <int HEAD_DIM> __device__ uint32_t lane_address(const half (*tile)[HEAD_DIM + PAD]) {
  int lane = threadIdx.x % WARP;
  return shared_address(&tile[lane % 16][lane / 16 * 8]);
}

// The same for K, but the matrices come from left to right, then from top to bottom. to[0] and to[1] are then the B of
// the first 8 keys, to[2] and to[3] that of the others. (mma needs a B in neighbouring registers; A's order costs
// moves.)
template <int HEAD_DIM> __device__ uint32_t lane_address_k(const half (*tile)[HEAD_DIM + PAD]) {
  int lane = threadIdx.x % WARP;
  return shared_address(&tile[lane / 16 * 8 + lane % 8][lane / 8 % 2 * 8]);
}

// Steps from such an address to another fragment's: i times 16 rows further down, j times 16 columns to the right.
template <int HEAD_DIM> __device__ uint32_t fragment_address(uint32_t address, int i, int j) {
  return address + (i * (HEAD_DIM + PAD) + j) * 16 * sizeof(half);
}

// ---- a warp's part ----

// What a warp keeps for its 16 queries from tile to tile. Lane l has parts of two rows, l / 4 and l / 4 + 8: index [2].
// In every 8 columns of the output it has two neighbours of each row, four numbers: index [4].
template <int HEAD_DIM> struct Rows {
  float o[HEAD_DIM / 8][4];
  float max[2], sum[2];  // sum: of this lane's columns only, until the end
};

// S = Q K^T.
template <int HEAD_DIM> __device__ void scores(float (&s)[KEYS / 8][4], uint32_t q_address, uint32_t k_address) {
  for (int n = 0; n < KEYS / 8; n++)
    for (int e = 0; e < 4; e++) s[n][e] = 0;
  for (int d = 0; d < HEAD_DIM / 16; d++) {
    uint32_t q[4], k[4];
    ldmatrix(q, fragment_address<HEAD_DIM>(q_address, 0, d));
    for (int n = 0; n < KEYS / 16; n++) {
      ldmatrix(k, fragment_address<HEAD_DIM>(k_address, n, d));
      mma(s[2 * n], q, k[0], k[1]);
      mma(s[2 * n + 1], q, k[2], k[3]);
    }
  }
}

// Sets scores to minus infinity: those of keys after the last one and, with a causal mask, those of keys after the
// query. `row` is the warp's first query, and `key` is the tile's first key.
__device__ void mask(float (&s)[KEYS / 8][4], int row, int key, int seqlen, int causal) {
  int lane = threadIdx.x % WARP;
  for (int h = 0; h < 2; h++) {
    int i = row + 8 * h + lane / 4, keys = causal ? min(i + 1, seqlen) : seqlen;
    int left = keys - (key + lane % 4 * 2);  // keys that the row may see, from this lane's first column on
    for (int n = 0; n < KEYS / 8; n++)
      for (int e = 0; e < 2; e++)
        if (8 * n + e >= left) s[n][2 * h + e] = -INFINITY;
  }
}

// The largest of a row's scores. Four neighbouring lanes share a row, and all of them get it.
__device__ float row_max(const float (&s)[KEYS / 8][4], int h) {
  float max = fmaxf(s[0][2 * h], s[0][2 * h + 1]);
  for (int n = 1; n < KEYS / 8; n++) max = fmaxf(fmaxf(max, s[n][2 * h]), s[n][2 * h + 1]);
  return quad_max(max);
}

// When a row's maximum grows, its sum and its output so far shrink by the factor exp(old maximum - new maximum).
// `scale` is that of the scores times log2 e: exp(x) is computed as 2^(x log2 e).
template <int HEAD_DIM> __device__ void raise_max(Rows<HEAD_DIM> &rows, const float (&s)[KEYS / 8][4], float scale) {
  for (int h = 0; h < 2; h++) {
    float max = fmaxf(rows.max[h], row_max(s, h)), factor = exp2f((rows.max[h] - max) * scale);
    rows.max[h] = max;
    rows.sum[h] *= factor;
    for (int n = 0; n < HEAD_DIM / 8; n++)
      for (int e = 0; e < 2; e++) rows.o[n][2 * h + e] *= factor;
  }
}

// P = exp(S - max) replaces S.
template <int HEAD_DIM> __device__ void weights(Rows<HEAD_DIM> &rows, float (&s)[KEYS / 8][4], float scale) {
  for (int h = 0; h < 2; h++)
    for (int n = 0; n < KEYS / 8; n++)
      for (int e = 0; e < 2; e++) {
        s[n][2 * h + e] = exp2f((s[n][2 * h + e] - rows.max[h]) * scale);
        rows.sum[h] += s[n][2 * h + e];
      }
}

// O += P V. Q K^T leaves P as a D. Its elements already lie in the lanes that P V wants for its A.
template <int HEAD_DIM>
__device__ void output(Rows<HEAD_DIM> &rows, const float (&p)[KEYS / 8][4], uint32_t v_address) {
  for (int n = 0; n < KEYS / 16; n++) {
    uint32_t a[4], v[4];
    for (int i = 0; i < 4; i++) a[i] = pack(p[2 * n + i / 2][i % 2 * 2], p[2 * n + i / 2][i % 2 * 2 + 1]);
    for (int d = 0; d < HEAD_DIM / 16; d++) {
      ldmatrix_transposed(v, fragment_address<HEAD_DIM>(v_address, n, d));
      mma(rows.o[2 * d], a, v[0], v[1]);
      mma(rows.o[2 * d + 1], a, v[2], v[3]);
    }
  }
}

// Writes O / sum for the warp's queries, of which `count` exist. Each lane writes what it holds, 4 bytes at a time.
template <int HEAD_DIM> __device__ void store_rows(half *o, const Rows<HEAD_DIM> &rows, int count) {
  int lane = threadIdx.x % WARP;
  for (int h = 0; h < 2; h++) {
    float factor = 1 / quad_sum(rows.sum[h]);
    int row = 8 * h + lane / 4;
    if (row >= count) continue;
    for (int n = 0; n < HEAD_DIM / 8; n++)
      *(uint32_t *)&o[row * HEAD_DIM + 8 * n + lane % 4 * 2] =
          pack(rows.o[n][2 * h] * factor, rows.o[n][2 * h + 1] * factor);
  }
}

// ---- the kernel ----

// One block, 64 queries of one head.
//
// Grid: tiles of queries, head after head. Block: 128.
template <int HEAD_DIM>
__device__ void attention(const half *q, const half *k, const half *v, half *o, int seqlen, float scale, int causal) {
  extern __shared__ __align__(128) unsigned char memory[];
  Shared<HEAD_DIM> *shared = (Shared<HEAD_DIM> *)memory;
  int blocks = (seqlen + ROWS - 1) / ROWS, block_row = blockIdx.x % blocks * ROWS;
  size_t head = blockIdx.x / blocks * (size_t)seqlen * HEAD_DIM;
  int warp = threadIdx.x / WARP, row = block_row + warp * WARP_ROWS;  // the warp's first query
  k += head;
  v += head;

  load_tile<HEAD_DIM, ROWS>(shared->q, q + head + (size_t)block_row * HEAD_DIM, seqlen - block_row);

  // The maximum starts at the lowest finite number. With -INFINITY, score - max is NaN in a row that has seen no key
  // yet.
  Rows<HEAD_DIM> rows;
  for (int h = 0; h < 2; h++) {
    rows.max[h] = -FLT_MAX;
    rows.sum[h] = 0;
    for (int n = 0; n < HEAD_DIM / 8; n++) rows.o[n][2 * h] = rows.o[n][2 * h + 1] = 0;
  }
  scale *= 1.44269504f;  // log2 e: exp(x) is computed as 2^(x log2 e)

  int keys = causal ? min(block_row + ROWS, seqlen) : seqlen;  // the most a row may see
  for (int key = 0; key < keys; key += KEYS) {
    __syncthreads();  // all warps are done with what was in k and v
    load_tile<HEAD_DIM, KEYS>(shared->k, k + (size_t)key * HEAD_DIM, seqlen - key);
    load_tile<HEAD_DIM, KEYS>(shared->v, v + (size_t)key * HEAD_DIM, seqlen - key);
    __syncthreads();  // all threads have stored their part

    float s[KEYS / 8][4];
    scores<HEAD_DIM>(s, lane_address<HEAD_DIM>(shared->q + warp * WARP_ROWS), lane_address_k<HEAD_DIM>(shared->k));
    if (key + KEYS > seqlen || (causal && key + KEYS > row + 1)) mask(s, row, key, seqlen, causal);
    raise_max(rows, s, scale);
    weights(rows, s, scale);
    output(rows, s, lane_address<HEAD_DIM>(shared->v));
  }
  store_rows<HEAD_DIM>(o + head + (size_t)row * HEAD_DIM, rows, seqlen - row);
}

extern "C" __global__ void attention_64(const half *q, const half *k, const half *v, half *o, int seqlen, float scale,
                                        int causal) {
  attention<64>(q, k, v, o, seqlen, scale, causal);
}

extern "C" __global__ void attention_128(const half *q, const half *k, const half *v, half *o, int seqlen, float scale,
                                         int causal) {
  attention<128>(q, k, v, o, seqlen, scale, causal);
}
