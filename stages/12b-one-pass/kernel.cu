// Stage 12b: the backward pass in one pass over keys. A block owns a tile of K and V and streams tiles of Q and dO, as in stage
// 12's pass over keys. For each it also computes that tile's share of dQ, and adds it to sums in global memory:
//
//   S^T = K Q^T, dP^T = V dO^T         own and streamed tile from shared memory
//   P^T, dS^T                          in registers
//   dV += P^T dO, dK += dS^T Q         first factor from registers
//   dQ of the streamed tile = dS K     dS from shared memory: dS^T is written there, and transposed on the way
//
// A launch is this: fill the sums with zeros, backward_terms, the pass, finish_queries.
#include <cuda_fp16.h>
#include <stdint.h>

#include "tiles.h"

#include "ptx/barrier.h"
#include "ptx/fence.h"
#include "ptx/global.h"
#include "ptx/math.h"
#include "ptx/mbarrier.h"
#include "ptx/quad.h"
#include "ptx/ring.h"
#include "ptx/stmatrix.h"
#include "ptx/tile.h"
#include "ptx/tma.h"
#include "ptx/wgmma.h"

#include "../12-backward/warpgroup.h"

#include "../12-backward/terms.h"

#include "../12-backward/run_pass.h"

#include "../12-backward/forward.h"

#include "query_gradient.h"

template <int HEAD_DIM, bool CAUSAL> struct OnePass : QueryGradient<HEAD_DIM, CAUSAL> {
  using Base = QueryGradient<HEAD_DIM, CAUSAL>;
  using Base::COLUMNS, Base::shared, Base::problem, Base::row, Base::ring;
  using Base::s, Base::dp, Base::d0, Base::d1, Base::dq;
  using typename Base::Factors;

  // One pair of streamed tiles.
  __device__ void step(int t, int next) {
    mbarrier_wait(shared_address(shared.full + ring.slot), ring.parity);
    int slot = __shfl_sync(0xffffffff, ring.slot, 0);  // the same in all lanes: ptxas sees it and drops the shuffle
    const half *q = shared.streamed[slot][0], *d_o = shared.streamed[slot][1];
    Factors ds;
    this->product(s, shared.own[0], q);
    this->product(dp, shared.own[1], d_o);
    if (next >= 0) this->load_streamed(next);
    wgmma_wait<1>();
    wgmma_results(s);
    if (this->needs_mask(t * COLUMNS)) this->mask(t * COLUMNS);
    if (!CAUSAL && row + WARPGROUP_ROWS > problem.seqlen) this->hide_missing_keys();
    this->weights();
    this->accumulate(d1, s, d_o);
    wgmma_wait<1>();
    wgmma_results(dp);
    this->score_gradients();
    this->pack_factors(ds, dp);
    this->accumulate(d0, ds, q);
    __syncthreads();  // both warpgroups have ended the step before: its dQ no longer reads dS
    this->put_score_gradients(ds);
    fence_async_proxy();
    __syncthreads();  // dS is complete
    this->query_gradient();
    wgmma_wait<1>();
    wgmma_results(d0);
    wgmma_results(d1);
    this->release();
    wgmma_wait<0>();
    wgmma_results(dq);
    this->add(t);
  }

  // dK goes over K, which both warpgroups' products for dQ read whole.
  __device__ void store() {
    __syncthreads();
    Base::store();
  }
};

// ---- the entry points ----

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    backward_64(const __grid_constant__ Tensors tensors, const Problem problem, const QuerySums sums) {
  run_pass<64, KEYS, false, OnePass<64, false>>(tensors, problem, sums);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    backward_64_causal(const __grid_constant__ Tensors tensors, const Problem problem, const QuerySums sums) {
  run_pass<64, KEYS, true, OnePass<64, true>>(tensors, problem, sums);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    backward_128(const __grid_constant__ Tensors tensors, const Problem problem, const QuerySums sums) {
  run_pass<128, KEYS, false, OnePass<128, false>>(tensors, problem, sums);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    backward_128_causal(const __grid_constant__ Tensors tensors, const Problem problem, const QuerySums sums) {
  run_pass<128, KEYS, true, OnePass<128, true>>(tensors, problem, sums);
}
