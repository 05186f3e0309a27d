// What the blocks of stages 09 and 10 have, what they are to do, and the thread that loads for them.
#pragma once

#include <cuda.h>
#include <cuda_fp16.h>
#include <stdint.h>

#include "ptx/mbarrier.h"
#include "ptx/ring.h"
#include "ptx/tile.h"
#include "ptx/tma.h"
#include "ptx/trace.h"

enum { WARP = 32, WARPGROUP = 128, WARPGROUP_ROWS = 64, KEYS = 128 };

// What differs between head dimensions: how many warpgroups compute; places for tiles of queries, blocks of keys, blocks
// of values; registers of a thread that computes, and of one in the loading warpgroup.
template <int HEAD_DIM> struct Config;
template <> struct Config<64> {
  enum { WORKERS = 3, TILES = 3, STAGES = 4, REGISTERS = 160, LOADER_REGISTERS = 32 };
};
template <> struct Config<128> {
  enum { WORKERS = 2, TILES = 3, STAGES = 2, REGISTERS = 240, LOADER_REGISTERS = 24 };
};

// What a block has in shared memory: three rings. An output leaves from the place of its queries.
template <int HEAD_DIM> struct Shared : Config<HEAD_DIM> {
  using C = Config<HEAD_DIM>;
  enum { ROWS = C::WORKERS * WARPGROUP_ROWS };
  half q[C::TILES][ROWS * HEAD_DIM];
  half k[C::STAGES][KEYS * HEAD_DIM], v[C::STAGES][KEYS * HEAD_DIM];
  uint64_t q_full[C::TILES], q_empty[C::TILES];
  uint64_t k_full[C::STAGES], k_empty[C::STAGES], v_full[C::STAGES], v_empty[C::STAGES];
  int tile[C::TILES];  // the number of the tile whose queries are there; -1: there are no more

  // One thread fills a place, one of each warp that computes empties it.
  __device__ void init() {
    for (int i = 0; i < C::TILES; i++) {
      mbarrier_init(shared_address(q_full + i), 1);
      mbarrier_init(shared_address(q_empty + i), C::WORKERS * 4);
    }
    for (int i = 0; i < C::STAGES; i++) {
      mbarrier_init(shared_address(k_full + i), 1);
      mbarrier_init(shared_address(v_full + i), 1);
      mbarrier_init(shared_address(k_empty + i), C::WORKERS * 4);
      mbarrier_init(shared_address(v_empty + i), C::WORKERS * 4);
    }
    mbarrier_fence_init();
  }
};

// ---- what is to be done ----

// What is in global memory: the tensors, [heads of all batches][seqlen][HEAD_DIM], as TMA finds them, and a counter.
struct Tensors {
  CUtensorMap q, k, v, o;
  // Causal: how many tiles the blocks have asked for; 0 before the launch and after it. The launch brings it along: a
  // __device__ variable is there once, and two launches at the same time would take numbers from each other.
  unsigned *asked;
};

struct Problem {
  int seqlen, heads;  // heads of all batches
  int head_tiles;     // tiles of a head
  int group;          // causal: heads that are worked on together, so that their K and V stay in the L2 cache
  int lead;           // causal: rows by which a head's first tile begins before the first row
  float scale;        // log2(e) / sqrt(HEAD_DIM): exp(x) is computed as 2^(x log2 e)
};

struct Tile {
  int head, row, blocks;  // its first query; blocks of keys that any of its rows may see
};

// Tile number t. Without a mask, tiles of a head follow each other. With one they have different lengths: in a group of
// heads the longest go first, so that all SMs finish together; and the one that is not full is the shortest, not the last.
template <bool CAUSAL, int ROWS> __device__ Tile find_tile(const Problem &problem, int t) {
  Tile tile;
  if (CAUSAL) {
    int first = t / (problem.group * problem.head_tiles) * problem.group;
    int group = min(problem.group, problem.heads - first), i = t - first * problem.head_tiles;
    tile.head = first + i % group;
    tile.row = (problem.head_tiles - 1 - i / group) * ROWS - problem.lead;
  } else {
    tile.head = t / problem.head_tiles;
    tile.row = t % problem.head_tiles * ROWS;
  }
  int keys = CAUSAL ? min(tile.row + ROWS, problem.seqlen) : problem.seqlen;
  tile.blocks = (keys + KEYS - 1) / KEYS;
  return tile;
}

// ---- the thread that loads ----

template <int HEAD_DIM, bool CAUSAL> struct Loader {
  using S = Shared<HEAD_DIM>;
  S &shared;
  const Tensors &tensors;
  const Problem &problem;
  Ring<S::TILES> q;
  Ring<S::STAGES> k, v;
  int loads = 0;  // for trace, which alone counts them

  // Loads rows of a head, in panels, into the ring's next place when it is empty.
  template <int PLACES, int SIZE>
  __device__ void load(Ring<PLACES> &ring, half (&to)[PLACES][SIZE], uint64_t *full, uint64_t *empty,
                       const CUtensorMap *map, int row, int head) {
    const int panel_bytes = SIZE / HEAD_DIM * ROW_BYTES;
    uint32_t barrier = shared_address(full + ring.place), tile = shared_address(to[ring.place]);
    trace(WAIT_FREE, loads++);
    mbarrier_wait(shared_address(empty + ring.place), ring.parity ^ 1);
    trace(COPY, loads - 1);
    mbarrier_arrive_expect(barrier, SIZE * sizeof(half));
#pragma unroll
    for (int panel = 0; panel < HEAD_DIM / PANEL; panel++)
      tma_load(tile + panel * panel_bytes, map, barrier, panel * PANEL, row, head);
    ring.advance();
  }
  __device__ void load_k(int block, int head) {
    load(k, shared.k, shared.k_full, shared.k_empty, &tensors.k, block * KEYS, head);
  }
  __device__ void load_v(int block, int head) {
    if (block >= 0) load(v, shared.v, shared.v_full, shared.v_empty, &tensors.v, block * KEYS, head);
  }

  // Writes down which tile comes into the next place for queries, when it is empty.
  __device__ void announce(int t) {
    mbarrier_wait(shared_address(shared.q_empty + q.place), q.parity ^ 1);
    shared.tile[q.place] = t;
  }

  // Without a mask the tiles are dealt out like cards; with one a block takes the next when it has time for it.
  // For each tile one more is asked for, so that there are as many requests as tiles; after the last one atomicInc has
  // gone back to 0.
  __device__ int next_tile(int t, int tiles) { return (CAUSAL ? atomicInc(tensors.asked, tiles - 1) : t) + gridDim.x; }

  // All tiles of this block. V is loaded one block later than K, as it is used.
  __device__ void run() {
    trace_begin(PRODUCER);
    int tiles = problem.heads * problem.head_tiles, last_head = 0, last_block = -1;
    for (int t = blockIdx.x; t < tiles;) {
      Tile tile = find_tile<CAUSAL, S::ROWS>(problem, t);
      announce(t);
      load(q, shared.q, shared.q_full, shared.q_empty, &tensors.q, tile.row, tile.head);
      t = next_tile(t, tiles);
      for (int block = tile.blocks - 1; block >= 0; block--) {
        load_k(block, tile.head);
        load_v(last_block, last_head);
        last_head = tile.head;
        last_block = block;
      }
    }
    announce(-1);
    mbarrier_arrive(shared_address(shared.q_full + q.place));
    load_v(last_block, last_head);
    trace_end();
  }
};

// ---- for the warpgroups that compute ----

// threadIdx.x, read anew. What is computed from it the compiler cannot compute early and keep in registers meanwhile.
__device__ int thread_index() {
  int index;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(index));
  return index;
}
