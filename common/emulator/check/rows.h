// Rows: lanes of a warp one after the other that access elements one after the other, as a coalesced access does. What race.h
// does for one lane after another is done for a row at once where all that it depends on follows the lanes: they share a
// clock and know the same, and what shadow memory remembers of their elements differs in nothing but the lane. Then one
// comparison with what the first lane knows stands for all. Whatever else there may be, a report above all, is left to
// race.h.
#pragma once

#include "race.h"

typedef struct RowActor {
  Actor actor;  // one of the lanes
  Mask alike;   // those that know the same
} RowActor;

// The lanes that execute inst, a weak access; lane is one of them.
RowActor race_row(Warp *warp, const Inst *inst, int lane);
// Checks and remembers reads or writes by `count` lanes from `lane` on: of `size` bytes each, one after the other from the
// offset on, on one page. Returns how many lanes are done, at least one. value: what the first of them writes, and after it
// the others.
int race_read_row(RowActor *row, Region *region, uint64_t offset, int lane, int count, int size);
int race_write_row(RowActor *row, Region *region, uint64_t offset, int lane, int count, int size, const uint8_t *value);
