// Into how many parts the keys of a head are split.
#pragma once

#include "../13-decode/launch.h"

// What a wave of blocks costs besides its tiles, in tiles of each block.
enum { TILES_OF_A_WAVE = 4 };

// Powers of two, up to `most`. As many blocks as fit the SMs run at a time: a wave. The last wave may have fewer. While
// at least `enough` blocks run, device memory is busy, and a wave takes as long as its bytes. A wave of fewer blocks
// takes as long as one of `enough`. This chooses the number for which all waves together take the least time; where
// several are equal, the smallest, because each part must be combined. Each warp of a block gets at least one tile.
static inline int choose_splits(const DecodeShape *shape, int sm_count, int most, int enough) {
  long heads = (long)shape->batch * shape->kv_heads, slots = (long)sm_count * BLOCKS_PER_SM, least = 0;
  int tiles = decode_tiles(shape), best = 1;
  for (int splits = 1; splits <= most && (splits == 1 || splits * WARPS <= tiles); splits *= 2) {
    long blocks = heads * splits, before = (blocks - 1) / slots * slots, last = blocks - before;
    long busy = before + (last < enough ? enough : last);
    long cost = busy * ((tiles + splits - 1) / splits) + before * TILES_OF_A_WAVE;
    if (splits > 1 && cost >= least) continue;
    best = splits;
    least = cost;
  }
  return best;
}

// The number that the user wants, but no more than there are tiles; or the one that is chosen.
static inline int splits_for(const DecodeShape *shape, int wanted, int sm_count, int most, int enough) {
  int tiles = decode_tiles(shape), limit = tiles < most ? tiles : most;
  if (!wanted) return choose_splits(shape, sm_count, most, enough);
  return wanted < limit ? wanted : limit;
}
