// Into how many parts the keys of a head are split.
#pragma once

#include "../13-decode/launch.h"

// A block's beginning and end, while it has nothing in flight, cost as much as so many tiles.
enum { TILES_OF_A_BLOCK = 4 };

// All blocks of a launch do the same work. As many as fit the SMs run at a time: a wave. A last wave that is nearly empty
// takes as long as a full one. So this chooses the number, from 1 to `most`, for which waves times the work of a block
// is least. Each warp of a block gets at least one tile.
static inline int choose_splits(const DecodeShape *shape, int sm_count, int most) {
  long heads = (long)shape->batch * shape->kv_heads, slots = (long)sm_count * BLOCKS_PER_SM;
  int tiles = decode_tiles(shape), best = 1;
  long least = 0;
  for (int splits = 1; splits <= most && (splits == 1 || splits * WARPS <= tiles); splits++) {
    long waves = (heads * splits + slots - 1) / slots;
    long cost = waves * ((tiles + splits - 1) / splits + TILES_OF_A_BLOCK);
    if (splits > 1 && cost >= least) continue;
    best = splits;
    least = cost;
  }
  return best;
}

// The number that the user wants, but no more than there are tiles; or the one that is chosen.
static inline int splits_for(const DecodeShape *shape, int wanted, int sm_count, int most) {
  int tiles = decode_tiles(shape), limit = tiles < most ? tiles : most;
  if (!wanted) return choose_splits(shape, sm_count, most);
  return wanted < limit ? wanted : limit;
}
