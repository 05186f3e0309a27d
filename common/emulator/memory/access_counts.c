// What one memory access of a warp costs: bank conflicts of shared memory, sectors of global memory. The rules are
// those that Nsight Compute counts by on an H200: notes/counters.md has them with the measurements.
#include "access.h"

#include <string.h>

#include "../warp/lanes.h"
#include "../warp/warp.h"

enum { BANKS = 32, BANK_BYTES = 4 };

// ---- one turn: every bucket serves one key ----

enum { BUCKETS = 32 };

// Of the lanes of mask, those whose key is the one that their bucket serves are done; returns the others. *used: the
// buckets that served one.
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
static bool are_evenly_spaced(Mask mask, const uint64_t addresses[LANES], uint64_t step) {
  if (mask != FULL_MASK) return false;
  uint64_t different = 0;
  for (int lane = 0; lane < LANES; lane++) different |= addresses[lane] ^ (addresses[0] + (uint64_t)lane * step);
  return !different;
}

// The lower half of a full warp whose other half has the same addresses, as two rows of 16 threads have; else all
// lanes.
static Mask without_repeated_half(Mask mask, const uint64_t addresses[LANES]) {
  uint64_t different = mask ^ FULL_MASK;
  for (int lane = 0; lane < LANES / 2; lane++) different |= addresses[lane] ^ addresses[lane + LANES / 2];
  return different ? mask : FULL_MASK >> LANES / 2;
}

// ---- shared memory ----
//
// It serves 32 banks of 4 bytes at a time, in a wavefront. Lanes that want different words of one bank need a wavefront
// each: a bank conflict. Lanes that want the same word share it, but those of an atomic operation take turns.

// The wavefronts of the lanes of mask together. Elements of 8 or 16 bytes are aligned, so they conflict as if there
// were 16 banks of 8 bytes or 8 of 16.
static unsigned wavefronts_of(Mask mask, const uint64_t addresses[LANES], int size, bool take_turns) {
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
  return wavefronts;
}

unsigned shared_wavefronts(Mask mask, const uint64_t addresses[LANES], int size) {
  return wavefronts_of(mask, addresses, size, false);
}

static void serve(InstCounts *counts, Mask mask, const uint64_t addresses[LANES], int size, bool take_turns) {
  if (!mask) return;
  unsigned wavefronts = wavefronts_of(mask, addresses, size, take_turns);
  counts->wavefronts += wavefronts;
  counts->conflicts += wavefronts - 1;
}

// Those of mask among `count` lanes from `first` on.
static Mask lanes_of_part(Mask mask, int first, int count) { return mask & FULL_MASK >> (LANES - count) << first; }

// So many neighbouring lanes at a time.
static void serve_parts(InstCounts *counts, Mask mask, const uint64_t addresses[LANES], int size, int lanes_at_once,
                        bool take_turns) {
  for (int first = 0; first < LANES; first += lanes_at_once)
    serve(counts, lanes_of_part(mask, first, lanes_at_once), addresses, size, take_turns);
}

// Whether each lane wants what the lane whose number differs in `bit` wants, or one of the two takes no part.
static bool pairs_agree(Mask mask, const uint64_t addresses[LANES], int bit) {
  for (int lane = 0; lane < LANES; lane++) {
    int other = lane ^ bit;
    if ((mask >> lane & mask >> other & 1) && addresses[lane] != addresses[other]) return false;
  }
  return true;
}

// How many lanes' elements a wavefront carries.
static int lanes_of_wavefront(int size) { return size <= BANK_BYTES ? LANES : LANES * BANK_BYTES / size; }

// A wavefront carries 128 bytes: half of a warp's elements of 8 bytes, a quarter of those of 16. A load takes twice as
// many lanes at a time when neighbours want the same, or lanes two apart: then there are only half as many elements.
// The lanes of an atomic operation take turns, but those of its other half are no conflict.
static void count_shared(InstCounts *counts, Mask mask, const uint64_t addresses[LANES], int size, AccessKind kind) {
  int lanes_at_once = lanes_of_wavefront(size);
  counts->shared_requests++;
  if (kind == ACCESS_ATOMIC) {
    serve_parts(counts, mask, addresses, size, lanes_at_once, true);
    return;
  }
  if (are_evenly_spaced(mask, addresses, (uint64_t)size)) {
    counts->wavefronts += (unsigned)(LANES / lanes_at_once);
    return;
  }
  if (size <= BANK_BYTES && are_evenly_spaced(mask, addresses, 0)) {
    counts->wavefronts++;
    return;
  }
  bool halved = lanes_at_once < LANES && kind == ACCESS_READ &&
                (pairs_agree(mask, addresses, 1) || pairs_agree(mask, addresses, 2));
  serve_parts(counts, mask, addresses, size, halved ? 2 * lanes_at_once : lanes_at_once, false);
}

// Of the lanes that share a bank the first alone.
static Mask first_of_each_bank(Mask mask, const uint64_t addresses[LANES]) {
  uint32_t taken = 0;
  Mask first = 0;
  for (Mask rest = mask; rest; rest &= rest - 1) {
    uint32_t bank = 1u << addresses[__builtin_ctz(rest)] / BANK_BYTES % BANKS;
    if (!(taken & bank)) first |= rest & -rest;
    taken |= bank;
  }
  return first;
}

// An atomic operation that shared memory does not have is a loop: the lanes that are left load their elements, and of
// those that share a bank the first succeeds in its compare-and-swap. That takes two wavefronts, and is no conflict.
static void count_loop(InstCounts *counts, Mask mask, const uint64_t addresses[LANES], int size) {
  int lanes_at_once = lanes_of_wavefront(size);
  InstCounts loads = {0};
  while (mask) {
    count_shared(&loads, mask, addresses, size, ACCESS_READ);
    counts->shared_requests++;
    for (int first = 0; first < LANES; first += lanes_at_once) {
      Mask done = first_of_each_bank(lanes_of_part(mask, first, lanes_at_once), addresses);
      if (done) counts->wavefronts += 2;
      mask &= ~done;
    }
  }
  counts->loop_loads += loads.shared_requests;
  counts->loop_wavefronts += loads.wavefronts;
  counts->loop_conflicts += loads.conflicts;
}

// ---- global memory ----

// The sectors of the first lanes, 32 or 16, whose addresses never go down from lane to lane; 0 when they do.
ALWAYS_INLINE unsigned ascending_sectors(const uint64_t addresses[LANES], const int lanes) {
  uint64_t before[LANES];
  before[0] = addresses[0];
  memcpy(before + 1, addresses, (LANES - 1) * sizeof *addresses);
  uint32_t descents = 0, changes = 0;
  for (int lane = 0; lane < lanes; lane++) {
    descents |= addresses[lane] < before[lane];
    changes += addresses[lane] / SECTOR_BYTES != before[lane] / SECTOR_BYTES;
  }
  return descents ? 0 : changes + 1;
}

// 32-byte sectors that the lanes touch. An access is aligned, so it lies in one.
static unsigned sector_count(Mask mask, const uint64_t addresses[LANES], int size) {
  if (are_evenly_spaced(mask, addresses, (uint64_t)size))
    return (unsigned)(addresses[LANES - 1] / SECTOR_BYTES - addresses[0] / SECTOR_BYTES) + 1;
  if (are_evenly_spaced(mask, addresses, 0)) return 1;
  mask = without_repeated_half(mask, addresses);
  unsigned ascending = mask == FULL_MASK                ? ascending_sectors(addresses, LANES)
                       : mask == FULL_MASK >> LANES / 2 ? ascending_sectors(addresses, LANES / 2)
                                                        : 0;
  if (ascending) return ascending;
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
  if (are_evenly_spaced(mask, addresses, 0)) return LANES;
  while (mask) {
    Mask turn = first_of_each_address(mask, addresses);
    count += sector_count(turn, addresses, size);
    mask &= ~turn;
  }
  return count;
}

static unsigned sectors_of(Mask mask, const uint64_t addresses[LANES], int size, AccessKind kind) {
  return kind == ACCESS_ATOMIC ? atomic_sector_count(mask, addresses, size) : sector_count(mask, addresses, size);
}

static void count_global(InstCounts *counts, Mask mask, const uint64_t addresses[LANES], int size, AccessKind kind) {
  counts->global_requests++;
  counts->bytes += (unsigned)(__builtin_popcount(mask) * size);
  counts->sectors += sectors_of(mask, addresses, size, kind);
}

// ---- other blocks' shared memory ----

// It lies behind a network, and what goes there goes in sectors, as to global memory. An atomic operation is a
// wavefront of shared memory too, whatever its addresses.
static void count_cluster(InstCounts *counts, Mask mask, const uint64_t addresses[LANES], int size, AccessKind kind) {
  counts->cluster_requests++;
  counts->cluster_sectors += sectors_of(mask, addresses, size, kind);
  if (kind == ACCESS_ATOMIC) counts->wavefronts++;
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

// Where an access counts.
typedef enum Target { OWN_SHARED, OTHER_SHARED, GLOBAL, LOCAL, NOWHERE } Target;

// A shared address that mapa made names the block, which may be the own one.
static Target target_of(const Warp *warp, Space space, uint64_t address) {
  if (space == SPACE_GENERIC) {
    uint64_t window = address & ~WINDOW_MASK;
    space = window == SHARED_WINDOW  ? SPACE_SHARED
            : window == LOCAL_WINDOW ? SPACE_LOCAL
            : window == PARAM_WINDOW ? SPACE_PARAM
                                     : SPACE_GLOBAL;
  }
  if (space == SPACE_GLOBAL) return GLOBAL;
  if (space != SPACE_SHARED) return space == SPACE_LOCAL ? LOCAL : NOWHERE;
  uint64_t block = (address & WINDOW_MASK) >> SHARED_RANK_SHIFT;
  return !block || block == (uint64_t)warp->block->rank + 1 ? OWN_SHARED : OTHER_SHARED;
}

// Whether the addresses agree in all that decides where an access counts: a fast test, as nearly all of them do.
static bool have_one_target(Mask mask, const uint64_t addresses[LANES]) {
  uint64_t first = addresses[__builtin_ctz(mask)], different = 0;
  for (int lane = 0; lane < LANES; lane++) different |= (addresses[lane] ^ first) & -(uint64_t)(mask >> lane & 1);
  return !(different >> SHARED_RANK_SHIFT);
}

// The lanes of mask whose access counts there.
static Mask lanes_at(const Warp *warp, Target target, Space space, Mask mask, const uint64_t addresses[LANES]) {
  bool named = space != SPACE_GENERIC && space != SPACE_SHARED;
  if (named || have_one_target(mask, addresses))
    return target_of(warp, space, addresses[__builtin_ctz(mask)]) == target ? mask : 0;
  Mask here = 0;
  for (Mask rest = mask; rest; rest &= rest - 1)
    if (target_of(warp, space, addresses[__builtin_ctz(rest)]) == target) here |= rest & -rest;
  return here;
}

// Lanes that go to different places are one access of each.
void count_access(Warp *warp, const Inst *inst, Space space, Mask mask, const uint64_t addresses[LANES], int size,
                  AccessKind kind) {
  InstCounts *counts = warp_counts(warp, inst);
  for (Mask here; mask; mask &= ~here) {
    Target target = target_of(warp, space, addresses[__builtin_ctz(mask)]);
    here = lanes_at(warp, target, space, mask, addresses);
    switch (target) {
    case OWN_SHARED: count_shared(counts, here, addresses, size, kind); break;
    case OTHER_SHARED: count_cluster(counts, here, addresses, size, kind); break;
    case GLOBAL: count_global(counts, here, addresses, size, kind); break;
    case LOCAL: count_local(counts, here, addresses, size); break;
    case NOWHERE: break;
    }
  }
}

void count_atomic_loop(Warp *warp, const Inst *inst, Space space, Mask mask, const uint64_t addresses[LANES],
                       int size) {
  Mask own = lanes_at(warp, OWN_SHARED, space, mask, addresses);
  count_loop(warp_counts(warp, inst), own, addresses, size);
  if (mask & ~own) count_access(warp, inst, space, mask & ~own, addresses, size, ACCESS_ATOMIC);
}

void count_matrix_rows(Warp *warp, const Inst *inst, Space space, Mask mask, const uint64_t addresses[LANES],
                       AccessKind kind) {
  enum { ROW_BYTES = 16, ROWS = 8 };
  if (target_of(warp, space, addresses[__builtin_ctz(mask)]) != OWN_SHARED) {
    count_access(warp, inst, space, mask, addresses, ROW_BYTES, kind);
    return;
  }
  InstCounts *counts = warp_counts(warp, inst);
  counts->shared_requests++;
  serve_parts(counts, mask, addresses, ROW_BYTES, ROWS, false);
}
