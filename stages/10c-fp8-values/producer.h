// The producer of stages 10c and 11. Another kernel has transposed V before, so its tiles are loaded like those of K.
#pragma once

#include "loads.h"

template <int HEAD_DIM, bool CAUSAL> struct Producer : ScalingProducer<Producer<HEAD_DIM, CAUSAL>, HEAD_DIM, CAUSAL> {
  using Base = ScalingProducer<Producer, HEAD_DIM, CAUSAL>;
  using Base::v, Base::shared, Base::tensors;

  // In V^T a tile is KEYS columns of all rows. In stage 11 its slot has more rows, so `load` does not fit.
  __device__ void load_v(int t, int head) {
    if (t < 0) return;
    uint32_t barrier = shared_address(shared.v_full + v.slot);
    mbarrier_wait(shared_address(shared.v_empty + v.slot), v.parity ^ 1);
    mbarrier_arrive_expect(barrier, HEAD_DIM * KEYS);
    tma_load(shared_address(shared.v[v.slot]), &tensors.v, barrier, t * KEYS, 0, head);
    v.advance();
  }
};

template <int HEAD_DIM, bool CAUSAL>
__device__ void produce(Shared<HEAD_DIM> &shared, const Tensors &tensors, const Problem &problem) {
  if (threadIdx.x == 0) Producer<HEAD_DIM, CAUSAL>{{{shared, tensors, problem}}}.run();
}
