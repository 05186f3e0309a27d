// One access to memory, of any size, by a lane or an operation: it is checked, and its bytes are moved, one piece after
// the other that a lock covers. What many lanes load and store at a time has a way of its own: weak_access.h.
#pragma once

#include "memory.h"

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
