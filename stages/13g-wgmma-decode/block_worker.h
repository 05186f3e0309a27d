// A block that goes through its tiles of the list (stage 13d's): one warp loads, a warpgroup computes. The ring between
// them is that of the first ladder.
#pragma once

#include "ptx/elect.h"
#include "ptx/mbarrier.h"
#include "ptx/ring.h"
#include "ptx/tma.h"

#include "rows_consumer.h"

// A block's shared memory. A label says what lies in a slot: sequence, head, tile, and the sequence's keys.
template <int HEAD_DIM> struct Slots {
  char tiles[BLOCK_SLOTS][BLOCK_SLOT_BYTES];
  char queries[QUERY_BYTES_OF(HEAD_DIM)];
  int4 labels[BLOCK_SLOTS];
  uint64_t full[BLOCK_SLOTS], empty[BLOCK_SLOTS];
};
static_assert(sizeof(Slots<64>) == SLOTS_BYTES_OF(64) && sizeof(Slots<128>) == SLOTS_BYTES_OF(128),
              "see block_tiles.h");

// The tiles that this block has. All its warps compute it.
struct Part {
  long long first;
  int count;
};

template <int KEYS> __device__ Part part_of(const Work &work, int worker, int workers) {
  long long total = tiles_before<KEYS>(work, work.batch), busy = busy_blocks(total, workers);
  if (worker >= busy) return {0, 0};
  long long first = first_tile(worker, total, busy);
  return {first, (int)(first_tile(worker + 1, total, busy) - first)};
}

template <int HEAD_DIM> struct BlockProducer {
  static constexpr int KEYS = BLOCK_KEYS_OF(HEAD_DIM);

  const Maps &maps;
  const Work &work;
  Slots<HEAD_DIM> &shared;
  const Part part;
  bool leader;             // one lane
  Ring<BLOCK_SLOTS> ring;  // the next slot to fill
  Cursor<KEYS> next;       // the next tile to load

  __device__ BlockProducer(const Maps &maps, const Work &work, Slots<HEAD_DIM> &shared, const Part &part)
      : maps(maps), work(work), shared(shared), part(part), leader(elected()), next(work) {}

  // Asks for the next tile. The pages that it lies in may be anywhere, so there is a box for each.
  __device__ void load() {
    int slot = ring.slot, bytes = BLOCK_TILE_BYTES / work.boxes;
    uint32_t to = shared_address(shared.tiles[slot]), barrier = shared_address(shared.full + slot);
    mbarrier_wait(shared_address(shared.empty + slot), ring.parity ^ 1);
    if (leader) {
      shared.labels[slot] = make_int4(next.batch, next.head, next.tile, next.keys);
      mbarrier_arrive_expect(barrier, BLOCK_SLOT_BYTES);
    }
    for (int box = 0; box < work.boxes; box++) {
      int key = next.tile * KEYS + box * (KEYS / work.boxes), page = next.page_of(key);
      if (work.block_table) key &= (1 << work.page_shift) - 1;
      if (!leader) continue;
      tma_load(to + box * bytes, &maps.k, barrier, 0, key, 0, next.head, page);
      tma_load(to + BLOCK_TILE_BYTES + box * bytes, &maps.v, barrier, 0, key, 0, next.head, page);
    }
    next.advance();
    ring.advance();
  }

  // The first loads: all slots are empty. What comes before the block's barrier.
  __device__ void begin() {
    if (leader) {
      for (int i = 0; i < BLOCK_SLOTS; i++) {
        mbarrier_init(shared_address(shared.full + i), 1);
        mbarrier_init(shared_address(shared.empty + i), WARPS);
      }
      mbarrier_fence_init();
    }
    __syncwarp();
    next.seek(part.first);
    for (int i = 0; i < BLOCK_SLOTS && i < part.count; i++) load();
  }

  __device__ void run() {
    for (int i = BLOCK_SLOTS; i < part.count; i++) load();
  }
};

template <int HEAD_DIM>
__device__ void consume(const Work &work, const Leftovers &leftovers, Slots<HEAD_DIM> &shared, const Part &part,
                        float *lse) {
  constexpr int KEYS = BLOCK_KEYS_OF(HEAD_DIM);
  RowsConsumer<HEAD_DIM> consumer(work, shared_address(shared.queries), blockIdx.y * ROWS);
  Ring<BLOCK_SLOTS> ring;
  bool from_the_start = false;
  for (int i = 0; i < part.count; i++) {
    // The first label is there already, so the queries are on their way together with the first tile.
    if (i > 0) mbarrier_wait(shared_address(shared.full + ring.slot), ring.parity);
    int4 label = shared.labels[ring.slot];
    int tile = label.z, keys = label.w;
    if (i == 0 || tile == 0) {
      from_the_start = tile == 0;
      consumer.open(label.x, label.y);
    }
    if (i == 0) mbarrier_wait(shared_address(shared.full + ring.slot), ring.parity);
    consumer.use(shared_address(shared.tiles[ring.slot]), tile, keys);
    __syncwarp();
    if (threadIdx.x % WARP == 0) mbarrier_arrive(shared_address(shared.empty + ring.slot));
    ring.advance();

    bool to_the_end = (tile + 1) * KEYS >= keys;
    if (!to_the_end && i + 1 < part.count) continue;
    consumer.finish();
    if (from_the_start && to_the_end)
      consumer.store(lse);
    else
      consumer.store(leftovers, 2 * blockIdx.x + from_the_start);
  }
}
