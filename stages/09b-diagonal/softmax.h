// The softmax of stages 09b and 10b, with lazy rescaling: it searches the maximum of each key tile's scores, and the
// output shrinks only where that has grown much.
#pragma once

template <class Self, int HEAD_DIM, bool CAUSAL> struct LazyMax : ConsumerBase<Self, HEAD_DIM, CAUSAL> {
  using Base = ConsumerBase<Self, HEAD_DIM, CAUSAL>;
  using Base::release, Base::release_queries, Base::begin_step, Base::raise_max, Base::shrink_output;
  using Base::s, Base::o, Base::shift, Base::sum, Base::k, Base::v, Base::shared, Base::self, Base::key, Base::steps;

  // Replaces the scores of N keys by weights, and adds the weights up.
  template <int N> __device__ void weights() {
    float odd[2] = {0, 0};
#pragma unroll
    for (int i = 0; i < N / 2; i += 4)
#pragma unroll
      for (int h = 0; h < 2; h++) {
        s[i + 2 * h] = power_of_two(s[i + 2 * h] * self().score_scale() + shift[h]);
        s[i + 2 * h + 1] = power_of_two(s[i + 2 * h + 1] * self().score_scale() + shift[h]);
        sum[h] += s[i + 2 * h];
        odd[h] += s[i + 2 * h + 1];
      }
    sum[0] += odd[0];
    sum[1] += odd[1];
  }

  // Weights of a tile's first N keys.
  template <int N> __device__ void first_weights() {
#pragma unroll
    for (int h = 0; h < 2; h++) {
      shift[h] = -Base::template row_max<N>(h) * self().score_scale();
      sum[h] = 0;
    }
    weights<N>();
  }
  __device__ void tile_begins() {}

  // The weights of this key tile, while the output of the previous one still runs.
  __device__ void end_step() {
    trace(WAIT_QK, steps);
    wgmma_wait<1>();
    wgmma_results(s);
    trace_done(QK, steps);
    trace(SOFTMAX, steps);
    release(k, shared.k_empty);
    bool grew = raise_max();
    weights<KEYS>();
    trace(WAIT_PV, steps - 1);
    wgmma_wait<0>();
    wgmma_results(s);
    wgmma_results(o);
    trace_done(PV, steps - 1);
    trace(RESCALE, steps);
    release(v, shared.v_empty);
    if (grew) shrink_output();
    Base::template pack_weights<KEYS>();
    release_queries();  // last, because it has a branch: ptxas moves the wait for PV up, but not across a branch
    steps++;
  }

  // All key tiles after the first.
  __device__ int other_tiles() {
    if (key == 0) return 0;
    for (int accumulate = 0; key > 0; accumulate = 1) {
      begin_step(accumulate);
      end_step();
    }
    return 1;
  }
};
