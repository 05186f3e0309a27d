// The producer that loads a block's tiles. The kernel includes tiles.h and the PTX headers first.
#pragma once

#include "../shared/three_rings.h"

// ---- the producer: one thread ----

template <int HEAD_DIM> struct Producer {
  using S = Shared<HEAD_DIM>;
  S &shared;
  const Tensors &tensors;
  Ring<S::QUERY_SLOTS> q;
  Ring<S::SLOTS> k, v;
  int loads = 0;  // for trace

  // Loads rows of a head, in panels of 64 columns because a box under this swizzle is no wider, into a ring's next
  // slot, once that is empty.
  template <int SLOTS, int SIZE>
  __device__ void load(Ring<SLOTS> &ring, half (&to)[SLOTS][SIZE], uint64_t *full, uint64_t *empty,
                       const TensorMap *map, int row, int head) {
    const int panel_bytes = SIZE / HEAD_DIM * ROW_BYTES;
    uint32_t barrier = shared_address(full + ring.slot), tile = shared_address(to[ring.slot]);
    trace(WAIT_FREE, loads++);
    mbarrier_wait(shared_address(empty + ring.slot), ring.parity ^ 1);
    trace(COPY, loads - 1);
    mbarrier_arrive_expect(barrier, SIZE * sizeof(half));
#pragma unroll
    for (int panel = 0; panel < HEAD_DIM / PANEL; panel++)
      tma_load(tile + panel * panel_bytes, map, barrier, panel * PANEL, row, head);
    ring.advance();
  }
  __device__ void load_k(int t, int head) {
    load(k, shared.k, shared.k_full, shared.k_empty, &tensors.k, t * KEYS, head);
  }
  __device__ void load_v(int t, int head) {
    load(v, shared.v, shared.v_full, shared.v_empty, &tensors.v, t * KEYS, head);
  }

  // V follows one tile after K: a step waits for K of its own tile, and then for V of the previous tile.
  __device__ void run(const Tile &tile) {
    trace_begin(PRODUCER);
    load(q, shared.q, shared.q_full, shared.q_empty, &tensors.q, tile.row, tile.head);
    for (int t = tile.key_tiles - 1; t >= 0; t--) {
      load_k(t, tile.head);
      if (t + 1 < tile.key_tiles) load_v(t + 1, tile.head);
    }
    load_v(0, tile.head);
    trace_end();
  }
};
