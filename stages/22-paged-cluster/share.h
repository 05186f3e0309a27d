// The tiles that one warp reads of a sequence, from their pages.
#pragma once

#include "../13d-ragged/list.h"
#include "../13d-ragged/paged_reader.h"

// The warp's tiles are first, first + WARPS and so on, before `end`; its tile number i is first + i * WARPS. There may
// be none. HEAD_DIM keeps a tile as long as the smallest page, so a tile is one box.
template <int HEAD_DIM, int QUERIES> struct ShareReader : PagedReader<HEAD_DIM, QUERIES> {
  typedef PagedReader<HEAD_DIM, QUERIES> Base;
  static constexpr int KEYS = Base::KEYS;
  static_assert(KEYS <= 16, "a page has at least 16 keys");
  using Base::leader;
  using Base::maps;
  using Base::work;

  const int sequence, key_head, keys;  // keys: of the sequence
  const Share share;
  const uint32_t slots, full;  // shared memory: the warp's ring, and the mbarrier of each slot
  int pages;                   // lane l: the page of the warp's tile number l, of each 32

  __device__ ShareReader(const Maps &maps, const Work &work, int sequence, int key_head, int keys, Share share,
                         uint32_t slots, uint32_t full)
      : Base(maps, work), sequence(sequence), key_head(key_head), keys(keys), share(share), slots(slots), full(full) {}

  // All lanes ask for tile number i, for one number after another. A page's number comes from device memory: too far to
  // be fetched for each tile alone.
  __device__ int page_of(int i) {
    if (!work.block_table) return sequence;
    if (i % WARP == 0) {
      int tile = min(share.first + (i + (int)threadIdx.x % WARP) * WARPS, share.end - 1);
      pages = work.block_table[(size_t)sequence * work.table_row + (tile * KEYS >> work.page_shift)];
    }
    return __shfl_sync(ALL_LANES, pages, i % WARP);
  }

  // Fills the slot with tile number i, if there is one.
  __device__ void load(int slot, int i) {
    int tile = share.first + i * WARPS, key = tile * KEYS;
    if (tile >= share.end) return;
    int page = page_of(i);
    if (work.block_table) key &= (1 << work.page_shift) - 1;
    if (!leader) return;
    uint32_t to = slots + slot * SLOT_BYTES, barrier = full + slot * sizeof(uint64_t);
    mbarrier_arrive_expect(barrier, SLOT_BYTES);
    tma_load(to, &maps.k, barrier, 0, key, 0, key_head, page);
    tma_load(to + TILE_BYTES, &maps.v, barrier, 0, key, 0, key_head, page);
  }

  __device__ void run() {
    if (leader) {
      for (int i = 0; i < SLOTS; i++) mbarrier_init(full + i * sizeof(uint64_t), 1);
      mbarrier_fence_init();
    }
    __syncwarp();
    for (int i = 0; i < SLOTS; i++) load(i, i);
    Base::open(sequence, key_head);  // the queries come while the first tiles do
    Ring<SLOTS> ring;
    for (int i = 0, tile = share.first; tile < share.end; i++, tile += WARPS) {
      mbarrier_wait(full + ring.slot * sizeof(uint64_t), ring.parity);
      Base::use(slots + ring.slot * SLOT_BYTES, tile, keys);
      __syncwarp();  // all lanes have used the slot
      load(ring.slot, i + SLOTS);
      ring.advance();
    }
    Base::finish();
  }
};
