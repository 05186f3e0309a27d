// What an ld or st transfers: its elements, in registers and in memory.
#pragma once

#include <string.h>

#include "../warp/lanes.h"
#include "../warp/warp.h"
#include "access.h"

enum { MAX_VECTOR = 4, MAX_BYTES = 16, MAX_PARTS = 2 };

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
  // Of a weak load of a vector, where some elements are dead: what is loaded instead (dead_elements.c).
  struct Transfer *parts;  // room for MAX_PARTS
  int part_count;
  int offset;          // of a part: bytes after the address of the whole
  bool postponed;      // of a load: a store judges it
  const Inst *judges;  // of a store: the load that it judges, or NULL
} Transfer;

// ---- elements between memory and registers ----

static inline uint64_t read_bytes(const u8 *from, int size) {
  uint64_t value = 0;
  memcpy(&value, from, (size_t)size);
  return value;
}

static inline uint64_t extend(uint64_t value, int size, bool is_signed) {
  int shift = 64 - 8 * size;
  return is_signed ? (uint64_t)((int64_t)(value << shift) >> shift) : value;
}

static inline void set_element(Warp *warp, const Transfer *transfer, int e, int lane, const u8 *bytes) {
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

static inline void get_element(Warp *warp, const Transfer *transfer, int e, int lane, u8 *bytes) {
  const u8 *slot = SLOT(warp, transfer->slots[e], u8) + lane * transfer->slot_sizes[e];
  copy_bytes(bytes, slot, transfer->size);
}

static inline void set_elements(Warp *warp, const Transfer *transfer, Mask lanes, const u8 *bytes) {
  for (Mask rest = lanes; rest; rest &= rest - 1)
    for (int e = 0; e < transfer->count; e++)
      set_element(warp, transfer, e, __builtin_ctz(rest), bytes + e * transfer->size);
}

// The same, faster: many lanes read one place.
static inline void spread_elements(Warp *warp, const Transfer *transfer, Mask lanes, const u8 *bytes) {
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
  if (count > 1 && from_step == size && to_step == size && size * count == 4 * LANES)
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

static inline void load_row(Warp *warp, const Transfer *transfer, int lane, int count, const u8 *bytes) {
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

static inline void gather_row(Warp *warp, const Transfer *transfer, int lane, int count, u8 *bytes) {
  int size = transfer->size, step = size * transfer->count;
  for (int e = 0; e < transfer->count; e++) {
    int slot_size = transfer->slot_sizes[e];
    const u8 *slot = SLOT(warp, transfer->slots[e], u8) + lane * slot_size;
    copy_elements(bytes + e * size, step, slot, slot_size, size, count);
  }
}

// Local memory is a thread's own: nothing to race with, but it may be read before it was written.
static inline void check_local(Warp *warp, const Access *access, int bytes) {
  for (int i = 0; i < bytes; i++) warp->found_unwritten |= !access->valid[i];
}
