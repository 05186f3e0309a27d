// What a block has in shared memory.
#pragma once

#include "../shared/ring_barriers.h"

// A block's shared memory: three rings, for tiles of queries, of K and of V transposed. A full barrier completes when
// the slot has been filled, by FILLERS_OF_V arrivals for V^T; an empty one when all consumer warps have released it.
template <int HEAD_DIM> struct Rings {
  enum { CONSUMERS = CONSUMERS_OF(HEAD_DIM), ROWS = ROWS_OF(HEAD_DIM) };
  enum { QUERY_SLOTS = QUERY_SLOTS_OF(HEAD_DIM), SLOTS = SLOTS_OF(HEAD_DIM) };
  uint8_t q[QUERY_SLOTS][ROWS * HEAD_DIM];
  uint8_t k[SLOTS][KEYS * HEAD_DIM];
  uint8_t v[SLOTS][(HEAD_DIM + ONES) * KEYS];
  uint64_t q_full[QUERY_SLOTS], q_empty[QUERY_SLOTS];
  uint64_t k_full[SLOTS], k_empty[SLOTS], v_full[SLOTS], v_empty[SLOTS];
  int tile[QUERY_SLOTS];                                 // the number of the tile whose queries are there; -1: no more
  float score_scale[QUERY_SLOTS], v_scale[QUERY_SLOTS];  // of that tile's head. The struct is padded to 8 bytes

  __device__ void init() {
    if (threadIdx.x > 0) return;
    init_ring(q_full, q_empty, 1, CONSUMERS * 4);
    init_ring(k_full, k_empty, 1, CONSUMERS * 4);
    init_ring(v_full, v_empty, FILLERS_OF_V, CONSUMERS * 4);
    mbarrier_fence_init();
  }
};
static_assert(sizeof(Rings<64>) == SHARED_BYTES(64) && sizeof(Rings<128>) == SHARED_BYTES(128), "see tiles.h");
