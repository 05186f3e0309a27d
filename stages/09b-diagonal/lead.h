// For the launches of stages 09b and up: where a head's first tile of queries begins. They include their tiles.h
// before.
#pragma once

// By how many rows a head's first tile begins before the first row, so that its last one is full. It is a multiple of a
// consumer's rows: each consumer has rows that exist, or none. Where tiles end with a key tile, nothing can be gained:
// 0.
static int lead(int seqlen, int rows, int tiles) {
  int step = rows % KEYS ? WARPGROUP_ROWS : rows;
  return tiles * rows - (seqlen + step - 1) / step * step;
}
