// Values that nothing defines: what a load finds where nothing was written, and what a shuffle returns from a lane that
// is not there. Such a value does no harm until something depends on it. A struct has padding, a vector load may have a
// register that nobody reads, and a select may discard what was loaded. So the value is followed from register to
// register, bit by bit, and reported where something depends on it: a branch, an address, memory that others read.
//
// The idea is that of Valgrind's memcheck (Seward and Nethercote, USENIX 2005). How the bits of a result depend on
// those of the operands is found by experiment: the instruction is executed again with other bits in the place of the
// undefined ones, and result bits that change are undefined.
//
// A warp pays for this only while one of its registers holds such a value.
#pragma once

#include "../warp/machine.h"
#include "../check/region.h"

// Where a value that nothing defines comes from.
typedef enum UndefinedKind { UNWRITTEN, UNWRITTEN_LOCAL, SHUFFLED } UndefinedKind;

typedef struct UndefinedSource {
  UndefinedKind kind;
  const struct Region *region;  // of a load, and its first undefined byte there
  uint64_t offset;
  uint64_t address;  // of the load
  int size;          // its bytes; of a shuffle the lane that it reads from
  bool whole;  // all that this thread's load brought is undefined; else the rest may be padding, which may be copied
} UndefinedSource;

// In the place of inst->execute while warp->has_undefined. lanes come to the instruction, those of exec execute it.
void undefined_execute(Warp *warp, const Inst *inst, Mask lanes, Mask exec);

// For ld, st and shfl.

// The lane's element in the slot, of size bytes, has the undefined bits that are set in `bits`; NULL: all of them.
void undefined_add(Warp *warp, const Inst *inst, int lane, const UndefinedSource *source, Slot slot, int size,
                   const uint8_t *bits);
// The lanes' elements in the slot are defined.
void undefined_clear(Warp *warp, Mask lanes, Slot slot, int size);
// Reports lanes for which the instruction depends on an undefined element in the slot.
void undefined_use(Warp *warp, const Inst *inst, Mask lanes, Slot slot, int size);
// The undefined bits of a lane's element, which the instruction stores, to local memory or elsewhere; NULL when there
// are none, or when the instruction depends on them: then it is reported.
const uint8_t *undefined_store(Warp *warp, const Inst *inst, int lane, Slot slot, int size, bool to_local);
// A lane's bytes go from one place among the registers to another, each `stride` bytes for a lane: a function's
// parameters.
void undefined_copy(Warp *warp, int lane, Slot from, int from_stride, int from_offset, Slot to, int to_stride,
                    int to_offset, int size);
void undefined_free(struct Undefined *undefined);

// The text of a report on bytes that nothing has written.

typedef struct UnwrittenText {
  char text[HAZARD_DETAIL];
} UnwrittenText;

// With its advice. The load reads the region from the offset on. use: words on where the value is used, or "".
UnwrittenText unwritten_text(const Launch *launch, const Inst *load, const Region *region, uint64_t offset,
                             const char *use);
