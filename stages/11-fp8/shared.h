// What a block has in shared memory: the rings, and below each tile of V^T rows of ones, whose products are the sums of
// the weights.
#pragma once

#include "../10c-fp8-values/shared.h"

template <int HEAD_DIM> struct Shared : Rings<HEAD_DIM> {
  using Base = Rings<HEAD_DIM>;
  using Base::v, Base::SLOTS;

  __device__ void init() {
    fill_ones();
    Base::init();
  }

  __device__ void fill_ones() {
    for (int slot = 0; slot < SLOTS; slot++)
      for (int i = threadIdx.x; i < ONES * KEYS / 4; i += blockDim.x)
        ((uint32_t *)(v[slot] + HEAD_DIM * KEYS))[i] = 0x38383838;  // 1 is 0x38 in e4m3
    fence_async_proxy();
  }
};
