// What a block has in shared memory, which tiles it works on, and the producer that loads them. The kernel includes
// tiles.h and the PTX headers first.
#pragma once

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
    for (int i = 0; i < QUERY_SLOTS; i++) {
      mbarrier_init(shared_address(q_full + i), 1);
      mbarrier_init(shared_address(q_empty + i), CONSUMERS * 4);  // one arrival of each consumer warp
    }
    for (int i = 0; i < SLOTS; i++) {
      mbarrier_init(shared_address(k_full + i), 1);
      mbarrier_init(shared_address(v_full + i), 1);
      mbarrier_init(shared_address(k_empty + i), CONSUMERS * 4);
      mbarrier_init(shared_address(v_empty + i), CONSUMERS * 4);
    }
    mbarrier_fence_init();
  }
};
static_assert(sizeof(Shared<64>) == SHARED_BYTES(64) && sizeof(Shared<128>) == SHARED_BYTES(128), "see tiles.h");

// A tile of queries: its first, and how many tiles of keys any of them may see.
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

  // V follows one tile after K: a step waits for K of its own tile, and then for V of the tile before.
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
