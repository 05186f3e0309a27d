// Rows: lanes of a warp one after the other that access elements one after the other, as a coalesced access does. What
// race.h does for one lane after another is done for a row at once where all that it depends on follows the lanes: they
// share a clock and know the same, and what shadow memory remembers of their elements differs in nothing but the lane.
// Then one comparison with what the first lane knows stands for all. Whatever else there may be, a report above all, is
// left to race.h.
#pragma once

#include "../host/host_memory.h"
#include "race.h"

typedef struct RowActor {
  Actor actor;  // one of the lanes
  Mask alike;   // those that know the same
  bool lane_by_lane;
} RowActor;

// The lanes of mask, which execute a weak access.
void race_row(RowActor *row, CheckWarp *warp, uint32_t pc, Mask mask);
// Checks and remembers reads or writes by `count` lanes from `lane` on: of `size` bytes each, one after the other from
// the offset on, on one page. Returns how many lanes are done, at least one. value: what the first of them writes, and
// after it the others.
int race_read_row(RowActor *row, Region *region, uint64_t offset, int lane, int count, int size);
int race_write_row(RowActor *row, Region *region, uint64_t offset, int lane, int count, int size, const uint8_t *value);
// The same of a read of one place by the lanes of mask, the first of which is lane.
void race_read_together(RowActor *row, Region *region, uint64_t offset, Mask mask, int size);

// ---- lanes far from each other ----

// Whether accesses with an event come before those of the lanes: all of them; a lane's own; or race.h has to find out,
// for another cluster has made them or because it is less simple.
typedef enum Comes { COMES_UNKNOWN, COMES_ELSEWHERE, COMES_OWN, COMES_ALL } Comes;
Comes race_judge(const RowActor *row, Epoch event);

// What the lanes alike do, and how the events that were met last come before it. It stays in a function's registers.
typedef struct Scatter {
  Epoch own, write, read;
  Comes write_comes, read_comes;
  uint32_t launch;
} Scatter;

static inline Scatter race_scatter(const RowActor *row) {
  return (Scatter){.own = actor_epoch(&row->actor) & ~LANE_MASK, .launch = row->actor.cluster->launch->number};
}

ALWAYS_INLINE bool event_comes_before(const RowActor *row, Epoch event, Epoch *met, Comes *comes, Mark mark, int lane) {
  if (*met != event) {
    *met = event;
    *comes = race_judge(row, event);
  }
  return *comes == COMES_ALL || (*comes == COMES_OWN && (mark & LANE_MASK) == (unsigned)lane);
}

// What shadow memory has of a lane's element, which is aligned and so inside a page.
typedef struct LaneCells {
  ShadowPage *page;    // NULL: this launch has not touched it
  Mark *write, *read;  // units of them
  int units;           // 0: larger than the element
} LaneCells;

ALWAYS_INLINE LaneCells scattered_cells(const Scatter *scatter, const Region *region, uint64_t offset, int size) {
  ShadowPage *page = region->shadow.pages[offset >> SHADOW_PAGE_SHIFT];
  if (!page || page->launch != scatter->launch) return (LaneCells){0};
  int place = (int)(offset & (SHADOW_PAGE - 1));
  if (1 << page->unit == size) {  // the commonest: with a constant size these are no divisions
    Mark *write = page->marks + place / size;
    return (LaneCells){page, write, write + page->size / size, 1};
  }
  Mark *write = write_marks(page, offset);
  return (LaneCells){page, write, write + units_of(page, page->size), units_of(page, size)};
}

// race_read_by and race_write_by of one of the lanes alike, in the simplest case: of an element that is one unit, the
// commonest, here; of several with equal cells in functions. False when it is not that: then nothing was done. By
// value, because what a pointer leads to does not stay in registers.
bool race_read_units(Scatter scatter, const RowActor *row, Region *region, uint64_t offset, int lane, LaneCells cells);
bool race_write_units(Scatter scatter, const RowActor *row, Region *region, int lane, LaneCells cells);

// *foreign: another cluster's read has to go to the page's foreign marks.
ALWAYS_INLINE bool race_may_read(Scatter *scatter, const RowActor *row, const LaneCells *cells, int lane,
                                 bool *foreign) {
  const ShadowPage *page = cells->page;
  Mark write = *cells->write, read = *cells->read;
  Epoch event = page->events[write >> LANE_BITS];
  if (event ? !event_comes_before(row, event, &scatter->write, &scatter->write_comes, write, lane)
            : write != EPOCH_HOST)
    return false;
  event = page->events[read >> LANE_BITS];
  *foreign = event && !event_comes_before(row, event, &scatter->read, &scatter->read_comes, read, lane);
  return !*foreign || (scatter->read_comes == COMES_ELSEWHERE && page->foreign);
}

ALWAYS_INLINE bool race_may_write(Scatter *scatter, const RowActor *row, const LaneCells *cells, int lane) {
  const ShadowPage *page = cells->page;
  Mark write = *cells->write, read = *cells->read;
  if (page->foreign) return false;
  Epoch event = page->events[write >> LANE_BITS];
  if (event && !event_comes_before(row, event, &scatter->write, &scatter->write_comes, write, lane)) return false;
  event = page->events[read >> LANE_BITS];
  return !event || event_comes_before(row, event, &scatter->read, &scatter->read_comes, read, lane);
}

ALWAYS_INLINE bool race_read_lane(Scatter *scatter, const RowActor *row, Region *region, uint64_t offset, int lane,
                                  int size) {
  LaneCells cells = scattered_cells(scatter, region, offset, size);
  if (cells.units != 1) return cells.units && race_read_units(*scatter, row, region, offset, lane, cells);
  bool foreign;
  if (!race_may_read(scatter, row, &cells, lane, &foreign)) return false;
  if (foreign) *foreign_marks(cells.page, offset) = *cells.read;
  *cells.read = mark_of_epoch(&region->shadow, cells.page, scatter->own | (unsigned)lane);
  return true;
}

ALWAYS_INLINE bool race_write_lane(Scatter *scatter, const RowActor *row, Region *region, uint64_t offset, int lane,
                                   int size) {
  LaneCells cells = scattered_cells(scatter, region, offset, size);
  if (cells.units != 1) return cells.units && race_write_units(*scatter, row, region, lane, cells);
  if (size == cells.page->size || !race_may_write(scatter, row, &cells, lane)) return false;
  Mark mark = mark_of_epoch(&region->shadow, cells.page, scatter->own | (unsigned)lane);
  *cells.read = 0;
  *cells.write = mark;
  return true;
}
