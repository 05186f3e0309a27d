// What one memory access of a warp costs: bank conflicts of shared memory, sectors of global memory. The rules are those
// that Nsight Compute counts by on an H200: notes/counters.md has them with the measurements.
#include "memory.h"

enum { BANKS = 32, BANK_BYTES = 4, SECTOR_BYTES = 32 };

// ---- distinct keys, sorted into 32 buckets by their lowest bits ----

typedef struct Buckets {
  uint8_t used[BANKS];
  uint64_t keys[BANKS][LANES];  // the first `used` of each
} Buckets;

static void bucket_add(Buckets *buckets, unsigned bucket, uint64_t key) {
  buckets->keys[bucket][buckets->used[bucket]++] = key;
}

// False when the key was there before.
static bool bucket_add_new(Buckets *buckets, unsigned bucket, uint64_t key) {
  for (int i = 0; i < buckets->used[bucket]; i++)
    if (buckets->keys[bucket][i] == key) return false;
  bucket_add(buckets, bucket, key);
  return true;
}

static int fullest_bucket(const Buckets *buckets) {
  int most = 0;
  for (int i = 0; i < BANKS; i++)
    if (buckets->used[i] > most) most = buckets->used[i];
  return most;
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
  Buckets banks = {.used = {0}};
  uint64_t element_bytes = size < BANK_BYTES ? BANK_BYTES : (uint64_t)size;
  unsigned bank_count = BANKS * BANK_BYTES / (unsigned)element_bytes;
  int shift = __builtin_ctzll(element_bytes);
  for (Mask rest = mask; rest; rest &= rest - 1) {
    uint64_t element = addresses[__builtin_ctz(rest)] >> shift;
    unsigned bank = element & (bank_count - 1);
    if (take_turns)
      bucket_add(&banks, bank, element);
    else
      bucket_add_new(&banks, bank, element);
  }
  int wavefronts = fullest_bucket(&banks);
  counts->wavefronts += (unsigned)wavefronts;
  counts->conflicts += (unsigned)wavefronts - 1;
}

// So many neighbouring lanes at a time.
static void serve_parts(InstCounts *counts, Mask mask, const uint64_t addresses[LANES], int size, int lanes_at_once) {
  for (int first = 0; first < LANES; first += lanes_at_once)
    serve(counts, mask & FULL_MASK >> (LANES - lanes_at_once) << first, addresses, size, false);
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
// lanes at a time when neighbours want the same, or lanes two apart: then there are only half as many elements.
static void count_shared(InstCounts *counts, Mask mask, const uint64_t addresses[LANES], int size, AccessKind kind) {
  if (kind == ACCESS_ATOMIC) {
    serve(counts, mask, addresses, size, true);
    return;
  }
  int lanes_at_once = size <= BANK_BYTES ? LANES : LANES * BANK_BYTES / size;
  if (evenly_spaced(mask, addresses, (uint64_t)size)) {
    counts->wavefronts += (unsigned)(LANES / lanes_at_once);
    return;
  }
  bool halved = lanes_at_once < LANES && kind == ACCESS_READ &&
                (pairs_agree(mask, addresses, 1) || pairs_agree(mask, addresses, 2));
  serve_parts(counts, mask, addresses, size, halved ? 2 * lanes_at_once : lanes_at_once);
}

// ---- global memory ----

// 32-byte sectors that the lanes touch. An access is aligned, so it lies in one.
static unsigned sector_count(Mask mask, const uint64_t addresses[LANES]) {
  Buckets sectors = {.used = {0}};
  unsigned count = 0;
  uint64_t last = ~0ull;
  for (Mask rest = mask; rest; rest &= rest - 1) {
    uint64_t sector = addresses[__builtin_ctz(rest)] / SECTOR_BYTES;
    if (sector != last) count += bucket_add_new(&sectors, sector % BANKS, sector);
    last = sector;
  }
  return count;
}

// Of lanes with equal addresses the first alone.
static Mask first_of_each_address(Mask mask, const uint64_t addresses[LANES], int size) {
  Buckets seen = {.used = {0}};
  Mask first = 0;
  for (Mask rest = mask; rest; rest &= rest - 1) {
    uint64_t element = addresses[__builtin_ctz(rest)] / (uint64_t)size;
    if (bucket_add_new(&seen, element % BANKS, element)) first |= rest & -rest;
  }
  return first;
}

// Atomic operations on one address take turns, and each turn reaches its sectors anew.
static unsigned atomic_sector_count(Mask mask, const uint64_t addresses[LANES], int size) {
  unsigned count = 0;
  if (evenly_spaced(mask, addresses, 0)) return LANES;
  while (mask) {
    Mask turn = first_of_each_address(mask, addresses, size);
    count += sector_count(turn, addresses);
    mask &= ~turn;
  }
  return count;
}

static void count_global(InstCounts *counts, Mask mask, const uint64_t addresses[LANES], int size, AccessKind kind) {
  bool atomic = kind == ACCESS_ATOMIC;
  counts->bytes += (unsigned)(__builtin_popcount(mask) * size);
  counts->sectors += atomic ? atomic_sector_count(mask, addresses, size) : sector_count(mask, addresses);
}

// ---- both ----

// Where the access goes: all lanes where the first goes.
static Space counted_space(Space space, Mask mask, const uint64_t addresses[LANES]) {
  if (space != SPACE_GENERIC) return space;
  uint64_t window = addresses[__builtin_ctz(mask)] & ~WINDOW_MASK;
  return window == SHARED_WINDOW ? SPACE_SHARED : window == LOCAL_WINDOW || window == PARAM_WINDOW ? SPACE_LOCAL : SPACE_GLOBAL;
}

void count_access(Warp *warp, const Inst *inst, Space space, Mask mask, const uint64_t addresses[LANES], int size,
                  AccessKind kind) {
  InstCounts *counts = warp_counts(warp, inst);
  space = counted_space(space, mask, addresses);
  if (space == SPACE_SHARED) {
    counts->shared_requests++;
    count_shared(counts, mask, addresses, size, kind);
  } else if (space == SPACE_GLOBAL) {
    counts->global_requests++;
    count_global(counts, mask, addresses, size, kind);
  }
}

void count_matrix_rows(Warp *warp, const Inst *inst, Space space, Mask mask, const uint64_t addresses[LANES], AccessKind kind) {
  enum { ROW_BYTES = 16, ROWS = 8 };
  if (counted_space(space, mask, addresses) != SPACE_SHARED) {
    count_access(warp, inst, space, mask, addresses, ROW_BYTES, kind);
    return;
  }
  InstCounts *counts = warp_counts(warp, inst);
  counts->shared_requests++;
  serve_parts(counts, mask, addresses, ROW_BYTES, ROWS);
}
