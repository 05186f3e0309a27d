// The order of keys and columns in V^T: the one that the registers of S and of T have.
#pragma once

// In every 16 keys, position p holds key 2 (p / 4) + p % 2 + 8 (p / 2 % 2), as pack_keys packs the weights. In every 16
// rows the first eight hold the even columns, so that a thread ends with four neighbouring numbers of the output.
//
// Take four neighbouring positions, the first of them a multiple of 4. The first two hold key first_key and the key
// after it, and the other two hold the keys HOP further on.
struct KeyOrder {
  enum { HOP = 8 };
  static __device__ int first_key(int position) { return position / 16 * 16 + position % 16 / 2; }
  static __device__ int column(int row) { return row / 16 * 16 + row % 8 * 2 + row / 8 % 2; }
};
