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

// What the lanes alike do, and how the events that were met last come before it.
typedef struct Scatter {
  Epoch own, write, read;
  Comes write_comes, read_comes;
  uint32_t launch;
} Scatter;

// A loop mostly comes back to elements that its lanes have accessed before: that event counts as met from the start.
static inline Scatter race_scatter(const RowActor *row) {
  Epoch own = actor_epoch(&row->actor) & ~LANE_MASK;
  return (Scatter){own, own, own, COMES_OWN, COMES_OWN, row->actor.cluster->launch->number};
}

// race_read_by and race_write_by of one of the lanes alike, at a place that is aligned and so inside a page. False when
// it is not as simple as that: then nothing was done.
bool race_read_lane(Scatter *scatter, const RowActor *row, Region *region, uint64_t offset, int lane, int size);
bool race_write_lane(Scatter *scatter, const RowActor *row, Region *region, uint64_t offset, int lane, int size);

// The commonest case of those two, and the only one that is inline, so that a loop over lanes keeps what it needs in
// registers: the element is one unit, and its last accesses are by events that were met last, or by the host.

ALWAYS_INLINE bool lane_comes_after(Comes comes, unsigned mark, int lane) {
  return comes == COMES_ALL || (comes == COMES_OWN && (mark & LANE_MASK) == (unsigned)lane);
}

// NULL when the launch has not touched the page, or its units are of another size.
ALWAYS_INLINE ShadowPage *page_of_units(const Scatter *scatter, const Region *region, uint64_t offset, int size) {
  ShadowPage *page = region->shadow.pages[offset >> SHADOW_PAGE_SHIFT];
  return page && page->launch == scatter->launch && 1 << page->unit == size ? page : NULL;
}

ALWAYS_INLINE bool is_met(const ShadowPage *page, unsigned mark, Epoch met, Comes comes, int lane) {
  return page->events[mark >> LANE_BITS] == met && lane_comes_after(comes, mark, lane);
}

ALWAYS_INLINE bool race_read_unit(const Scatter *scatter, Region *region, uint64_t offset, int lane, int size) {
  ShadowPage *page = page_of_units(scatter, region, offset, size);
  if (!page) return false;
  Mark *write = page->marks + (int)(offset & (SHADOW_PAGE - 1)) / size, *read = write + page->size / size;
  unsigned wrote = *write, has_read = *read;
  if (wrote != EPOCH_HOST && !is_met(page, wrote, scatter->write, scatter->write_comes, lane)) return false;
  if (has_read > LANE_MASK && !is_met(page, has_read, scatter->read, scatter->read_comes, lane)) return false;
  *read = mark_of_event(&region->shadow, page, scatter->own, (unsigned)lane);
  return true;
}

ALWAYS_INLINE bool race_write_unit(const Scatter *scatter, Region *region, uint64_t offset, int lane, int size) {
  ShadowPage *page = page_of_units(scatter, region, offset, size);
  if (!page || page->foreign || page->size == size) return false;
  Mark *write = page->marks + (int)(offset & (SHADOW_PAGE - 1)) / size, *read = write + page->size / size;
  if (*write > LANE_MASK && !is_met(page, *write, scatter->write, scatter->write_comes, lane)) return false;
  if (*read > LANE_MASK && !is_met(page, *read, scatter->read, scatter->read_comes, lane)) return false;
  *write = mark_of_event(&region->shadow, page, scatter->own, (unsigned)lane);
  *read = 0;
  return true;
}
