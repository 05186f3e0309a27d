// The consumer of stage 11c.
#pragma once

#include "integer_max.h"

template <int HEAD_DIM, bool CAUSAL> struct Consumer : IntegerMax<Consumer<HEAD_DIM, CAUSAL>, HEAD_DIM, CAUSAL> {
  using Base = IntegerMax<Consumer, HEAD_DIM, CAUSAL>;
  using Base::release, Base::output_done, Base::s, Base::shift, Base::factor, Base::k, Base::v, Base::shared,
      Base::steps;
  // Keys whose weights may be computed while PV runs. With HEAD_DIM = 64 there are none, and only the search runs then:
  // other consumers' weights keep the special function units busy.
  enum { UNDER_PV = HEAD_DIM == 64 ? 0 : 32 };

  // Adds T to O. T is PV of the previous key tile, and its weights have the previous shift. So it is added with the
  // previous factor. `next` is the factor for the next T.
  __device__ void add_output(const float (&next)[2]) {
    output_done();
    factor[0] = next[0], factor[1] = next[1];
  }

  __device__ void end_step() {
    float next[2];
    trace(WAIT_QK, steps);
    wgmma_wait<1>();
    wgmma_results(s);
    trace_done(QK, steps);
    trace(SOFTMAX, steps);
    Base::raise_max(next);
    Base::template weights<0, UNDER_PV>();
    computed_here(UNDER_PV ? s[UNDER_PV / 2 - 1] : shift[1]);
    trace(WAIT_PV, steps - 1);
    wgmma_wait<0>();
    wgmma_results(s);
    add_output(next);
    trace_done(PV, steps - 1);
    trace(SOFTMAX_REST, steps);
    release(k, shared.k_empty);
    release(v, shared.v_empty);
    Base::template weights<UNDER_PV, KEYS>();
    Base::template pack_weights<KEYS>();
    steps++;
  }
};
