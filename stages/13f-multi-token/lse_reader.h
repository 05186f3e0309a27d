// The reader for a caller who also wants the log-sum-exp of each query: to combine O with that over other keys, as two
// workers' parts are combined.
#pragma once

#include "multi_reader.h"

template <int HEAD_DIM, int QUERIES> struct LseReader : MultiReader<HEAD_DIM, QUERIES> {
  typedef MultiReader<HEAD_DIM, QUERIES> Base;
  using Base::store;
  float *lse;  // [batch][key head][row]

  __device__ LseReader(const Maps &maps, const Work &work, int first, uint4 *half, float *lse)
      : Base(maps, work, first, half), lse(lse) {}

  // A natural logarithm; max is one to base 2. That of a query that sees no keys is -infinity.
  __device__ void store() {
    Base::store();
    int lane = threadIdx.x % WARP, rows = rows_of(Base::work);
    float *to = lse + (size_t)(Base::batch * Base::work.problem.kv_heads + Base::head) * rows;
#pragma unroll
    for (int c = 0; c < Base::COLUMNS; c++)
#pragma unroll
      for (int h = 0; h < 2; h++) {
        int row = Base::first + 8 * c + lane % 4 * 2 + h;
        if (lane < 4 && row < rows) to[row] = logf(Base::sum[c][h]) + Base::max[c][h] * LN_2;
      }
  }
};
