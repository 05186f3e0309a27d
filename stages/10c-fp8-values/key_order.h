// The order of keys and columns in V^T: the natural one.
#pragma once

// Take four neighbouring positions of a row of V^T, the first of them a multiple of 4. The first two hold key first_key
// and the key after it, and the other two hold the keys HOP further on. Row r holds a column of V.
struct KeyOrder {
  enum { HOP = 2 };
  static __device__ int first_key(int position) { return position; }
  static __device__ int column(int row) { return row; }
};
