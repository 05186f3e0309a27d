// ld, st and their kin: every space, width and vector. PTX ISA 9.7.9.8 to 9.7.9.13.
#include <string.h>

#include "../check/hazard.h"
#include "../check/rows.h"
#include "../check/undefined.h"
#include "../warp/instruction.h"
#include "../warp/lanes.h"
#include "../warp/operands.h"
#include "../warp/warp.h"
#include "access_counts.h"
#include "families.h"
#include "load_store.h"

enum { MAX_VECTOR = 4, MAX_BYTES = 16 };
enum { SHORTEST_ROW = 4 };  // fewer lanes one after the other are served one by one
#define HASH_FACTOR 0x9e3779b97f4a7c15ull

// What a load or store needs beside the Inst: where its elements are in registers.
typedef struct Transfer {
  AddressPlan address;
  Space space;
  MemoryOrder order;
  Strength strength;
  int count;  // elements
  int size;   // bytes of one in memory
  bool is_signed;
  Slot slots[MAX_VECTOR];
  int slot_sizes[MAX_VECTOR];  // bytes of one in its register, >= size
  bool sink[MAX_VECTOR];
  bool postponed;      // of a load: a store judges it
  const Inst *judges;  // of a store: the load that it judges, or NULL
} Transfer;

// ---- elements between memory and registers ----

// memcpy of a size that is nearly always one of these: a move, not a call.
static void copy_bytes(u8 *to, const u8 *from, int size) {
  switch (size) {
  case 2: memcpy(to, from, 2); break;
  case 4: memcpy(to, from, 4); break;
  case 8: memcpy(to, from, 8); break;
  case 16: memcpy(to, from, 16); break;
  default: memcpy(to, from, (size_t)size);
  }
}

static uint64_t read_bytes(const u8 *from, int size) {
  uint64_t value = 0;
  memcpy(&value, from, (size_t)size);
  return value;
}

static uint64_t extend(uint64_t value, int size, bool is_signed) {
  int shift = 64 - 8 * size;
  return is_signed ? (uint64_t)((int64_t)(value << shift) >> shift) : value;
}

static void set_element(Warp *warp, const Transfer *transfer, int e, int lane, const u8 *bytes) {
  int size = transfer->size, slot_size = transfer->slot_sizes[e];
  u8 *slot = SLOT(warp, transfer->slots[e], u8) + lane * slot_size;
  if (transfer->sink[e]) return;
  if (size == slot_size) {
    copy_bytes(slot, bytes, size);
    return;
  }
  uint64_t value = extend(read_bytes(bytes, size), size, transfer->is_signed);
  memcpy(slot, &value, (size_t)slot_size);
}

static void get_element(Warp *warp, const Transfer *transfer, int e, int lane, u8 *bytes) {
  const u8 *slot = SLOT(warp, transfer->slots[e], u8) + lane * transfer->slot_sizes[e];
  copy_bytes(bytes, slot, transfer->size);
}

static void set_elements(Warp *warp, const Transfer *transfer, Mask lanes, const u8 *bytes) {
  for (Mask rest = lanes; rest; rest &= rest - 1)
    for (int e = 0; e < transfer->count; e++)
      set_element(warp, transfer, e, __builtin_ctz(rest), bytes + e * transfer->size);
}

// The same, faster: many lanes read one place.
static void spread_elements(Warp *warp, const Transfer *transfer, Mask lanes, const u8 *bytes) {
  if (transfer->count > 1 || transfer->size != 4 || transfer->slot_sizes[0] != 4 || transfer->sink[0]) {
    set_elements(warp, transfer, lanes, bytes);
    return;
  }
  u32 *slot = SLOT(warp, transfer->slots[0], u32), value;
  memcpy(&value, bytes, sizeof value);
  EACH_LANE(lanes, slot[LANE] = value);
}

// ---- elements of several lanes between memory and registers ----
//
// The lanes' elements are one after the other in memory.

#define COPY_ELEMENTS(TYPE, to, to_step, from, from_step, count)                                                       \
  for (int LANE = 0; LANE < (count); LANE++) {                                                                         \
    TYPE VALUE;                                                                                                        \
    memcpy(&VALUE, (from) + LANE * (from_step), sizeof VALUE);                                                         \
    memcpy((to) + LANE * (to_step), &VALUE, sizeof VALUE);                                                             \
  }

// Copies so many elements of a size, each so many bytes after the one before.
static inline void copy_elements(u8 *restrict to, int to_step, const u8 *restrict from, int from_step, int size,
                                 int count) {
  if (from_step == size && to_step == size && size * count == 4 * LANES)
    memcpy(to, from, 4 * LANES);
  else if (size == 4)
    COPY_ELEMENTS(u32, to, to_step, from, from_step, count)
  else if (size == 8)
    COPY_ELEMENTS(u64, to, to_step, from, from_step, count)
  else if (size == 2)
    COPY_ELEMENTS(u16, to, to_step, from, from_step, count)
  else
    for (int lane = 0; lane < count; lane++) copy_bytes(to + lane * to_step, from + lane * from_step, size);
}

static void load_row(Warp *warp, const Transfer *transfer, int lane, int count, const u8 *bytes) {
  int step = transfer->size * transfer->count;
  for (int e = 0; e < transfer->count; e++) {
    int size = transfer->size, slot_size = transfer->slot_sizes[e];
    const u8 *from = bytes + e * size;
    if (transfer->sink[e]) continue;
    if (size == slot_size)
      copy_elements(SLOT(warp, transfer->slots[e], u8) + lane * size, size, from, step, size, count);
    else
      for (int i = 0; i < count; i++) set_element(warp, transfer, e, lane + i, from + i * step);
  }
}

static void gather_row(Warp *warp, const Transfer *transfer, int lane, int count, u8 *bytes) {
  int size = transfer->size, step = size * transfer->count;
  for (int e = 0; e < transfer->count; e++) {
    int slot_size = transfer->slot_sizes[e];
    const u8 *slot = SLOT(warp, transfer->slots[e], u8) + lane * slot_size;
    copy_elements(bytes + e * size, step, slot, slot_size, size, count);
  }
}

// ---- execution ----

static SyncTable *sync_table(Warp *warp, const Access *access) {
  return access->region->kind == REGION_SHARED ? warp->block->cluster->sync : warp_launch(warp)->sync;
}

// Local memory is a thread's own: nothing to race with, but it may be read before it was written.
static void check_local(Warp *warp, const Access *access, int bytes) {
  for (int i = 0; i < bytes; i++) warp->found_unwritten |= !access->valid[i];
}

// ---- values that nothing defines ----

static int address_size(const Transfer *transfer) { return transfer->address.narrow ? 4 : 8; }

// Sets undefined[i] to ones where nothing has written the i-th byte of the access; false where all are written.
static bool find_unwritten(const Warp *warp, const Access *access, int bytes, u8 *undefined) {
  bool found = false;
  memset(undefined, 0, (size_t)bytes);
  for (int i = 0, run = 1; i < bytes; i += run) {
    Cell cell = {0};
    bool written = access->valid && access->valid[i];
    if (access->region) {
      run = shadow_run(&access->region->shadow, access->offset + (uint64_t)i, bytes - i, warp_launch(warp)->number,
                       &cell);
      written = cell.write != EPOCH_NONE;
    }
    if (!written) memset(undefined + i, 0xff, (size_t)run);
    found |= !written;
  }
  return found;
}

// A load has found bytes that nothing has written: the registers' values are undefined there.
static void note_undefined(Warp *warp, const Inst *inst, Mask mask, const uint64_t addresses[LANES]) {
  const Transfer *transfer = inst->extra;
  int bytes = transfer->size * transfer->count;
  warp->found_unwritten = false;
  for (Mask rest = mask; rest; rest &= rest - 1) {
    int lane = __builtin_ctz(rest), written = 0;
    u8 undefined[MAX_BYTES];
    Access access;
    if (!memory_find(warp, inst, lane, transfer->space, addresses[lane], bytes, bytes, ACCESS_READ, &access)) return;
    memory_lock(&access);
    bool found = find_unwritten(warp, &access, bytes, undefined);
    memory_unlock(&access);
    if (!found) continue;
    for (int i = 0; i < bytes; i++) written += !undefined[i];
    UndefinedSource source = {.kind = access.region ? UNWRITTEN : UNWRITTEN_LOCAL,
                              .region = access.region,
                              .offset =
                                  access.offset + (size_t)((u8 *)memchr(undefined, 0xff, (size_t)bytes) - undefined),
                              .address = addresses[lane],
                              .size = bytes,
                              .whole = !written};
    for (int e = 0; e < transfer->count; e++) {
      u8 bits[MAX_BYTES] = {0};
      const u8 *own = undefined + e * transfer->size;
      memcpy(bits, own, (size_t)transfer->size);
      for (int i = transfer->size; i < transfer->slot_sizes[e]; i++)  // PTX ISA 9.4.1: copies of the sign, or zeros
        bits[i] = transfer->is_signed ? own[transfer->size - 1] : 0;
      if (!transfer->sink[e])
        undefined_add(warp, inst, lane, &source, transfer->slots[e], transfer->slot_sizes[e], bits);
    }
  }
}

// What is stored without being defined, and is no fault, is undefined in memory, too.
static void forget_written(const Warp *warp, const Access *access, const u8 *bits, int bytes) {
  for (int i = 0, run; i < bytes; i += run) {
    for (run = 1; i + run < bytes && !bits[i + run] == !bits[i];) run++;
    if (!bits[i]) continue;
    if (access->valid) memset(access->valid + i, 0, (size_t)run);
    if (access->region)
      shadow_write(&access->region->shadow, access->offset + (uint64_t)i, run, warp_launch(warp)->number, EPOCH_NONE);
  }
}

// A store of values that nothing defines. They are padding if the load that brought them brought something else, too: a copy
// of a struct. A thread may also copy its local memory, which nobody else sees. Other stores depend on what was not there.
static void store_undefined(Warp *warp, const Inst *inst, Mask mask, const uint64_t addresses[LANES]) {
  const Transfer *transfer = inst->extra;
  int size = transfer->size;
  for (Mask rest = mask; rest; rest &= rest - 1)
    for (int e = 0; e < transfer->count; e++) {
      int lane = __builtin_ctz(rest);
      const u8 *bits;
      Access access;
      uint64_t address = addresses[lane] + (uint64_t)(e * size);
      if (!memory_find(warp, inst, lane, transfer->space, address, size, size, ACCESS_WRITE, &access)) return;
      bits = undefined_store(warp, inst, lane, transfer->slots[e], transfer->slot_sizes[e], access.valid);
      if (!bits) continue;
      memory_lock(&access);
      forget_written(warp, &access, bits, size);
      memory_unlock(&access);
    }
}

// What a strong load finds, for warp_poll.
static uint64_t add_found(uint64_t found, uint64_t address, const u8 *data, int bytes) {
  for (int i = 0; i < bytes; i += 8)
    found = (found ^ read_bytes(data + i, bytes - i < 8 ? bytes - i : 8)) * HASH_FACTOR;
  return (found ^ address) * HASH_FACTOR;
}

// The lanes of mask from the first on whose addresses each are that of the lane before and `step` more. As many as that.
static int evenly_spaced(Mask mask, const uint64_t addresses[LANES], uint64_t step) {
  int first = __builtin_ctz(mask), count = 1;
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

// The lanes of mask from the first on that have its address, up to one that has another.
static Mask at_one_place(Mask mask, const uint64_t addresses[LANES]) {
  uint64_t address = addresses[__builtin_ctz(mask)];
  Mask next = mask & (mask - 1), others = 0;
  if (!next || addresses[__builtin_ctz(next)] != address) return mask & -mask;
  for (int lane = 0; lane < LANES; lane++) others |= (Mask)(addresses[lane] != address) << lane;
  others &= mask;
  return others ? mask & ((others & -others) - 1) : mask;
}

// How many of the lanes' elements, one after the other from that of the access on, are inside its region and its page.
static int inside_page(const Access *access, int bytes, int count) {
  uint64_t page = SHADOW_PAGE - (access->offset & (SHADOW_PAGE - 1)), left = access->region->size - access->offset;
  uint64_t most = (page < left ? page : left) / (uint64_t)bytes;
  return most < 1 ? 1 : most < (uint64_t)count ? (int)most : count;
}

// So many lanes of mask, from its first one on.
static Mask first_lanes(Mask mask, int count) { return FULL_MASK >> (LANES - count) << __builtin_ctz(mask); }

static void load_strong(Warp *warp, const Inst *inst, Mask mask, const uint64_t addresses[LANES]) {
  const Transfer *transfer = inst->extra;
  int bytes = transfer->size * transfer->count;
  uint64_t found = mask;
  Neighbour neighbour = {0};
  for (Mask left = mask, same; left; left &= ~same) {
    int lane = __builtin_ctz(left);
    Access access;
    same = at_one_place(left, addresses);
    if (!memory_find_next(warp, inst, lane, transfer->space, addresses[lane], bytes, ACCESS_READ, &neighbour, &access))
      break;
    if (!access.region) same = left & -left;
    memory_lock(&access);
    if (warp_launch(warp)->hazards && access.region)
      race_read(warp, inst, same, access.region, access.offset, bytes, transfer->strength);
    if (warp_launch(warp)->hazards && access.valid) check_local(warp, &access, bytes);
    set_elements(warp, transfer, same, access.data);
    found = add_found(found, addresses[lane], access.data, bytes);
    memory_unlock(&access);
    for (Mask rest = same; access.region && rest; rest &= rest - 1)
      sync_load(sync_table(warp, &access), &(Elements){access.data, (size_t)transfer->size, transfer->count}, warp,
                __builtin_ctz(rest), transfer->order, transfer->strength);
  }
  uint64_t first = addresses[__builtin_ctz(mask)];
  (first >= GLOBAL_WINDOW ? warp_poll_global : warp_poll)(warp, inst, first, found);
}

// ---- lanes that have nothing to do with each other ----

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
                     .alike = launch->hazards ? row->alike : FULL_MASK,
                     .plain = transfer->count == 1 && transfer->slot_sizes[0] == transfer->size && !transfer->sink[0],
                     .hazards = launch->hazards,
                     .alone = launch->alone};
}

// The lanes of mask before the first SHORTEST_ROW that are served better together: at one place, or one after the other.
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

// Whether the lane's element is in the region, and its check may be the row's.
ALWAYS_INLINE bool is_served(const Scattered *s, int lane, uint64_t address, int bytes) {
  return address + s->difference <= s->last && !(address & (uint64_t)(bytes - 1)) && s->alike >> lane & 1;
}

ALWAYS_INLINE void lock_scattered(const Scattered *s, uint64_t offset) {
  if (!s->alone) memory_lock_next(s->lock, &(Access){.region = s->region, .offset = offset});
}

// A copy of its own, which the compiler keeps in registers; simple: of is_simple, as a constant.
ALWAYS_INLINE Scattered own_copy(const Scattered *scattered, const bool simple) {
  Scattered own = *scattered;
  if (simple) own.plain = own.hazards = own.alone = true;
  return own;
}

// The commonest case, for which the loops below are compiled once more, without its questions.
static bool is_simple(const Scattered *s) { return s->plain && s->hazards && s->alone; }

// Loads by the lanes of mask, one after the other, as far as their elements are in the region. Returns those done.
ALWAYS_INLINE Mask load_lanes(const Scattered *scattered, const uint64_t addresses[LANES], Mask mask, const int bytes,
                              const bool simple) {
  const Scattered own = own_copy(scattered, simple), *const s = &own;
  Scatter scatter = {0};
  if (s->hazards) scatter = race_scatter(s->row);
  u8 *slot = SLOT(s->warp, s->transfer->slots[0], u8);
  Mask rest = mask;
  for (; rest; rest &= rest - 1) {
    int lane = __builtin_ctz(rest);
    if (!is_served(s, lane, addresses[lane], bytes)) break;
    uint64_t offset = addresses[lane] + s->difference;
    const u8 *data = s->data + offset;
    lock_scattered(s, offset);
    if (s->hazards && !race_read_lane(&scatter, s->row, s->region, offset, lane, bytes)) {
      race_set_lane(&s->row->actor, lane);
      race_read_by(&s->row->actor, s->region, offset, bytes);
    }
    if (s->plain)
      copy_bytes(slot + lane * bytes, data, bytes);
    else
      set_elements(s->warp, s->transfer, 1u << lane, data);
  }
  return mask & ~rest;
}

// As load_lanes.
ALWAYS_INLINE Mask store_lanes(const Scattered *scattered, const uint64_t addresses[LANES], Mask mask, const int bytes,
                               const bool simple) {
  const Scattered own = own_copy(scattered, simple), *const s = &own;
  Scatter scatter = {0};
  if (s->hazards) scatter = race_scatter(s->row);
  const u8 *slot = SLOT(s->warp, s->transfer->slots[0], u8);
  bool changed = false;
  Mask rest = mask;
  for (; rest; rest &= rest - 1) {
    int lane = __builtin_ctz(rest);
    u8 gathered[MAX_BYTES];
    if (!is_served(s, lane, addresses[lane], bytes)) break;
    uint64_t offset = addresses[lane] + s->difference;
    u8 *data = s->data + offset;
    const u8 *value = s->plain ? slot + lane * bytes : gathered;
    if (!s->plain) gather_row(s->warp, s->transfer, lane, 1, gathered);
    lock_scattered(s, offset);
    if (s->hazards && !race_write_lane(&scatter, s->row, s->region, offset, lane, bytes)) {
      race_set_lane(&s->row->actor, lane);
      race_write_by(&s->row->actor, s->region, offset, bytes, value);
    }
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
  mask = scattered_lanes(mask, addresses, bytes);
  return bytes == 4 && is_simple(s) ? load_words(s, addresses, mask) : load_lanes(s, addresses, mask, bytes, false);
}

static Mask store_scattered(const Scattered *s, const uint64_t addresses[LANES], Mask mask, int bytes) {
  mask = scattered_lanes(mask, addresses, bytes);
  return bytes == 4 && is_simple(s) ? store_words(s, addresses, mask) : store_lanes(s, addresses, mask, bytes, false);
}

// Lanes that read one place, or places one after the other, are served together.
static void load_weak(Warp *warp, const Inst *inst, Mask mask, const uint64_t addresses[LANES]) {
  const Transfer *transfer = inst->extra;
  int bytes = transfer->size * transfer->count;
  const Launch *launch = warp_launch(warp);
  Neighbour neighbour = {0};
  PageLock *lock = NULL;
  RowActor row;
  if (launch->hazards) race_row(&row, warp, inst, __builtin_ctz(mask));
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
        if (launch->hazards) race_read_together(&row, access.region, access.offset, done, bytes);
        spread_elements(warp, transfer, done, access.data);
        continue;
      }
      count = evenly_spaced(left, addresses, (uint64_t)bytes);
      if (count < SHORTEST_ROW && !(launch->hazards && row.lane_by_lane)) {
        Scattered scattered = scattered_of(warp, transfer, &row, &lock, &neighbour);
        done = load_scattered(&scattered, addresses, left, bytes);
        if (done) continue;
      }
      count = inside_page(&access, bytes, count);
    }
    if (!launch->alone) memory_lock_next(&lock, &access);
    done = first_lanes(left, count);
    if (launch->hazards && access.region)
      done = first_lanes(left, count = race_read_row(&row, access.region, access.offset, lane, count, bytes));
    else if (launch->hazards && access.valid)
      check_local(warp, &access, bytes);
    load_row(warp, transfer, lane, count, access.data);
  }
  memory_unlock_last(&lock);
}

// A load that is judged when its value is stored: postponed.h.
static void load_postponed(Warp *warp, const Inst *inst, Mask mask, const uint64_t addresses[LANES]) {
  const Transfer *transfer = inst->extra;
  int bytes = transfer->size * transfer->count;
  Neighbour neighbour = {0};
  for (Mask left = mask, same; left; left &= ~same) {
    Access access;
    u8 undefined[MAX_BYTES];
    same = same_address(left, addresses);
    int lane = __builtin_ctz(left);
    if (!memory_find_next(warp, inst, lane, transfer->space, addresses[lane], bytes, ACCESS_READ, &neighbour, &access))
      return;
    if (!access.region) same = left & -left;
    memory_lock(&access);
    warp->found_unwritten |= find_unwritten(warp, &access, bytes, undefined);
    set_elements(warp, transfer, same, access.data);
    memory_unlock(&access);
  }
}

// The lanes of a store, which use what they have loaded.
static void judge_load(Warp *warp, const Inst *inst, Mask mask) {
  const Transfer *transfer = inst->extra;
  int bytes = transfer->size * transfer->count;
  uint64_t addresses[LANES];
  form_addresses(warp, &transfer->address, mask, addresses);
  Neighbour neighbour = {0};
  for (Mask left = mask, same; left; left &= ~same) {
    Access access;
    same = same_address(left, addresses);
    int lane = __builtin_ctz(left);
    if (!memory_find_next(warp, inst, lane, transfer->space, addresses[lane], bytes, ACCESS_READ, &neighbour, &access))
      return;
    memory_lock(&access);
    if (access.region) race_read(warp, inst, same, access.region, access.offset, bytes, WEAK);
    memory_unlock(&access);
  }
  warp->found_unwritten = false;  // that was noted when it was loaded
}

static void execute_ld(Warp *warp, const Inst *inst, Mask mask) {
  const Transfer *transfer = inst->extra;
  uint64_t addresses[LANES];
  form_addresses(warp, &transfer->address, mask, addresses);
  count_access(warp, inst, transfer->space, mask, addresses, transfer->size * transfer->count, ACCESS_READ);
  if (warp->has_undefined) {
    undefined_use(warp, inst, mask, transfer->address.slot, address_size(transfer));
    for (int e = 0; e < transfer->count; e++) undefined_clear(warp, mask, transfer->slots[e], transfer->slot_sizes[e]);
  }
  if (transfer->postponed && warp_launch(warp)->hazards)
    load_postponed(warp, inst, mask, addresses);
  else
    (transfer->strength == WEAK ? load_weak : load_strong)(warp, inst, mask, addresses);
  if (warp->found_unwritten) note_undefined(warp, inst, mask, addresses);
}

static void store_bytes(Warp *warp, const Access *access, const u8 *value, int bytes) {
  if (access->valid) memset(access->valid, 1, (size_t)bytes);
  if (!memcmp(access->data, value, (size_t)bytes)) return;
  copy_bytes(access->data, value, bytes);
  if (access->region) warp->block->cluster->progress++;  // local memory nobody else sees
}

static void store_strong(Warp *warp, const Inst *inst, Mask mask, const uint64_t addresses[LANES]) {
  const Transfer *transfer = inst->extra;
  int bytes = transfer->size * transfer->count;
  Neighbour neighbour = {0};
  Actor actor = race_lane(warp, inst, __builtin_ctz(mask), transfer->strength);
  for (Mask rest = mask; rest; rest &= rest - 1) {
    int lane = __builtin_ctz(rest);
    u8 value[MAX_BYTES];
    Access access;
    gather_row(warp, transfer, lane, 1, value);
    if (!memory_find_next(warp, inst, lane, transfer->space, addresses[lane], bytes, ACCESS_WRITE, &neighbour, &access))
      break;
    if (access.region)
      sync_store(sync_table(warp, &access), &(Elements){access.data, (size_t)transfer->size, transfer->count}, warp,
                 lane, transfer->order, transfer->strength);
    memory_lock(&access);
    if (warp_launch(warp)->hazards && access.region) {
      race_set_lane(&actor, lane);
      race_write_by(&actor, access.region, access.offset, bytes, value);
    }
    store_bytes(warp, &access, value, bytes);
    memory_unlock(&access);
  }
}

// Lanes that write places one after the other are served together.
static void store_weak(Warp *warp, const Inst *inst, Mask mask, const uint64_t addresses[LANES]) {
  const Transfer *transfer = inst->extra;
  int bytes = transfer->size * transfer->count;
  const Launch *launch = warp_launch(warp);
  Neighbour neighbour = {0};
  PageLock *lock = NULL;
  RowActor row;
  if (launch->hazards) race_row(&row, warp, inst, __builtin_ctz(mask));
  for (Mask left = mask; left;) {
    int lane = __builtin_ctz(left), count = 1;
    u8 value[SHADOW_PAGE];
    Access access;
    if (!memory_find_next(warp, inst, lane, transfer->space, addresses[lane], bytes, ACCESS_WRITE, &neighbour, &access))
      break;
    if (access.region) {
      count = evenly_spaced(left, addresses, (uint64_t)bytes);
      if (count < SHORTEST_ROW && !(launch->hazards && row.lane_by_lane)) {
        Scattered scattered = scattered_of(warp, transfer, &row, &lock, &neighbour);
        Mask done = store_scattered(&scattered, addresses, left, bytes);
        left &= ~done;
        if (done) continue;
      }
      count = inside_page(&access, bytes, count);
    }
    gather_row(warp, transfer, lane, count, value);
    if (!launch->alone) memory_lock_next(&lock, &access);
    if (launch->hazards && access.region)
      count = race_write_row(&row, access.region, access.offset, lane, count, bytes, value);
    store_bytes(warp, &access, value, count * bytes);
    left &= ~first_lanes(left, count);
  }
  memory_unlock_last(&lock);
}

static void execute_st(Warp *warp, const Inst *inst, Mask mask) {
  const Transfer *transfer = inst->extra;
  uint64_t addresses[LANES];
  form_addresses(warp, &transfer->address, mask, addresses);
  count_access(warp, inst, transfer->space, mask, addresses, transfer->size * transfer->count, ACCESS_WRITE);
  if (warp->has_undefined) undefined_use(warp, inst, mask, transfer->address.slot, address_size(transfer));
  if (transfer->judges && warp_launch(warp)->hazards) judge_load(warp, transfer->judges, mask);
  (transfer->strength == WEAK ? store_weak : store_strong)(warp, inst, mask, addresses);
  if (warp->has_undefined) store_undefined(warp, inst, mask, addresses);
}

// A kernel's parameter read by name: the same for every lane, and never out of bounds.
static void load_kernel_param(Warp *warp, const Inst *inst, Mask mask) {
  const Transfer *transfer = inst->extra;
  for (int e = 0; e < transfer->count; e++) undefined_clear(warp, mask, transfer->slots[e], transfer->slot_sizes[e]);
  set_elements(warp, transfer, mask, warp_launch(warp)->params + inst->immediate);
}

// A device function's parameters are bytes beside its registers: `immediate` of `size` a lane.
static void load_param(Warp *warp, const Inst *inst, Mask mask) {
  const Transfer *transfer = inst->extra;
  const u8 *bytes = SLOT(warp, inst->a, const u8) + inst->immediate;
  for (Mask rest = mask; rest; rest &= rest - 1) {
    int lane = __builtin_ctz(rest);
    set_elements(warp, transfer, 1u << lane, bytes + (size_t)lane * inst->flags);
    for (int e = 0; e < transfer->count && warp->has_undefined; e++) {
      undefined_clear(warp, 1u << lane, transfer->slots[e], transfer->slot_sizes[e]);
      undefined_copy(warp, lane, inst->a, (int)inst->flags, (int)inst->immediate + e * transfer->size,
                     transfer->slots[e], transfer->slot_sizes[e], 0, transfer->size);
    }
  }
}

static void store_param(Warp *warp, const Inst *inst, Mask mask) {
  const Transfer *transfer = inst->extra;
  u8 *bytes = SLOT(warp, inst->a, u8) + inst->immediate;
  for (Mask rest = mask; rest; rest &= rest - 1) {
    int lane = __builtin_ctz(rest);
    for (int e = 0; e < transfer->count; e++) {
      get_element(warp, transfer, e, lane, bytes + (size_t)lane * inst->flags + e * transfer->size);
      undefined_copy(warp, lane, transfer->slots[e], transfer->slot_sizes[e], 0, inst->a, (int)inst->flags,
                     (int)inst->immediate + e * transfer->size, transfer->size);
    }
  }
}

// ---- decoding ----

static int vector_length(const PtxInstruction *source) {
  return ptx_has(source, "v2") ? 2 : ptx_has(source, "v4") ? 4 : 1;
}

// The registers of a load or store: one, or as many as the vector has.
static bool decode_elements(Decoder *decoder, const PtxInstruction *source, const PtxOperand *operand, PtxType type,
                            bool is_load, Transfer *transfer) {
  transfer->count = vector_length(source);
  transfer->size = (int)ptx_type_size(type);
  transfer->is_signed = type >= PTX_S8 && type <= PTX_S64;
  bool is_vector = operand->kind == PTX_OPERAND_VECTOR;
  if (type == PTX_PRED || transfer->size == 0) {
    decoder_error(decoder, source, "needs a type such as .b32");
    return false;
  }
  if ((is_vector ? operand->item_count : 1) != transfer->count || transfer->size * transfer->count > MAX_BYTES) {
    decoder_error(decoder, source, "the vector's registers do not match .v%d of .%s", transfer->count,
                  ptx_type_name(type));
    return false;
  }
  for (int e = 0; e < transfer->count; e++) {
    const PtxOperand *element = is_vector ? &operand->items[e] : operand;
    int *size = &transfer->slot_sizes[e];
    transfer->sink[e] = element->kind == PTX_OPERAND_SINK;
    transfer->slots[e] = is_load ? decoder_wide_destination(decoder, element, type, size)
                                 : decoder_wide_source(decoder, element, type, size);
  }
  return !decoder->failed;
}

// ld.param and st.param of a name: no address, but a place known now. False when it is a register's address.
static bool decode_param_place(Decoder *decoder, const PtxInstruction *source, const PtxOperand *address, bool is_load,
                               Inst *inst) {
  const PtxOperand *base = address->kind == PTX_OPERAND_ADDRESS && address->item_count == 1 ? &address->items[0] : NULL;
  if (!base || base->kind != PTX_OPERAND_VARIABLE || !base->variable || base->variable->space != PTX_PARAM)
    return false;
  const Place *place = decoder_place(decoder, base->variable);
  const Transfer *transfer = inst->extra;
  int64_t offset = address->value + base->value, bytes = transfer->size * transfer->count;
  if (!place) return true;
  if (offset < 0 || offset > (int64_t)base->variable->size - bytes) {
    decoder_error(decoder, source, "bytes %lld to %lld are outside %s of %llu bytes", (long long)offset,
                  (long long)(offset + bytes - 1), base->variable->name, (unsigned long long)base->variable->size);
    return true;
  }
  bool is_kernel = !place->stride;
  if (is_kernel && !is_load) decoder_error(decoder, source, "a kernel's parameters cannot be written");
  inst->immediate = offset + (is_kernel ? (int64_t)place->address : 0);
  inst->a = place->slot;
  inst->flags = (uint32_t)place->stride;
  inst->execute = !is_load ? store_param : is_kernel ? load_kernel_param : load_param;
  return true;
}

static const char *const allowed[] = {"weak",
                                      "relaxed",
                                      "acquire",
                                      "release",
                                      "volatile",
                                      "mmio",
                                      "cta",
                                      "cluster",
                                      "gpu",
                                      "sys",
                                      "global",
                                      "shared",
                                      "shared::cta",
                                      "shared::cluster",
                                      "local",
                                      "const",
                                      "param",
                                      "param::entry",
                                      "param::func",
                                      "nc",
                                      "v2",
                                      "v4",
                                      "ca",
                                      "cg",
                                      "cs",
                                      "lu",
                                      "cv",
                                      "wb",
                                      "wt",
                                      "L1::evict_normal",
                                      "L1::evict_unchanged",
                                      "L1::evict_first",
                                      "L1::evict_last",
                                      "L1::no_allocate",
                                      "L2::evict_normal",
                                      "L2::evict_first",
                                      "L2::evict_last",
                                      "L2::cache_hint",
                                      "L2::64B",
                                      "L2::128B",
                                      "L2::256B",
                                      NULL};

static DecodeResult decode_transfer(Decoder *decoder, const PtxInstruction *source, bool is_load, Inst *inst) {
  if (!decoder_operands(decoder, source, 2, 3) || !decoder_modifiers(decoder, source, allowed)) return DECODE_FAILED;
  const PtxOperand *registers = &source->operands[!is_load], *address = &source->operands[is_load];
  Transfer *transfer = decoder_allocate(decoder, sizeof *transfer);
  if (!decode_elements(decoder, source, registers, ptx_instruction_type(source), is_load, transfer))
    return DECODE_FAILED;
  inst->extra = transfer;
  inst->size = (uint8_t)transfer->size;
  transfer->space = space_of(source);
  transfer->order = order_of(source);
  transfer->strength = transfer->order == ORDER_WEAK ? WEAK : scope_of(source);
  if (transfer->space == SPACE_PARAM && decode_param_place(decoder, source, address, is_load, inst))
    return decoder->failed ? DECODE_FAILED : DECODED;
  if (!is_load && (transfer->space == SPACE_CONST || transfer->space == SPACE_PARAM))
    return decoder_error(decoder, source, "this space cannot be written");
  inst->execute = is_load ? execute_ld : execute_st;
  return decode_address_plan(decoder, source, address, transfer->space, &transfer->address);
}

DecodeResult decode_ld(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  return decode_transfer(decoder, source, true, inst);
}

DecodeResult decode_st(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  return decode_transfer(decoder, source, false, inst);
}

// ---- for other files of this room ----

static const Transfer *plain_transfer(const Inst *inst, MemoryUse use) {
  const Transfer *transfer = inst->row->values == VALUES_OF_MEMORY && inst->row->memory == use ? inst->extra : NULL;
  bool reaches_others = transfer && (transfer->space == SPACE_GENERIC || transfer->space == SPACE_GLOBAL ||
                                     transfer->space == SPACE_SHARED);
  return reaches_others && transfer->strength == WEAK ? transfer : NULL;
}

bool is_plain_load(const Inst *inst) { return plain_transfer(inst, MEMORY_LOAD); }
bool is_plain_store(const Inst *inst) { return plain_transfer(inst, MEMORY_STORE); }
bool plain_load_of(const Inst *inst, PlainLoad *load) {
  const Transfer *transfer = inst->extra;
  if (!is_plain_load(inst) || transfer->count != 1 || transfer->sink[0]) return false;
  *load = (PlainLoad){&transfer->address, transfer->size, transfer->slots[0]};
  return true;
}

bool is_weak_access(const Inst *inst) {
  return inst->row->memory == MEMORY_LOAD || inst->row->memory == MEMORY_STORE
             ? inst->row->values == VALUES_OF_MEMORY && ((const Transfer *)inst->extra)->strength == WEAK
             : false;
}

Slot address_register(const Inst *inst) { return ((const Transfer *)inst->extra)->address.slot; }
bool can_judge_load(const Inst *store) { return !((const Transfer *)store->extra)->judges; }

void judge_load_at(Inst *load, Inst *store) {
  ((Transfer *)(uintptr_t)load->extra)->postponed = true;
  ((Transfer *)(uintptr_t)store->extra)->judges = load;
}

// Hints to the caches: without effect on what a program computes.
DecodeResult decode_cache_hint(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  (void)decoder;
  (void)source;
  inst->execute = execute_nothing;
  return DECODED;
}
