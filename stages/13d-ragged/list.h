// The list of all tiles of a launch, which its workers, warps, share out evenly: one sequence after another, in each
// its key heads, in each of these its tiles. Worker w of W has the tiles from w total / W to (w + 1) total / W,
// wherever heads and sequences begin and end.
//
// A warp computes all of this by itself, from the lengths alone. So they may change from one launch to the next without
// the host, as in a captured CUDA graph.
#pragma once

#include "work.h"

static constexpr uint32_t ALL_LANES = 0xffffffff;
enum { LEAST_TILES = SLOTS };  // of a worker: it has so many in flight at once

static __device__ __forceinline__ int keys_of(const Work &work, int batch) {
  if (batch >= work.batch) return 0;
  if (!work.lengths) return work.problem.keys;
  return min(max(work.lengths[batch], 0), work.problem.keys);
}

template <int KEYS> __device__ int tiles_of(int keys) { return (keys + KEYS - 1) / KEYS; }

// The tiles of the first `sequences` sequences.
template <int KEYS> __device__ long long tiles_before(const Work &work, int sequences) {
  long long sum = 0;
  for (int b = threadIdx.x % WARP; b < sequences; b += WARP) sum += tiles_of<KEYS>(keys_of(work, b));
#pragma unroll
  for (int distance = 1; distance < WARP; distance *= 2) sum += __shfl_xor_sync(ALL_LANES, sum, distance);
  return sum * work.problem.kv_heads;
}

// How many of `workers` have tiles.
static __device__ __forceinline__ long long busy_workers(long long total, int workers) {
  return min((long long)workers, (total + LEAST_TILES - 1) / LEAST_TILES);
}

static __device__ __forceinline__ long long first_tile(long long worker, long long total, long long busy) {
  return worker * total / busy;
}

// The worker that has the tile: the last one whose first tile is not behind it.
static __device__ __forceinline__ int worker_of(long long tile, long long total, long long busy) {
  return (int)(((tile + 1) * busy - 1) / total);
}

// A place in the list. All lanes of a warp have the same, except that each lane knows the length of another sequence,
// and the number of another page. Reading such a number from device memory takes longer than using a tile; so a warp
// reads 32 at a time, and a lane passes its number on when it is needed.
template <int KEYS> struct Cursor {
  const Work &work;
  int batch, head, tile, keys;  // keys: of the sequence

  int window, lengths;                // lane l: of sequence window + l
  int table = -1, first_page, pages;  // lane l: page first_page + l of sequence `table`

  __device__ explicit Cursor(const Work &work) : work(work) {}

  __device__ void look_at(int sequence) {
    window = sequence;
    lengths = keys_of(work, window + threadIdx.x % WARP);
  }

  // Goes to a tile, which must exist.
  __device__ void seek(long long position) {
    int lane = threadIdx.x % WARP;
    for (window = 0;; window += WARP) {
      look_at(window);
      long long own = (long long)tiles_of<KEYS>(lengths) * work.problem.kv_heads, end = own;
#pragma unroll
      for (int distance = 1; distance < WARP; distance *= 2) {
        long long other = __shfl_up_sync(ALL_LANES, end, distance);
        if (lane >= distance) end += other;
      }
      uint32_t behind = __ballot_sync(ALL_LANES, position < end);
      if (!behind) {
        position -= __shfl_sync(ALL_LANES, end, WARP - 1);
        continue;
      }
      int at = __ffs(behind) - 1;
      position -= __shfl_sync(ALL_LANES, end - own, at);
      batch = window + at;
      keys = __shfl_sync(ALL_LANES, lengths, at);
      head = (int)(position / tiles_of<KEYS>(keys));
      tile = (int)(position % tiles_of<KEYS>(keys));
      return;
    }
  }

  // Goes to the next tile; behind the list's end it is anywhere.
  __device__ void advance() {
    if (++tile < tiles_of<KEYS>(keys)) return;
    tile = 0;
    if (++head < work.problem.kv_heads) return;
    head = 0;
    do {
      if (++batch >= work.batch) return;
      if (batch - window == WARP) look_at(batch);
      keys = __shfl_sync(ALL_LANES, lengths, batch - window);
    } while (keys == 0);
  }

  // The number of the page that has this key of the sequence. Behind the last key there may be no page. Then it is the
  // last page.
  __device__ int page_of(int key) {
    if (!work.block_table) return batch;
    int last = (keys - 1) >> work.page_shift, page = min(key >> work.page_shift, last);
    if (table != batch || page < first_page || page >= first_page + WARP) {
      table = batch;
      first_page = page / WARP * WARP;
      int own = min(first_page + (int)threadIdx.x % WARP, last);
      pages = work.block_table[(size_t)batch * work.table_row + own];
    }
    return __shfl_sync(ALL_LANES, pages, page - first_page);
  }
};
