// Stage 12d's warpgroups with less in their loops. No mbarrier of its own shows that a pair is free: the arrival of dS does. A
// whole warp enters load_pair, and one elected lane issues the copies.
#pragma once

template <int HEAD_DIM, bool CAUSAL> struct LeanKeyWarpgroup : LateKeyWarpgroup<HEAD_DIM, CAUSAL> {
  using Base = LateKeyWarpgroup<HEAD_DIM, CAUSAL>;
  using Base::COLUMNS, Base::shared, Base::problem, Base::row, Base::ring, Base::s, Base::dp, Base::d0, Base::d1, Base::a;
  using typename Base::Factors;

  // Stage 12d's step without the release of a pair. `put` comes after the last use of the pair before, and so releases it, too.
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
    if (this->needs_mask(t * COLUMNS)) this->mask(t * COLUMNS);
    this->weights();
    Factors p;
    this->pack_factors(p, s);
    // ptxas moves the wait for dK up, before all exponentials. These stay before it. (At 64, none was fastest.)
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
    wgmma_wait<0>();
    wgmma_results(d1);
    wgmma_results(dp);
    this->pack_factors(a, dp);
    this->put(a);
    last = slot;
    ring.advance();
  }

  __device__ void run(int first, int tiles) { Base::run(*this, first, tiles); }
};

template <int HEAD_DIM, bool CAUSAL> struct LeanQueryWarpgroup : KFirstQueryWarpgroup<HEAD_DIM, CAUSAL> {
  using Base = KFirstQueryWarpgroup<HEAD_DIM, CAUSAL>;
  using Base::shared, Base::lane, Base::loading, Base::ds, Base::dq;

  // By a whole warp. Only lane 0's `loading` is right: it has loaded the first pairs.
  __device__ void load_pair(int t) {
    int slot = __shfl_sync(0xffffffff, loading.slot, 0);
    if (elected()) this->fill(slot, t);
    loading.advance();
  }

  // dS of tile t is complete, and so is dK of tile t - 1 in all key warps. Its shift and delta have been read. So nobody needs
  // pair t - 1 any more, and the pair after the next goes into its slot.
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
