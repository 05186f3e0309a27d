// Stage 12c's warpgroups with products under the other work. A key warpgroup computes the weights of a tile while the
// tensor cores compute dK of the tile before, and dS while they compute dV. Its first scores do not wait for V.
#pragma once

template <int HEAD_DIM> struct PairsShared : Shared<HEAD_DIM, PAIR_SLOTS> {
  uint64_t v_full;  // own_full is for K alone

  __device__ void init() {
    mbarrier_init(shared_address(&v_full), 1);
    Shared<HEAD_DIM, PAIR_SLOTS>::init();
  }
};
template <int HEAD_DIM> using LateShared = BlockShared<HEAD_DIM, PairsShared<HEAD_DIM>>;
static_assert(sizeof(LateShared<128>) == ONE_PASS_SHARED_BYTES(128, PAIR_SLOTS, DS_SLOTS), "see tiles.h");

template <int HEAD_DIM, bool CAUSAL> struct LateKeyWarpgroup : OnePass<HEAD_DIM, CAUSAL, LateShared<HEAD_DIM>> {
  using Base = OnePass<HEAD_DIM, CAUSAL, LateShared<HEAD_DIM>>;
  using Base::COLUMNS, Base::shared, Base::problem, Base::tensors, Base::warpgroup, Base::lane, Base::row, Base::ring;
  using Base::s, Base::dp, Base::d0, Base::d1;
  using typename Base::Factors;
  // Where HEAD_DIM is 64, the tensor cores do half as much for each score, and the other work is the same: there one
  // warpgroup should compute weights while the other's products run. Where it is 128, turns cost more than they gain.
  static constexpr bool TAKE_TURNS = HEAD_DIM == 64, FIRST_APART = false;  // the first step has no code of its own
  Ring<DS_SLOTS> ds;  // the slot for the next dS
  Factors a;          // dS of the tile before: the A of its dK, which runs in the next step

  // Causal: all first tiles of some heads, then all second ones, and so on, because the first have the most queries.
  // What these heads' blocks share should fit into the L2 cache: Q, dO and the sums of dQ, 8 bytes an element.
  static __device__ void find_tile(const Problem &problem, int number, int &head, int &tile) {
    if (!CAUSAL) {
      head = number / problem.head_tiles, tile = number - head * problem.head_tiles;
      return;
    }
    int heads_in_l2 = min(16, max(1, (32 << 20) / (8 * HEAD_DIM * problem.seqlen)));
    int first_head = number / (heads_in_l2 * problem.head_tiles) * heads_in_l2;      // of the group that the tile is in
    int heads = min(heads_in_l2, (int)gridDim.x / problem.head_tiles - first_head);  // the last group may have fewer
    int number_in_group = number - first_head * problem.head_tiles;
    head = first_head + number_in_group % heads;
    tile = number_in_group / heads;
  }

  // Hands dS to the query warpgroup, as in stage 12c.
  __device__ void put() {
    mbarrier_wait(shared_address(shared.ds_empty + ds.slot), ds.parity ^ 1);
    this->put_score_gradients(a, shared_address(shared.ds[ds.slot]));
    fence_async_proxy();
    mbarrier_arrive(shared_address(shared.ds_full + ds.slot));
    ds.advance();
  }

  // A turn is the right to issue S and dK, as in stage 08b. All threads of both key warpgroups count: they wait or
  // pass.
  __device__ void take_turn() {
    if (TAKE_TURNS) barrier_sync(TURNS + warpgroup, THREADS);
  }
  __device__ void pass_turn() {
    if (TAKE_TURNS) barrier_arrive(TURNS + (1 - warpgroup), THREADS);
  }

  // dS in the place of dP: p is 2^15 P, and delta is 2^-15 of what it was. So 2^-15 dP - delta takes one multiply-add.
  __device__ void score_gradients(const Factors &p, int slot) {
    const float p_scale = 1.0f / (1 << WEIGHT_EXPONENT);
#pragma unroll
    for (int i = 0; i < COLUMNS / 2; i++) {
      float2 pair = __half22float2(*(half2 *)&p[i / 8][i / 2 % 4]);
      dp[i] = (i % 2 ? pair.y : pair.x) * (dp[i] * p_scale - this->of_query(this->delta, shared.delta[slot], i));
    }
  }

  // One pair of streamed tiles; `last` is the slot of the one before. dK is one tile late: it runs under this tile's
  // weights, and dV under this tile's dS. In the first step a is 0, so dK adds zeros, and there is one copy of the
  // loop's body.
  __device__ void step(int t, int &last, bool first) {
    int slot = this->wait_for_pair();
    take_turn();
    wgmma_unread(s);
    this->product(s, shared.own[0], shared.streamed[slot][0]);
    this->accumulate(d0, a, shared.streamed[last][0]);
    pass_turn();
    wgmma_wait<1>();  // S is complete, and dK runs on
    wgmma_results(s);
    wgmma_results(d1);
    if (this->needs_mask(t * COLUMNS)) this->mask(t * COLUMNS);
    this->weights();
    Factors p;
    this->pack_factors(p, s);
    wgmma_wait<0>();
    wgmma_results(d0);
    if (!first) mbarrier_arrive(shared_address(shared.empty + last));
    if (first) mbarrier_wait(shared_address(&shared.v_full), 0);
    wgmma_unread(dp);
    this->product(dp, shared.own[1], shared.streamed[slot][1]);
    this->accumulate(d1, p, shared.streamed[slot][1]);
    wgmma_wait<1>();  // dP is complete, and dV runs on
    wgmma_results(dp);
    score_gradients(p, slot);
    if (!CAUSAL && row + WARPGROUP_ROWS > problem.seqlen) this->hide_missing_keys();  // a causal mask has hidden them
    wgmma_wait<0>();
    wgmma_results(d1);
    wgmma_results(dp);
    this->pack_factors(a, dp);
    put();
    last = slot;
    ring.advance();
  }

  // All steps of `part`, then dK of the last tile. dV overwrites V; a key warpgroup reads only its own rows of V.
  template <class Part> __device__ void run(Part &part, int first, int tiles) {
    Base::Base::start();
#pragma unroll
    for (int i = 0; i < COLUMNS / 4; i++) a[i / 4][i % 4] = 0;
    int last = 0;
    mbarrier_wait(shared_address(&shared.own_full), 0);
    if (warpgroup == 1) pass_turn();  // the first turn is warpgroup 0's
    bool skips = CAUSAL && COLUMNS == WARPGROUP_ROWS && warpgroup == 1;
    if (skips) {  // the step whose queries all come before this warpgroup's keys: its dS is 0, as a is
      last = this->wait_for_pair();
      mbarrier_wait(shared_address(&shared.v_full), 0);
      put();
      ring.advance();
    }
    int t = first + skips;
    if (Part::FIRST_APART) part.step(t++, last, true);
#pragma unroll 1
    for (; t < tiles; t++) part.step(t, last, !Part::FIRST_APART && t == first);
    if (warpgroup == 0) take_turn();  // the last one that warpgroup 1 passes: no arrival may be left over
    this->accumulate(d0, a, shared.streamed[last][0]);
    barrier_sync(V_FREE + warpgroup, WARPGROUP);
    this->store(d1, 1.0f / (1 << WEIGHT_EXPONENT), shared.own[1], &tensors.out[1]);
    wgmma_wait<0>();
    wgmma_results(d0);
    barrier_sync(K_FREE, BLOCK_THREADS);
    this->store(d0, problem.scale, shared.own[0], &tensors.out[0]);
    if (lane == 0) tma_store_wait_read<0>();  // until then the block's shared memory must stay
  }
  __device__ void run(int first, int tiles) { run(*this, first, tiles); }
};

template <int HEAD_DIM, bool CAUSAL>
struct KFirstQueryWarpgroup : QueryWarpgroup<HEAD_DIM, CAUSAL, LateShared<HEAD_DIM>> {
  // Starts loading the block's own tile of K (0) or V (1).
  __device__ void load_own(int i, uint64_t &full) {
    mbarrier_arrive_expect(shared_address(&full), sizeof this->shared.own[i]);
    load<HEAD_DIM>(this->shared.own[i], full, this->tensors.own[i], this->row, this->head);
  }

  __device__ void load_first(int first, int tiles) {
    load_own(0, this->shared.own_full);
    this->load_streamed(first);
    load_own(1, this->shared.v_full);
    for (int t = first + 1; t < min(first + PAIR_SLOTS - 1, tiles); t++) this->load_streamed(t);
  }
};
