// The consumer of stage 11c, and its search for the maximum.
#pragma once

template <class Self, int HEAD_DIM, bool CAUSAL> struct IntegerMax : ExactMax<Self, HEAD_DIM, CAUSAL> {
  using Base = ExactMax<Self, HEAD_DIM, CAUSAL>;
  using Base::s;

  // The bits of the largest of this thread's scores in a row, if it has one that is not negative: such floats have the order
  // of their bits as integers. Of three integers the GPU finds the largest in one instruction, of floats only of two.
  __device__ int largest_bits(int h) {
    int even = __float_as_int(s[2 * h]), odd = __float_as_int(s[2 * h + 1]);
#pragma unroll
    for (int i = 4; i < KEYS / 2; i += 4) {
      int &largest = i % 8 ? even : odd;
      largest = max(largest, max(__float_as_int(s[i + 2 * h]), __float_as_int(s[i + 2 * h + 1])));
    }
    return max(even, odd);
  }

  // The largest score of each row. Where a thread has negative scores alone in a row, the warp compares floats.
  __device__ void find_max(float (&max)[2]) {
    int bits[2] = {largest_bits(0), largest_bits(1)};
    max[0] = __int_as_float(bits[0]), max[1] = __int_as_float(bits[1]);
    if (__any_sync(0xffffffff, (bits[0] | bits[1]) < 0)) {
#pragma unroll
      for (int h = 0; h < 2; h++) max[h] = Base::template row_max<KEYS>(h);
    }
#pragma unroll
    for (int h = 0; h < 2; h++) max[h] = quad_max(max[h]);
  }
};

template <int HEAD_DIM, bool CAUSAL> struct Consumer : IntegerMax<Consumer<HEAD_DIM, CAUSAL>, HEAD_DIM, CAUSAL> {
  using Base = IntegerMax<Consumer, HEAD_DIM, CAUSAL>;
  using Base::release, Base::output_done, Base::shift_of_max, Base::s, Base::shift, Base::factor, Base::k, Base::v;
  using Base::shared, Base::steps;
  // Keys whose weights may be computed while PV runs. With HEAD_DIM = 64 the search alone is: the other consumers' weights
  // keep the special function units busy.
  enum { UNDER_PV = HEAD_DIM == 64 ? 0 : 32 };

  // The shifts follow the maxima. next[h] is the factor by which O of row h will shrink.
  __device__ void raise_max(float (&next)[2]) {
    float max[2];
    Base::find_max(max);
#pragma unroll
    for (int h = 0; h < 2; h++) {
      float lower = fminf(shift[h], shift_of_max(max[h]));
      next[h] = power_of_two(lower - shift[h]);
      shift[h] = lower;
    }
  }

  // PV under way has weights with the shift before. So its T is added with the factor before, and `next` is for the next T.
  __device__ void end_step() {
    float next[2];
    trace(WAIT_QK, steps);
    wgmma_wait<1>();
    wgmma_results(s);
    trace_done(QK, steps);
    trace(SOFTMAX, steps);
    raise_max(next);
    Base::template weights<0, UNDER_PV>();
    computed_here(UNDER_PV ? s[UNDER_PV / 2 - 1] : shift[1]);
    trace(WAIT_PV, steps - 1);
    wgmma_wait<0>();
    wgmma_results(s);
    output_done();
    factor[0] = next[0], factor[1] = next[1];
    trace_done(PV, steps - 1);
    trace(SOFTMAX_REST, steps);
    release(k, shared.k_empty);
    release(v, shared.v_empty);
    Base::template weights<UNDER_PV, KEYS>();
    Base::template pack_weights<KEYS>();
    steps++;
  }
};
