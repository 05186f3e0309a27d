// The search for the maximum in stages 11c and 11d.
#pragma once

template <class Self, int HEAD_DIM, bool CAUSAL> struct IntegerMax : ExactMax<Self, HEAD_DIM, CAUSAL> {
  using Base = ExactMax<Self, HEAD_DIM, CAUSAL>;
  using Base::s, Base::shift, Base::shift_of_max;

  // The bits of the largest of this thread's scores in a row, if any of them is not negative. Only negative floats have
  // another order than the integers with the same bits. One instruction finds the largest of three integers, but only
  // of two floats.
  __device__ int largest_bits(int h) {
    int even = __float_as_int(s[2 * h]), odd = __float_as_int(s[2 * h + 1]);
#pragma unroll
    for (int i = 4; i < KEYS / 2; i += 4) {
      int &largest = i % 8 ? even : odd;
      largest = max(largest, max(__float_as_int(s[i + 2 * h]), __float_as_int(s[i + 2 * h + 1])));
    }
    return max(even, odd);
  }

  // The largest score of each row. If a thread has only negative scores in a row, the warp compares floats.
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

  // The shifts follow the maxima. next[h] is the factor by which O of row h will shrink.
  __device__ void raise_max(float (&next)[2]) {
    float max[2];
    find_max(max);
#pragma unroll
    for (int h = 0; h < 2; h++) {
      float lower = fminf(shift[h], shift_of_max(max[h]));
      next[h] = power_of_two(lower - shift[h]);
      shift[h] = lower;
    }
  }
};
