// Rows: lanes of a warp one after the other that access elements one after the other, as a coalesced access does. What race.h
// does for one lane after another is done for a row at once where all that it depends on follows the lanes: they share a
// clock and know the same, and what shadow memory remembers of their elements differs in nothing but the lane. Then one
// comparison with what the first lane knows stands for all. Whatever else there may be, a report above all, is left to
// race.h.
#pragma once

#include "../parse/float_bits.h"
#include "race.h"

typedef struct RowActor {
  Actor actor;  // one of the lanes
  Mask alike;   // those that know the same
  bool lane_by_lane;
} RowActor;

// The lanes that execute inst, a weak access; lane is one of them.
void race_row(RowActor *row, Warp *warp, const Inst *inst, int lane);
// Checks and remembers reads or writes by `count` lanes from `lane` on: of `size` bytes each, one after the other from the
// offset on, on one page. Returns how many lanes are done, at least one. value: what the first of them writes, and after it
// the others.
int race_read_row(RowActor *row, Region *region, uint64_t offset, int lane, int count, int size);
int race_write_row(RowActor *row, Region *region, uint64_t offset, int lane, int count, int size, const uint8_t *value);
// The same of a read of one place by the lanes of mask, the first of which is lane.
void race_read_together(RowActor *row, Region *region, uint64_t offset, Mask mask, int size);

// ---- lanes far from each other ----

// Whether accesses with an event come before those of the lanes: all of them; a lane's own; or race.h has to find out, for
// another cluster has made them or because it is less simple.
typedef enum Comes { COMES_UNKNOWN, COMES_ELSEWHERE, COMES_OWN, COMES_ALL } Comes;
Comes race_judge(const RowActor *row, Epoch event);

// What the lanes alike do, and how the events that were met last come before it. It stays in a function's registers.
typedef struct Scatter {
  Epoch own, write, read;
  Comes write_comes, read_comes;
  uint32_t launch;
} Scatter;

static inline Scatter race_scatter(const RowActor *row) {
  return (Scatter){.own = race_epoch(&row->actor) & ~LANE_MASK, .launch = row->actor.cluster->launch->number};
}

ALWAYS_INLINE bool comes_before(const RowActor *row, Epoch event, Epoch *met, Comes *comes, Mark mark, int lane) {
  if (*met != event) {
    *met = event;
    *comes = race_judge(row, event);
  }
  return *comes == COMES_ALL || (*comes == COMES_OWN && (mark & LANE_MASK) == (unsigned)lane);
}

// What shadow memory has of a lane's element.
typedef struct LaneCells {
  ShadowPage *page;
  Mark *write, *read;  // units of them
  int units;
} LaneCells;

// False when the element's bytes do not have equal cells, or larger ones. It is aligned, so it is inside a page. One unit, the
// commonest, needs no loops.
ALWAYS_INLINE bool scattered_cells(LaneCells *cells, const Scatter *scatter, const Region *region, uint64_t offset,
                                   int size) {
  ShadowPage *page = region->shadow.pages[offset >> SHADOW_PAGE_SHIFT];
  if (!page || page->launch != scatter->launch) return false;
  int units = units_of(page, size);
  if (!units) return false;
  Mark *write = write_marks(page, offset), *read = write + units_of(page, page->size);
  *cells = (LaneCells){page, write, read, units};
  return units == 1 || (are_marks(write, units, *write) && are_marks(read, units, *read));
}

ALWAYS_INLINE void set_scattered(Mark *marks, int units, Mark mark) {
  if (units == 1)
    *marks = mark;
  else
    set_marks(marks, units, mark);
}

// race_read_by and race_write_by of one of the lanes alike, in the simplest case. False when it is not that: then nothing was
// done.
ALWAYS_INLINE bool race_read_lane(Scatter *scatter, const RowActor *row, Region *region, uint64_t offset, int lane,
                                  int size) {
  LaneCells cells;
  if (!scattered_cells(&cells, scatter, region, offset, size)) return false;
  ShadowPage *page = cells.page;
  Mark write = *cells.write, read = *cells.read;
  Epoch event = page->events[write >> LANE_BITS];
  if (event ? !comes_before(row, event, &scatter->write, &scatter->write_comes, write, lane) : write != EPOCH_HOST)
    return false;
  event = page->events[read >> LANE_BITS];
  if (event && !comes_before(row, event, &scatter->read, &scatter->read_comes, read, lane)) {
    if (scatter->read_comes != COMES_ELSEWHERE || !page->foreign) return false;
    set_scattered(foreign_marks(page, offset), cells.units, read);
  }
  Mark mark = mark_of_epoch(&region->shadow, page, scatter->own | (unsigned)lane);
  set_scattered(cells.read, cells.units, mark);
  return true;
}

ALWAYS_INLINE bool race_write_lane(Scatter *scatter, const RowActor *row, Region *region, uint64_t offset, int lane,
                                   int size) {
  LaneCells cells;
  if (!scattered_cells(&cells, scatter, region, offset, size)) return false;
  ShadowPage *page = cells.page;
  if (page->foreign || size == page->size) return false;
  Mark write = *cells.write, read = *cells.read;
  Epoch event = page->events[write >> LANE_BITS];
  if (event && !comes_before(row, event, &scatter->write, &scatter->write_comes, write, lane)) return false;
  event = page->events[read >> LANE_BITS];
  if (event && !comes_before(row, event, &scatter->read, &scatter->read_comes, read, lane)) return false;
  Mark mark = mark_of_epoch(&region->shadow, page, scatter->own | (unsigned)lane);
  if (read) set_scattered(cells.read, cells.units, 0);
  set_scattered(cells.write, cells.units, mark);
  return true;
}
