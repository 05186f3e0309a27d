// What a warpgroup does in a pass of the backward pass, and the block's shared memory that it works in.
#pragma once

enum Pass { OVER_QUERIES, OVER_KEYS };

// A block's shared memory: its own tiles, and slots for streamed ones. In the pass over keys the columns of a product
// are queries, and their shift and delta come with the tile. full completes when TMA has filled the slot, empty when
// all threads have released it.
template <int HEAD_DIM, int SLOT_COUNT = SLOTS> struct Shared {
  enum { COLUMNS = COLUMNS_OF(HEAD_DIM), SLOTS = SLOT_COUNT };
  half own[2][ROWS * HEAD_DIM];
  half streamed[SLOTS][2][COLUMNS * HEAD_DIM];
  float shift[SLOTS][COLUMNS], delta[SLOTS][COLUMNS];
  uint64_t own_full, full[SLOTS], empty[SLOTS];

  __device__ void init() {
    mbarrier_init(shared_address(&own_full), 1);
    for (int i = 0; i < SLOTS; i++) {
      mbarrier_init(shared_address(full + i), 1);
      mbarrier_init(shared_address(empty + i), THREADS);
    }
    mbarrier_fence_init();
  }
};
static_assert(sizeof(Shared<64>) == SHARED_BYTES(64, SLOTS) && sizeof(Shared<128>) == SHARED_BYTES(128, SLOTS),
              "see tiles.h");

// ---- the thread that loads ----

// Starts loading rows of a tensor, in panels of 64 columns. The caller has announced the bytes.
template <int HEAD_DIM, int SIZE>
__device__ void load(half (&to)[SIZE], uint64_t &full, const TensorMap &map, int row, int head) {
  const int panel_bytes = SIZE / HEAD_DIM * ROW_BYTES;
#pragma unroll
  for (int panel = 0; panel < HEAD_DIM / PANEL; panel++)
    tma_load(shared_address(to) + panel * panel_bytes, &map, shared_address(&full), panel * PANEL, row, head);
}

// The same rows of two tensors.
template <int HEAD_DIM, int SIZE>
__device__ void load(half (&to)[2][SIZE], uint64_t &full, const TensorMap (&maps)[2], int row, int head) {
#pragma unroll
  for (int i = 0; i < 2; i++) load<HEAD_DIM>(to[i], full, maps[i], row, head);
}

// ---- a warp's part of a gradient ----

// Stores scale times a warp's sixteen rows of a gradient: as fp16 to its rows of a tile in shared memory, then with
// TMA, which leaves out rows past the last one. The tile has TILE_ROWS rows; `rows` is the address of the warp's.
// Column, row and head say where they go. Lane 0 has begun a group of stores.
template <int COLUMNS, int TILE_ROWS>
__device__ void store_rows(const float (&d)[COLUMNS / 2], float scale, uint32_t rows, const TensorMap *map, int column,
                           int row, int head, int lane) {
#pragma unroll
  for (int i = 0; i < COLUMNS / 16; i++) {
    const float *x = d + 8 * i;
    stmatrix(rows + swizzled(TILE_ROWS, lane % 16, 2 * i + lane / 16), pack(x[0] * scale, x[1] * scale),
             pack(x[2] * scale, x[3] * scale), pack(x[4] * scale, x[5] * scale), pack(x[6] * scale, x[7] * scale));
  }
  fence_async_proxy();
  __syncwarp();
  if (lane > 0) return;
#pragma unroll
  for (int panel = 0; panel < COLUMNS / PANEL; panel++)
    tma_store(map, rows + panel * TILE_ROWS * ROW_BYTES, column + panel * PANEL, row, head);
  tma_store_commit();
}

// ---- a warpgroup's part ----

template <int HEAD_DIM, Pass PASS, bool CAUSAL, class MEMORY = Shared<HEAD_DIM>> struct Warpgroup {
  using Memory = MEMORY;
  static constexpr int COLUMNS = Memory::COLUMNS, SLOTS = Memory::SLOTS;
  using Factors = uint32_t[COLUMNS / 16][4];
  Memory &shared;
  const Tensors &tensors;
  const Problem &problem;
  int warpgroup, warp, lane;
  int head, row;        // the tensors' head, and the warpgroup's first own row in it
  Ring<SLOTS> ring;     // the slot of the next tile to compute on
  Ring<SLOTS> loading;  // of the thread that loads: the slot of the next tile to load

  // Element i of a product is row l / 4 + 8 (i / 2 % 2) of the warp's sixteen, column 8 (i / 4) + 2 (l % 4) + i % 2,
  // where l is the lane. The pass over keys has the transposes of Q K^T, P, dP and dS here.
  float s[COLUMNS / 2];      // Q K^T, then weights P
  float dp[COLUMNS / 2];     // dP, then dS
  float d0[HEAD_DIM / 2];    // the gradient of the first own tensor: dQ or dK
  float d1[HEAD_DIM / 2];    // pass over keys: the gradient of the second, dV
  float shift[2], delta[2];  // pass over queries: of this thread's two rows

  // The number of this block's own tile, head after head.
  static __device__ unsigned own_tile(Memory &) { return blockIdx.x; }

  // Which tile of which head has that number.
  static __device__ void find_tile(const Problem &problem, unsigned number, int &head, int &tile) {
    head = number / problem.head_tiles, tile = number % problem.head_tiles;
    // Causal: the longest tile first. In the pass over keys that is tile 0 already.
    if (PASS == OVER_QUERIES) tile = problem.head_tiles - 1 - tile;
  }

  __device__ void start() {
#pragma unroll
    for (int i = 0; i < HEAD_DIM / 2; i++) d0[i] = d1[i] = 0;
    size_t first = (size_t)head * problem.head_tiles * ROWS + row + 16 * warp + lane / 4;
#pragma unroll
    for (int h = 0; h < 2 && PASS == OVER_QUERIES; h++) {
      shift[h] = problem.shift[first + 8 * h];
      delta[h] = problem.delta[first + 8 * h];
    }
  }

  // Starts to = own streamed^T, for the warpgroup's rows. Ordinary instructions have read and written the registers of
  // `to` since the last product; wgmma_fence orders these accesses before the new product's writes.
  __device__ void product(float (&to)[COLUMNS / 2], const half *own, const half *streamed) {
    uint64_t a = k_major(shared_address(own) + warpgroup * WARPGROUP_ROWS * ROW_BYTES);
    uint64_t b = k_major(shared_address(streamed));
    wgmma_fence();
#pragma unroll
    for (int d = 0; d < HEAD_DIM / 16; d++)
      wgmma<COLUMNS>(to, columns_16(a, ROWS, d), columns_16(b, COLUMNS, d), d > 0);
    wgmma_commit();
  }

  // P or dS as fp16, the A of a product. A thread holds the same elements of A as of the accumulator that they were
  // computed in, so they never leave the thread.
  __device__ void pack_factors(Factors &a, const float (&x)[COLUMNS / 2]) {
#pragma unroll
    for (int n = 0; n < COLUMNS / 16; n++)
      for (int j = 0; j < 4; j++) a[n][j] = pack(x[8 * n + 2 * j], x[8 * n + 2 * j + 1]);
  }

  // Starts sum += a streamed. wgmma_fence orders the writes of `a` before the product's reads.
  __device__ void accumulate(float (&sum)[HEAD_DIM / 2], const Factors &a, const half *streamed) {
    uint64_t b = mn_major(shared_address(streamed), COLUMNS);
    wgmma_fence();
#pragma unroll
    for (int n = 0; n < COLUMNS / 16; n++) wgmma<HEAD_DIM, true>(sum, a[n], rows_16(b, n), true);
    wgmma_commit();
  }

  // Starts sum += factors streamed.
  __device__ void accumulate(float (&sum)[HEAD_DIM / 2], const float (&factors)[COLUMNS / 2], const half *streamed) {
    Factors a;
    pack_factors(a, factors);
    accumulate(sum, a, streamed);
  }

  // How many keys a query may see.
  __device__ int visible_keys(int query) { return CAUSAL ? min(query + 1, problem.seqlen) : problem.seqlen; }

  // Whether the streamed tile that begins at `column` has hidden scores in the warpgroup's rows. One corner decides:
  // where rows are queries, the first row and the last column; where they are keys, the last row and the first column.
  // Queries past the last one need no mask: their shift is minus infinity.
  __device__ bool needs_mask(int column) {
    if (PASS == OVER_QUERIES) return column + COLUMNS > visible_keys(row);
    return CAUSAL && column < row + WARPGROUP_ROWS - 1;
  }

  // Hidden scores become minus infinity, which makes P 0. Hidden are keys past the last one (pass over queries; in the
  // pass over keys they are own rows, which are not stored) and, with a causal mask, keys after the query.
  __device__ void mask(int column) {
    int first_row = row + 16 * warp + lane / 4, first_column = column + lane % 4 * 2;  // this thread's
#pragma unroll
    for (int i = 0; i < COLUMNS / 2; i++) {
      int own = first_row + i / 2 % 2 * 8, streamed = first_column + i / 4 * 8 + i % 2;
      bool hidden = PASS == OVER_QUERIES ? streamed >= visible_keys(own) : streamed < own;
      if (hidden) s[i] = -INFINITY;
    }
  }

  // shift or delta of the query that s[i] belongs to: one of this thread's two rows, or the column.
  __device__ float of_query(const float (&own)[2], const float (&streamed)[COLUMNS], int i) {
    return PASS == OVER_QUERIES ? own[i / 2 % 2] : streamed[i / 4 * 8 + lane % 4 * 2 + i % 2];
  }

  // P in the place of Q K^T: exp(score - lse), as a power of 2.
  __device__ void weights() {
#pragma unroll
    for (int i = 0; i < COLUMNS / 2; i++)
      s[i] = power_of_two(s[i] * problem.log2e_scale + of_query(shift, shared.shift[ring.slot], i));
  }

  // dS in the place of dP.
  __device__ void score_gradients() {
#pragma unroll
    for (int i = 0; i < COLUMNS / 2; i++) dp[i] = s[i] * (dp[i] - of_query(delta, shared.delta[ring.slot], i));
  }

  // Starts loading the pair of streamed tiles t into a slot.
  __device__ void fill(int slot, int t) {
    uint32_t full = shared_address(shared.full + slot);
    const int terms_bytes = PASS == OVER_KEYS ? sizeof shared.shift[slot] + sizeof shared.delta[slot] : 0;
    mbarrier_arrive_expect(full, sizeof shared.streamed[slot] + terms_bytes);
    load<HEAD_DIM>(shared.streamed[slot], shared.full[slot], tensors.streamed, t * COLUMNS, head);
    if (PASS == OVER_KEYS) {
      size_t first = (size_t)head * problem.head_tiles * ROWS + t * COLUMNS;
      bulk_load(shared_address(shared.shift[slot]), problem.shift + first, full, sizeof shared.shift[slot]);
      bulk_load(shared_address(shared.delta[slot]), problem.delta + first, full, sizeof shared.delta[slot]);
    }
  }

  // The same for the next slot, once all warps have released it.
  __device__ void load_streamed(int t) {
    mbarrier_wait(shared_address(shared.empty + loading.slot), loading.parity ^ 1);
    fill(loading.slot, t);
    loading.advance();
  }

  // Waits for the next pair of streamed tiles, and returns its slot.
  __device__ int wait_for_pair() {
    mbarrier_wait(shared_address(shared.full + ring.slot), ring.parity);
    return __shfl_sync(0xffffffff, ring.slot, 0);  // the same in all lanes: ptxas sees it and drops the shuffle
  }

  // The first part of a step, for one pair of streamed tiles: P and dS, in s and dp, and in the pass over keys the
  // start of dV. While the tensor cores compute, the thread that loads gives the next pair to TMA: it passes `next`,
  // and all others -1. That pair's slot is the one of the step before, so this thread waits until all warps have ended
  // that step. Returns the first streamed tile.
  __device__ const half *begin_step(int t, int next) {
    int slot = wait_for_pair();
    const half *first = shared.streamed[slot][0], *second = shared.streamed[slot][1];
    product(s, shared.own[0], first);
    product(dp, shared.own[1], second);
    if (next >= 0) load_streamed(next);
    wgmma_wait<1>();
    wgmma_results(s);
    if (needs_mask(t * COLUMNS)) mask(t * COLUMNS);
    weights();
    if (PASS == OVER_KEYS) accumulate(d1, s, second);
    wgmma_wait<PASS == OVER_KEYS ? 1 : 0>();  // dP is complete; in the pass over keys, dV runs on
    wgmma_results(dp);
    score_gradients();
    return first;
  }

  __device__ void step(int t, int next) {
    const half *first = begin_step(t, next);
    accumulate(d0, dp, first);
    wgmma_wait<0>();
    wgmma_results(d0);
    if (PASS == OVER_KEYS) wgmma_results(d1);
    release();
  }

  // Releases the slot. Each lane arrives: it has read shift and delta.
  __device__ void release() {
    mbarrier_arrive(shared_address(shared.empty + ring.slot));
    ring.advance();
  }

  // Stores scale times a gradient, for this warp's sixteen rows, over the same rows of the own tile.
  __device__ void store(const float (&d)[HEAD_DIM / 2], float scale, const half *own, const TensorMap *map) {
    uint32_t tile = shared_address(own) + (warpgroup * WARPGROUP_ROWS + warp * STORE_ROWS) * ROW_BYTES;
    store_rows<HEAD_DIM, ROWS>(d, scale, tile, map, 0, row + warp * STORE_ROWS, head, lane);
  }

  __device__ void store() {
    barrier_sync(1 + warpgroup, WARPGROUP);  // until now, products of the other three warps may read the own tiles
    store(d0, problem.scale, shared.own[0], &tensors.out[0]);
    if (PASS == OVER_KEYS) store(d1, 1, shared.own[1], &tensors.out[1]);
    if (lane == 0) tma_store_wait<0>();
  }
};
