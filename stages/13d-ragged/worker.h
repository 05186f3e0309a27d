// A warp that goes through its tiles of the list. It fills its ring far enough ahead to read the next head while it
// answers the one before; so nothing stops where a sequence ends.
//
// Reader is what a stage does with a tile:
//   Reader::KEYS                        of a tile
//   open(batch, head)                   a head's first tile comes next
//   use(slot, tile, keys)               the tile of a sequence with so many keys; slot is an address in shared memory
//   finish()                            the last tile that this worker has of the head is used
//   store(), store(leftovers, part)     writes O, or O of the worker's keys as part [worker][0 or 1]
#pragma once

#include "../13-decode/reader.h"

#include "list.h"

// A block's shared memory. A label says what lies in a slot: sequence, head, tile, and the sequence's keys.
struct Rings {
  char slots[WARPS][RING_BYTES];
  int4 labels[WARPS][SLOTS];
  uint64_t full[WARPS][SLOTS];
};
static_assert(sizeof(Rings) == WARPS * (RING_BYTES + SLOTS * (16 + 8)), "see launch.h");

template <class Reader> struct Worker {
  static constexpr int KEYS = Reader::KEYS;

  const Maps &maps;
  const Work &work;
  Reader &reader;
  int4 *labels;          // of the warp's slots
  uint32_t slots, full;  // shared memory
  bool leader;           // one lane
  Ring<SLOTS> ring;      // the next slot to use
  Cursor<KEYS> next;     // the next tile to load

  __device__ Worker(const Maps &maps, const Work &work, Reader &reader, Rings &rings, int warp)
      : maps(maps), work(work), reader(reader), labels(rings.labels[warp]), slots(shared_address(rings.slots[warp])),
        full(shared_address(rings.full[warp])), leader(elected()), next(work) {}

  // Asks for the next tile. The pages that it lies in may be anywhere, so there is a box for each.
  __device__ void load(int slot) {
    uint32_t to = slots + slot * SLOT_BYTES, barrier = full + slot * sizeof(uint64_t);
    int bytes = TILE_BYTES / work.boxes;
    if (leader) {
      labels[slot] = make_int4(next.batch, next.head, next.tile, next.keys);
      mbarrier_arrive_expect(barrier, SLOT_BYTES);
    }
    for (int box = 0; box < work.boxes; box++) {
      int key = next.tile * KEYS + box * (KEYS / work.boxes), page = next.page_of(key);
      if (work.block_table) key &= (1 << work.page_shift) - 1;
      if (!leader) continue;
      tma_load(to + box * bytes, &maps.k, barrier, 0, key, 0, next.head, page);
      tma_load(to + TILE_BYTES + box * bytes, &maps.v, barrier, 0, key, 0, next.head, page);
    }
    next.advance();
  }

  __device__ void run(const Leftovers &leftovers, int worker) {
    long long total = tiles_before<KEYS>(work, work.batch), busy = busy_workers(total, leftovers.workers);
    if (worker >= busy) return;
    long long first = first_tile(worker, total, busy);
    int count = (int)(first_tile(worker + 1, total, busy) - first);
    next.seek(first);
    if (leader) {
      for (int i = 0; i < SLOTS; i++) mbarrier_init(full + i * sizeof(uint64_t), 1);
      mbarrier_fence_init();
    }
    __syncwarp();
    for (int i = 0; i < SLOTS && i < count; i++) load(i);

    bool from_the_start = false;
    for (int i = 0; i < count; i++) {
      mbarrier_wait(full + ring.slot * sizeof(uint64_t), ring.parity);
      int4 label = labels[ring.slot];
      int tile = label.z, keys = label.w;
      if (i == 0 || tile == 0) {
        from_the_start = tile == 0;
        reader.open(label.x, label.y);
      }
      reader.use(slots + ring.slot * SLOT_BYTES, tile, keys);
      __syncwarp();  // all lanes have used the slot, and its label
      if (i + SLOTS < count) load(ring.slot);
      ring.advance();

      bool to_the_end = (tile + 1) * KEYS >= keys;
      if (!to_the_end && i + 1 < count) continue;
      reader.finish();
      if (from_the_start && to_the_end)
        reader.store();
      else
        reader.store(leftovers, 2 * worker + from_the_start);
    }
  }
};
