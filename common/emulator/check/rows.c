// Rows of accesses: see rows.h.
#include "rows.h"

#include <string.h>

#include "last_reads.h"
#include "order.h"
#include "overlap.h"

// The lanes that know the same as the actor.
static void find_alike_lanes(RowActor *row) { row->alike = race_alike(row->actor.warp, row->actor.lane); }

void race_row(RowActor *row, CheckWarp *warp, uint32_t pc, Mask mask) {
  row->actor = actor_of_lane(warp, pc, __builtin_ctz(mask), WEAK);
  row->lane_by_lane = warp->cluster->launch->lane_by_lane || overlap_concerns(warp, mask);
  find_alike_lanes(row);
}

// The row's first lane becomes the actor. Returns how many of the lanes from it on know the same.
static int begin_row(RowActor *row, int lane, int count) {
  actor_set_lane(&row->actor, lane);
  if (!(row->alike >> lane & 1)) find_alike_lanes(row);
  Mask others = ~row->alike >> lane;
  int alike = row->lane_by_lane ? 1 : others ? __builtin_ctz(others) : LANES;
  return count < alike ? count : alike;
}

// What shadow memory has of a row's elements.
typedef struct RowCells {
  ShadowPage *page;
  int units;  // of an element
  Mark *write_marks, *read_marks;
  RowMarks write, read;
} RowCells;

// Finds the elements' cells. Returns for how many lanes they are a row, or 0.
static int find_cells(RowCells *cells, Shadow *shadow, uint64_t offset, uint32_t launch, int count, int size) {
  if ((offset & (SHADOW_PAGE - 1)) + (uint64_t)(count * size) > SHADOW_PAGE) return 0;
  cells->page = shadow_page(shadow, offset, size, launch);
  if (!cells->page) cells->page = shadow_make_page(shadow, offset, size, launch);
  cells->units = units_of(cells->page, size);
  cells->write_marks = write_marks(cells->page, offset);
  cells->read_marks = read_marks(cells->page, offset);
  count = find_row(cells->write_marks, cells->units, count, &cells->write);
  return count ? find_row(cells->read_marks, cells->units, count, &cells->read) : 0;
}

static bool is_of_own_cluster(const Actor *actor, Epoch epoch) {
  return epoch_cluster(actor->layout, epoch) == actor->cluster->id;
}

// Whether single accesses by threads of the cluster come before those of the row: `epoch` before the first lane's. With
// step 1 the others' are by the threads that follow, else by the same one.
static bool come_before(const Actor *actor, Epoch epoch, unsigned step, int count) {
  uint32_t thread = epoch_thread(actor->layout, epoch);
  if (thread == actor->thread && (step || count == 1)) return true;
  return actor->known && clocks_reach(actor->known, thread, step ? count : 1, epoch_clock(actor->layout, epoch));
}

static bool writes_come_before(const Actor *actor, Epoch write, unsigned step, int count) {
  if (!(write & EPOCH_KERNEL)) return true;
  return is_of_own_cluster(actor, write) && come_before(actor, write, step, count);
}

// ---- reads ----

// Returns the epoch to remember for the first lane's read, or EPOCH_NONE when the reads do not form a row.
static Epoch reads_with_row(const Actor *actor, Epoch read, unsigned step, int count) {
  if (read == EPOCH_NONE || !is_of_own_cluster(actor, read)) return actor_epoch(actor);
  if (!(read & EPOCH_SET) && come_before(actor, read, step, count)) return actor_epoch(actor);
  return last_reads_add(actor, 1u << actor->lane, read, step, count);
}

// False when it is not as simple as that. *count: for how many lanes that is said.
static bool read_row(const Actor *actor, Region *region, uint64_t offset, int *count, int size) {
  RowCells cells;
  Shadow *shadow = &region->shadow;
  int found = find_cells(&cells, shadow, offset, actor->cluster->launch->number, *count, size);
  *count = found ? found : 1;
  if (!found) return false;
  Epoch write = epoch_of_mark(cells.page, cells.write.first), read = epoch_of_mark(cells.page, cells.read.first);
  if (write == EPOCH_NONE || !writes_come_before(actor, write, cells.write.step, found)) return false;
  bool foreign = read != EPOCH_NONE && !is_of_own_cluster(actor, read);
  if (foreign && !cells.page->foreign) {
    *count = 1;
    return false;
  }
  Epoch next = reads_with_row(actor, read, cells.read.step, found);
  if (next == EPOCH_NONE) {
    *count = 1;
    return false;
  }
  RowMarks marks = {mark_of_epoch(shadow, cells.page, next), 1};
  if (foreign)
    memcpy(foreign_marks(cells.page, offset), cells.read_marks, (size_t)(found * cells.units) * sizeof(Mark));
  set_row(cells.read_marks, cells.units, found, marks);
  last_reads_keep(actor->cluster, region, next);
  return true;
}

int race_read_row(RowActor *row, Region *region, uint64_t offset, int lane, int count, int size) {
  count = begin_row(row, lane, count);
  if (!row->lane_by_lane && read_row(&row->actor, region, offset, &count, size)) return count;
  for (int i = 0; i < count; i++) {
    actor_set_lane(&row->actor, lane + i);
    race_read_by(&row->actor, region, offset + (uint64_t)(i * size), size);
  }
  return count;
}

static bool read_together(const Actor *actor, Region *region, uint64_t offset, Mask mask, int size) {
  Shadow *shadow = &region->shadow;
  ShadowPage *page = shadow_page(shadow, offset, size, actor->cluster->launch->number);
  if (!page) return false;
  Mark *writes = write_marks(page, offset), *reads = read_marks(page, offset);
  int units = units_of(page, size);
  if (!are_marks(writes, units, *writes) || !are_marks(reads, units, *reads)) return false;
  Epoch write = epoch_of_mark(page, *writes), read = epoch_of_mark(page, *reads);
  if (write == EPOCH_NONE ||
      (write != EPOCH_HOST && (!is_of_own_cluster(actor, write) || !come_before(actor, write, 0, 0))))
    return false;
  bool foreign = read != EPOCH_NONE && !is_of_own_cluster(actor, read);
  if (foreign && !page->foreign) return false;
  if (foreign) read = EPOCH_NONE;
  if (!(read & EPOCH_SET) && read != EPOCH_NONE && come_before(actor, read, 0, 1)) read = EPOCH_NONE;
  Epoch next = last_reads_add(actor, mask, read, 0, 1);
  Mark mark = mark_of_epoch(shadow, page, next);
  if (foreign) set_marks(foreign_marks(page, offset), units, *reads);
  set_marks(reads, units, mark);
  last_reads_keep(actor->cluster, region, next);
  return true;
}

void race_read_together(RowActor *row, Region *region, uint64_t offset, Mask mask, int size) {
  Actor *actor = &row->actor;
  begin_row(row, __builtin_ctz(mask), 1);
  bool alike = !row->lane_by_lane && (mask & ~row->alike) == 0;
  if (alike && read_together(actor, region, offset, mask, size)) return;
  race_read(actor->warp, actor_pc(actor), mask, region, offset, size, WEAK);
}

// ---- writes ----

static bool reads_come_before(const Actor *actor, Epoch read, unsigned step, int count) {
  if (read == EPOCH_NONE) return true;
  if (!is_of_own_cluster(actor, read)) return false;
  return read & EPOCH_SET ? last_reads_known(actor, read, step, count) : come_before(actor, read, step, count);
}

// As read_row.
static bool write_row(const Actor *actor, Region *region, uint64_t offset, int *count, int size) {
  RowCells cells;
  Shadow *shadow = &region->shadow;
  int found = find_cells(&cells, shadow, offset, actor->cluster->launch->number, *count, size);
  *count = found ? found : 1;
  if (!found) return false;
  Epoch write = epoch_of_mark(cells.page, cells.write.first), read = epoch_of_mark(cells.page, cells.read.first);
  if (!writes_come_before(actor, write, cells.write.step, found)) return false;
  if (!reads_come_before(actor, read, cells.read.step, found)) return false;
  if (cells.page->foreign && !is_blank_row(foreign_marks(cells.page, offset), cells.units, found)) return false;
  if (read != EPOCH_NONE) set_row(cells.read_marks, cells.units, found, (RowMarks){0, 0});
  if (found * size == cells.page->size) shadow_forget_events(cells.page);
  set_row(cells.write_marks, cells.units, found, (RowMarks){mark_of_epoch(shadow, cells.page, actor_epoch(actor)), 1});
  return true;
}

int race_write_row(RowActor *row, Region *region, uint64_t offset, int lane, int count, int size,
                   const uint8_t *value) {
  count = begin_row(row, lane, count);
  if (!row->lane_by_lane && write_row(&row->actor, region, offset, &count, size)) return count;
  for (int i = 0; i < count; i++) {
    actor_set_lane(&row->actor, lane + i);
    race_write_by(&row->actor, region, offset + (uint64_t)(i * size), size, value + i * size);
  }
  return count;
}

// ---- lanes far from each other ----

// What shadow memory has of a lane's element.
typedef struct LaneCells {
  ShadowPage *page;
  Mark *write, *read;  // units of them, all equal
  int units;
} LaneCells;

// False when the launch has not touched the page, with units as small, or the element's cells differ.
static bool find_lane_cells(LaneCells *cells, const Scatter *scatter, const Region *region, uint64_t offset, int size) {
  ShadowPage *page = shadow_page(&region->shadow, offset, size, scatter->launch);
  if (!page) return false;
  *cells = (LaneCells){page, write_marks(page, offset), read_marks(page, offset), units_of(page, size)};
  return are_marks(cells->write, cells->units, *cells->write) && are_marks(cells->read, cells->units, *cells->read);
}

static Comes judge_event(const RowActor *row, Epoch event) {
  const Actor *actor = &row->actor;
  if (!is_of_own_cluster(actor, event)) return COMES_ELSEWHERE;
  if (event & EPOCH_SET) return COMES_UNKNOWN;
  uint32_t first = epoch_thread(actor->layout, event);
  if (actor->known && clocks_reach(actor->known, first, LANES, epoch_clock(actor->layout, event))) return COMES_ALL;
  return first == actor->thread / LANES * LANES ? COMES_OWN : COMES_UNKNOWN;
}

static bool event_comes_before(const RowActor *row, Epoch event, Epoch *met, Comes *comes, Mark mark, int lane) {
  if (*met != event) {
    *met = event;
    *comes = judge_event(row, event);
  }
  return lane_comes_after(*comes, mark, lane);
}

static bool write_comes_before(Scatter *scatter, const RowActor *row, const LaneCells *cells, int lane) {
  Epoch event = cells->page->events[*cells->write >> LANE_BITS];
  return event_comes_before(row, event, &scatter->write, &scatter->write_comes, *cells->write, lane);
}

static bool read_comes_before(Scatter *scatter, const RowActor *row, const LaneCells *cells, int lane) {
  Epoch event = cells->page->events[*cells->read >> LANE_BITS];
  return !event || event_comes_before(row, event, &scatter->read, &scatter->read_comes, *cells->read, lane);
}

bool race_read_lane(Scatter *scatter, const RowActor *row, Region *region, uint64_t offset, int lane, int size) {
  LaneCells cells;
  if (!find_lane_cells(&cells, scatter, region, offset, size)) return false;
  if (*cells.write != EPOCH_HOST && (*cells.write <= LANE_MASK || !write_comes_before(scatter, row, &cells, lane)))
    return false;
  // Another cluster's read has to go to the page's foreign marks.
  bool foreign = !read_comes_before(scatter, row, &cells, lane);
  if (foreign && (scatter->read_comes != COMES_ELSEWHERE || !cells.page->foreign)) return false;
  if (foreign) set_marks(foreign_marks(cells.page, offset), cells.units, *cells.read);
  set_marks(cells.read, cells.units, mark_of_event(&region->shadow, cells.page, scatter->own, (unsigned)lane));
  return true;
}

bool race_write_lane(Scatter *scatter, const RowActor *row, Region *region, uint64_t offset, int lane, int size) {
  LaneCells cells;
  if (!find_lane_cells(&cells, scatter, region, offset, size)) return false;
  if (cells.page->foreign || size == cells.page->size) return false;
  if (*cells.write > LANE_MASK && !write_comes_before(scatter, row, &cells, lane)) return false;
  if (!read_comes_before(scatter, row, &cells, lane)) return false;
  Mark mark = mark_of_event(&region->shadow, cells.page, scatter->own, (unsigned)lane);
  set_marks(cells.read, cells.units, 0);
  set_marks(cells.write, cells.units, mark);
  return true;
}
