// Where ld and st meet bytes that nothing has written, and values that nothing defines: check/undefined.h follows them.
#pragma once

#include "../check/undefined.h"
#include "memory.h"

// Sets undefined[i] to ones where nothing has written the i-th byte of the access; false where all are written.
bool find_unwritten(const Warp *warp, const Access *access, int bytes, uint8_t *undefined);
// A load has found bytes that nothing has written: the registers' values are undefined there.
void note_undefined(Warp *warp, const Inst *inst, Mask mask, const uint64_t addresses[LANES]);
// A store of values that nothing defines. They are padding if the load that brought them brought something else, too: a copy
// of a struct. A thread may also copy its local memory, which nobody else sees. Other stores depend on what was not there.
void store_undefined(Warp *warp, const Inst *inst, Mask mask, const uint64_t addresses[LANES]);
