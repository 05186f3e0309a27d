// The producer of stages 10c to 11d. Self loads the values.
#pragma once

#include "../09b-diagonal/loads.h"

template <class Self, int HEAD_DIM, bool CAUSAL> struct ScalingProducer : ProducerBase<Self, HEAD_DIM, CAUSAL> {
  using Base = ProducerBase<Self, HEAD_DIM, CAUSAL>;
  using Base::shared, Base::tensors, Base::problem, Base::q;

  // Writes the scales of the tile's head next to its number. They are loaded before the wait for a free slot, so their
  // latency is hidden.
  __device__ void announce(int number, const Tile &tile) {
    int head = tile.head * problem.scale_stride;
    float score_scale = problem.scale * tensors.q_scale[head] * tensors.k_scale[head], v_scale = tensors.v_scale[head];
    Base::announce(number, tile);
    shared.score_scale[q.slot] = score_scale;
    shared.v_scale[q.slot] = v_scale;
  }
};
