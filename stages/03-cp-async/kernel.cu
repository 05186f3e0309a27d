// Stage 03: tiles of K and V are copied in the background (cp.async), into one slot of shared memory, while the tensor
// cores work on the tile in the other.
//
// A block has 128 queries of one head, and each of its 4 warps has 32, two groups of 16. For each tile of 64 keys:
//
//   scores   S = Q K^T                   mma: Q and K from shared memory, by ldmatrix
//   softmax  P = exp(S - max), sum += P  in registers, with a running maximum and sum, as in stage 02
//   output   O += P V                    mma: P from the registers where S was, V from shared memory
#include <cuda_fp16.h>
#include <float.h>
#include <stdint.h>

#include "tiles.h"

#include "ptx/cp_async.h"
#include "ptx/ldmatrix.h"
#include "ptx/math.h"
#include "ptx/mma.h"
#include "ptx/quad.h"
#include "ptx/trace.h"

enum { WARP = 32 };

// ---- tiles in shared memory ----

__device__ uint32_t shared_address(const void *pointer) { return (uint32_t)__cvta_generic_to_shared(pointer); }

// Where in a tile a chunk of 16 bytes lies. `row` is a query or a key, and `chunk` counts along the head dimension.
// Instead of padding, the eight chunks of 128 bytes change places, in a different way in each of eight rows.
template <int HEAD_DIM> __device__ int swizzled(int row, int chunk) {
  return row * ROW_BYTES(HEAD_DIM) + (chunk ^ row % 8) * 16;
}

// Starts the copy of a tile from a matrix that has only `left` more rows. The tile's other rows become zeros. A thread
// copies one chunk of every 16th or 8th row. Both are multiples of 8: its chunks have the same place in their rows.
template <int HEAD_DIM, int TILE_ROWS> __device__ void copy_tile(uint32_t tile, const half *matrix, int left) {
  const int chunks = HEAD_DIM / 8, step = THREADS / chunks;
  int chunk = threadIdx.x % chunks, row = threadIdx.x / chunks;
  const half *from = matrix + threadIdx.x * 8;
  uint32_t to = tile + swizzled<HEAD_DIM>(row, chunk);
  left -= row;
#pragma unroll
  for (int i = 0; i < TILE_ROWS; i += step)
    cp_async(to + i * ROW_BYTES(HEAD_DIM), from + i * HEAD_DIM, i < left ? 16 : 0);
}

// The slot of tile t: first K's tile, then V's.
template <int HEAD_DIM> __device__ uint32_t slot_of(uint32_t slots, int t) {
  return slots + t % SLOTS * 2 * KEYS * ROW_BYTES(HEAD_DIM);
}

// Starts the copies of tile t of K and V into its slot.
template <int HEAD_DIM> __device__ void copy_keys(uint32_t slots, const half *k, const half *v, int t, int seqlen) {
  uint32_t slot = slot_of<HEAD_DIM>(slots, t);
  size_t offset = (size_t)t * KEYS * HEAD_DIM;
  copy_tile<HEAD_DIM, KEYS>(slot, k + offset, seqlen - t * KEYS);
  copy_tile<HEAD_DIM, KEYS>(slot + KEYS * ROW_BYTES(HEAD_DIM), v + offset, seqlen - t * KEYS);
  cp_async_commit();
}

// The address that this lane gives to an ldmatrix of rows 0 to 15 and columns 0 to 15 of a tile. The four matrices come
// from top to bottom, then from left to right: the order of A, and of V when ldmatrix transposes it.
template <int HEAD_DIM> __device__ uint32_t lane_address(uint32_t tile) {
  int lane = threadIdx.x % WARP;
  return tile + swizzled<HEAD_DIM>(lane % 16, lane / 16);
}

// The same for K, but the matrices come from left to right, then from top to bottom. to[0] and to[1] are then the B of
// the first 8 keys, to[2] and to[3] that of the others. (mma needs a B in neighbouring registers; A's order costs
// moves.)
template <int HEAD_DIM> __device__ uint32_t lane_address_k(uint32_t tile) {
  int lane = threadIdx.x % WARP;
  return tile + swizzled<HEAD_DIM>(lane / 16 * 8 + lane % 8, lane / 8 % 2);
}

// Steps from such an address to another fragment's: i times 16 rows further down, j times 16 columns to the right. A
// lane's first chunk is 0 or 1, so adding 2 (j % 4) chunks only sets bits that are 0: an xor. Tiles are aligned, so the
// same xor works on the address, after the xor of the swizzle. The other two steps are additions.
template <int HEAD_DIM> __device__ uint32_t fragment_address(uint32_t address, int i, int j) {
  return (address ^ j % 4 * 32) + j / 4 * 128 + i * 16 * ROW_BYTES(HEAD_DIM);
}

// ---- a warp's part ----

template <int HEAD_DIM> struct Warp {
  char *tile;  // in shared memory: the warp's queries, and at the end its output
  uint32_t q_address, slots;
  int row;  // the warp's first query
  int seqlen, causal;
  float scale;  // log2(e) / sqrt(HEAD_DIM): exp(x) is computed as 2^(x log2 e)

  // The first index is the group of 16 queries. In each, lane l has parts of two rows, l / 4 and l / 4 + 8: index [2].
  // In every 8 columns it has two neighbours of each row, four numbers: index [4].
  float s[2][KEYS / 8][4];  // scores, then weights
  float o[2][HEAD_DIM / 8][4];
  float max[2][2];
  float sum[2][2];  // of the weights in this lane's columns

  __device__ void start() {
    for (int b = 0; b < 2; b++)
      for (int h = 0; h < 2; h++) {
        max[b][h] = -FLT_MAX;
        sum[b][h] = 0;
        for (int n = 0; n < HEAD_DIM / 8; n++) o[b][n][2 * h] = o[b][n][2 * h + 1] = 0;
      }
  }

  // S = Q K^T. Each fragment of K is loaded once, for both groups of queries.
  __device__ void scores(uint32_t slot) {
    uint32_t k_address = lane_address_k<HEAD_DIM>(slot);
    for (int b = 0; b < 2; b++)
      for (int n = 0; n < KEYS / 8; n++)
        for (int e = 0; e < 4; e++) s[b][n][e] = 0;
    for (int d = 0; d < HEAD_DIM / 16; d++) {
      uint32_t q[2][4], k[4];
      for (int b = 0; b < 2; b++) ldmatrix(q[b], fragment_address<HEAD_DIM>(q_address, b, d));
      for (int n = 0; n < KEYS / 16; n++) {
        ldmatrix(k, fragment_address<HEAD_DIM>(k_address, n, d));
        for (int b = 0; b < 2; b++) {
          mma(s[b][2 * n], q[b], k[0], k[1]);
          mma(s[b][2 * n + 1], q[b], k[2], k[3]);
        }
      }
    }
  }

  // Sets scores to minus infinity: those of keys after the last one and, with a causal mask, those of keys after the
  // query. `key` is the tile's first key.
  __device__ void mask(int key) {
    int lane = threadIdx.x % WARP;
    for (int b = 0; b < 2; b++)
      for (int h = 0; h < 2; h++) {
        int i = row + 16 * b + 8 * h + lane / 4, keys = causal ? min(i + 1, seqlen) : seqlen;
        int left = keys - (key + lane % 4 * 2);  // keys that the row may see, from this lane's first column on
        for (int n = 0; n < KEYS / 8; n++)
          for (int e = 0; e < 2; e++)
            if (8 * n + e >= left) s[b][n][2 * h + e] = -INFINITY;
      }
  }

  // The largest of a row's scores. Four neighbouring lanes share a row, and all of them get it.
  __device__ float row_max(int b, int h) {
    float max = fmaxf(s[b][0][2 * h], s[b][0][2 * h + 1]);
    for (int n = 1; n < KEYS / 8; n++) max = fmaxf(fmaxf(max, s[b][n][2 * h]), s[b][n][2 * h + 1]);
    return quad_max(max);
  }

  // Lazy rescaling. While no weight exceeds 2^8, `max` stays as it is, although it may be smaller than the exact
  // maximum: it is stale. fp16 holds weights up to 2^16, and O and sum contain the same maximum, so it cancels in
  // O / sum. Otherwise the exact maximum replaces `max`, and O and sum shrink accordingly. After the first tile that is
  // rare.
  __device__ void raise_max() {
    float larger[2][2];
    bool grew = false;
    for (int b = 0; b < 2; b++)
      for (int h = 0; h < 2; h++) {
        larger[b][h] = fmaxf(max[b][h], row_max(b, h));
        grew |= (larger[b][h] - max[b][h]) * scale > 8;
      }
    if (!__any_sync(0xffffffff, grew)) return;
    for (int b = 0; b < 2; b++)
      for (int h = 0; h < 2; h++) {
        float factor = power_of_two((max[b][h] - larger[b][h]) * scale);
        max[b][h] = larger[b][h];
        sum[b][h] *= factor;
        for (int n = 0; n < HEAD_DIM / 8; n++)
          for (int e = 0; e < 2; e++) o[b][n][2 * h + e] *= factor;
      }
  }

  // Replaces scores by weights, with one multiply-add and one power of two each, and adds the weights up.
  __device__ void weights() {
    for (int b = 0; b < 2; b++)
      for (int h = 0; h < 2; h++) {
        float odd = 0, shift = -max[b][h] * scale;
        for (int n = 0; n < KEYS / 8; n++) {
          s[b][n][2 * h] = power_of_two(s[b][n][2 * h] * scale + shift);
          s[b][n][2 * h + 1] = power_of_two(s[b][n][2 * h + 1] * scale + shift);
          sum[b][h] += s[b][n][2 * h];
          odd += s[b][n][2 * h + 1];
        }
        sum[b][h] += odd;
      }
  }

  // O += P V. Q K^T leaves P as a D. Its elements already lie in the lanes that P V wants for its A.
  __device__ void output(uint32_t slot) {
    uint32_t v_address = lane_address<HEAD_DIM>(slot + KEYS * ROW_BYTES(HEAD_DIM));
    for (int n = 0; n < KEYS / 16; n++) {
      uint32_t p[2][4], v[4];
      for (int b = 0; b < 2; b++)
        for (int i = 0; i < 4; i++) p[b][i] = pack(s[b][2 * n + i / 2][i % 2 * 2], s[b][2 * n + i / 2][i % 2 * 2 + 1]);
      for (int d = 0; d < HEAD_DIM / 16; d++) {
        ldmatrix_transposed(v, fragment_address<HEAD_DIM>(v_address, n, d));
        for (int b = 0; b < 2; b++) {
          mma(o[b][2 * d], p[b], v[0], v[1]);
          mma(o[b][2 * d + 1], p[b], v[2], v[3]);
        }
      }
    }
  }

  // Computes with one tile of keys. `masked`: some row must not see all of it.
  __device__ void step(int t, bool masked) {
    uint32_t slot = slot_of<HEAD_DIM>(slots, t);
    trace(QK, t);
    scores(slot);
    trace(SOFTMAX, t);
    if (masked) mask(t * KEYS);
    raise_max();
    weights();
    trace(PV, t);
    output(slot);
  }

  // Writes O / sum for this warp's queries. O goes first to the shared memory that held the queries. From there each
  // lane writes 16 bytes at a time, and the warp writes whole rows.
  __device__ void store(half *to) {
    int lane = threadIdx.x % WARP;
    __syncwarp();  // all lanes have read the queries
    to += (size_t)row * HEAD_DIM;
#pragma unroll
    for (int b = 0; b < 2; b++)
      for (int h = 0; h < 2; h++) {
        float scale = 1 / quad_sum(sum[b][h]);
#pragma unroll
        for (int n = 0; n < HEAD_DIM / 8; n++)
          *(uint32_t *)(tile + swizzled<HEAD_DIM>(16 * b + 8 * h + lane / 4, n) + lane % 4 * 4) =
              pack(o[b][n][2 * h] * scale, o[b][n][2 * h + 1] * scale);
      }
    __syncwarp();
    const int chunks = HEAD_DIM / 8;
    for (int i = lane; i < WARP_ROWS * chunks; i += WARP)
      if (row + i / chunks < seqlen)
        *(uint4 *)(to + i * 8) = *(uint4 *)(tile + swizzled<HEAD_DIM>(i / chunks, i % chunks));
  }
};

// ---- the kernel ----

// One block: the queries of four warps, all of one head. Shared memory: Q, then the slots.
//
// Grid: tiles of queries, head after head. Block: 128.
template <int HEAD_DIM>
__device__ void attention(const half *q, const half *k, const half *v, half *o, int seqlen, float scale, int causal) {
  extern __shared__ __align__(128) char shared[];
  uint32_t queries = shared_address(shared), slots = queries + ROWS * ROW_BYTES(HEAD_DIM);
  int blocks = (seqlen + ROWS - 1) / ROWS;
  int block_row = (blocks - 1 - blockIdx.x % blocks) * ROWS;  // causal: those with most keys first
  size_t head = blockIdx.x / blocks * (size_t)seqlen * HEAD_DIM;
  k += head;
  v += head;

  trace_begin(ALL);
  trace(COPY, 0);
  copy_tile<HEAD_DIM, ROWS>(queries, q + head + (size_t)block_row * HEAD_DIM, seqlen - block_row);
  copy_keys<HEAD_DIM>(slots, k, v, 0, seqlen);

  int first = threadIdx.x / WARP * WARP_ROWS, row = block_row + first;  // where the warp's queries begin
  uint32_t q_address = lane_address<HEAD_DIM>(queries + first * ROW_BYTES(HEAD_DIM));
  Warp<HEAD_DIM> part{shared + first * ROW_BYTES(HEAD_DIM), q_address, slots, row, seqlen, causal, scale * 1.44269504f};
  part.start();

  int keys = causal ? min(block_row + ROWS, seqlen) : seqlen;  // the most a row may see
  int tiles = (keys + KEYS - 1) / KEYS;
  int full_tiles = (causal ? min(block_row + 1, seqlen) : seqlen) / KEYS;  // tiles that all rows see whole
  for (int t = 0; t < tiles; t++) {
    trace(WAIT_K, t);
    cp_async_wait<0>();  // this thread's copies of tile t have landed
    trace_done(COPY, t);
    trace(BARRIER, t);
    __syncthreads();  // all threads' copies have landed; all warps have read tile t - 1: t + 1 takes its slot
    trace(COPY, t + 1);
    if (t + 1 < tiles) copy_keys<HEAD_DIM>(slots, k, v, t + 1, seqlen);
    if (causal && t * KEYS > row + WARP_ROWS - 1) continue;  // this warp sees none of it
    part.step(t, t >= full_tiles);
  }
  trace(STORE, tiles - 1);
  part.store(o + head);
  trace_end();
}

// The entry points. An SM has 65,536 registers: enough for 3 blocks of 128 threads with 168 each, or 2 with 255.
extern "C" __global__ void __launch_bounds__(THREADS, 3)
    attention_64(const half *q, const half *k, const half *v, half *o, int seqlen, float scale, int causal) {
  attention<64>(q, k, v, o, seqlen, scale, causal);
}

extern "C" __global__ void __launch_bounds__(THREADS, 2)
    attention_128(const half *q, const half *k, const half *v, half *o, int seqlen, float scale, int causal) {
  attention<128>(q, k, v, o, seqlen, scale, causal);
}
