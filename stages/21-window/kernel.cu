// Stage 21: attention with head dimension 96 and a sliding window. Blocks stay on their SM and work through tiles of
// 128 queries. A producer fills rings with tiles of Q, K and V; two consumers have 64 queries each, and take turns in
// issuing products.
//
// The queries of a consumer see a band of keys, from the window's edge to the diagonal. Its key tiles are of three
// kinds, and it goes through them from the last to the first:
//
//   diagonal    the first one: a query does not see the keys after its own
//   inside      all queries see all keys: no mask
//   edge        a query does not see the keys before its window
#include <cuda_fp16.h>
#include <stdint.h>

#include "tiles.h"

#include "ptx/barrier.h"
#include "ptx/fence.h"
#include "ptx/math.h"
#include "ptx/mbarrier.h"
#include "ptx/quad.h"
#include "ptx/registers.h"
#include "ptx/ring.h"
#include "ptx/stmatrix.h"
#include "ptx/tma.h"
#include "ptx/wgmma.h"

#include "panels.h"

#include "../shared/ring_barriers.h"

// Which queries a block works on next. row: its first query, or NONE.
struct Tile {
  int head, row;
};
enum { NONE = -1 };

// A block's shared memory: three rings, for tiles of queries, of K and of V. A full barrier completes when TMA has
// filled the slot, an empty one when all consumer warps have released it. The output gathers in the slot of its
// queries.
struct Shared {
  half q[QUERY_SLOTS][ROWS * HEAD_DIM];
  half k[SLOTS][KEYS * HEAD_DIM], v[SLOTS][KEYS * HEAD_DIM];
  uint64_t q_full[QUERY_SLOTS], q_empty[QUERY_SLOTS];
  uint64_t k_full[SLOTS], k_empty[SLOTS], v_full[SLOTS], v_empty[SLOTS];
  Tile tile[QUERY_SLOTS];  // whose queries are there

  __device__ void init() {
    init_ring(q_full, q_empty, 1, CONSUMERS * 4);
    init_ring(k_full, k_empty, 1, CONSUMERS * 4);
    init_ring(v_full, v_empty, 1, CONSUMERS * 4);
    mbarrier_fence_init();
  }
};
static_assert(sizeof(Shared) == SHARED_BYTES, "see tiles.h");

// The first key of the key tile that the window of query `row` begins in.
__device__ int last_key_tile(const Problem &problem, int row) { return max(0, row - problem.window + 1) / KEYS * KEYS; }

// ---- the producer: one thread ----

struct Producer {
  Shared &shared;
  const Tensors &tensors;
  const Problem &problem;
  Ring<QUERY_SLOTS> q;
  Ring<SLOTS> k, v;

  // Loads a tile of a head from row `row` on, a box for each panel, into a ring's next slot, once that is empty. What
  // lies behind the head's end arrives as zeros, and counts as bytes.
  template <int COUNT, int SIZE>
  __device__ void load(Ring<COUNT> &ring, half (&to)[COUNT][SIZE], uint64_t *full, uint64_t *empty,
                       const TensorMap *map, int row, int head) {
    uint32_t barrier = shared_address(full + ring.slot), tile = shared_address(to[ring.slot]);
    mbarrier_wait(shared_address(empty + ring.slot), ring.parity ^ 1);
    mbarrier_arrive_expect(barrier, SIZE * sizeof(half));
#pragma unroll
    for (int panel = 0; panel < PANELS; panel++)
      tma_load(tile + panel * (SIZE / HEAD_DIM) * ROW_OF_PANEL, map, barrier, panel * COLUMNS, row, head);
    ring.advance();
  }
  __device__ void load_k(int key, int head) { load(k, shared.k, shared.k_full, shared.k_empty, &tensors.k, key, head); }
  __device__ void load_v(int key, int head) {
    if (key != NONE) load(v, shared.v, shared.v_full, shared.v_empty, &tensors.v, key, head);
  }

  // Writes down which tile comes into the next slot for queries, once that is empty.
  __device__ void announce(const Tile &tile) {
    mbarrier_wait(shared_address(shared.q_empty + q.slot), q.parity ^ 1);
    shared.tile[q.slot] = tile;
  }

  // All tiles of this block. Of each, key tiles go from the diagonal to the window's edge. V is loaded one tile later
  // than K, as it is used.
  __device__ void run() {
    int last = NONE, last_head = 0;
    for (int t = blockIdx.x; t < problem.tiles; t += gridDim.x) {
      Tile tile = {t / problem.head_tiles, t % problem.head_tiles * ROWS};
      announce(tile);
      load(q, shared.q, shared.q_full, shared.q_empty, &tensors.q, tile.row, tile.head);
      for (int key = tile.row / KEYS * KEYS; key >= last_key_tile(problem, tile.row); key -= KEYS) {
        load_k(key, tile.head);
        load_v(last, last_head);
        last_head = tile.head;
        last = key;
      }
    }
    announce({0, NONE});
    mbarrier_arrive(shared_address(shared.q_full + q.slot));
    load_v(last, last_head);
  }
};

// ---- a consumer: one warpgroup ----

// threadIdx.x, by a volatile instruction. So the compiler cannot compute early what depends on it, and keep it in
// registers during the main loop.
__device__ int thread_index() {
  int index;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(index));
  return index;
}

// HALF: the half of a key tile that 64 queries on the diagonal see, or at their window's edge. N is the number of keys
// that a function works on, KEYS or HALF.
enum { HALF = KEYS / 2 };

struct Consumer {
  Shared &shared;
  const Tensors &tensors;
  const Problem &problem;
  int warpgroup;
  bool elected;  // one thread of each warp
  Ring<QUERY_SLOTS> q;
  Ring<SLOTS> k, v;
  int leaving = NONE;  // the slot of queries from which an output is on its way out
  int head, row;       // the tile's head, the warpgroup's first query
  int key, begin;      // the first key of the key tile at hand, and which of its keys is the first that is used
  int v_begin;         // of the key tile before, whose values are used next
  bool v_half;         // whether half of its keys are used
  bool skips;          // whether the tile's last key tile is for the other warpgroup alone

  // Lane l has parts of rows l / 4 (h = 0) and l / 4 + 8 (h = 1): s[4 n + 2 h + e] is in column 8 n + 2 (l % 4) + e.
  float s[KEYS / 2];         // scores, then weights
  uint32_t p[KEYS / 16][4];  // weights in fp16, the A of the next product
  float o[HEAD_DIM / 2];
  float shift[2];   // a weight is 2^(score * scale + shift)
  float sum[2];     // of the weights in this thread's columns
  float factor[2];  // by which older weights shrink

  // ---- products ----

  // Starts S = Q K^T. The fence is for s, which ordinary instructions have used since the last product.
  template <int N> __device__ void scores() {
    uint64_t a = from_row(along_rows(shared_address(shared.q[q.slot])), warpgroup * WARPGROUP_ROWS);
    uint64_t b = from_row(along_rows(shared_address(shared.k[k.slot])), begin);
    wgmma_fence();
#pragma unroll
    for (int d = 0; d < HEAD_DIM / 16; d++)
      wgmma<N>(slice<N / 2>(s, 0), next_columns(a, ROWS, d), next_columns(b, KEYS, d), d > 0);
    wgmma_commit();
  }

  // Starts O += P V, or O = P V for a tile's first key tile. (Two loops in one group would be less code, but ptxas
  // wants a fence on each way to a wgmma.)
  template <int N> __device__ void output(int accumulate) {
    uint64_t b = from_row(across_rows(shared_address(shared.v[v.slot]), KEYS), v_begin);
    wgmma_fence();
#pragma unroll
    for (int n = 0; n < N / 16; n++) wgmma<HEAD_DIM, true>(o, p[n], from_row(b, 16 * n), n > 0 ? 1 : accumulate);
    wgmma_commit();
  }
  __device__ void output(int accumulate) { v_half ? output<HALF>(accumulate) : output<KEYS>(accumulate); }

  // ---- masks ----

  // On the diagonal, scores of keys after the query become minus infinity. The last 64 keys have the numbers of the
  // warpgroup's queries.
  template <int N> __device__ void mask_after() {
    int thread = thread_index() % WARPGROUP, lane = thread % WARP;
    int last = thread / WARP * 16 + lane / 4 - lane % 4 * 2;  // that the first row sees, from this lane's first on
#pragma unroll
    for (int i = 0; i < HALF / 2; i++)
      if (i / 4 * 8 + i % 2 > last + i / 2 % 2 * 8) s[(N - HALF) / 2 + i] = -INFINITY;
  }

  // At the edge, those of keys before the query's window.
  template <int N> __device__ void mask_before() {
    int thread = thread_index() % WARPGROUP, lane = thread % WARP;
    int query = row + thread / WARP * 16 + lane / 4;
    int hidden = query - problem.window - (key + begin + lane % 4 * 2);  // the last that the first row does not see
#pragma unroll
    for (int i = 0; i < N / 2; i++)
      if (i / 4 * 8 + i % 2 <= hidden + i / 2 % 2 * 8) s[i] = -INFINITY;
  }

  // Whether the windows of all queries of the warpgroup begin at key `first` or before.
  __device__ bool inside(int first) { return first >= row + WARPGROUP_ROWS - problem.window; }

  // ---- softmax ----

  // The largest of a row's scores.
  template <int N> __device__ float row_max(int h) {
    float even = s[2 * h], odd = s[2 * h + 1];
#pragma unroll
    for (int i = 4; i < N / 2; i += 4) {
      even = fmaxf(even, s[i + 2 * h]);
      odd = fmaxf(odd, s[i + 2 * h + 1]);
    }
    return quad_max(fmaxf(even, odd));
  }

  // Lazy rescaling, as in stage 02c: when a maximum has grown so much that a weight would exceed 2^8, the shift
  // follows it. True if so: then everything older shrinks by `factor`. A row that sees none of the keys keeps its
  // shift.
  template <int N> __device__ bool raise_max() {
    float lower[2];
#pragma unroll
    for (int h = 0; h < 2; h++) lower[h] = fminf(shift[h], -row_max<N>(h) * problem.scale);
    if (!__any_sync(0xffffffff, fmaxf(shift[0] - lower[0], shift[1] - lower[1]) > 8)) return false;
#pragma unroll
    for (int h = 0; h < 2; h++) {
      factor[h] = power_of_two(lower[h] - shift[h]);
      shift[h] = lower[h];
      sum[h] *= factor[h];
    }
    return true;
  }

  // The output shrinks later, when the product that was under way is done.
  __device__ void shrink_output() {
#pragma unroll
    for (int i = 0; i < HEAD_DIM / 2; i++) o[i] *= factor[i / 2 % 2];
  }

  // Replaces the scores by weights, and adds the weights up.
  template <int N> __device__ void weights() {
    float odd[2] = {0, 0};
#pragma unroll
    for (int i = 0; i < N / 2; i += 4)
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

  // Weights of a tile's first key tile. Each query sees its own key there, so no maximum is minus infinity.
  template <int N> __device__ void first_weights() {
    mask_after<N>();
    if (!inside(key + begin)) mask_before<N>();
#pragma unroll
    for (int h = 0; h < 2; h++) {
      shift[h] = -row_max<N>(h) * problem.scale;
      sum[h] = 0;
    }
    weights<N>();
  }

  // The weights as fp16. p[n] is the A of a product with keys 16 n to 16 n + 15: the thread holds the same part of it
  // as of the accumulator s, so P never leaves the thread.
  template <int N> __device__ void pack_weights() {
#pragma unroll
    for (int n = 0; n < N / 16; n++)
      for (int j = 0; j < 4; j++) p[n][j] = pack(s[8 * n + 2 * j], s[8 * n + 2 * j + 1]);
    v_begin = begin;
    v_half = N == HALF;
  }

  // ---- order ----

  // wait: until a ring's next slot is full. release: this warp needs the slot no more, and the ring goes on.
  template <int COUNT> __device__ void wait(const Ring<COUNT> &ring, const uint64_t *full) {
    mbarrier_wait(shared_address(full + ring.slot), ring.parity);
  }
  template <int COUNT> __device__ void release(Ring<COUNT> &ring, const uint64_t *empty) {
    if (elected) mbarrier_arrive(shared_address(empty + ring.slot));
    ring.advance();
  }

  // The consumers take turns in issuing products. Consumer w waits for its turn at barrier 1 + w.
  __device__ void take_turn() { barrier_sync(1 + warpgroup, 2 * WARPGROUP); }
  __device__ void pass_turn() { barrier_arrive(1 + (warpgroup + 1) % CONSUMERS, 2 * WARPGROUP); }

  // One key tile: its scores and the output of the one before it, both in the background, in one turn; and its weights,
  // while that output is under way. EDGE: at the window's edge.
  template <int N, bool EDGE> __device__ void step(int accumulate) {
    key -= KEYS;
    begin = KEYS - N;
    wait(k, shared.k_full);
    take_turn();
    scores<N>();
    wait(v, shared.v_full);
    output(accumulate);
    pass_turn();
    wgmma_wait<1>();
    wgmma_results(s);
    release(k, shared.k_empty);
    if (EDGE) mask_before<N>();
    bool grew = raise_max<N>();
    weights<N>();
    wgmma_wait<0>();
    wgmma_results(s);
    wgmma_results(o);
    release(v, shared.v_empty);
    if (grew) shrink_output();
    pack_weights<N>();
    release_queries();  // not earlier: as a branch among the weights it would keep back the wait for PV, and V's slot
  }

  // All key tiles of a tile after the first. Returns whether there were any: whether the last output adds to o.
  __device__ int other_tiles() {
    int first = max(0, row - problem.window + 1), accumulate = 0;
    for (; key - KEYS >= first && inside(key - KEYS); accumulate = 1) step<KEYS, false>(accumulate);
    for (; key > first; accumulate = 1)
      if (key - HALF > first)
        step<KEYS, true>(accumulate);
      else
        step<HALF, true>(accumulate);
    return accumulate;
  }

  // The first key tile of the first tile, with nothing else under way.
  template <int N> __device__ void first_tile() {
    wait(k, shared.k_full);
    take_turn();
    scores<N>();
    pass_turn();
    wgmma_wait<0>();
    wgmma_results(s);
    release(k, shared.k_empty);
    first_weights<N>();
    pack_weights<N>();
  }

  // The last output of a tile beside the first scores of the next. The members describe the next tile already, the
  // arguments describe the one before.
  template <int N> __device__ void next_tile(int accumulate, bool skipped, int last_slot, int last_head, int last_row) {
    wait(k, shared.k_full);
    take_turn();
    scores<N>();
    wait(v, shared.v_full);
    output(accumulate);
    pass_turn();
    float last_sum[2] = {sum[0], sum[1]};
    wgmma_wait<1>();
    wgmma_results(s);
    release(k, shared.k_empty);
    first_weights<N>();
    if (__CUDACC_VER_MAJOR__ >= 13) computed_here(sum[0] + sum[1]);  // ptxas 12.0 finds no registers for it (C7511)
    wgmma_wait<0>();
    wgmma_results(s);
    wgmma_results(o);
    release(v, shared.v_empty);
    store(last_sum, last_slot, last_head, last_row);
    pack_weights<N>();
    if (skipped) {
      wait(v, shared.v_full);
      release(v, shared.v_empty);
    }
  }

  // The last output of the last tile, with nothing else under way.
  __device__ void last_output(int accumulate, int last_slot, int last_head, int last_row) {
    take_turn();
    wait(v, shared.v_full);
    output(accumulate);
    pass_turn();
    wgmma_wait<0>();
    wgmma_results(o);
    store(sum, last_slot, last_head, last_row);
    if (elected) tma_store_wait<0>();
    if (warpgroup == 0) take_turn();  // the turn that the last consumer has passed on
  }

  // O / sum, to the slot of the warp's own queries, and from there to global memory.
  __device__ void store(const float (&o_sum)[2], int slot, int head, int row) {
    float scale[2] = {1 / quad_sum(o_sum[0]), 1 / quad_sum(o_sum[1])};
    int thread = thread_index() % WARPGROUP, warp = thread / WARP, lane = thread % WARP;
    uint32_t box = shared_address(shared.q[slot]) + (warpgroup * WARPGROUP_ROWS + warp * STORE_ROWS) * ROW_OF_PANEL;
#pragma unroll
    for (int d = 0; d < HEAD_DIM / 16; d++) {
      const float *x = o + 8 * d;
      stmatrix(box + chunk_of(ROWS, lane % 16, 2 * d + lane / 16), pack(x[0] * scale[0], x[1] * scale[0]),
               pack(x[2] * scale[1], x[3] * scale[1]), pack(x[4] * scale[0], x[5] * scale[0]),
               pack(x[6] * scale[1], x[7] * scale[1]));
    }
    fence_async_proxy();
    __syncwarp();
    if (elected) {
#pragma unroll
      for (int panel = 0; panel < PANELS; panel++)
        tma_store(&tensors.o, box + panel * ROWS * ROW_OF_PANEL, panel * COLUMNS, row + warp * STORE_ROWS, head);
      tma_store_commit();
    }
    leaving = slot;
  }

  // When the output has left, its slot can take queries again.
  __device__ void release_queries() {
    if (leaving == NONE) return;
    if (elected) {
      tma_store_wait_read<0>();
      mbarrier_arrive(shared_address(shared.q_empty + leaving));
    }
    leaving = NONE;
  }

  // ---- tiles ----

  // Waits for the next tile's queries; false when there are no more tiles. Of the first key tile a warpgroup sees what
  // lies on its side of the diagonal, and behind its window's edge.
  __device__ bool find_next() {
    wait(q, shared.q_full);
    Tile tile = shared.tile[q.slot];
    if (tile.row == NONE) return false;
    head = tile.head;
    row = tile.row + warpgroup * WARPGROUP_ROWS;
    key = tile.row / KEYS * KEYS;
    begin = row - problem.window >= key + HALF - 1 ? HALF : 0;
    skips = last_key_tile(problem, row) > last_key_tile(problem, tile.row);
    return true;
  }
  __device__ bool half() { return begin == HALF || row == key; }

  // A key tile that this warpgroup's queries do not see: waits for it, and releases it unused. next_tile does the same
  // for its values.
  __device__ void skip_keys() {
    wait(k, shared.k_full);
    take_turn();
    pass_turn();
    release(k, shared.k_empty);
  }

  __device__ void run() {
    if (warpgroup == CONSUMERS - 1) pass_turn();  // the first turn is consumer 0's
    find_next();
    half() ? first_tile<HALF>() : first_tile<KEYS>();
    while (true) {
      int accumulate = other_tiles();
      if (skips) skip_keys();
      release_queries();  // here for a tile with a single key tile, which has no step
      int last_slot = q.slot, last_head = head, last_row = row;
      bool skipped = skips;
      q.advance();
      if (!find_next()) {
        last_output(accumulate, last_slot, last_head, last_row);
        return;
      }
      if (half())
        next_tile<HALF>(accumulate, skipped, last_slot, last_head, last_row);
      else
        next_tile<KEYS>(accumulate, skipped, last_slot, last_head, last_row);
    }
  }
};

// ---- the kernel ----

// Grid: as many blocks as SMs, or as tiles if those are fewer. Block: the producer's warpgroup, then the consumers.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
    attention(const __grid_constant__ Tensors tensors, const Problem problem) {
  extern __shared__ __align__(1024) char memory[];
  Shared &shared = *(Shared *)memory;
  if (threadIdx.x == 0) shared.init();
  __syncthreads();                                                      // the mbarriers are there
  int warpgroup = __shfl_sync(0xffffffff, threadIdx.x / WARPGROUP, 0);  // tells ptxas that all lanes have the same
  if (warpgroup == 0) {
    registers_decrease<PRODUCER_REGISTERS>();
    if (threadIdx.x == 0) Producer{shared, tensors, problem}.run();
  } else {
    registers_increase<CONSUMER_REGISTERS>();
    Consumer{shared, tensors, problem, warpgroup - 1, threadIdx.x % WARP == 0}.run();
  }
}
