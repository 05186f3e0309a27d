// The forward pass, which the harness runs before stages 12 to 12e and does not time: O, and the log-sum-exp of each
// query. It goes through the tiles as the pass over queries does, with the online softmax of stage 02. own[1], which is
// dO there, is Q once more: loaded and not used.
//
//   lse = log(sum of exp(score - max)) + max, where shift = -max log2(e), so max = -shift log(2)
#pragma once

template <int HEAD_DIM, bool CAUSAL> struct Forward : Warpgroup<HEAD_DIM, OVER_QUERIES, CAUSAL> {
  using Base = Warpgroup<HEAD_DIM, OVER_QUERIES, CAUSAL>;
  using Base::COLUMNS, Base::shared, Base::problem, Base::head, Base::row, Base::warp, Base::lane, Base::ring;
  using Base::s, Base::d0, Base::shift;
  float sum[2];  // of the weights in this thread's columns

  __device__ void start() {
#pragma unroll
    for (int i = 0; i < HEAD_DIM / 2; i++) d0[i] = 0;
    shift[0] = shift[1] = INFINITY;
    sum[0] = sum[1] = 0;
  }

  // Lowers each row's shift when the tile has a new maximum, and multiplies the row's sums of the older tiles by the
  // same power of 2 by which their weights become smaller.
  __device__ void raise_max() {
    float factor[2];
#pragma unroll
    for (int h = 0; h < 2; h++) {
      float max = -INFINITY;
#pragma unroll
      for (int i = 0; i < COLUMNS / 2; i += 4) max = fmaxf(max, fmaxf(s[i + 2 * h], s[i + 2 * h + 1]));
      float lower = fminf(shift[h], -quad_max(max) * problem.log2e_scale);
      factor[h] = power_of_two(lower - shift[h]);
      shift[h] = lower;
      sum[h] *= factor[h];
    }
#pragma unroll
    for (int i = 0; i < HEAD_DIM / 2; i++) d0[i] *= factor[i / 2 % 2];
  }

  __device__ void step(int t, int next) {
    int slot = this->wait_for_pair();
    this->product(s, shared.own[0], shared.streamed[slot][0]);
    if (next >= 0) this->load_streamed(next);
    wgmma_wait<0>();
    wgmma_results(s);
    if (this->needs_mask(t * COLUMNS)) this->mask(t * COLUMNS);
    raise_max();
    this->weights();
#pragma unroll
    for (int i = 0; i < COLUMNS / 2; i++) sum[i / 2 % 2] += s[i];
    this->accumulate(d0, s, shared.streamed[slot][1]);
    wgmma_wait<0>();
    wgmma_results(d0);
    this->release();
  }

  __device__ void store() {
    float total[2] = {quad_sum(sum[0]), quad_sum(sum[1])};
#pragma unroll
    for (int i = 0; i < HEAD_DIM / 2; i++) d0[i] /= total[i / 2 % 2];
#pragma unroll
    for (int h = 0; h < 2; h++) {
      int query = row + 16 * warp + lane / 4 + 8 * h;
      if (lane % 4 == 0 && query < problem.seqlen)
        problem.lse[(size_t)head * problem.seqlen + query] = logf(total[h]) - shift[h] * 0.693147181f;
    }
    Base::store();
  }
};

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    forward_64(const __grid_constant__ Tensors tensors, const Problem problem) {
  run_pass<64, OVER_QUERIES, false, Forward<64, false>>(tensors, problem);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    forward_64_causal(const __grid_constant__ Tensors tensors, const Problem problem) {
  run_pass<64, OVER_QUERIES, true, Forward<64, true>>(tensors, problem);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    forward_128(const __grid_constant__ Tensors tensors, const Problem problem) {
  run_pass<128, OVER_QUERIES, false, Forward<128, false>>(tensors, problem);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    forward_128_causal(const __grid_constant__ Tensors tensors, const Problem problem) {
  run_pass<128, OVER_QUERIES, true, Forward<128, true>>(tensors, problem);
}
