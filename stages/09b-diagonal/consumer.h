// What the consumers of stages 09b and 10 have in common: their turns, their products, and their way through the tiles.
// A kernel extends this struct by a struct Self with the softmax. Self may replace functions: from stage 10b on it
// replaces the products. Self has
//
//   first_weights<N>()  weights of a tile's first N keys: sets shift and sum, and puts the weights where the scores
//                       were
//   tile_begins()       called after the first weights of a tile, when the output of the previous tile has been stored
//   other_tiles()       all key tiles after the first, with the output of each but the last. Returns 1 if there were
//                       any: then the last output adds to o. Else it returns 0
#pragma once

// threadIdx.x, read by a volatile instruction. This keeps the compiler from computing addresses from it before the main
// loop and holding them in registers all the while.
__device__ int thread_index() {
  int index;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(index));
  return index;
}

// A consumer's ring of K, and its ring of V. Stage 11d has another.
template <int HEAD_DIM> struct KeyRing : Ring<Shared<HEAD_DIM>::SLOTS> {};

template <class Self, int HEAD_DIM, bool CAUSAL> struct ConsumerBase {
  using S = Shared<HEAD_DIM>;
  S &shared;
  const Tensors &tensors;
  const Problem &problem;
  int warpgroup;
  bool elected;  // one thread of each warp
  Ring<S::QUERY_SLOTS> q;
  KeyRing<HEAD_DIM> k, v;
  int leaving = -1;    // the slot of queries from which an output is on its way out
  int skipped;         // key tiles to the right of this warpgroup's rows
  int steps = 0;       // for trace: key tiles whose scores have been started
  int head, row, key;  // the tile's head, the warpgroup's first query, the first key of the key tile at hand

  // Lane l has parts of rows l / 4 (h = 0) and l / 4 + 8 (h = 1): s[4 n + 2 h + e] is in column 8 n + 2 (l % 4) + e.
  float s[KEYS / 2];                              // scores, then weights
  uint32_t p[KEYS / 8 / WEIGHTS_OF_REGISTER][4];  // weights rounded, the A of the next product
  float o[HEAD_DIM / 2];
  float shift[2];   // a weight is 2^(score * scale + shift)
  float sum[2];     // of the weights in this thread's columns
  float factor[2];  // by which older weights shrink

  __device__ Self &self() { return static_cast<Self &>(*this); }

  // Starts S = Q K^T, for the first N keys of the key tile.
  template <int N> __device__ void scores() {
    uint64_t a = k_major(shared_address(shared.q[q.slot]) + warpgroup * WARPGROUP_ROWS * ROW_BYTES);
    uint64_t b = k_major(shared_address(shared.k[k.slot]));
    wgmma_fence();
#pragma unroll
    for (int d = 0; d < HEAD_DIM / 16; d++)
      wgmma<N>(slice<N / 2>(s, 0), columns_16(a, S::ROWS, d), columns_16(b, KEYS, d), d > 0);
    wgmma_commit();
  }

  // In a tile's first key tile, scores that must not count become minus infinity.
  template <int N> __device__ void mask() {
    int thread = thread_index() % WARPGROUP, warp = thread / WARP, lane = thread % WARP;
#pragma unroll
    for (int h = 0; h < 2; h++) {
      int i = row + 16 * warp + 8 * h + lane / 4, keys = CAUSAL ? min(i + 1, problem.seqlen) : problem.seqlen;
      int left = keys - (key + lane % 4 * 2);  // keys that the row may see, from this lane's first column on
#pragma unroll
      for (int n = 0; n < N / 8; n++)
        for (int e = 0; e < 2; e++)
          if (8 * n + e >= left) s[4 * n + 2 * h + e] = -INFINITY;
    }
  }

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

  // What a score is multiplied by: log2(e) / sqrt(HEAD_DIM), and from stage 10b on the scales of Q and K.
  __device__ float score_scale() { return problem.scale; }

  // Lazy rescaling, as in stage 02c: when a maximum has grown so much that a weight would exceed 2^8, the shift
  // follows it. This function then returns true, and everything older must shrink by `factor`.
  __device__ bool raise_max() {
    float lower[2];
#pragma unroll
    for (int h = 0; h < 2; h++) lower[h] = fminf(shift[h], -row_max<KEYS>(h) * self().score_scale());
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

  // The weights of N keys as fp16. The other keys of the key tile get 0.
  template <int N> __device__ void pack_weights() {
#pragma unroll
    for (int n = 0; n < KEYS / 16; n++)
      for (int j = 0; j < 4; j++) {
        p[n][j] = n < N / 16 ? pack(s[8 * n + 2 * j], s[8 * n + 2 * j + 1]) : 0;
        if (N < KEYS) asm volatile("" : "+r"(p[n][j]));  // each zero in a register of its own, as wgmma takes A
      }
  }

  // Starts O += P V, or O = P V for a tile's first key tile.
  __device__ void output(int accumulate) {
    uint64_t b = mn_major(shared_address(shared.v[v.slot]), KEYS);
    wgmma_fence();
#pragma unroll
    for (int n = 0; n < KEYS / 16; n++) wgmma<HEAD_DIM, true>(o, p[n], rows_16(b, n), n > 0 ? 1 : accumulate);
    wgmma_commit();
  }

  // The registers of the last output may be read again.
  __device__ void output_done() { wgmma_results(o); }

  // wait: until a ring's next slot is full. arrive: this warp needs the slot no more. release: the same, and the ring
  // goes on.
  template <int SLOTS> __device__ void wait(const Ring<SLOTS> &ring, const uint64_t *full) {
    mbarrier_wait(shared_address(full + ring.slot), ring.parity);
  }
  template <int SLOTS> __device__ void arrive(const Ring<SLOTS> &ring, const uint64_t *empty) {
    if (elected) mbarrier_arrive(shared_address(empty + ring.slot));
  }
  template <int SLOTS> __device__ void release(Ring<SLOTS> &ring, const uint64_t *empty) {
    arrive(ring, empty);
    ring.advance();
  }

  // The consumers take turns in issuing products. Consumer w waits for its turn at barrier 1 + w. Stage 10c replaces
  // number().
  __device__ int number() { return warpgroup; }
  __device__ void take_turn() { barrier_sync(1 + self().number(), 2 * WARPGROUP); }
  __device__ void pass_turn() { barrier_arrive(1 + (self().number() + 1) % S::CONSUMERS, 2 * WARPGROUP); }

  // The first key tile of the first tile, with nothing else under way.
  template <int N> __device__ void first_tile() {
    wait(k, shared.k_full);
    trace(WAIT_TURN, steps);
    take_turn();
    trace(QK, steps);
    self().template scores<N>();
    pass_turn();
    trace(WAIT_QK, steps);
    wgmma_wait<0>();
    wgmma_results(s);
    trace_done(QK, steps);
    trace(SOFTMAX, steps);
    release(k, shared.k_empty);
    mask<N>();
    self().template first_weights<N>();
    self().tile_begins();
    self().template pack_weights<N>();
    steps++;
  }

  // The scores of one key tile and the output of the previous one, both in the background, in one turn.
  __device__ void begin_step(int accumulate) {
    key -= KEYS;
    trace(WAIT_K, steps);
    wait(k, shared.k_full);
    trace(WAIT_TURN, steps);
    take_turn();
    trace(QK, steps);
    self().template scores<KEYS>();
    trace(WAIT_V, steps - 1);
    wait(v, shared.v_full);
    trace(PV, steps - 1);
    self().output(accumulate);
    pass_turn();
  }

  // The last output of the last tile, with nothing else under way.
  __device__ void last_output(int accumulate, int last_slot, int last_head, int last_row) {
    trace(WAIT_TURN, steps);
    take_turn();
    trace(WAIT_V, steps - 1);
    wait(v, shared.v_full);
    trace(PV, steps - 1);
    self().output(accumulate);
    pass_turn();
    trace(WAIT_PV, steps - 1);
    wgmma_wait<0>();
    self().output_done();
    trace_done(PV, steps - 1);
    trace(STORE, steps - 1);
    self().store(sum, last_slot, last_head, last_row);
    if (elected) tma_store_wait<0>();
    if (warpgroup == 0) take_turn();  // the turn that the last consumer has passed on
  }

  // The last output of a tile, and the first scores of the next one. The members already describe the next tile, the
  // arguments the previous one. (No trace(WAIT_TURN) here: it would cost registers, and ptxas would serialise
  // the products.)
  template <int N> __device__ void next_tile(int accumulate, int last_slot, int last_head, int last_row) {
    wait(k, shared.k_full);
    take_turn();
    trace(QK, steps);
    self().template scores<N>();
    wait(v, shared.v_full);
    trace(PV, steps - 1);
    self().output(accumulate);
    pass_turn();
    float last_sum[2] = {sum[0], sum[1]};
    trace(WAIT_QK, steps);
    wgmma_wait<1>();
    wgmma_results(s);
    trace_done(QK, steps);
    trace(SOFTMAX, steps);
    release(k, shared.k_empty);
    if (CAUSAL || key + KEYS > problem.seqlen) mask<N>();
    self().template first_weights<N>();
    trace(WAIT_PV, steps - 1);
    wgmma_wait<0>();
    wgmma_results(s);
    self().output_done();
    trace_done(PV, steps - 1);
    trace(STORE, steps - 1);
    release(v, shared.v_empty);
    self().store(last_sum, last_slot, last_head, last_row);
    trace(RESCALE, steps);
    self().tile_begins();
    self().template pack_weights<N>();
    skip_values();
    steps++;
  }

  // Where the output gathers: in its queries' slot. Stage 10b has another place.
  __device__ half *output_tile(int slot) { return shared.q[slot]; }

  // O / sum, to the warp's own rows of that tile, and from there to global memory.
  __device__ void store(const float (&o_sum)[2], int slot, int head, int row) {
    float scale[2] = {1 / quad_sum(o_sum[0]), 1 / quad_sum(o_sum[1])};
    int thread = thread_index() % WARPGROUP, warp = thread / WARP, lane = thread % WARP;
    uint32_t tile = shared_address(self().output_tile(slot)) + (warpgroup * WARPGROUP_ROWS + warp * STORE_ROWS) *
                                                                   ROW_BYTES;
#pragma unroll
    for (int d = 0; d < HEAD_DIM / 16; d++) {
      const float *x = o + 8 * d;
      stmatrix(tile + swizzled(S::ROWS, lane % 16, 2 * d + lane / 16), pack(x[0] * scale[0], x[1] * scale[0]),
               pack(x[2] * scale[1], x[3] * scale[1]), pack(x[4] * scale[0], x[5] * scale[0]),
               pack(x[6] * scale[1], x[7] * scale[1]));
    }
    fence_async_proxy();
    __syncwarp();
    if (row >= 0 && elected) {
#pragma unroll
      for (int panel = 0; panel < HEAD_DIM / PANEL; panel++)
        tma_store(&tensors.o, tile + panel * S::ROWS * ROW_BYTES, panel * PANEL, row + warp * STORE_ROWS, head);
      tma_store_commit();
    }
    leaving = slot;
  }

  // When the output has left, its slot can take queries again.
  __device__ void release_queries() {
    if (leaving < 0) return;
    if (elected) {
      tma_store_wait_read<0>();
      mbarrier_arrive(shared_address(shared.q_empty + leaving));
    }
    leaving = -1;
  }

  // Waits for the next tile's queries; false when there are no more tiles. Skips keys that belong to other warpgroups;
  // skip_values does the same for values, when it is their turn.
  __device__ bool find_next() {
    trace(WAIT_K, steps);
    wait(q, shared.q_full);
    int number = shared.tile[q.slot];
    if (number < 0) return false;
    Tile tile = find_tile<HEAD_DIM, CAUSAL>(problem, number);
    head = tile.head;
    row = tile.row + warpgroup * WARPGROUP_ROWS;
    int keys = CAUSAL ? min(row + WARPGROUP_ROWS, problem.seqlen) : problem.seqlen;
    int key_tiles = max((keys + KEYS - 1) / KEYS, 1);  // at least one, even if the rows do not exist
    key = (key_tiles - 1) * KEYS;
    skipped = tile.key_tiles - key_tiles;
    if constexpr (CAUSAL && S::ROWS > KEYS) {
      for (int i = 0; i < skipped; i++) {
        wait(k, shared.k_full);
        take_turn();
        pass_turn();
        release(k, shared.k_empty);
      }
    }
    return true;
  }
  __device__ void skip_values() {
    if constexpr (CAUSAL && S::ROWS > KEYS) {
      for (int i = 0; i < skipped; i++) {
        wait(v, shared.v_full);
        release(v, shared.v_empty);
      }
    }
  }

  // Does the diagonal leave only half of the tile's first key tile to this warpgroup? With CUDA 12 it gets all of it:
  // those compilers find no registers for a kernel that has both (C7511).
  __device__ bool half_tile() { return __CUDACC_VER_MAJOR__ >= 13 && CAUSAL && row % KEYS == 0; }

  __device__ void run() {
    trace_begin(CONSUMER);
    if (warpgroup == S::CONSUMERS - 1) pass_turn();  // the first turn is consumer 0's
    find_next();
    skip_values();
    self().half_tile() ? first_tile<KEYS / 2>() : first_tile<KEYS>();
    while (true) {
      int accumulate = self().other_tiles();
      release_queries();  // here for a tile with a single key tile, which has no end_step
      int last_slot = q.slot, last_head = head, last_row = row;
      q.advance();
      if (!find_next()) {
        last_output(accumulate, last_slot, last_head, last_row);
        trace_end();
        return;
      }
      if (self().half_tile())
        next_tile<KEYS / 2>(accumulate, last_slot, last_head, last_row);
      else
        next_tile<KEYS>(accumulate, last_slot, last_head, last_row);
    }
  }
};
