// The log-sum-exp of a consumer's rows, which a backward pass needs: the logarithm of the sum of exp(score).
//
// A row's sum is of weights 2^(score log2(e) + shift), so it is 2^shift times the sum of exp(score):
//
//   lse = log(sum) - shift log(2)
//
// This holds for any shift: also for a stale maximum, and after each shrink.
#pragma once

#include "ptx/quad.h"

// Of a warpgroup's 64 rows from `row` on; the four threads of a quad have parts of their sums. problem.lse is
// [heads][seqlen]. Rows before a head's first one and behind its last one are none.
template <class Problem>
__device__ void store_log_sum_exp(const Problem &problem, int head, int row, int thread, const float (&shift)[2],
                                  const float (&sum)[2]) {
#pragma unroll
  for (int h = 0; h < 2; h++) {
    float total = quad_sum(sum[h]);
    int query = row + thread / 32 * 16 + thread % 32 / 4 + 8 * h;
    if (thread % 4 == 0 && query >= 0 && query < problem.seqlen)
      problem.lse[(size_t)head * problem.seqlen + query] = logf(total) - shift[h] * 0.693147181f;
  }
}

// An entry point whose consumers store the log-sum-exp, beside those of entry_points.h.
#define WITH_LSE(NAME, HEAD_DIM, CAUSAL)                                                                               \
  extern "C" __global__ void __launch_bounds__(THREADS_OF(HEAD_DIM), 1)                                                \
      NAME(const __grid_constant__ Tensors tensors, const Problem problem) {                                           \
    attention<HEAD_DIM, CAUSAL, Consumer<HEAD_DIM, CAUSAL, true>>(tensors, problem);                                   \
  }
