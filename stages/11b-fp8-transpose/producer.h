// The producer's warpgroup of stages 11b to 11d: one thread loads, and two warps transpose V.
#pragma once

enum { TRANSPOSERS = 2, FILLERS_OF_V = TRANSPOSERS };  // warps that transpose; each arrives once at v_full
#include "../11-fp8/shared.h"

#include "../10c-fp8-values/loads.h"
#include "transpose.h"

template <int HEAD_DIM, bool CAUSAL> struct Producer : ScalingProducer<Producer<HEAD_DIM, CAUSAL>, HEAD_DIM, CAUSAL> {
  using Base = ScalingProducer<Producer, HEAD_DIM, CAUSAL>;
  using Base::tensors;
  Values<HEAD_DIM> &values;
  Ring<VALUE_SLOTS> ring;

  __device__ void load_v(int t, int head) {
    if (t >= 0) Base::load(ring, values.tile, values.full, values.empty, &tensors.v, t * KEYS, head);
  }
  __device__ void run() {
    Base::run();
    mbarrier_wait(shared_address(values.empty + ring.slot), ring.parity ^ 1);
    values.end[ring.slot] = 1;
    mbarrier_arrive(shared_address(values.full + ring.slot));
  }
};

template <int HEAD_DIM, bool CAUSAL>
__device__ void produce(Shared<HEAD_DIM> &shared, const Tensors &tensors, const Problem &problem) {
  __shared__ __align__(1024) Values<HEAD_DIM> values;
  if (threadIdx.x == 0) values.init();
  barrier_sync(1 + Shared<HEAD_DIM>::CONSUMERS, WARPGROUP);  // the mbarriers of values are initialised
  int warp = __shfl_sync(0xffffffff, threadIdx.x / WARP, 0);
  if (threadIdx.x == 0)
    Producer<HEAD_DIM, CAUSAL>{{{shared, tensors, problem}}, values}.run();
  else if (warp > 0 && warp <= TRANSPOSERS)
    Transposer<HEAD_DIM>{shared, values}.run();
}
