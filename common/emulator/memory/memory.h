// Reaching memory from an instruction: which space an address is in, whether it may be accessed, where its bytes are.
#pragma once

#include "../check/race.h"
#include "../check/sync_table.h"
#include "../warp/machine.h"
#include "../warp/decoder.h"
#include "../check/region.h"

typedef struct Access {
  uint8_t *data;    // the bytes in the host's memory
  Region *region;   // NULL for local and param memory, which only one thread has
  uint64_t offset;  // in the region
  uint8_t *valid;   // of local memory: per byte, whether it was written
} Access;

typedef enum AccessKind { ACCESS_READ, ACCESS_WRITE, ACCESS_ATOMIC, ACCESS_ATOMIC_VECTOR } AccessKind;

// Address spaces as instructions name them. SPACE_GENERIC finds the window from the address.
typedef enum Space { SPACE_GENERIC, SPACE_GLOBAL, SPACE_SHARED, SPACE_LOCAL, SPACE_CONST, SPACE_PARAM } Space;

// Finds size bytes at the address for one lane. Reports an out-of-bounds or misaligned access and stops the launch;
// false then. alignment: what the address must be a multiple of.
bool memory_find(Warp *warp, const Inst *inst, int lane, Space space, uint64_t address, int size, int alignment,
                 AccessKind kind, Access *access);

// Where one lane of an instruction has found its bytes: others mostly find theirs nearby.
typedef struct Neighbour {
  Region *region;  // NULL: none yet
  uint64_t address, offset;
} Neighbour;

// memory_find for an instruction's lanes one after the other, all with the same size, alignment and kind.
static inline bool memory_find_next(Warp *warp, const Inst *inst, int lane, Space space, uint64_t address, int size,
                                    AccessKind kind, Neighbour *neighbour, Access *access) {
  Region *region = neighbour->region;
  uint64_t offset = neighbour->offset + (address - neighbour->address), bytes = (uint64_t)size;
  if (region && offset < region->size && region->size - offset >= bytes && !(address & (bytes - 1))) {
    *access = (Access){region->data + offset, region, offset, NULL};
    return true;
  }
  if (!memory_find(warp, inst, lane, space, address, size, size, kind, access)) return false;
  *neighbour = (Neighbour){access->region, address, access->offset};
  return true;
}

// Reads bytes through a generic address for the emulator's own use (printf): no hazards. False when they do not exist.
bool memory_peek(const Warp *warp, int lane, uint64_t address, void *bytes, size_t size);

// Global memory is shared by the launch's host threads: hold the lock of a region's piece while using its bytes or its
// shadow. Does nothing for other memory.
void memory_lock(const Access *access);
void memory_unlock(const Access *access);
// The same for several accesses one after the other: holds on to a lock that serves the next one too. *held is NULL at
// first.
typedef struct PageLock PageLock;
void memory_lock_next(PageLock **held, const Access *access);
void memory_unlock_last(PageLock **held);

// The space that the instruction's modifiers name, SPACE_GENERIC when none.
Space space_of(const PtxInstruction *source);
// The memory order that they name: "weak" or nothing is ORDER_WEAK, volatile and mmio count as relaxed.
MemoryOrder order_of(const PtxInstruction *source);
// The scope of a strong access; .sys counts as .gpu, and so does none.
Strength scope_of(const PtxInstruction *source);

// How the lanes of an instruction form their addresses: [register + immediate] or [variable + immediate].
typedef struct AddressPlan {
  Slot slot;
  int64_t offset;
  bool narrow;          // the register is 32 bits wide
  bool frame_relative;  // a .local variable: from the running function's frame
} AddressPlan;

DecodeResult decode_address_plan(Decoder *decoder, const PtxInstruction *source, const PtxOperand *operand, Space space,
                                 AddressPlan *plan);
// Fills addresses[lane] for the lanes of mask.
void form_addresses(Warp *warp, const AddressPlan *plan, Mask mask, uint64_t addresses[LANES]);

// The lanes of mask from the first on that have its address, up to one that has another.
static inline Mask at_one_place(Mask mask, const uint64_t addresses[LANES]) {
  uint64_t address = addresses[__builtin_ctz(mask)];
  Mask next = mask & (mask - 1), others = 0;
  if (!next || addresses[__builtin_ctz(next)] != address) return mask & -mask;
  for (int lane = 0; lane < LANES; lane++) others |= (Mask)(addresses[lane] != address) << lane;
  others &= mask;
  return others ? mask & ((others & -others) - 1) : mask;
}

// An address of global memory where there is nothing: what it seems to be instead.

typedef struct StrayText {
  char text[800];
} StrayText;

// The text of the report, with its advice. near: the closest allocation, or NULL when there is none. of_tensor: whether
// the address follows from a tensor map.
StrayText stray_text(const Launch *launch, uint64_t address, int size, const Region *near, bool of_tensor);
