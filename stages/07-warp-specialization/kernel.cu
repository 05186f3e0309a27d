// Stage 07: warp specialization. One more warp, the producer, does nothing but load, as far ahead as there is room. The
// warpgroups that compute, the consumers, wait for tiles and release them, and load nothing.
//
// For each tile of keys a consumer does, as in stage 05,
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

// A block's shared memory: three rings, for tiles of queries, of K and of V. A full barrier completes when TMA has
// filled the slot, an empty one when all consumer warps have released it. The output gathers in the slot of its
// queries.
template <int HEAD_DIM> struct Shared {
  enum { KEYS = KEYS_OF(HEAD_DIM), SLOTS = SLOTS_OF(HEAD_DIM), QUERY_SLOTS = 1 };
  half q[QUERY_SLOTS][ROWS * HEAD_DIM];
  half k[SLOTS][KEYS * HEAD_DIM], v[SLOTS][KEYS * HEAD_DIM];
  uint64_t q_full[QUERY_SLOTS], q_empty[QUERY_SLOTS];
  uint64_t k_full[SLOTS], k_empty[SLOTS], v_full[SLOTS], v_empty[SLOTS];

  __device__ void init() {
    for (int i = 0; i < QUERY_SLOTS; i++) {
      mbarrier_init(shared_address(q_full + i), 1);
      mbarrier_init(shared_address(q_empty + i), CONSUMERS * 4);  // one arrival of each consumer warp
    }
    for (int i = 0; i < SLOTS; i++) {
      mbarrier_init(shared_address(k_full + i), 1);
      mbarrier_init(shared_address(v_full + i), 1);
      mbarrier_init(shared_address(k_empty + i), CONSUMERS * 4);
      mbarrier_init(shared_address(v_empty + i), CONSUMERS * 4);
    }
    mbarrier_fence_init();
  }
};
static_assert(sizeof(Shared<64>) == SHARED_BYTES(64) && sizeof(Shared<128>) == SHARED_BYTES(128), "see tiles.h");

// A tile of queries: its head, its first row, and how many tiles of keys its queries may see.
struct Tile {
  int head, row, key_tiles;
};

// Tile number t. Tiles of a head follow each other; in causal attention the one with most keys goes first.
template <int HEAD_DIM> __device__ Tile find_tile(const Problem &problem, int t) {
  Tile tile;
  int i = t % problem.head_tiles;
  tile.head = t / problem.head_tiles;
  tile.row = (problem.causal ? problem.head_tiles - 1 - i : i) * ROWS;
  int keys = problem.causal ? min(tile.row + ROWS, problem.seqlen) : problem.seqlen;
  tile.key_tiles = (keys + Shared<HEAD_DIM>::KEYS - 1) / Shared<HEAD_DIM>::KEYS;
  return tile;
}

// ---- the producer: one thread ----

template <int HEAD_DIM> struct Producer {
  using S = Shared<HEAD_DIM>;
  S &shared;
  const Tensors &tensors;
  Ring<S::QUERY_SLOTS> q;
  Ring<S::SLOTS> k, v;
  int loads = 0;  // for trace

  // Loads rows of a head, in panels of 64 columns because a box under this swizzle is no wider, into a ring's next
  // slot, once that is empty.
  template <int SLOTS, int SIZE>
  __device__ void load(Ring<SLOTS> &ring, half (&to)[SLOTS][SIZE], uint64_t *full, uint64_t *empty,
                       const TensorMap *map, int row, int head) {
    const int panel_bytes = SIZE / HEAD_DIM * ROW_BYTES;
    uint32_t barrier = shared_address(full + ring.slot), tile = shared_address(to[ring.slot]);
    trace(WAIT_FREE, loads++);
    mbarrier_wait(shared_address(empty + ring.slot), ring.parity ^ 1);
    trace(COPY, loads - 1);
    mbarrier_arrive_expect(barrier, SIZE * sizeof(half));
#pragma unroll
    for (int panel = 0; panel < HEAD_DIM / PANEL; panel++)
      tma_load(tile + panel * panel_bytes, map, barrier, panel * PANEL, row, head);
    ring.advance();
  }

  __device__ void run(const Tile &tile) {
    trace_begin(PRODUCER);
    load(q, shared.q, shared.q_full, shared.q_empty, &tensors.q, tile.row, tile.head);
    for (int t = 0; t < tile.key_tiles; t++) {
      load(k, shared.k, shared.k_full, shared.k_empty, &tensors.k, t * S::KEYS, tile.head);
      load(v, shared.v, shared.v_full, shared.v_empty, &tensors.v, t * S::KEYS, tile.head);
    }
    trace_end();
  }
};

// ---- a consumer: one warpgroup ----

template <int HEAD_DIM> struct Consumer {
  using S = Shared<HEAD_DIM>;
  static constexpr int KEYS = S::KEYS;
  S &shared;
  const Problem &problem;
  int warpgroup, warp, lane;
  int row;  // the warpgroup's first query
  Ring<S::QUERY_SLOTS> q;
  Ring<S::SLOTS> k, v;

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

  // S = Q K^T. The fence is for s, which ordinary instructions have used since the last product.
  __device__ void scores() {
    uint64_t a = k_major(shared_address(shared.q[q.slot]) + warpgroup * WARPGROUP_ROWS * ROW_BYTES);
    uint64_t b = k_major(shared_address(shared.k[k.slot]));
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
  __device__ void output(const uint32_t (&p)[KEYS / 16][4]) {
    uint64_t b = mn_major(shared_address(shared.v[v.slot]), KEYS);
    wgmma_fence();
#pragma unroll
    for (int n = 0; n < KEYS / 16; n++) wgmma<HEAD_DIM, true>(o, p[n], rows_16(b, n), true);
    wgmma_commit();
    wgmma_wait<0>();
    wgmma_results(o);
  }

  // wait: until a ring's next slot is full. release: this warp needs the slot no more, and the ring goes on.
  template <int SLOTS> __device__ void wait(const Ring<SLOTS> &ring, const uint64_t *full) {
    mbarrier_wait(shared_address(full + ring.slot), ring.parity);
  }
  template <int SLOTS> __device__ void release(Ring<SLOTS> &ring, const uint64_t *empty) {
    if (lane == 0) mbarrier_arrive(shared_address(empty + ring.slot));
    ring.advance();
  }

  // Computes with one tile of keys. `masked`: some row must not see all of it.
  __device__ void step(int t, bool masked) {
    uint32_t p[KEYS / 16][4];
    trace(WAIT_K, t);
    wait(k, shared.k_full);
    trace(QK, t);
    scores();
    release(k, shared.k_empty);
    trace(SOFTMAX, t);
    if (masked) mask(t * KEYS);
    raise_max();
    weights();
    pack_weights(p);
    trace(WAIT_V, t);
    wait(v, shared.v_full);
    trace(PV, t);
    output(p);
    release(v, shared.v_empty);
  }

  // Skips key tiles to the right of this warpgroup's rows, which belong to the other one: it waits for each and
  // releases it unused.
  __device__ void skip(int count) {
    for (int i = 0; i < count; i++) {
      wait(k, shared.k_full);
      release(k, shared.k_empty);
      wait(v, shared.v_full);
      release(v, shared.v_empty);
    }
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

  __device__ void run(const Tile &tile) {
    trace_begin(CONSUMER);
    start();
    int keys = problem.causal ? min(row + WARPGROUP_ROWS, problem.seqlen) : problem.seqlen;  // the most a row may see
    int full_keys = problem.causal ? min(row + 1, problem.seqlen) : problem.seqlen;          // the fewest
    int tiles = (keys + KEYS - 1) / KEYS;
    wait(q, shared.q_full);
    for (int t = 0; t < tiles; t++) step(t, (t + 1) * KEYS > full_keys);
    skip(tile.key_tiles - tiles);
    trace(STORE, tile.key_tiles - 1);
    store(tile.head);
    trace_end();
  }
};

// ---- the kernel ----

// Grid: tiles of queries, head after head. Block: the consumers, then the producer's warp.
template <int HEAD_DIM> __device__ void attention(const Tensors &tensors, const Problem &problem) {
  extern __shared__ __align__(1024) char memory[];  // where a swizzle of 128 bytes begins anew
  Shared<HEAD_DIM> &shared = *(Shared<HEAD_DIM> *)memory;
  if (threadIdx.x == 0) shared.init();
  __syncthreads();  // the mbarriers are there
  Tile tile = find_tile<HEAD_DIM>(problem, blockIdx.x);
  int warpgroup = __shfl_sync(0xffffffff, threadIdx.x / WARPGROUP, 0);  // tells ptxas that all lanes have the same
  int thread = threadIdx.x % WARPGROUP, row = tile.row + warpgroup * WARPGROUP_ROWS;
  if (warpgroup < CONSUMERS)
    Consumer<HEAD_DIM>{shared, problem, warpgroup, thread / WARP, thread % WARP, row}.run(tile);
  else if (thread == 0)
    Producer<HEAD_DIM>{shared, tensors}.run(tile);
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
