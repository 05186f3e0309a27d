// Weak loads and stores by the lanes of a warp: load_store.h.
#include "load_store.h"

#include <string.h>

#include "../check/rows.h"
#include "transfer.h"

enum { SHORTEST_ROW = 4 };  // fewer lanes one after the other are served one by one

// ---- rows: lanes at places one after the other ----

// The lanes of mask from the first on whose addresses each are that of the lane before and `step` more. As many as
// that.
static int evenly_spaced(Mask mask, const uint64_t addresses[LANES], uint64_t step) {
  int first = __builtin_ctz(mask), count = 1;
  if (first == LANES - 1 || !(mask >> (first + 1) & 1) || addresses[first + 1] != addresses[first] + step) return 1;
  if (mask == FULL_MASK) {
    uint64_t different = 0;
    for (int lane = 0; lane < LANES; lane++) different |= addresses[lane] ^ (addresses[0] + (uint64_t)lane * step);
    if (!different) return LANES;
  }
  while (first + count < LANES && mask >> (first + count) & 1 &&
         addresses[first + count] == addresses[first + count - 1] + step)
    count++;
  return count;
}

// How many of the lanes' elements, one after the other from that of the access on, are inside its region and its page.
static int inside_page(const Access *access, int bytes, int count) {
  uint64_t page = SHADOW_PAGE - (access->offset & (SHADOW_PAGE - 1)), left = access->region->size - access->offset;
  uint64_t most = (page < left ? page : left) / (uint64_t)bytes;
  return most < 1 ? 1 : most < (uint64_t)count ? (int)most : count;
}

// So many lanes of mask, from its first one on.
static Mask first_lanes(Mask mask, int count) { return FULL_MASK >> (LANES - count) << __builtin_ctz(mask); }

// ---- scattered lanes: at places that have nothing to do with each other ----

// What serving such lanes one by one needs.
typedef struct Scattered {
  Warp *warp;
  const Transfer *transfer;
  RowActor *row;
  PageLock **lock;
  Region *region;
  u8 *data;             // the region's
  uint64_t last;        // the offset of the last element in it
  uint64_t difference;  // between an offset in the region and its address
  Mask alike;           // lanes whose check may be the row's
  bool plain;           // one element, as large as its register
  bool hazards, alone;  // the launch's
} Scattered;

static Scattered scattered_of(Warp *warp, const Transfer *transfer, RowActor *row, PageLock **lock,
                              const Neighbour *neighbour) {
  const Launch *launch = warp_launch(warp);
  Region *region = neighbour->region;
  return (Scattered){.warp = warp,
                     .transfer = transfer,
                     .row = row,
                     .lock = lock,
                     .region = region,
                     .data = region->data,
                     .last = region->size - (uint64_t)(transfer->size * transfer->count),
                     .difference = neighbour->offset - neighbour->address,
                     .alike = launch->check.on ? row->alike : FULL_MASK,
                     .plain = transfer->count == 1 && transfer->slot_sizes[0] == transfer->size && !transfer->sink[0],
                     .hazards = launch->check.on,
                     .alone = launch->alone};
}

// The lanes of mask before the first SHORTEST_ROW that are served better together: at one place, or one after the
// other.
static Mask scattered_lanes(Mask mask, const uint64_t addresses[LANES], int bytes) {
  uint64_t follow[LANES] = {0}, any = 0;
  Mask follows = 0;
  for (int lane = 0; lane < LANES - 1; lane++) {
    uint64_t gap = addresses[lane + 1] - addresses[lane];
    follow[lane] = (gap == 0) | (gap == (uint64_t)bytes);
    any |= follow[lane];
  }
  if (!any) return mask;  // mostly
  for (int lane = 0; lane < LANES - 1; lane++) follows |= (Mask)follow[lane] << lane;
  follows &= mask & mask >> 1;
  Mask four = follows & follows >> 1 & follows >> 2;
  return four ? mask & ((four & -four) - 1) : mask;
}

// The lanes of mask before the first one whose check may not be the row's.
static Mask lanes_alike(Mask mask, Mask alike) {
  Mask others = mask & ~alike;
  return others ? mask & ((others & -others) - 1) : mask;
}

ALWAYS_INLINE bool is_served(const Scattered *s, uint64_t address, int bytes) {
  return address + s->difference <= s->last && !(address & (uint64_t)(bytes - 1));
}

ALWAYS_INLINE void lock_scattered(const Scattered *s, uint64_t offset) {
  memory_lock_next(s->lock, &(Access){.region = s->region, .offset = offset});
}

// The commonest case, for which the loops below are compiled once more, without its questions.
static bool is_simple(const Scattered *s) { return s->plain && s->hazards && s->alone; }

// The check of a load or a store that is not of the commonest kind.
__attribute__((noinline)) static void check_lane_load(const Scattered *s, Scatter *scatter, uint64_t offset, int lane,
                                                      int bytes) {
  if (race_read_lane(scatter, s->row, s->region, offset, lane, bytes)) return;
  actor_set_lane(&s->row->actor, lane);
  race_read_by(&s->row->actor, s->region, offset, bytes);
}

__attribute__((noinline)) static void check_lane_store(const Scattered *s, Scatter *scatter, uint64_t offset, int lane,
                                                       int bytes, const u8 *value) {
  if (race_write_lane(scatter, s->row, s->region, offset, lane, bytes)) return;
  actor_set_lane(&s->row->actor, lane);
  race_write_by(&s->row->actor, s->region, offset, bytes, value);
}

// Loads by the lanes of mask, one after the other, as far as their elements are in the region. Returns those done.
ALWAYS_INLINE Mask load_lanes(const Scattered *s, const uint64_t addresses[LANES], Mask mask, const int bytes,
                              const bool simple) {
  const bool plain = simple || s->plain, hazards = simple || s->hazards, alone = simple || s->alone;
  Scatter scatter = {0};
  if (hazards) scatter = race_scatter(s->row);
  u8 *slot = SLOT(s->warp, s->transfer->slots[0], u8);
  Mask rest = mask;
  for (; rest; rest &= rest - 1) {
    int lane = __builtin_ctz(rest);
    if (!is_served(s, addresses[lane], bytes)) break;
    uint64_t offset = addresses[lane] + s->difference;
    const u8 *data = s->data + offset;
    if (!alone) lock_scattered(s, offset);
    if (hazards && !race_read_unit(&scatter, s->region, offset, lane, bytes))
      check_lane_load(s, &scatter, offset, lane, bytes);
    if (plain)
      copy_bytes(slot + lane * bytes, data, bytes);
    else
      set_elements(s->warp, s->transfer, 1u << lane, data);
  }
  return mask & ~rest;
}

// As load_lanes.
ALWAYS_INLINE Mask store_lanes(const Scattered *s, const uint64_t addresses[LANES], Mask mask, const int bytes,
                               const bool simple) {
  const bool plain = simple || s->plain, hazards = simple || s->hazards, alone = simple || s->alone;
  Scatter scatter = {0};
  if (hazards) scatter = race_scatter(s->row);
  const u8 *slot = SLOT(s->warp, s->transfer->slots[0], u8);
  bool changed = false;
  Mask rest = mask;
  for (; rest; rest &= rest - 1) {
    int lane = __builtin_ctz(rest);
    u8 gathered[MAX_BYTES];
    if (!is_served(s, addresses[lane], bytes)) break;
    uint64_t offset = addresses[lane] + s->difference;
    u8 *data = s->data + offset;
    const u8 *value = plain ? slot + lane * bytes : gathered;
    if (!plain) gather_row(s->warp, s->transfer, lane, 1, gathered);
    if (!alone) lock_scattered(s, offset);
    if (hazards && !race_write_unit(&scatter, s->region, offset, lane, bytes))
      check_lane_store(s, &scatter, offset, lane, bytes, value);
    changed |= memcmp(data, value, (size_t)bytes) != 0;
    copy_bytes(data, value, bytes);
  }
  s->warp->block->cluster->progress += changed;
  return mask & ~rest;
}

// Functions of their own for the commonest size, so that they have all registers.
__attribute__((noinline)) static Mask load_words(const Scattered *s, const uint64_t addresses[LANES], Mask mask) {
  return load_lanes(s, addresses, mask, 4, true);
}

__attribute__((noinline)) static Mask store_words(const Scattered *s, const uint64_t addresses[LANES], Mask mask) {
  return store_lanes(s, addresses, mask, 4, true);
}

static Mask load_scattered(const Scattered *s, const uint64_t addresses[LANES], Mask mask, int bytes) {
  mask = lanes_alike(scattered_lanes(mask, addresses, bytes), s->alike);
  return bytes == 4 && is_simple(s) ? load_words(s, addresses, mask) : load_lanes(s, addresses, mask, bytes, false);
}

static Mask store_scattered(const Scattered *s, const uint64_t addresses[LANES], Mask mask, int bytes) {
  mask = lanes_alike(scattered_lanes(mask, addresses, bytes), s->alike);
  return bytes == 4 && is_simple(s) ? store_words(s, addresses, mask) : store_lanes(s, addresses, mask, bytes, false);
}

// ---- loads and stores ----

// Lanes that read one place, or places one after the other, are served together.
void weak_load(Warp *warp, const Inst *inst, const Transfer *transfer, Mask mask, const uint64_t addresses[LANES]) {
  int bytes = transfer->size * transfer->count;
  const Launch *launch = warp_launch(warp);
  Neighbour neighbour = {0};
  PageLock *lock = NULL;
  RowActor row;
  if (launch->check.on) race_row(&row, &warp->check, pc_of_inst(warp, inst), mask);
  for (Mask left = mask, done; left; left &= ~done) {
    int lane = __builtin_ctz(left), count = 1;
    Access access;
    done = left & -left;
    if (!memory_find_next(warp, inst, lane, transfer->space, addresses[lane], bytes, ACCESS_READ, &neighbour, &access))
      break;
    if (access.region) {
      done = at_one_place(left, addresses);
      if (done & (done - 1)) {
        if (!launch->alone) memory_lock_next(&lock, &access);
        if (launch->check.on) race_read_together(&row, access.region, access.offset, done, bytes);
        spread_elements(warp, transfer, done, access.data);
        continue;
      }
      count = evenly_spaced(left, addresses, (uint64_t)bytes);
      if (count < SHORTEST_ROW && !(launch->check.on && row.lane_by_lane)) {
        Scattered scattered = scattered_of(warp, transfer, &row, &lock, &neighbour);
        done = load_scattered(&scattered, addresses, left, bytes);
        if (done) continue;
      }
      count = inside_page(&access, bytes, count);
    }
    if (!launch->alone) memory_lock_next(&lock, &access);
    done = first_lanes(left, count);
    if (launch->check.on && access.region)
      done = first_lanes(left, count = race_read_row(&row, access.region, access.offset, lane, count, bytes));
    else if (launch->check.on && access.valid)
      check_local(warp, &access, bytes);
    load_row(warp, transfer, lane, count, access.data);
  }
  memory_unlock_last(&lock);
}

// Lanes that write places one after the other are served together.
void weak_store(Warp *warp, const Inst *inst, Mask mask, const uint64_t addresses[LANES]) {
  const Transfer *transfer = inst->extra;
  int bytes = transfer->size * transfer->count;
  const Launch *launch = warp_launch(warp);
  Neighbour neighbour = {0};
  PageLock *lock = NULL;
  RowActor row;
  if (launch->check.on) race_row(&row, &warp->check, pc_of_inst(warp, inst), mask);
  for (Mask left = mask; left;) {
    int lane = __builtin_ctz(left), count = 1;
    u8 value[SHADOW_PAGE];
    Access access;
    if (!memory_find_next(warp, inst, lane, transfer->space, addresses[lane], bytes, ACCESS_WRITE, &neighbour, &access))
      break;
    if (access.region) {
      count = evenly_spaced(left, addresses, (uint64_t)bytes);
      if (count < SHORTEST_ROW && !(launch->check.on && row.lane_by_lane)) {
        Scattered scattered = scattered_of(warp, transfer, &row, &lock, &neighbour);
        Mask done = store_scattered(&scattered, addresses, left, bytes);
        left &= ~done;
        if (done) continue;
      }
      count = inside_page(&access, bytes, count);
    }
    gather_row(warp, transfer, lane, count, value);
    if (!launch->alone) memory_lock_next(&lock, &access);
    if (launch->check.on && access.region)
      count = race_write_row(&row, access.region, access.offset, lane, count, bytes, value);
    store_bytes(warp, &access, value, count * bytes);
    left &= ~first_lanes(left, count);
  }
  memory_unlock_last(&lock);
}
