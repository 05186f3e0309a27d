// What one memory access of a warp costs: bank conflicts of shared memory, sectors of global memory. The rules are those
// that Nsight Compute counts by on an H200: notes/counters.md has them with the measurements.
#include "memory.h"

enum { BANKS = 32, BANK_BYTES = 4 };

// ---- one turn: every bucket serves one key ----

enum { BUCKETS = 32 };

// Of the lanes of mask, those whose key is the one that their bucket serves are done; returns the others. *used: the buckets
// that served one.
static Mask serve_turn(Mask mask, const uint8_t bucket[LANES], const uint64_t key[LANES], uint32_t *used) {
  uint64_t served[BUCKETS];
  Mask left = 0;
  *used = 0;
  for (Mask rest = mask; rest; rest &= rest - 1) {
    int lane = __builtin_ctz(rest);
    served[bucket[lane]] = key[lane];
    *used |= 1u << bucket[lane];
  }
  for (Mask rest = mask; rest; rest &= rest - 1) {
    int lane = __builtin_ctz(rest);
    left |= (Mask)(served[bucket[lane]] != key[lane]) << lane;
  }
  return left;
}

// ---- the commonest patterns, seen at once ----

// Every lane's address is that of the lane before and `step` more, with step 0 all are the same. Only of a full warp.
static bool evenly_spaced(Mask mask, const uint64_t addresses[LANES], uint64_t step) {
  if (mask != FULL_MASK) return false;
  uint64_t different = 0;
  for (int lane = 0; lane < LANES; lane++) different |= addresses[lane] ^ (addresses[0] + (uint64_t)lane * step);
  return !different;
}

// ---- shared memory ----
//
// It serves 32 banks of 4 bytes at a time, in a wavefront. Lanes that want different words of one bank need a wavefront
// each: a bank conflict. Lanes that want the same word share it, but those of an atomic operation take turns.

// Serves the lanes of mask together. Elements of 8 or 16 bytes are aligned, so they conflict as if there were 16 banks of 8
// bytes or 8 of 16.
static void serve(InstCounts *counts, Mask mask, const uint64_t addresses[LANES], int size, bool take_turns) {
  if (!mask) return;
  int shift = size <= BANK_BYTES ? 2 : __builtin_ctz((unsigned)size);
  uint8_t bank[LANES];
  uint64_t key[LANES];
  for (int lane = 0; lane < LANES; lane++) {
    uint64_t element = addresses[lane] >> shift;
    bank[lane] = (uint8_t)(element & ((BANKS * BANK_BYTES >> shift) - 1));
    key[lane] = take_turns ? (uint64_t)lane : element;
  }
  unsigned wavefronts = 0;
  for (uint32_t used; mask; wavefronts++) mask = serve_turn(mask, bank, key, &used);
  counts->wavefronts += wavefronts;
  counts->conflicts += wavefronts - 1;
}

// So many neighbouring lanes at a time.
static void serve_parts(InstCounts *counts, Mask mask, const uint64_t addresses[LANES], int size, int lanes_at_once,
                        bool take_turns) {
  for (int first = 0; first < LANES; first += lanes_at_once)
    serve(counts, mask & FULL_MASK >> (LANES - lanes_at_once) << first, addresses, size, take_turns);
}

// Whether each lane wants what the lane whose number differs in `bit` wants, or one of the two takes no part.
static bool pairs_agree(Mask mask, const uint64_t addresses[LANES], int bit) {
  for (int lane = 0; lane < LANES; lane++) {
    int other = lane ^ bit;
    if ((mask >> lane & mask >> other & 1) && addresses[lane] != addresses[other]) return false;
  }
  return true;
}

// A wavefront carries 128 bytes: half of a warp's elements of 8 bytes, a quarter of those of 16. A load takes twice as many
// lanes at a time when neighbours want the same, or lanes two apart: then there are only half as many elements. The lanes
// of an atomic operation take turns, but those of its other half are no conflict.
static void count_shared(InstCounts *counts, Mask mask, const uint64_t addresses[LANES], int size, AccessKind kind) {
  int lanes_at_once = size <= BANK_BYTES ? LANES : LANES * BANK_BYTES / size;
  if (kind == ACCESS_ATOMIC) {
    serve_parts(counts, mask, addresses, size, lanes_at_once, true);
    return;
  }
  if (evenly_spaced(mask, addresses, (uint64_t)size)) {
    counts->wavefronts += (unsigned)(LANES / lanes_at_once);
    return;
  }
  bool halved = lanes_at_once < LANES && kind == ACCESS_READ &&
                (pairs_agree(mask, addresses, 1) || pairs_agree(mask, addresses, 2));
  serve_parts(counts, mask, addresses, size, halved ? 2 * lanes_at_once : lanes_at_once, false);
}

// ---- global memory ----

// 32-byte sectors that the lanes touch. An access is aligned, so it lies in one.
static unsigned sector_count(Mask mask, const uint64_t addresses[LANES], int size) {
  if (evenly_spaced(mask, addresses, (uint64_t)size))
    return (unsigned)(addresses[LANES - 1] / SECTOR_BYTES - addresses[0] / SECTOR_BYTES) + 1;
  uint8_t bucket[LANES];
  uint64_t sector[LANES];
  for (int lane = 0; lane < LANES; lane++) {
    sector[lane] = addresses[lane] / SECTOR_BYTES;
    bucket[lane] = (uint8_t)((uint32_t)sector[lane] * 0x9e3779b1u >> 27);  // any that spreads neighbours and strides
  }
  unsigned count = 0;
  while (mask) {
    uint32_t used;
    mask = serve_turn(mask, bucket, sector, &used);
    count += (unsigned)__builtin_popcount(used);
  }
  return count;
}

static Mask lanes_with_address(Mask mask, const uint64_t addresses[LANES], uint64_t address) {
  Mask same = 0;
  for (int lane = 0; lane < LANES; lane++) same |= (Mask)(addresses[lane] == address) << lane;
  return same & mask;
}

// Of lanes with equal addresses the first alone.
static Mask first_of_each_address(Mask mask, const uint64_t addresses[LANES]) {
  Mask first = 0;
  while (mask) {
    first |= mask & -mask;
    mask &= ~lanes_with_address(mask, addresses, addresses[__builtin_ctz(mask)]);
  }
  return first;
}

// Atomic operations on one address take turns, and each turn reaches its sectors anew.
static unsigned atomic_sector_count(Mask mask, const uint64_t addresses[LANES], int size) {
  unsigned count = 0;
  if (evenly_spaced(mask, addresses, 0)) return LANES;
  while (mask) {
    Mask turn = first_of_each_address(mask, addresses);
    count += sector_count(turn, addresses, size);
    mask &= ~turn;
  }
  return count;
}

static void count_global(InstCounts *counts, Mask mask, const uint64_t addresses[LANES], int size, AccessKind kind) {
  bool atomic = kind == ACCESS_ATOMIC;
  counts->bytes += (unsigned)(__builtin_popcount(mask) * size);
  counts->sectors += atomic ? atomic_sector_count(mask, addresses, size) : sector_count(mask, addresses, size);
}

// ---- other blocks' shared memory ----

// Whether a shared address is one that mapa made, which names the block.
static bool names_block(uint64_t address) { return (address & WINDOW_MASK) >> SHARED_RANK_SHIFT != 0; }

// It lies behind a network, and what goes there goes in sectors, as to global memory.
static void count_cluster(InstCounts *counts, Mask mask, const uint64_t addresses[LANES], int size) {
  counts->cluster_requests++;
  counts->cluster_sectors += sector_count(mask, addresses, size);
}

// ---- local memory ----

// Word w of lane l's memory lies at byte 128 * w + 4 * l of its warp's, so that lanes which use the same variable share
// sectors. An access is a request for each of its words.
static void count_local(InstCounts *counts, Mask mask, const uint64_t addresses[LANES], int size) {
  enum { WORD = 4 };
  int words = size > WORD ? size / WORD : 1;
  for (int word = 0; word < words; word++) {
    uint64_t places[LANES];
    for (int lane = 0; lane < LANES; lane++)
      places[lane] = ((addresses[lane] / WORD + (uint64_t)word) * LANES + (uint64_t)lane) * WORD;
    counts->local_sectors += sector_count(mask, places, WORD);
  }
  counts->local_requests += (unsigned)words;
  counts->local_bytes += (unsigned)(__builtin_popcount(mask) * size);
}

// ---- all ----

// Where the access goes: all lanes where the first goes.
static Space counted_space(Space space, Mask mask, const uint64_t addresses[LANES]) {
  if (space != SPACE_GENERIC) return space;
  uint64_t window = addresses[__builtin_ctz(mask)] & ~WINDOW_MASK;
  return window == SHARED_WINDOW  ? SPACE_SHARED
         : window == LOCAL_WINDOW ? SPACE_LOCAL
         : window == PARAM_WINDOW ? SPACE_PARAM
                                  : SPACE_GLOBAL;
}

void count_access(Warp *warp, const Inst *inst, Space space, Mask mask, const uint64_t addresses[LANES], int size,
                  AccessKind kind) {
  InstCounts *counts = warp_counts(warp, inst);
  space = counted_space(space, mask, addresses);
  if (space == SPACE_SHARED && kind != ACCESS_ATOMIC && names_block(addresses[__builtin_ctz(mask)])) {
    count_cluster(counts, mask, addresses, size);
  } else if (space == SPACE_SHARED) {
    counts->shared_requests++;
    count_shared(counts, mask, addresses, size, kind);
  } else if (space == SPACE_GLOBAL) {
    counts->global_requests++;
    count_global(counts, mask, addresses, size, kind);
  } else if (space == SPACE_LOCAL) {
    count_local(counts, mask, addresses, size);
  }
}

void count_matrix_rows(Warp *warp, const Inst *inst, Space space, Mask mask, const uint64_t addresses[LANES],
                       AccessKind kind) {
  enum { ROW_BYTES = 16, ROWS = 8 };
  if (counted_space(space, mask, addresses) != SPACE_SHARED) {
    count_access(warp, inst, space, mask, addresses, ROW_BYTES, kind);
    return;
  }
  InstCounts *counts = warp_counts(warp, inst);
  counts->shared_requests++;
  serve_parts(counts, mask, addresses, ROW_BYTES, ROWS, false);
}
