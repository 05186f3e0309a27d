// What a block has in shared memory, which tiles it works on, and the producer that loads them. The kernel includes
// tiles.h and the PTX headers first.
#pragma once

#include "../shared/ring_barriers.h"

// A block's shared memory: three rings, for tiles of queries, of K and of V. A full barrier completes when TMA has
// filled the slot, an empty one when all consumer warps have released it. The output gathers in the slot of its
// queries.
template <int HEAD_DIM> struct Shared {
  enum { CONSUMERS = CONSUMERS_OF(HEAD_DIM), ROWS = ROWS_OF(HEAD_DIM) };
  enum { QUERY_SLOTS = QUERY_SLOTS_OF(HEAD_DIM), SLOTS = SLOTS_OF(HEAD_DIM) };
  half q[QUERY_SLOTS][ROWS * HEAD_DIM];
  half k[SLOTS][KEYS * HEAD_DIM], v[SLOTS][KEYS * HEAD_DIM];
  uint64_t q_full[QUERY_SLOTS], q_empty[QUERY_SLOTS];
  uint64_t k_full[SLOTS], k_empty[SLOTS], v_full[SLOTS], v_empty[SLOTS];
  int tile[QUERY_SLOTS];  // the number of the tile whose queries are there; -1: none. The struct is padded to 8 bytes

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

// Tile number t. Without a mask, tiles of a head follow each other. With one they have different lengths: in a group of
// heads the longest go first, so that all SMs finish together.
template <int HEAD_DIM, bool CAUSAL> __device__ Tile find_tile(const Problem &problem, int t) {
  const int ROWS = Shared<HEAD_DIM>::ROWS;
  Tile tile;
  if (CAUSAL) {
    int first_head = t / (problem.group * problem.head_tiles) * problem.group;  // of the group that tile t is in
    int heads = min(problem.group, problem.heads - first_head);                 // the last group may have fewer
    int number = t - first_head * problem.head_tiles;  // in the group, which begins with the last tiles of its heads
    tile.head = first_head + number % heads;
    tile.row = (problem.head_tiles - 1 - number / heads) * ROWS;
  } else {
    tile.head = t / problem.head_tiles;
    tile.row = t % problem.head_tiles * ROWS;
  }
  int keys = CAUSAL ? min(tile.row + ROWS, problem.seqlen) : problem.seqlen;
  tile.key_tiles = (keys + KEYS - 1) / KEYS;
  return tile;
}

// ---- the producer: one thread ----

template <int HEAD_DIM, bool CAUSAL> struct Producer {
  using S = Shared<HEAD_DIM>;
  S &shared;
  const Tensors &tensors;
  const Problem &problem;
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
    if (t >= 0) load(v, shared.v, shared.v_full, shared.v_empty, &tensors.v, t * KEYS, head);
  }

  // Writes down which tile comes into the next slot for queries, once that is empty.
  __device__ void announce(int tile) {
    mbarrier_wait(shared_address(shared.q_empty + q.slot), q.parity ^ 1);
    shared.tile[q.slot] = tile;
  }

  // Without a mask block b takes the tiles b, b + gridDim.x and so on. With one it takes the next tile from a counter,
  // when it has time for it. There are as many requests as tiles, so atomicInc is back at 0 after the last one.
  __device__ int next_tile(int tile, int tiles) {
    return (CAUSAL ? atomicInc(tensors.asked, tiles - 1) : tile) + gridDim.x;
  }

  // Loads all tiles of this block. For each tile of queries, key tiles come from the last, which has the mask, to the
  // first. V is loaded one key tile later than K, because it is used later.
  __device__ void run() {
    trace_begin(PRODUCER);
    int tiles = problem.heads * problem.head_tiles, last_head = 0, last = -1;
    for (int number = blockIdx.x; number < tiles;) {
      Tile tile = find_tile<HEAD_DIM, CAUSAL>(problem, number);
      announce(number);
      load(q, shared.q, shared.q_full, shared.q_empty, &tensors.q, tile.row, tile.head);
      number = next_tile(number, tiles);
      for (int t = tile.key_tiles - 1; t >= 0; t--) {
        load_k(t, tile.head);
        load_v(last, last_head);
        last_head = tile.head;
        last = t;
      }
    }
    announce(-1);
    mbarrier_arrive(shared_address(shared.q_full + q.slot));
    load_v(last, last_head);
    trace_end();
  }
};
