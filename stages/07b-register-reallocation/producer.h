// What a block of stages 07b to 08b has in shared memory, what it is to do, and the producer that loads it. The kernel
// includes tiles.h and the PTX headers first.
#pragma once

// A block's shared memory: its queries, in whose place the output gathers, and a ring of slots for tiles of K and one for
// tiles of V. A full barrier completes when TMA has filled the slot, an empty one when all consumer warps have released it.
template <int HEAD_DIM> struct Shared {
  enum { CONSUMERS = CONSUMERS_OF(HEAD_DIM), ROWS = CONSUMERS * WARPGROUP_ROWS, SLOTS = SLOTS_OF(HEAD_DIM) };
  half q[ROWS * HEAD_DIM];
  half k[SLOTS][KEYS * HEAD_DIM], v[SLOTS][KEYS * HEAD_DIM];
  uint64_t q_full, k_full[SLOTS], k_empty[SLOTS], v_full[SLOTS], v_empty[SLOTS];

  __device__ void init() {
    mbarrier_init(shared_address(&q_full), 1);
    for (int i = 0; i < SLOTS; i++) {
      mbarrier_init(shared_address(k_full + i), 1);
      mbarrier_init(shared_address(v_full + i), 1);
      mbarrier_init(shared_address(k_empty + i), CONSUMERS * 4);  // one arrival of each consumer warp
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

// The block's tile. In causal attention a head's last tiles have most keys, and go first.
template <int HEAD_DIM, bool CAUSAL> __device__ Tile find_tile(const Problem &problem) {
  const int ROWS = Shared<HEAD_DIM>::ROWS;
  Tile tile;
  tile.head = blockIdx.x / problem.head_tiles;
  tile.row = (problem.head_tiles - 1 - blockIdx.x % problem.head_tiles) * ROWS;
  int keys = CAUSAL ? min(tile.row + ROWS, problem.seqlen) : problem.seqlen;
  tile.key_tiles = (keys + KEYS - 1) / KEYS;
  return tile;
}

// ---- the producer: one thread ----

template <int HEAD_DIM> struct Producer {
  using S = Shared<HEAD_DIM>;
  S &shared;
  const Tensors &tensors;
  Ring<S::SLOTS> k, v;
  int loads = 0;  // for trace

  // Loads rows of a head, in panels of 64 columns, because a box under this swizzle is no wider. `full` completes when all
  // have landed.
  template <int SIZE> __device__ void load(half (&to)[SIZE], uint64_t &full, const TensorMap *map, int row, int head) {
    const int panel_bytes = SIZE / HEAD_DIM * ROW_BYTES;
    trace(COPY, loads);
    mbarrier_arrive_expect(shared_address(&full), sizeof to);
#pragma unroll
    for (int panel = 0; panel < HEAD_DIM / PANEL; panel++)
      tma_load(shared_address(to) + panel * panel_bytes, map, shared_address(&full), panel * PANEL, row, head);
    loads++;
  }
  // The same into a ring's next slot, once that is empty.
  template <int SLOTS, int SIZE>
  __device__ void load_next(Ring<SLOTS> &ring, half (&to)[SLOTS][SIZE], uint64_t *full, uint64_t *empty,
                            const TensorMap *map, int row, int head) {
    trace(WAIT_FREE, loads);
    mbarrier_wait(shared_address(empty + ring.slot), ring.parity ^ 1);
    load(to[ring.slot], full[ring.slot], map, row, head);
    ring.advance();
  }
  __device__ void load_k(int t, int head) {
    load_next(k, shared.k, shared.k_full, shared.k_empty, &tensors.k, t * KEYS, head);
  }
  __device__ void load_v(int t, int head) {
    load_next(v, shared.v, shared.v_full, shared.v_empty, &tensors.v, t * KEYS, head);
  }

  // From the last tile, which has the mask, to the first. V is loaded one tile later than K, as it is used.
  __device__ void run(const Tile &tile) {
    trace_begin(PRODUCER);
    load(shared.q, shared.q_full, &tensors.q, tile.row, tile.head);
    for (int t = tile.key_tiles - 1; t >= 0; t--) {
      load_k(t, tile.head);
      if (t + 1 < tile.key_tiles) load_v(t + 1, tile.head);
    }
    load_v(0, tile.head);
    trace_end();
  }
};
