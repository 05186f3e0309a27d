// Stage 12d's warpgroups with less in their loops. No mbarrier of its own shows that a pair is free: the arrival of dS
// does. A whole warp enters load_pair, and one elected lane issues the copies.
#pragma once

template <int HEAD_DIM, bool CAUSAL> struct LeanKeyWarpgroup : LateKeyWarpgroup<HEAD_DIM, CAUSAL> {
  using Base = LateKeyWarpgroup<HEAD_DIM, CAUSAL>;
  using Base::COLUMNS, Base::shared, Base::problem, Base::row, Base::ring, Base::s, Base::dp, Base::d0, Base::d1;
  using Base::a, Base::lane, Base::warp, Base::warpgroup, Base::ds;
  using typename Base::Factors;
  // Only the first tile has scores that a causal mask hides. At 64 the loop is faster without the branch to the mask,
  // and at 128 there are not enough registers for two copies of the step.
  static constexpr bool FIRST_APART = CAUSAL && HEAD_DIM == 64;
  int place;  // of this thread's dS in a slot. Computed before the loop: with FIRST_APART ptxas would else spill it

  __device__ int place_in_slot() {
    return swizzled(COLUMNS, lane / 16 * 8 + lane % 8, 8 * warpgroup + 2 * warp + lane / 8 % 2);
  }

  // Hands dS to the query warpgroup. 16 rows further on the swizzle is the same. So all stores have one address, and
  // each has its own constant offset from it.
  __device__ void put() {
    mbarrier_wait(shared_address(shared.ds_empty + ds.slot), ds.parity ^ 1);
    uint32_t to = shared_address(shared.ds[ds.slot]) + (FIRST_APART ? place : place_in_slot());
#pragma unroll
    for (int n = 0; n < COLUMNS / 16; n++)
      stmatrix_transposed(to + n * 16 * ROW_BYTES, a[n][0], a[n][1], a[n][2], a[n][3]);
    fence_async_proxy();
    mbarrier_arrive(shared_address(shared.ds_full + ds.slot));
    ds.advance();
  }

  // Stage 12d's step without the release of a pair. `put` comes after the last use of the previous pair, so it also
  // releases that pair.
  __device__ void step(int t, int &last, bool first) {
    int slot = this->wait_for_pair();
    this->take_turn();
    wgmma_unread(s);
    this->product(s, shared.own[0], shared.streamed[slot][0]);
    this->accumulate(d0, a, shared.streamed[last][0]);
    this->pass_turn();
    wgmma_wait<1>();  // S is complete, and dK runs on
    wgmma_results(s);
    wgmma_results(d1);
    if (FIRST_APART ? first : this->needs_mask(t * COLUMNS)) this->mask(t * COLUMNS);
    this->weights();
    Factors p;
    this->pack_factors(p, s);
    // ptxas moves the wait for dK up, before all exponentials. These few stay before it. (At 64, holding none is best.)
#pragma unroll
    for (int i = 7; i < COLUMNS / 2 && HEAD_DIM == 128; i += 8) computed_here(s[i]);
    wgmma_wait<0>();
    wgmma_results(d0);
    if (first) mbarrier_wait(shared_address(&shared.v_full), 0);
    wgmma_unread(dp);
    this->product(dp, shared.own[1], shared.streamed[slot][1]);
    this->accumulate(d1, p, shared.streamed[slot][1]);
    wgmma_wait<1>();  // dP is complete, and dV runs on
    wgmma_results(dp);
    this->score_gradients(p, slot);
    if (!CAUSAL && row + WARPGROUP_ROWS > problem.seqlen) this->hide_missing_keys();  // a causal mask has hidden them
    this->pack_factors(a, dp);
    put();
    wgmma_wait<0>();  // dV is complete
    wgmma_results(d1);
    last = slot;
    ring.advance();
  }

  __device__ void run(int first, int tiles) {
    place = place_in_slot();
    Base::run(*this, first, tiles);
  }
};

template <int HEAD_DIM, bool CAUSAL> struct LeanQueryWarpgroup : KFirstQueryWarpgroup<HEAD_DIM, CAUSAL> {
  using Base = KFirstQueryWarpgroup<HEAD_DIM, CAUSAL>;
  using Base::shared, Base::lane, Base::loading, Base::ds, Base::dq;

  // By a whole warp.
  __device__ void load_pair(int t) {
    if (elected()) this->fill(loading.slot, t);
    loading.advance();
  }

  // When dS of tile t is complete, so is dK of tile t - 1 in all key warps, and its shift and delta have been read. So
  // no warp needs pair t - 1 any more, and pair t + 2 goes into its slot.
  __device__ void run(int first, int tiles) {
    bool loads = __shfl_sync(0xffffffff, threadIdx.x / WARP, 0) == THREADS / WARP;
    mbarrier_wait(shared_address(&shared.own_full), 0);
#pragma unroll 1
    for (int t = first; t < tiles; t++) {
      mbarrier_wait(shared_address(shared.ds_full + ds.slot), ds.parity);
      if (loads && t + PAIR_SLOTS - 1 < tiles) load_pair(t + PAIR_SLOTS - 1);
      int slot = __shfl_sync(0xffffffff, ds.slot, 0);
#pragma unroll
      for (int part = 0; part < 2; part++) {
        this->query_gradient(shared_address(shared.ds[slot]), part);
        wgmma_wait<0>();
        wgmma_results(dq);
        if (part == 1 && lane == 0) mbarrier_arrive(shared_address(shared.ds_empty + slot));
        this->add(t, part);
      }
      ds.advance();
    }
    barrier_arrive(K_FREE, BLOCK_THREADS);  // K is read no more
  }
};
