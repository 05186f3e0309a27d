// How an instruction or an operation accesses memory: its bytes are found, locked, checked and moved. Weak loads and
// stores, most of what a kernel does, have a way of their own: they are served in rows (load_store.h).
#pragma once

#include <string.h>

#include "memory.h"

// ---- by the lanes of an instruction ----

// The places that the lanes of an instruction access, one after the other. The current one is locked.
typedef struct LanePlaces {
  Warp *warp;
  const Inst *inst;
  Space space;
  int bytes;  // that each lane accesses: a power of two, of which its address is a multiple
  AccessKind kind;
  const uint64_t *addresses;
  Mask left;  // the lanes to come; at first all
  Neighbour neighbour;
  // the current place
  Access at;
  Mask lanes;  // that access it together: those that read one place of a region; else a lane is alone
  int lane;    // the first of them
} LanePlaces;

// Unlocks the current place and goes on to the next: for (LanePlaces place = {...}; next_place(&place);). False after
// the last one, and after a report that stops the launch.
static inline bool next_place(LanePlaces *place) {
  if (place->lanes) memory_unlock(&place->at);
  place->lanes = 0;
  if (!place->left) return false;
  int lane = __builtin_ctz(place->left);
  if (!memory_find_next(place->warp, place->inst, lane, place->space, place->addresses[lane], place->bytes, place->kind,
                        &place->neighbour, &place->at))
    return false;
  bool alone = place->kind != ACCESS_READ || !place->at.region;
  place->lanes = alone ? place->left & -place->left : at_one_place(place->left, place->addresses);
  place->left &= ~place->lanes;
  place->lane = lane;
  memory_lock(&place->at);
  return true;
}

// memcpy of a size that is nearly always one of these: a move, not a call.
static inline void copy_bytes(uint8_t *to, const uint8_t *from, int size) {
  switch (size) {
  case 2: memcpy(to, from, 2); break;
  case 4: memcpy(to, from, 4); break;
  case 8: memcpy(to, from, 8); break;
  case 16: memcpy(to, from, 16); break;
  default: memcpy(to, from, (size_t)size);
  }
}

// Writes bytes that are locked and checked. A change of memory that others see is progress.
static inline void store_bytes(Warp *warp, const Access *access, const uint8_t *value, int bytes) {
  if (access->valid) memset(access->valid, 1, (size_t)bytes);
  if (!memcmp(access->data, value, (size_t)bytes)) return;
  copy_bytes(access->data, value, bytes);
  if (access->region) warp->block->cluster->progress++;
}

// ---- of any size, by a lane or an operation, one piece after the other that a lock covers ----

// Reads bytes [offset, offset + size) of the region. actor: who does, NULL if nothing is to be checked; bytes: where
// they go, NULL if they are not to be moved, because an operation that was issued now reads them later.
void access_read(const Actor *actor, Region *region, uint64_t offset, void *bytes, uint64_t size);
// The same of a write. Returns whether it has changed the memory.
bool access_write(const Actor *actor, Region *region, uint64_t offset, const void *bytes, uint64_t size);

// How a reduction changes memory: element by element.
typedef void AccessChange(uint8_t *memory, const uint8_t *bytes, uint32_t size, const void *how);
void access_change(Region *region, uint64_t offset, const void *bytes, uint64_t size, AccessChange *change,
                   const void *how);

// A weak read and a weak write by a lane, found by memory_find in a region. A write that changes memory is progress.
void access_read_lane(Warp *warp, const Inst *inst, int lane, const Access *access, void *bytes, uint64_t size);
void access_write_lane(Warp *warp, const Inst *inst, int lane, const Access *access, const void *bytes, uint64_t size);

// ---- access_counts.c ----

// What an access of a warp counts as: requests, bank conflicts, sectors.

enum { SECTOR_BYTES = 32 };  // what memory outside an SM is reached in

// Counts one warp access: bank conflicts of shared, sectors of global memory.
void count_access(Warp *warp, const Inst *inst, Space space, Mask mask, const uint64_t addresses[LANES], int size,
                  AccessKind kind);
// The same of an atomic operation that is a loop of compare-and-swap where it reaches the own block's shared memory.
void count_atomic_loop(Warp *warp, const Inst *inst, Space space, Mask mask, const uint64_t addresses[LANES], int size);
// The same where lane 8 * i + r gives the address of row r of matrix i, 16 bytes: shared memory serves a matrix at a
// time.
void count_matrix_rows(Warp *warp, const Inst *inst, Space space, Mask mask, const uint64_t addresses[LANES],
                       AccessKind kind);
// In how many wavefronts shared memory serves lanes that it takes together, `size` bytes each.
unsigned shared_wavefronts(Mask mask, const uint64_t addresses[LANES], int size);
