// Weak loads and stores by lanes of a warp. Lanes at one place, or at places one after the other, are served together:
// a row. Without rows shared loads are twelve times, and global stores nineteen times slower (make bench-emulator).
#pragma once

#include "memory.h"

// The lanes of mask load or store at their addresses what inst, an ld or st, transfers.
void weak_load(Warp *warp, const Inst *inst, Mask mask, const uint64_t addresses[LANES]);
void weak_store(Warp *warp, const Inst *inst, Mask mask, const uint64_t addresses[LANES]);
