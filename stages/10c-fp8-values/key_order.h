// The order of keys and columns in V^T: the natural one.
#pragma once

// Of four neighbouring positions of a row of V^T, which begin at a multiple of 4: the first holds key first_key, the
// second the key after it, and the other two the keys HOP further on. Row r holds a column of V.
struct KeyOrder {
  enum { HOP = 2 };
  static __device__ int first_key(int position) { return position; }
  static __device__ int column(int row) { return row; }
};
