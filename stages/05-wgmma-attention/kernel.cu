// Stage 05: the fused kernel on Hopper's own tensor-core instruction. A warpgroup, four warps, multiplies 64 queries by
// a whole tile of keys at once, and the tensor cores fetch Q, K and V from shared memory by themselves.
//
// For each tile of keys a warpgroup does
//
//   scores   S = Q K^T                   wgmma: Q and K from shared memory
//   softmax  P = exp(S - max), sum += P  in registers, as in stage 03
//   output   O += P V                    wgmma: P from the registers where S was, V from shared memory
#include <cuda_fp16.h>
#include <stdint.h>

#include "tiles.h"

#include "ptx/barrier.h"
#include "ptx/cp_async.h"
#include "ptx/fence.h"
#include "ptx/math.h"
#include "ptx/quad.h"
#include "ptx/tile.h"
#include "ptx/trace.h"
#include "ptx/wgmma.h"

enum { WARP = 32 };

// A block's shared memory: its queries, in whose place the output gathers, and slots for tiles of K and V.
template <int HEAD_DIM> struct Shared {
  enum { KEYS = KEYS_OF(HEAD_DIM) };
  half q[ROWS * HEAD_DIM];
  half k[SLOTS][KEYS * HEAD_DIM], v[SLOTS][KEYS * HEAD_DIM];
};
static_assert(sizeof(Shared<64>) == SHARED_BYTES(64) && sizeof(Shared<128>) == SHARED_BYTES(128), "see tiles.h");

// ---- tiles in shared memory ----

// Starts the copy of a tile from a matrix that has only `left` more rows. The tile's other rows become zeros. A thread
// copies one chunk of every 16th or 8th row. Both are multiples of 8: its chunks have the same place in their rows.
template <int HEAD_DIM, int TILE_ROWS> __device__ void copy_tile(uint32_t tile, const half *matrix, int left) {
  const int chunks = HEAD_DIM / 8, step = THREADS / chunks;
  static_assert(step % 8 == 0 && TILE_ROWS % step == 0);
  int chunk = threadIdx.x % chunks, row = threadIdx.x / chunks;
  const half *from = matrix + threadIdx.x * 8;
  uint32_t to = tile + swizzled(TILE_ROWS, row, chunk);
#pragma unroll
  for (int i = 0; i < TILE_ROWS; i += step) cp_async(to + i * ROW_BYTES, from + i * HEAD_DIM, row + i < left ? 16 : 0);
}

// Starts the copies of tile t of K and V into its slot.
template <int HEAD_DIM>
__device__ void copy_keys(Shared<HEAD_DIM> &shared, const half *k, const half *v, int t, int seqlen) {
  const int KEYS = Shared<HEAD_DIM>::KEYS;
  size_t offset = (size_t)t * KEYS * HEAD_DIM;
  copy_tile<HEAD_DIM, KEYS>(shared_address(shared.k[t % SLOTS]), k + offset, seqlen - t * KEYS);
  copy_tile<HEAD_DIM, KEYS>(shared_address(shared.v[t % SLOTS]), v + offset, seqlen - t * KEYS);
  cp_async_commit();
}

// ---- a warpgroup's part ----

template <int HEAD_DIM> struct Warpgroup {
  using S = Shared<HEAD_DIM>;
  static constexpr int KEYS = S::KEYS;
  S &shared;
  int warpgroup, warp, lane;
  int row;  // the warpgroup's first query
  int seqlen, causal;
  float scale;  // log2(e) / sqrt(HEAD_DIM): exp(x) is computed as 2^(x log2 e)

  // Lane l has parts of rows l / 4 (h = 0) and l / 4 + 8 (h = 1): s[4 n + 2 h + e] is in column 8 n + 2 (l % 4) + e.
  float s[KEYS / 2];  // scores, then weights
  float o[HEAD_DIM / 2];
  float shift[2];  // a weight is 2^(score * scale + shift)
  float sum[2];    // of the weights in this thread's columns

  __device__ void start() {
#pragma unroll
    for (int h = 0; h < 2; h++) {
      shift[h] = INFINITY;
      sum[h] = 0;
    }
#pragma unroll
    for (int i = 0; i < HEAD_DIM / 2; i++) o[i] = 0;
  }

  // S = Q K^T. The fence is for s: ordinary instructions have used it since the last product.
  __device__ void scores(int slot) {
    uint64_t a = k_major(shared_address(shared.q) + warpgroup * WARPGROUP_ROWS * ROW_BYTES);
    uint64_t b = k_major(shared_address(shared.k[slot]));
    wgmma_fence();
#pragma unroll
    for (int d = 0; d < HEAD_DIM / 16; d++) wgmma<KEYS>(s, columns_16(a, ROWS, d), columns_16(b, KEYS, d), d > 0);
    wgmma_commit();
    wgmma_wait<0>();
    wgmma_results(s);
  }

  // Sets scores to minus infinity: those of keys after the last one and, with a causal mask, those of keys after the
  // query. `key` is the tile's first key.
  __device__ void mask(int key) {
#pragma unroll
    for (int h = 0; h < 2; h++) {
      int i = row + 16 * warp + 8 * h + lane / 4, keys = causal ? min(i + 1, seqlen) : seqlen;
      int left = keys - (key + lane % 4 * 2);  // keys that the row may see, from this lane's first column on
#pragma unroll
      for (int n = 0; n < KEYS / 8; n++)
        for (int e = 0; e < 2; e++)
          if (8 * n + e >= left) s[4 * n + 2 * h + e] = -INFINITY;
    }
  }

  // The largest of a row's scores.
  __device__ float row_max(int h) {
    float even = s[2 * h], odd = s[2 * h + 1];
#pragma unroll
    for (int i = 4; i < KEYS / 2; i += 4) {
      even = fmaxf(even, s[i + 2 * h]);
      odd = fmaxf(odd, s[i + 2 * h + 1]);
    }
    return quad_max(fmaxf(even, odd));
  }

  // Lazy rescaling, as in stage 02c: when a maximum has grown so much that a weight would exceed 2^8, the shift
  // follows it, and everything older shrinks.
  __device__ void raise_max() {
    float lower[2];
#pragma unroll
    for (int h = 0; h < 2; h++) lower[h] = fminf(shift[h], -row_max(h) * scale);
    if (!__any_sync(0xffffffff, fmaxf(shift[0] - lower[0], shift[1] - lower[1]) > 8)) return;
#pragma unroll
    for (int h = 0; h < 2; h++) {
      float factor = power_of_two(lower[h] - shift[h]);
      shift[h] = lower[h];
      sum[h] *= factor;
#pragma unroll
      for (int i = 0; i < HEAD_DIM / 2; i += 4)
        for (int e = 0; e < 2; e++) o[i + 2 * h + e] *= factor;
    }
  }

  // Replaces the scores by weights, and adds the weights up.
  __device__ void weights() {
    float odd[2] = {0, 0};
#pragma unroll
    for (int i = 0; i < KEYS / 2; i += 4)
#pragma unroll
      for (int h = 0; h < 2; h++) {
        s[i + 2 * h] = power_of_two(s[i + 2 * h] * scale + shift[h]);
        s[i + 2 * h + 1] = power_of_two(s[i + 2 * h + 1] * scale + shift[h]);
        sum[h] += s[i + 2 * h];
        odd[h] += s[i + 2 * h + 1];
      }
    sum[0] += odd[0];
    sum[1] += odd[1];
  }

  // The weights as fp16, packed in pairs: an A of four registers for every 16 keys. P never leaves the thread.
  __device__ void pack_weights(uint32_t (&p)[KEYS / 16][4]) {
#pragma unroll
    for (int n = 0; n < KEYS / 16; n++)
      for (int j = 0; j < 4; j++) p[n][j] = pack(s[8 * n + 2 * j], s[8 * n + 2 * j + 1]);
  }

  // O += P V.
  __device__ void output(const uint32_t (&p)[KEYS / 16][4], int slot) {
    uint64_t b = mn_major(shared_address(shared.v[slot]), KEYS);
    wgmma_fence();
#pragma unroll
    for (int n = 0; n < KEYS / 16; n++) wgmma<HEAD_DIM, true>(o, p[n], rows_16(b, n), true);
    wgmma_commit();
    wgmma_wait<0>();
    wgmma_results(o);
  }

  // Computes with one tile of keys. `masked`: some row must not see all of it.
  __device__ void step(int t, bool masked) {
    uint32_t p[KEYS / 16][4];
    trace(QK, t);
    scores(t % SLOTS);
    trace(SOFTMAX, t);
    if (masked) mask(t * KEYS);
    raise_max();
    weights();
    pack_weights(p);
    trace(PV, t);
    output(p, t % SLOTS);
  }

  // Writes O / sum for this warp's queries. O goes first to the shared memory that held the queries. From there each
  // lane writes 16 bytes at a time, and the warp writes whole rows.
  __device__ void store(half *to) {
    barrier_sync(1 + warpgroup, WARPGROUP);  // the whole warpgroup's products have read the queries
    int tile_row = warpgroup * WARPGROUP_ROWS + warp * 16, first = row + warp * 16;
    char *tile = (char *)shared.q;
    to += (size_t)first * HEAD_DIM;
#pragma unroll
    for (int h = 0; h < 2; h++) {
      float scale = 1 / quad_sum(sum[h]);
#pragma unroll
      for (int n = 0; n < HEAD_DIM / 8; n++)
        *(uint32_t *)(tile + swizzled(ROWS, tile_row + 8 * h + lane / 4, n) + lane % 4 * 4) =
            pack(o[4 * n + 2 * h] * scale, o[4 * n + 2 * h + 1] * scale);
    }
    __syncwarp();
    const int chunks = HEAD_DIM / 8;
    for (int i = lane; i < 16 * chunks; i += WARP)
      if (first + i / chunks < seqlen)
        *(uint4 *)(to + i * 8) = *(uint4 *)(tile + swizzled(ROWS, tile_row + i / chunks, i % chunks));
  }
};

// ---- the kernel ----

// One block: the queries of two warpgroups, all of one head.
//
// Grid: tiles of queries, head after head. Block: 256.
template <int HEAD_DIM>
__device__ void attention(const half *q, const half *k, const half *v, half *o, int seqlen, float scale, int causal) {
  using S = Shared<HEAD_DIM>;
  const int KEYS = S::KEYS;
  extern __shared__ __align__(1024) char memory[];  // the pattern of the swizzle repeats after 1024 bytes
  S &shared = *(S *)memory;
  int blocks = (seqlen + ROWS - 1) / ROWS;
  int block_row = (blocks - 1 - blockIdx.x % blocks) * ROWS;  // causal: those with most keys first
  size_t head = blockIdx.x / blocks * (size_t)seqlen * HEAD_DIM;
  k += head;
  v += head;

  trace_begin(ALL);
  trace(COPY, 0);
  copy_tile<HEAD_DIM, ROWS>(shared_address(shared.q), q + head + (size_t)block_row * HEAD_DIM, seqlen - block_row);
  copy_keys(shared, k, v, 0, seqlen);

  int warpgroup = __shfl_sync(0xffffffff, threadIdx.x / WARPGROUP, 0);  // tells ptxas that all lanes have the same
  int thread = threadIdx.x % WARPGROUP, row = block_row + warpgroup * WARPGROUP_ROWS;
  Warpgroup<HEAD_DIM> part{shared, warpgroup, thread / WARP, thread % WARP, row, seqlen, causal, scale * 1.44269504f};
  part.start();

  int keys = causal ? min(block_row + ROWS, seqlen) : seqlen;  // the most a row may see
  int tiles = (keys + KEYS - 1) / KEYS;
  int full_tiles = (causal ? min(row + 1, seqlen) : seqlen) / KEYS;  // tiles that the warpgroup sees whole
  for (int t = 0; t < tiles; t++) {
    trace(WAIT_K, t);
    cp_async_wait<0>();   // this thread's copies of tile t have landed
    fence_async_proxy();  // and wgmma will see them
    trace_done(COPY, t);
    trace(BARRIER, t);
    __syncthreads();  // all threads' copies have landed; all warps have read tile t - 1: t + 1 takes its slot
    trace(COPY, t + 1);
    if (t + 1 < tiles) copy_keys(shared, k, v, t + 1, seqlen);
    if (!causal || t * KEYS < row + WARPGROUP_ROWS) part.step(t, t >= full_tiles);  // some row sees some key
  }
  trace(STORE, tiles - 1);
  part.store(o + head);
  trace_end();
}

// The entry points. For D = 64 a thread needs fewer than 128 registers, so that two blocks fit on an SM; for D = 128
// one block with all of its registers and longer tiles is better.
extern "C" __global__ void __launch_bounds__(THREADS, 2)
    attention_64(const half *q, const half *k, const half *v, half *o, int seqlen, float scale, int causal) {
  attention<64>(q, k, v, o, seqlen, scale, causal);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    attention_128(const half *q, const half *k, const half *v, half *o, int seqlen, float scale, int causal) {
  attention<128>(q, k, v, o, seqlen, scale, causal);
}
