// Stage 06: TMA. One thread asks for a whole tile of K and V, and the copy engine brings it, swizzled, while all
// threads compute. Mbarriers show what has landed and what may be overwritten; the loop has no barrier of all threads.
//
// For each tile of keys a warpgroup does, as in stage 05,
//
//   scores   S = Q K^T                   wgmma: Q and K from shared memory
//   softmax  P = exp(S - max), sum += P  in registers
//   output   O += P V                    wgmma: P from the registers where S was, V from shared memory
#include <cuda_fp16.h>
#include <stdint.h>

#include "tiles.h"

#include "ptx/barrier.h"
#include "ptx/math.h"
#include "ptx/mbarrier.h"
#include "ptx/quad.h"
#include "ptx/ring.h"
#include "ptx/tile.h"
#include "ptx/tma.h"
#include "ptx/trace.h"
#include "ptx/wgmma.h"

enum { WARP = 32 };

// A block's shared memory: its queries, and a ring of slots for tiles of K and V. k_full and v_full complete when TMA
// has filled the slot; `empty` completes when all warps have released it.
template <int HEAD_DIM> struct Shared {
  enum { KEYS = KEYS_OF(HEAD_DIM), SLOTS = SLOTS_OF(HEAD_DIM) };
  half q[ROWS * HEAD_DIM];
  half k[SLOTS][KEYS * HEAD_DIM], v[SLOTS][KEYS * HEAD_DIM];
  uint64_t q_full, k_full[SLOTS], v_full[SLOTS], empty[SLOTS];

  __device__ void init() {
    mbarrier_init(shared_address(&q_full), 1);
    for (int i = 0; i < SLOTS; i++) {
      mbarrier_init(shared_address(k_full + i), 1);
      mbarrier_init(shared_address(v_full + i), 1);
      mbarrier_init(shared_address(empty + i), WARPGROUPS * 4);  // one arrival of each warp
    }
    mbarrier_fence_init();
  }
};
static_assert(sizeof(Shared<64>) == SHARED_BYTES(64) && sizeof(Shared<128>) == SHARED_BYTES(128), "see tiles.h");

// ---- the thread that loads ----

// Loads rows of a head, in panels of 64 columns, because a box under this swizzle is no wider. `full` completes when
// all have landed.
template <int HEAD_DIM, int SIZE>
__device__ void load(half (&to)[SIZE], uint64_t &full, const TensorMap *map, int row, int head) {
  const int panel_bytes = SIZE / HEAD_DIM * ROW_BYTES;
  mbarrier_arrive_expect(shared_address(&full), sizeof to);
#pragma unroll
  for (int panel = 0; panel < HEAD_DIM / PANEL; panel++)
    tma_load(shared_address(to) + panel * panel_bytes, map, shared_address(&full), panel * PANEL, row, head);
}

// ---- a warpgroup's part ----

template <int HEAD_DIM> struct Warpgroup {
  using S = Shared<HEAD_DIM>;
  static constexpr int KEYS = S::KEYS;
  S &shared;
  const Tensors &tensors;
  const Problem &problem;
  int warpgroup, warp, lane;
  int head, row;  // the tensor's head, and the warpgroup's first query in it
  bool loads;     // one thread of the block
  Ring<S::SLOTS> ring, loading;

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

  // Starts S = Q K^T. The fence is for s, which ordinary instructions have used since the last product.
  __device__ void scores(int slot) {
    uint64_t a = k_major(shared_address(shared.q) + warpgroup * WARPGROUP_ROWS * ROW_BYTES);
    uint64_t b = k_major(shared_address(shared.k[slot]));
    wgmma_fence();
#pragma unroll
    for (int d = 0; d < HEAD_DIM / 16; d++) wgmma<KEYS>(s, columns_16(a, ROWS, d), columns_16(b, KEYS, d), d > 0);
    wgmma_commit();
  }

  // Sets scores to minus infinity: those of keys after the last one and, with a causal mask, those of keys after the
  // query. `key` is the tile's first key.
  __device__ void mask(int key) {
#pragma unroll
    for (int h = 0; h < 2; h++) {
      int i = row + 16 * warp + 8 * h + lane / 4, keys = problem.causal ? min(i + 1, problem.seqlen) : problem.seqlen;
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
    for (int h = 0; h < 2; h++) lower[h] = fminf(shift[h], -row_max(h) * problem.scale);
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
        s[i + 2 * h] = power_of_two(s[i + 2 * h] * problem.scale + shift[h]);
        s[i + 2 * h + 1] = power_of_two(s[i + 2 * h + 1] * problem.scale + shift[h]);
        sum[h] += s[i + 2 * h];
        odd[h] += s[i + 2 * h + 1];
      }
    sum[0] += odd[0];
    sum[1] += odd[1];
  }

  // Packs the weights as fp16. p[n] is the A of a product with keys 16 n to 16 n + 15. This thread's part of that A is
  // made of the weights that it holds in s, so P never leaves the thread.
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

  // wait: until the ring's next slot is full. release: this warp needs the slot no more, and the ring goes on.
  __device__ void wait(const uint64_t *full) { mbarrier_wait(shared_address(full + ring.slot), ring.parity); }
  __device__ void release() {
    if (lane == 0) mbarrier_arrive(shared_address(shared.empty + ring.slot));
    ring.advance();
  }

  // Loads tile t of K and V into the next slot for loads, once that is empty.
  __device__ void load_keys(int t) {
    trace(WAIT_FREE, t);
    mbarrier_wait(shared_address(shared.empty + loading.slot), loading.parity ^ 1);
    trace(COPY, t);
    load<HEAD_DIM>(shared.k[loading.slot], shared.k_full[loading.slot], &tensors.k, t * KEYS, head);
    load<HEAD_DIM>(shared.v[loading.slot], shared.v_full[loading.slot], &tensors.v, t * KEYS, head);
    loading.advance();
  }

  // One tile of keys; `masked` if not all rows may see all of it. While the tensor cores compute scores, one thread
  // loads tile `ahead`, if there is one, into the slot of the tile before this one, once all warps have released it.
  __device__ void step(int t, bool masked, int ahead, int tiles) {
    uint32_t p[KEYS / 16][4];
    int slot = __shfl_sync(0xffffffff, ring.slot, 0);  // the same in all lanes: ptxas sees it and drops the shuffle
    trace(QK, t);
    scores(slot);
    if (loads && ahead < tiles) load_keys(ahead);
    wgmma_wait<0>();
    wgmma_results(s);
    trace(SOFTMAX, t);
    if (masked) mask(t * KEYS);
    raise_max();
    weights();
    pack_weights(p);
    trace(WAIT_V, t);
    wait(shared.v_full);
    trace(PV, t);
    output(p, slot);
  }

  // Writes O / sum for this warp's queries. They go through the shared memory that held the queries: then each lane
  // stores 16 bytes, and the warp stores whole rows.
  __device__ void store(int head) {
    barrier_sync(1 + warpgroup, WARPGROUP);  // the whole warpgroup's products have read the queries
    int tile_row = warpgroup * WARPGROUP_ROWS + warp * 16, first = row + warp * 16;
    char *tile = (char *)shared.q;
    half *to = problem.o + ((size_t)head * problem.seqlen + first) * HEAD_DIM;
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
      if (first + i / chunks < problem.seqlen)
        *(uint4 *)(to + i * 8) = *(uint4 *)(tile + swizzled(ROWS, tile_row + i / chunks, i % chunks));
  }
};

// ---- the kernel ----

// One block: the queries of two warpgroups, all of one head.
//
// Grid: tiles of queries, head after head. Block: 256.
template <int HEAD_DIM> __device__ void attention(const Tensors &tensors, const Problem &problem) {
  using S = Shared<HEAD_DIM>;
  const int KEYS = S::KEYS, AHEAD = S::SLOTS - 1;   // tiles
  extern __shared__ __align__(1024) char memory[];  // where a swizzle of 128 bytes begins anew
  S &shared = *(S *)memory;
  int seqlen = problem.seqlen, head = blockIdx.x / problem.head_tiles;
  int block_row = (problem.head_tiles - 1 - blockIdx.x % problem.head_tiles) * ROWS;  // causal: most keys first
  int keys = problem.causal ? min(block_row + ROWS, seqlen) : seqlen;                 // the most a row may see
  int tiles = (keys + KEYS - 1) / KEYS;

  int warpgroup = __shfl_sync(0xffffffff, threadIdx.x / WARPGROUP, 0);  // tells ptxas that all lanes have the same
  int thread = threadIdx.x % WARPGROUP, row = block_row + warpgroup * WARPGROUP_ROWS;
  bool loads = threadIdx.x == THREADS - WARPGROUP;  // the first thread of the last warpgroup, which skips no tile
  Warpgroup<HEAD_DIM> part{shared, tensors, problem, warpgroup, thread / WARP, thread % WARP, head, row, loads};
  part.start();

  trace_begin(ALL);
  if (loads) {
    shared.init();
    load<HEAD_DIM>(shared.q, shared.q_full, &tensors.q, block_row, head);
    for (int t = 0; t < min(tiles, AHEAD); t++) part.load_keys(t);
  }
  trace(BARRIER, 0);
  __syncthreads();  // the mbarriers are there
  mbarrier_wait(shared_address(&shared.q_full), 0);

  int full_tiles = (problem.causal ? min(row + 1, seqlen) : seqlen) / KEYS;  // tiles that the warpgroup sees whole
  for (int t = 0; t < tiles; t++) {
    trace(WAIT_K, t);
    part.wait(shared.k_full);
    trace_done(COPY, t);
    if (!problem.causal || t * KEYS < row + WARPGROUP_ROWS)  // not all masked for this warpgroup
      part.step(t, t >= full_tiles, t + AHEAD, tiles);
    part.release();
  }
  trace(STORE, tiles - 1);
  part.store(head);
  trace_end();
}

// The entry points. For D = 64 a thread needs fewer than 128 registers, so that two blocks fit on an SM.
extern "C" __global__ void __launch_bounds__(THREADS, 2)
    attention_64(const __grid_constant__ Tensors tensors, const Problem problem) {
  attention<64>(tensors, problem);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    attention_128(const __grid_constant__ Tensors tensors, const Problem problem) {
  attention<128>(tensors, problem);
}
