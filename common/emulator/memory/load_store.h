// What other files of this room ask of a decoded ld or st.
#pragma once

#include "../report/undefined.h"
#include "memory.h"

struct Transfer;  // transfer.h

// A weak ld or st of memory that other threads reach.
bool is_plain_load(const Inst *inst);
bool is_plain_store(const Inst *inst);
// A weak ld or st of any memory.
bool is_weak_access(const Inst *inst);
// The register of its address.
Slot address_register(const Inst *inst);
// The store is where the load is judged: passes.h. False when it is already that of another load.
bool can_judge_load(const Inst *store);
void judge_load_at(Inst *load, Inst *store);

typedef struct PlainLoad {
  const AddressPlan *address;
  int size;  // bytes
  Slot to;
} PlainLoad;

// A plain load of one register. False if the instruction is none.
bool plain_load_of(const Inst *inst, PlainLoad *load);

// ---- values that nothing defines ----

// Sets undefined[i] to ones where nothing has written the i-th byte of the access; false where all are written.
bool find_unwritten(const Warp *warp, const Access *access, int bytes, uint8_t *undefined);
// A load has found bytes that nothing has written: the registers' values are undefined there.
void note_undefined(Warp *warp, const Inst *inst, const struct Transfer *transfer, Mask mask,
                    const uint64_t addresses[LANES]);
// A store of values that nothing defines. They are padding if the load that brought them brought something else, too: a
// copy of a struct. A thread may also copy its local memory, which nobody else sees. Other stores depend on what was
// not there.
void store_undefined(Warp *warp, const Inst *inst, Mask mask, const uint64_t addresses[LANES]);

// ---- weak_access.c ----

// Weak loads and stores by lanes of a warp. Lanes at one place, or at places one after the other, are served together:
// a row. Without rows shared loads are twelve times, and global stores nineteen times slower (make bench-emulator).

// The lanes of mask load or store at their addresses what inst, an ld or st, transfers; or a part of that.
void weak_load(Warp *warp, const Inst *inst, const struct Transfer *transfer, Mask mask,
               const uint64_t addresses[LANES]);
void weak_store(Warp *warp, const Inst *inst, Mask mask, const uint64_t addresses[LANES]);
