// What a block of stages 07c to 08c has in shared memory, and which tiles it works on. The kernel includes tiles.h and
// the PTX headers first.
#pragma once

#include "ring_barriers.h"

// A block's shared memory: three rings, for tiles of queries, of K and of V. A full barrier completes when TMA has
// filled the slot, an empty one when all consumer warps have released it. The output gathers in the slot of its
// queries.
template <int HEAD_DIM> struct Shared {
  enum { CONSUMERS = CONSUMERS_OF(HEAD_DIM), ROWS = ROWS_OF(HEAD_DIM) };
  enum { SLOTS = SLOTS_OF(HEAD_DIM), QUERY_SLOTS = 1 };
  half q[QUERY_SLOTS][ROWS * HEAD_DIM];
  half k[SLOTS][KEYS * HEAD_DIM], v[SLOTS][KEYS * HEAD_DIM];
  uint64_t q_full[QUERY_SLOTS], q_empty[QUERY_SLOTS];
  uint64_t k_full[SLOTS], k_empty[SLOTS], v_full[SLOTS], v_empty[SLOTS];

  __device__ void init() {
    init_ring(q_full, q_empty, 1, CONSUMERS * 4);
    init_ring(k_full, k_empty, 1, CONSUMERS * 4);
    init_ring(v_full, v_empty, 1, CONSUMERS * 4);
    mbarrier_fence_init();
  }
};
static_assert(sizeof(Shared<64>) == SHARED_BYTES(64) && sizeof(Shared<128>) == SHARED_BYTES(128), "see tiles.h");

// A tile of queries: its head, its first row, and how many tiles of keys its queries may see.
struct Tile {
  int head, row, key_tiles;
};

// Tile number t. Tiles of a head follow each other; in causal attention the one with most keys goes first.
template <int HEAD_DIM, bool CAUSAL> __device__ Tile find_tile(const Problem &problem, int t) {
  const int ROWS = Shared<HEAD_DIM>::ROWS;
  Tile tile;
  int i = t % problem.head_tiles;
  tile.head = t / problem.head_tiles;
  tile.row = (CAUSAL ? problem.head_tiles - 1 - i : i) * ROWS;
  int keys = CAUSAL ? min(tile.row + ROWS, problem.seqlen) : problem.seqlen;
  tile.key_tiles = (keys + KEYS - 1) / KEYS;
  return tile;
}
