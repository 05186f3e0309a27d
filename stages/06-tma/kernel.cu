// Stage 06: TMA. One thread asks for a whole tile of K and V, and the copy engine brings it, swizzled, while all threads
// compute. What has landed, and what may be overwritten, is told by mbarriers instead of a barrier of all threads.
//
// For each tile of keys a warpgroup does, as in stage 05,
//
//   scores   S = Q K^T                   wgmma: Q and K from shared memory
//   softmax  P = exp(S - max), sum += P  in registers
//   output   O += P V                    wgmma: P from the registers where S was, V from shared memory
#include <cuda.h>
#include <cuda_fp16.h>
#include <float.h>
#include <stdint.h>

#include "ptx/barrier.h"
#include "ptx/math.h"
#include "ptx/mbarrier.h"
#include "ptx/quad.h"
#include "ptx/ring.h"
#include "ptx/tile.h"
#include "ptx/tma.h"
#include "ptx/trace.h"
#include "ptx/wgmma.h"

enum { WARP = 32, WARPGROUP = 128, WARPGROUPS = 2, WARPGROUP_ROWS = 64, ROWS = WARPGROUPS * WARPGROUP_ROWS };

// What differs between head dimensions: keys of a tile, places for tiles of K and V.
template <int HEAD_DIM> struct Config;
template <> struct Config<64> {
  enum { KEYS = 64, STAGES = 4 };
};
template <> struct Config<128> {
  enum { KEYS = 128, STAGES = 3 };
};

// What a block has in shared memory: Q, and a ring of tiles of K and V. A place is full when TMA has filled it, and empty
// when all warps are done with it.
template <int HEAD_DIM> struct Shared : Config<HEAD_DIM> {
  using C = Config<HEAD_DIM>;
  half q[ROWS * HEAD_DIM];
  half k[C::STAGES][C::KEYS * HEAD_DIM], v[C::STAGES][C::KEYS * HEAD_DIM];
  uint64_t q_full, full[C::STAGES], empty[C::STAGES];
};

// How TMA finds the tensors in global memory, [heads of all batches][seqlen][HEAD_DIM].
struct Tensors {
  CUtensorMap q, k, v;
};

// ---- the thread that loads ----

// Asks for rows of a head, in panels of 64 columns, as TMA's boxes are no wider. They count on the mbarrier as they land.
template <int HEAD_DIM, int SIZE>
__device__ void load(half (&to)[SIZE], uint64_t &full, const CUtensorMap *map, int row, int head) {
  const int panel_bytes = SIZE / HEAD_DIM * ROW_BYTES;
#pragma unroll
  for (int panel = 0; panel < HEAD_DIM / PANEL; panel++)
    tma_load(shared_address(to) + panel * panel_bytes, map, shared_address(&full), panel * PANEL, row, head);
}

template <int HEAD_DIM>
__device__ void load_queries(Shared<HEAD_DIM> &shared, const Tensors &tensors, int row, int head) {
  mbarrier_arrive_expect(shared_address(&shared.q_full), sizeof shared.q);
  load<HEAD_DIM>(shared.q, shared.q_full, &tensors.q, row, head);
}

// Tile t of K and V, into the ring's next place when it is empty.
template <int HEAD_DIM, int PLACES>
__device__ void load_keys(Shared<HEAD_DIM> &shared, Ring<PLACES> &ring, const Tensors &tensors, int t, int head) {
  const int KEYS = Config<HEAD_DIM>::KEYS;
  uint64_t &full = shared.full[ring.place];
  trace(WAIT_FREE, t);
  mbarrier_wait(shared_address(shared.empty + ring.place), ring.parity ^ 1);
  trace(COPY, t);
  mbarrier_arrive_expect(shared_address(&full), sizeof shared.k[0] + sizeof shared.v[0]);
  load<HEAD_DIM>(shared.k[ring.place], full, &tensors.k, t * KEYS, head);
  load<HEAD_DIM>(shared.v[ring.place], full, &tensors.v, t * KEYS, head);
  ring.advance();
}

// ---- a warpgroup's part ----

// What a warpgroup keeps for its 64 queries from tile to tile. A thread has two rows, l / 4 and l / 4 + 8 of its warp's
// sixteen, and of the output of each, for every 8 columns, two neighbours: o[4 n + 2 h + e], row h.
template <int HEAD_DIM> struct Rows {
  float o[HEAD_DIM / 2];
  float max[2], sum[2];  // sum: of this thread's columns only, until the end
};

// S = Q K^T. The fence is for s, which ordinary instructions have used since the last product.
template <int HEAD_DIM, int KEYS> __device__ void scores(float (&s)[KEYS / 2], uint32_t q_tile, uint32_t k_tile) {
  uint64_t q = k_major(q_tile), k = k_major(k_tile);
  wgmma_fence();
#pragma unroll
  for (int d = 0; d < HEAD_DIM / 16; d++) wgmma<KEYS>(s, columns_16(q, ROWS, d), columns_16(k, KEYS, d), d > 0);
  wgmma_commit();
  wgmma_wait<0>();
  wgmma_results(s);
}

// Scores that must not count become minus infinity: of keys past the last one, and in causal attention of keys past the
// query. row and key: the warpgroup's first query, the tile's first key.
template <int KEYS> __device__ void mask(float (&s)[KEYS / 2], int row, int key, int seqlen, int causal) {
  int warp = threadIdx.x % WARPGROUP / WARP, lane = threadIdx.x % WARP;
  for (int h = 0; h < 2; h++) {
    int i = row + 16 * warp + 8 * h + lane / 4, keys = causal ? min(i + 1, seqlen) : seqlen;
    int left = keys - (key + lane % 4 * 2);  // what this thread's row may see from this thread's first column on
#pragma unroll
    for (int n = 0; n < KEYS / 8; n++)
      for (int e = 0; e < 2; e++)
        if (8 * n + e >= left) s[4 * n + 2 * h + e] = -INFINITY;
  }
}

// The largest of a row's scores.
template <int COUNT> __device__ float row_max(const float (&s)[COUNT], int h) {
  float max = fmaxf(s[2 * h], s[2 * h + 1]);
#pragma unroll
  for (int i = 4; i < COUNT; i += 4) max = fmaxf(fmaxf(max, s[i + 2 * h]), s[i + 2 * h + 1]);
  return quad_max(max);
}

// Looks for larger maxima in the scores; when there are some, everything older shrinks. As in stage 03, `max` may stay
// behind the true maximum by a factor of 2^8 in the weights.
template <int HEAD_DIM, int COUNT>
__device__ void raise_max(Rows<HEAD_DIM> &rows, const float (&s)[COUNT], float scale) {
  float max[2];
  bool grew = false;
  for (int h = 0; h < 2; h++) {
    max[h] = fmaxf(rows.max[h], row_max(s, h));
    grew |= (max[h] - rows.max[h]) * scale > 8;
  }
  if (!__any_sync(0xffffffff, grew)) return;
  for (int h = 0; h < 2; h++) {
    float factor = power_of_two((rows.max[h] - max[h]) * scale);
    rows.max[h] = max[h];
    rows.sum[h] *= factor;
#pragma unroll
    for (int i = 0; i < HEAD_DIM / 2; i += 4)
      for (int e = 0; e < 2; e++) rows.o[i + 2 * h + e] *= factor;
  }
}

// P = exp(S - max), in the place of S, as 2^(S * scale - max * scale): one multiply-add and one power a score.
template <int HEAD_DIM, int COUNT> __device__ void weights(Rows<HEAD_DIM> &rows, float (&s)[COUNT], float scale) {
  for (int h = 0; h < 2; h++) {
    float shift = -rows.max[h] * scale, sum[2] = {rows.sum[h], 0};
#pragma unroll
    for (int i = 0; i < COUNT; i += 4)
      for (int e = 0; e < 2; e++) {
        s[i + 2 * h + e] = power_of_two(s[i + 2 * h + e] * scale + shift);
        sum[e] += s[i + 2 * h + e];
      }
    rows.sum[h] = sum[0] + sum[1];
  }
}

// O += P V. The accumulators of eight columns of S are, packed in pairs, half of an A of 64 x 16: P never leaves the
// thread.
template <int HEAD_DIM, int KEYS>
__device__ void output(Rows<HEAD_DIM> &state, const float (&p)[KEYS / 2], uint32_t v_tile) {
  uint64_t v = mn_major(v_tile, KEYS);
  uint32_t a[KEYS / 16][4];
#pragma unroll
  for (int n = 0; n < KEYS / 16; n++)
    for (int j = 0; j < 4; j++) a[n][j] = pack(p[8 * n + 2 * j], p[8 * n + 2 * j + 1]);
  wgmma_fence();
#pragma unroll
  for (int n = 0; n < KEYS / 16; n++) wgmma<HEAD_DIM, true>(state.o, a[n], rows_16(v, n), true);
  wgmma_commit();
  wgmma_wait<0>();
  wgmma_results(state.o);
}

// Writes O / sum for this warp's queries, of which `count` exist. It passes through the shared memory that held them, so
// that 16 bytes a lane and whole rows leave. row: the warp's first in the tile.
template <int HEAD_DIM>
__device__ void store_rows(half *o, const Rows<HEAD_DIM> &rows, char *q_tile, int row, int count) {
  int lane = threadIdx.x % WARP, chunks = HEAD_DIM / 8;
  for (int h = 0; h < 2; h++) {
    float factor = 1 / quad_sum(rows.sum[h]);
#pragma unroll
    for (int n = 0; n < HEAD_DIM / 8; n++)
      *(uint32_t *)(q_tile + swizzled(ROWS, row + 8 * h + lane / 4, n) + lane % 4 * 4) =
          pack(rows.o[4 * n + 2 * h] * factor, rows.o[4 * n + 2 * h + 1] * factor);
  }
  __syncwarp();
  for (int i = lane; i < 16 * chunks; i += WARP)
    if (i / chunks < count) *(uint4 *)(o + i * 8) = *(uint4 *)(q_tile + swizzled(ROWS, row + i / chunks, i % chunks));
}

// ---- the kernel ----

// One block: the queries of two warpgroups, all of one head.
//
// Grid: tiles of queries, head after head. Block: 256.
template <int HEAD_DIM>
__device__ void attention(const Tensors &tensors, half *o, int seqlen, float scale, int causal) {
  using S = Shared<HEAD_DIM>;
  const int KEYS = S::KEYS;
  extern __shared__ __align__(1024) char memory[];  // where a swizzle of 128 bytes begins anew
  S &shared = *(S *)memory;
  int blocks = (seqlen + ROWS - 1) / ROWS, head = blockIdx.x / blocks;
  int block_row = (blocks - 1 - blockIdx.x % blocks) * ROWS;  // causal: those with most keys first
  int warpgroup = __shfl_sync(0xffffffff, threadIdx.x / WARPGROUP, 0), warp = threadIdx.x % WARPGROUP / WARP;
  int row = block_row + warpgroup * WARPGROUP_ROWS;            // the warpgroup's first
  int keys = causal ? min(block_row + ROWS, seqlen) : seqlen;  // that any row may see
  int tiles = (keys + KEYS - 1) / KEYS;
  int full_tiles = (causal ? min(row + 1, seqlen) : seqlen) / KEYS;  // that all of the warpgroup's rows may see
  bool loads = threadIdx.x == 0;

  trace_begin(ALL);
  Ring<S::STAGES> loading, ring;
  if (loads) {
    mbarrier_init(shared_address(&shared.q_full), 1);
    for (int i = 0; i < S::STAGES; i++) {
      mbarrier_init(shared_address(shared.full + i), 1);
      mbarrier_init(shared_address(shared.empty + i), WARPGROUPS * 4);  // one of each warp
    }
    mbarrier_fence_init();
    load_queries(shared, tensors, block_row, head);
    for (int t = 0; t < min(tiles, (int)S::STAGES - 1); t++) load_keys(shared, loading, tensors, t, head);
  }
  trace(BARRIER, 0);
  __syncthreads();  // the mbarriers are there
  trace(WAIT_V, 0);
  mbarrier_wait(shared_address(&shared.q_full), 0);  // Q has landed

  Rows<HEAD_DIM> rows;
  for (int h = 0; h < 2; h++) {
    rows.max[h] = -FLT_MAX;
    rows.sum[h] = 0;
  }
#pragma unroll
  for (int i = 0; i < HEAD_DIM / 2; i++) rows.o[i] = 0;
  scale *= 1.44269504f;  // log2 e: exp(x) is computed as 2^(x log2 e)

  for (int t = 0; t < tiles; t++) {
    // Into the place of tile t - 1, as soon as all warps are done with it; the other places are full or on their way.
    if (loads && t + S::STAGES - 1 < tiles) load_keys(shared, loading, tensors, t + S::STAGES - 1, head);
    trace(WAIT_K, t);
    mbarrier_wait(shared_address(shared.full + ring.place), ring.parity);
    trace_done(COPY, t);
    if (!causal || t * KEYS < row + WARPGROUP_ROWS) {  // not all masked for this warpgroup
      float s[KEYS / 2];
      int place = __shfl_sync(0xffffffff, ring.place, 0);  // the same in all lanes, which the shuffle tells ptxas
      trace(QK, t);
      scores<HEAD_DIM, KEYS>(s, shared_address(shared.q) + warpgroup * WARPGROUP_ROWS * ROW_BYTES,
                             shared_address(shared.k[place]));
      trace(SOFTMAX, t);
      if (t >= full_tiles) mask<KEYS>(s, row, t * KEYS, seqlen, causal);
      raise_max(rows, s, scale);
      weights(rows, s, scale);
      trace(PV, t);
      output<HEAD_DIM, KEYS>(rows, s, shared_address(shared.v[place]));
    }
    if (threadIdx.x % WARP == 0) mbarrier_arrive(shared_address(shared.empty + ring.place));
    ring.advance();
  }
  trace(STORE, tiles - 1);
  barrier_sync(1 + warpgroup, WARPGROUP);  // the whole warpgroup's products have read Q
  store_rows<HEAD_DIM>(o + ((size_t)head * seqlen + row + warp * 16) * HEAD_DIM, rows, (char *)shared.q,
                       warpgroup * WARPGROUP_ROWS + warp * 16, seqlen - row - warp * 16);
  trace_end();
}

// The entry points. For D = 64 a thread needs fewer than 128 registers, so that two blocks fit on an SM.
extern "C" __global__ void __launch_bounds__(WARPGROUPS *WARPGROUP, 2)
    attention_64(const __grid_constant__ Tensors tensors, half *o, int seqlen, float scale, int causal) {
  attention<64>(tensors, o, seqlen, scale, causal);
}

extern "C" __global__ void __launch_bounds__(WARPGROUPS *WARPGROUP, 1)
    attention_128(const __grid_constant__ Tensors tensors, half *o, int seqlen, float scale, int causal) {
  attention<128>(tensors, o, seqlen, scale, causal);
}
