// The softmax of stages 10c and up, with the exact maximum of each key tile.
#pragma once

template <class Self, int HEAD_DIM, bool CAUSAL> struct ExactMax : Products<Self, HEAD_DIM, CAUSAL> {
  using Base = Products<Self, HEAD_DIM, CAUSAL>;
  using Base::release, Base::begin_step, Base::shrink_output, Base::s, Base::shift, Base::factor, Base::q, Base::k;
  using Base::v, Base::shared, Base::key, Base::steps, Base::self;
  float scale;  // of this head's scores, with log2(e) / sqrt(HEAD_DIM)

  // The largest weight is 2^8: e4m3 ends at 448, and 2^-10 and below becomes 0.
  __device__ float shift_of_max(float max) { return 8 - max * scale; }

  // Replaces the scores of keys FROM to TO by weights.
  template <int FROM, int TO> __device__ void weights() {
#pragma unroll
    for (int i = FROM / 2; i < TO / 2; i++) s[i] = power_of_two(s[i] * scale + shift[i / 2 % 2]);
  }

  // For a tile's first key tile.
  __device__ void first_shift() {
    scale = shared.score_scale[q.slot];
#pragma unroll
    for (int h = 0; h < 2; h++) shift[h] = shift_of_max(Base::template row_max<KEYS>(h));
  }
  template <int> __device__ void first_weights() {
    first_shift();
    weights<0, KEYS>();
  }
  __device__ void tile_begins() {
    Base::tile_begins();
    factor[0] = factor[1] = 1;
  }

  // O * factor + T is one multiply-add, so the rescaling costs nothing.
  __device__ void output_done() {
    shrink_output();
    Base::output_done();
  }

  __device__ void raise_max() {
#pragma unroll
    for (int h = 0; h < 2; h++) {
      float lower = fminf(shift[h], shift_of_max(Base::template row_max<KEYS>(h)));
      factor[h] = power_of_two(lower - shift[h]);
      shift[h] = lower;
    }
  }

  __device__ void end_step() {
    trace(WAIT_QK, steps);
    wgmma_wait<0>();
    wgmma_results(s);
    output_done();
    trace_done(QK, steps);
    trace_done(PV, steps - 1);
    trace(SOFTMAX, steps);
    release(k, shared.k_empty);
    release(v, shared.v_empty);
    raise_max();
    weights<0, KEYS>();
    Base::template pack_weights<KEYS>();
    steps++;
  }

  __device__ int other_tiles() {
    while (key > 0) {
      begin_step(1);
      self().end_step();
    }
    return 1;
  }
};
