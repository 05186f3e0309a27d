// The reader for a caller who also wants the log-sum-exp of each query.
#pragma once

#include "e4m3_reader.h"

// In the log-sum-exp the weights' factor of 2^LARGEST_WEIGHT does not cancel out, so it is taken off.
template <int HEAD_DIM, int QUERIES> struct E4m3LseReader : E4m3Reader<HEAD_DIM, QUERIES> {
  typedef E4m3Reader<HEAD_DIM, QUERIES> Base;
  using Base::max;
  using Base::sum;
  using Base::work;
  float *lse;  // [batch][key head][row]

  __device__ E4m3LseReader(const Work &work, const Scales &scales, float *lse) : Base(work, scales), lse(lse) {}

  // Calls write(row, max, sum) for each row that exists, in one of the lanes that have its sum.
  template <class Write> __device__ void for_each_row(const Write &write) {
    int lane = threadIdx.x % WARP;
#pragma unroll
    for (int c = 0; c < Base::COLUMNS; c++)
#pragma unroll
      for (int h = 0; h < 2; h++) {
        int row = 8 * c + lane % 4 * 2 + h;
        if (lane < 4 && row < rows_of(work)) write(row, max[c][h] - Base::LARGEST_WEIGHT, sum[c][h]);
      }
  }

  // A natural logarithm; max is one to base 2.
  __device__ void store() {
    Base::store();
    float *to = lse + (size_t)(Base::batch * work.problem.kv_heads + Base::head) * rows_of(work);
    for_each_row([&](int row, float max, float sum) { to[row] = logf(sum) + max * LN_2; });
  }

  __device__ void store(const Leftovers &leftovers, int part) {
    Base::store(leftovers, part);
    float *to = leftovers.lse + (size_t)part * rows_of(work);
    for_each_row([&](int row, float max, float sum) { to[row] = max + log2f(sum); });
  }
};
