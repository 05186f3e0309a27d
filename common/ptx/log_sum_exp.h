// The log-sum-exp of a consumer's rows, which a backward pass needs: the logarithm of the sum of exp(score).
//
// A row's sum is of weights 2^(score log2(e) + shift), so it is 2^shift times the sum of exp(score):
//
//   lse = log(sum) - shift log(2)
//
// This holds for any shift: also for a stale maximum, and after each shrink.
#pragma once

#include "ptx/quad.h"

// Of rows row + lane / 4 and 8 more; the four threads of a quad have parts of their sums. lse has the rows of one head. Rows
// before its first one and behind its last one are none.
__device__ void store_log_sum_exp(float *lse, int seqlen, int row, int lane, const float (&shift)[2],
                                  const float (&sum)[2]) {
#pragma unroll
  for (int h = 0; h < 2; h++) {
    float total = quad_sum(sum[h]);
    int query = row + 8 * h + lane / 4;
    if (lane % 4 == 0 && query >= 0 && query < seqlen) lse[query] = logf(total) - shift[h] * 0.693147181f;
  }
}
