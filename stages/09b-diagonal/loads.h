// Which tiles a block works on, and the producer that loads them. The kernel derives Self, which has
//
//   load_v(t, head)  loads tile t of a head's values; none when t is -1
#pragma once

// A tile of queries: its head, its first row, and how many tiles of keys its queries may see.
struct Tile {
  int head, row, key_tiles;
};

// Tile number t. Without a mask, tiles of a head follow each other. With one they have different lengths: in a group of
// heads the longest go first, so that all SMs finish together. The tile that is not full is the shortest, not the
// longest.
template <int HEAD_DIM, bool CAUSAL> __device__ Tile find_tile(const Problem &problem, int t) {
  const int ROWS = Shared<HEAD_DIM>::ROWS;
  Tile tile;
  if (CAUSAL) {
    int first_head = t / (problem.group * problem.head_tiles) * problem.group;  // of the group that tile t is in
    int heads = min(problem.group, problem.heads - first_head);                 // the last group may have fewer
    int number = t - first_head * problem.head_tiles;  // in the group, which begins with the last tiles of its heads
    tile.head = first_head + number % heads;
    tile.row = (problem.head_tiles - 1 - number / heads) * ROWS - problem.lead;
  } else {
    tile.head = t / problem.head_tiles;
    tile.row = t % problem.head_tiles * ROWS;
  }
  int keys = CAUSAL ? min(tile.row + ROWS, problem.seqlen) : problem.seqlen;
  tile.key_tiles = (keys + KEYS - 1) / KEYS;
  return tile;
}

// ---- the producer: one thread ----

template <class Self, int HEAD_DIM, bool CAUSAL> struct ProducerBase {
  using S = Shared<HEAD_DIM>;
  S &shared;
  const Tensors &tensors;
  const Problem &problem;
  Ring<S::QUERY_SLOTS> q;
  Ring<S::SLOTS> k, v;
  int loads = 0;  // for trace

  __device__ Self &self() { return static_cast<Self &>(*this); }

  // Loads rows of a head, in panels of 128 bytes because a box under this swizzle is no wider, into a ring's next slot,
  // once that is empty.
  template <class Element, int SLOTS, int SIZE>
  __device__ void load(Ring<SLOTS> &ring, Element (&to)[SLOTS][SIZE], uint64_t *full, uint64_t *empty,
                       const TensorMap *map, int row, int head) {
    const int panels = (HEAD_DIM * sizeof(Element) + ROW_BYTES - 1) / ROW_BYTES;
    const int panel_bytes = SIZE * sizeof(Element) / panels;
    uint32_t barrier = shared_address(full + ring.slot), tile = shared_address(to[ring.slot]);
    trace(WAIT_FREE, loads++);
    mbarrier_wait(shared_address(empty + ring.slot), ring.parity ^ 1);
    trace(COPY, loads - 1);
    mbarrier_arrive_expect(barrier, sizeof to[0]);
#pragma unroll
    for (int panel = 0; panel < panels; panel++)
      tma_load(tile + panel * panel_bytes, map, barrier, panel * PANEL, row, head);
    ring.advance();
  }
  __device__ void load_k(int t, int head) {
    load(k, shared.k, shared.k_full, shared.k_empty, &tensors.k, t * KEYS, head);
  }

  // Writes down which tile comes into the next slot for queries, once that is empty. Stage 10b also needs the Tile.
  __device__ void announce(int number, const Tile &) {
    mbarrier_wait(shared_address(shared.q_empty + q.slot), q.parity ^ 1);
    shared.tile[q.slot] = number;
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
      self().announce(number, tile);
      load(q, shared.q, shared.q_full, shared.q_empty, &tensors.q, tile.row, tile.head);
      number = next_tile(number, tiles);
      for (int t = tile.key_tiles - 1; t >= 0; t--) {
        load_k(t, tile.head);
        self().load_v(last, last_head);
        last_head = tile.head;
        last = t;
      }
    }
    self().announce(-1, Tile{});
    mbarrier_arrive(shared_address(shared.q_full + q.slot));
    self().load_v(last, last_head);
    trace_end();
  }
};
