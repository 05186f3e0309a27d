// The share that a block of a cluster has of a head's tiles. One warp loads, a warpgroup computes, and the ring
// between them is that of the first ladder.
#pragma once

#include "ptx/elect.h"
#include "ptx/mbarrier.h"
#include "ptx/ring.h"
#include "ptx/tma.h"

#include "rows_consumer.h"

// A block's shared memory.
template <int HEAD_DIM> struct Slots {
  union {
    char tiles[BLOCK_SLOTS][BLOCK_SLOT_BYTES];
    RowParts<HEAD_DIM> parts;  // after the last tile
  };
  char queries[QUERY_BYTES_OF(HEAD_DIM)];
  uint64_t full[BLOCK_SLOTS], empty[BLOCK_SLOTS];

  __device__ void init() {
    for (int i = 0; i < BLOCK_SLOTS; i++) {
      mbarrier_init(shared_address(full + i), 1);
      mbarrier_init(shared_address(empty + i), WARPS);  // an arrival of each warp that computes
    }
    mbarrier_fence_init();
  }
};
static_assert(sizeof(Slots<64>) == SLOTS_BYTES_OF(64) && sizeof(Slots<128>) == SLOTS_BYTES_OF(128),
              "see block_tiles.h");

// Tiles of a sequence, from `first` on, before `end`. There may be none.
struct BlockShare {
  int batch, head, keys, first, end;
};

// Of up to 32 sequences the longest comes first, then the next longest. This finds the sequence at a place of that
// order, and its keys. Lane l counts how many sequences come before sequence l.
static __device__ void find_sequence(const Work &work, int place, BlockShare &share) {
  int lane = threadIdx.x % WARP, keys = keys_of(work, lane), before = 0;
  int own = keys * WARP - lane;  // no two are equal
  for (int l = 0; l < work.batch; l++) before += __shfl_sync(ALL_LANES, own, l) > own;
  share.batch = __ffs(__ballot_sync(ALL_LANES, lane < work.batch && before == place)) - 1;
  share.keys = __shfl_sync(ALL_LANES, keys, share.batch);
}

template <int HEAD_DIM> struct BlockProducer {
  static constexpr int KEYS = BLOCK_KEYS_OF(HEAD_DIM);

  const Maps &maps;
  const Work &work;
  Slots<HEAD_DIM> &shared;
  const BlockShare &share;
  bool leader;             // one lane
  Ring<BLOCK_SLOTS> ring;  // the next slot to fill
  Cursor<KEYS> pages;

  __device__ BlockProducer(const Maps &maps, const Work &work, Slots<HEAD_DIM> &shared, const BlockShare &share)
      : maps(maps), work(work), shared(shared), share(share), leader(elected()), pages(work) {
    pages.batch = share.batch, pages.keys = share.keys;
  }

  // Asks for a tile. The pages that it lies in may be anywhere, so there is a box for each.
  __device__ void load(int tile) {
    int slot = ring.slot, bytes = BLOCK_TILE_BYTES / work.boxes;
    uint32_t to = shared_address(shared.tiles[slot]), barrier = shared_address(shared.full + slot);
    mbarrier_wait(shared_address(shared.empty + slot), ring.parity ^ 1);
    if (leader) mbarrier_arrive_expect(barrier, BLOCK_SLOT_BYTES);
    for (int box = 0; box < work.boxes; box++) {
      int key = tile * KEYS + box * (KEYS / work.boxes), page = pages.page_of(key);
      if (work.block_table) key &= (1 << work.page_shift) - 1;
      if (!leader) continue;
      tma_load(to + box * bytes, &maps.k, barrier, 0, key, 0, share.head, page);
      tma_load(to + BLOCK_TILE_BYTES + box * bytes, &maps.v, barrier, 0, key, 0, share.head, page);
    }
    ring.advance();
  }

  __device__ void run() {
    for (int tile = share.first; tile < share.end; tile++) load(tile);
  }
};

template <int HEAD_DIM>
__device__ void consume(RowsConsumer<HEAD_DIM> &consumer, Slots<HEAD_DIM> &shared, const BlockShare &share) {
  Ring<BLOCK_SLOTS> ring;
  for (int tile = share.first; tile < share.end; tile++) {
    mbarrier_wait(shared_address(shared.full + ring.slot), ring.parity);
    consumer.use(shared_address(shared.tiles[ring.slot]), tile, share.keys);
    __syncwarp();
    if (threadIdx.x % WARP == 0) mbarrier_arrive(shared_address(shared.empty + ring.slot));
    ring.advance();
  }
}
