// What the blocks of stages 07 and 08 have, what they are to do, and the thread that loads for them.
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

// What differs between head dimensions: how many warpgroups compute; places for blocks of keys and blocks of values;
// registers of a thread that computes, and of one in the loading warpgroup.
template <int HEAD_DIM> struct Config;
template <> struct Config<64> {
  enum { WORKERS = 3, STAGES = 4, REGISTERS = 160, LOADER_REGISTERS = 32 };
};
template <> struct Config<128> {
  enum { WORKERS = 2, STAGES = 2, REGISTERS = 240, LOADER_REGISTERS = 24 };
};

// What a block has in shared memory: the queries, in whose place the output gathers, and two rings.
template <int HEAD_DIM> struct Shared : Config<HEAD_DIM> {
  using C = Config<HEAD_DIM>;
  enum { ROWS = C::WORKERS * WARPGROUP_ROWS };
  half q[ROWS * HEAD_DIM];
  half k[C::STAGES][KEYS * HEAD_DIM], v[C::STAGES][KEYS * HEAD_DIM];
  uint64_t q_full, k_full[C::STAGES], k_empty[C::STAGES], v_full[C::STAGES], v_empty[C::STAGES];
};

// ---- what is to be done ----

// How TMA finds the tensors in global memory, [heads of all batches][seqlen][HEAD_DIM].
struct Tensors {
  CUtensorMap q, k, v;
};

struct Problem {
  int seqlen;
  int head_tiles;  // tiles of a head
  float scale;     // log2(e) / sqrt(HEAD_DIM): exp(x) is computed as 2^(x log2 e)
  half *o;
};

struct Tile {
  int head, row, blocks;  // its first query; blocks of keys that any of its rows may see
};

// The block's tile. In causal attention a head's last tiles have most keys, and go first.
template <bool CAUSAL, int ROWS> __device__ Tile find_tile(const Problem &problem) {
  Tile tile;
  tile.head = blockIdx.x / problem.head_tiles;
  tile.row = (problem.head_tiles - 1 - blockIdx.x % problem.head_tiles) * ROWS;
  int keys = CAUSAL ? min(tile.row + ROWS, problem.seqlen) : problem.seqlen;
  tile.blocks = (keys + KEYS - 1) / KEYS;
  return tile;
}

// ---- the thread that loads ----

template <int HEAD_DIM> struct Loader {
  using S = Shared<HEAD_DIM>;
  S &shared;
  const Tensors &tensors;
  Ring<S::STAGES> k, v;
  int loads = 0;  // for trace

  // Loads rows of a head, in panels. `full` says when they have landed.
  template <int SIZE>
  __device__ void load(half (&to)[SIZE], uint64_t &full, const CUtensorMap *map, int row, int head) {
    const int panel_bytes = SIZE / HEAD_DIM * ROW_BYTES;
    uint32_t barrier = shared_address(&full), tile = shared_address(to);
    trace(COPY, loads);
    mbarrier_arrive_expect(barrier, SIZE * sizeof(half));
#pragma unroll
    for (int panel = 0; panel < HEAD_DIM / PANEL; panel++)
      tma_load(tile + panel * panel_bytes, map, barrier, panel * PANEL, row, head);
    loads++;
  }
  // The same into a ring's next place, when it is empty.
  template <int PLACES, int SIZE>
  __device__ void load_next(Ring<PLACES> &ring, half (&to)[PLACES][SIZE], uint64_t *full, uint64_t *empty,
                            const CUtensorMap *map, int row, int head) {
    trace(WAIT_FREE, loads);
    mbarrier_wait(shared_address(empty + ring.place), ring.parity ^ 1);
    load(to[ring.place], full[ring.place], map, row, head);
    ring.advance();
  }
  __device__ void load_k(int block, int head) {
    load_next(k, shared.k, shared.k_full, shared.k_empty, &tensors.k, block * KEYS, head);
  }
  __device__ void load_v(int block, int head) {
    load_next(v, shared.v, shared.v_full, shared.v_empty, &tensors.v, block * KEYS, head);
  }

  // From the last block, which has the mask, to the first. V is loaded one block later than K, as it is used.
  __device__ void run(const Tile &tile) {
    trace_begin(PRODUCER);
    load(shared.q, shared.q_full, &tensors.q, tile.row, tile.head);
    for (int block = tile.blocks - 1; block >= 0; block--) {
      load_k(block, tile.head);
      if (block + 1 < tile.blocks) load_v(block + 1, tile.head);
    }
    load_v(0, tile.head);
    trace_end();
  }
};
