// Into how many parts the keys of a head are split.
#pragma once

#include "../13-decode/launch.h"

// What is to be split into blocks.
typedef struct Splitting {
  long heads;       // of all sequences
  int tiles;        // of a head
  int least_tiles;  // of a block
  int wave_tiles;   // what a wave of blocks costs besides its tiles, in tiles of each block
  int most;         // blocks of a head
  int enough;       // blocks keep device memory busy
} Splitting;

// Powers of two, up to `most`. As many blocks as fit the SMs run at a time: a wave. The last wave may have fewer. While
// at least `enough` blocks run, device memory is busy, and a wave takes as long as its bytes. A wave of fewer blocks
// takes as long as one of `enough`. This chooses the number for which all waves together take the least time; where
// several are equal, the smallest, because each part must be combined.
static inline int choose_splits(const Splitting *from, int sm_count) {
  long slots = (long)sm_count * BLOCKS_PER_SM, least = 0;
  int tiles = from->tiles, best = 1;
  for (int splits = 1; splits <= from->most && (splits == 1 || splits * from->least_tiles <= tiles); splits *= 2) {
    long blocks = from->heads * splits, before = (blocks - 1) / slots * slots, last = blocks - before;
    long busy = before + (last < from->enough ? from->enough : last);
    long cost = busy * ((tiles + splits - 1) / splits) + before * from->wave_tiles;
    if (splits > 1 && cost >= least) continue;
    best = splits;
    least = cost;
  }
  return best;
}

// The number that the user wants, but no more than there are tiles. Or the one that is chosen: each warp gets at least
// one tile.
static inline int splits_for(const DecodeShape *shape, int wanted, int sm_count, int most, int enough) {
  int tiles = decode_tiles(shape), limit = tiles < most ? tiles : most;
  Splitting splitting = {.heads = (long)shape->batch * shape->kv_heads,
                         .tiles = tiles,
                         .least_tiles = WARPS,
                         .wave_tiles = 4,
                         .most = most,
                         .enough = enough};
  if (!wanted) return choose_splits(&splitting, sm_count);
  return wanted < limit ? wanted : limit;
}
