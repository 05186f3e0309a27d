// The producer of stages 09b and 10, and the shared memory that it fills. The kernel includes tiles.h and the PTX headers first.
#pragma once

#include "shared.h"

#include "loads.h"

template <int HEAD_DIM, bool CAUSAL> struct Producer : ProducerBase<Producer<HEAD_DIM, CAUSAL>, HEAD_DIM, CAUSAL> {
  __device__ void load_v(int t, int head) {
    if (t >= 0)
      this->load(this->v, this->shared.v, this->shared.v_full, this->shared.v_empty, &this->tensors.v, t * KEYS, head);
  }
};

template <int HEAD_DIM, bool CAUSAL>
__device__ void produce(Shared<HEAD_DIM> &shared, const Tensors &tensors, const Problem &problem) {
  if (threadIdx.x == 0) Producer<HEAD_DIM, CAUSAL>{{shared, tensors, problem}}.run();
}
