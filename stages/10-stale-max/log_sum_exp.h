// The log-sum-exp of a consumer's rows, which a backward pass needs: the logarithm of the sum of exp(score).
//
// A row's sum is of weights 2^(score log2(e) + shift), so it is 2^shift times the sum of exp(score):
//
//   lse = log(sum) - shift log(2)
//
// This holds for any shift: also for a stale maximum, and after each shrink.
#pragma once

#include "../09b-diagonal/tiles.h"

#include "ptx/quad.h"

// Rows before the head's first one and behind its last one are none. The four threads of a quad have parts of the same sum.
__device__ void store_log_sum_exp(const Problem &problem, int head, int row, const float (&shift)[2],
                                  const float (&sum)[2]) {
  int thread = thread_index() % WARPGROUP, warp = thread / WARP, lane = thread % WARP;
#pragma unroll
  for (int h = 0; h < 2; h++) {
    float total = quad_sum(sum[h]);
    int query = row + 16 * warp + 8 * h + lane / 4;
    if (lane % 4 == 0 && query >= 0 && query < problem.seqlen)
      problem.lse[(size_t)head * problem.seqlen + query] = logf(total) - shift[h] * 0.693147181f;
  }
}
