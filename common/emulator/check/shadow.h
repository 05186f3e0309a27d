// Shadow memory: the last accesses of each byte, in about two bytes a byte.
//
// Of a byte three accesses are remembered, a Cell: 24 bytes, were each byte to have its own. But neighbours remember
// nearly the same, in two ways. First, the bytes of an element are accessed together: so a page of 256 bytes has cells
// of 4 bytes each, until an access is narrower, and then of 2 bytes or of one (its unit). Second, where a warp stores
// 128 bytes their epochs differ in the lane alone, which is an epoch's low five bits. What is above the lane is called
// an event here: this instruction, by this warp, at this clock. (A set of reads has low bits of the same kind:
// read_sets.h.) A page has a table of the events that its cells remember, and for each cell and access a mark of 16
// bits:
//
//   mark = the event's place in the table, the lane        epoch = table[mark >> 5] | (mark & 31)
//
// So nothing is lost: a mark gives back its epoch to the bit. What it takes, in bytes a byte of memory, with cells of
// 4, 2 and 1 bytes:
//
//   1, 2, 4           the marks of the last write and of the last read
//   1/2, 1, 2         those of a second cluster's read, in a page that has seen one
//   1/6               the head of the page
//   3/8, 3/8, 3/4     the table of up to 12, 12 or 24 events
//   ...               a table that is larger by then, by a quarter than the events that are remembered
//   1/32              the pointer to the page: all that one costs which no kernel touches
//
// With cells of 4 bytes that is less than two; it is less than four even where a column is filled by one instruction an
// element, so that no two elements have the same event. With cells of one byte it is below five, and below seven where
// two clusters read. Beyond that are pages of single bytes which different warps or instructions wrote and read: 38 at
// the very most, when no two accesses of 256 bytes have the same event.
#pragma once

#include <string.h>

#include "../host/host_memory.h"
#include "threads.h"

enum { SHADOW_PAGE_SHIFT = 8, SHADOW_PAGE = 1 << SHADOW_PAGE_SHIFT };
enum { LARGEST_UNIT = 2 };  // the binary logarithm of bytes
enum { FIRST_EVENTS = 12, FIRST_EVENTS_OF_BYTES = 24 };

// What is remembered of the bytes of a unit.
typedef struct Cell {
  Epoch write;    // the last
  Epoch read;     // the reads since then: none, one, or a set of one cluster's
  Epoch foreign;  // one read since then by another cluster than that of `read`
} Cell;

// A unit's access in a page: event << LANE_BITS | lane.
typedef uint16_t Mark;

typedef struct ShadowPage {
  struct ShadowPage *older;  // what an earlier launch did that may run at the same time: overlap.h; mostly NULL
  uint32_t launch;           // the last to touch it: what is remembered are accesses of that launch
  uint16_t size;             // bytes; less than SHADOW_PAGE at the end of a region
  uint16_t count, capacity;  // events
  uint16_t recent;           // the event that was looked for last
  uint8_t unit;              // a mark is of 1 << unit bytes
  Epoch *events;             // the first is 0: with the lanes 0 and 1 it makes EPOCH_NONE and EPOCH_HOST
  Mark *foreign;             // of each unit, or NULL: no second cluster has read
  Mark *marks;               // of each unit's write, then of each unit's read
  Epoch first[];             // the events, until they are more; then the marks
} ShadowPage;

typedef struct Shadow {
  ShadowPage **pages;  // NULL: untouched; or shadow.c's page of a host's writes
  uint64_t size;       // bytes of memory that it is the shadow of
  uint32_t kept_from;  // what launches from this number on did is kept when a later one touches a page
  Usage *usage;        // counts what it takes
} Shadow;

// Of untouched memory. False when memory is exhausted.
bool shadow_init(Shadow *shadow, uint64_t size, Usage *usage);
void shadow_destroy(Shadow *shadow);
// The host writes the bytes: nothing else is remembered of them.
void shadow_host_write(Shadow *shadow, uint64_t offset, uint64_t size);

// ---- one access ----
//
// launch: the number of the one that runs, from 1; what earlier ones did counts as the host's. What is inline here is
// the case that matters: a page that this launch has touched before, and the access inside it.

int shadow_run_slowly(const Shadow *shadow, uint64_t offset, int size, uint32_t launch, Cell *cell);
void shadow_write_slowly(Shadow *shadow, uint64_t offset, int size, uint32_t launch, Epoch write);
void shadow_read_slowly(Shadow *shadow, uint64_t offset, int size, uint32_t launch, Epoch read, Epoch foreign);
// What an earlier launch did to so many bytes from the offset on with equal cells, if it was kept: else the cell is
// empty.
int shadow_run_past(Shadow *shadow, uint64_t offset, int size, uint32_t launch, uint32_t past, Cell *cell);
// Looks an event up in the page's table, or adds it: then other marks of the page may change.
void shadow_find_event(Shadow *shadow, ShadowPage *page, Epoch event);

// Whether accesses of so many bytes, or a multiple, from the offset on begin and end with units.
static inline bool is_of_units(const ShadowPage *page, uint64_t offset, int size) {
  return !((offset | (uint64_t)size) & ((1u << page->unit) - 1));
}

// The page that holds all of an access, when the launch has touched it before with units as small, or NULL.
static inline ShadowPage *shadow_page(const Shadow *shadow, uint64_t offset, int size, uint32_t launch) {
  ShadowPage *page = shadow->pages[offset >> SHADOW_PAGE_SHIFT];
  bool inside = (offset & (SHADOW_PAGE - 1)) + (uint64_t)size <= SHADOW_PAGE;
  return page && page->launch == launch && inside && is_of_units(page, offset, size) ? page : NULL;
}

static inline int units_of(const ShadowPage *page, int size) { return size >> page->unit; }

static inline Mark *write_marks(ShadowPage *page, uint64_t offset) {
  return page->marks + units_of(page, (int)(offset & (SHADOW_PAGE - 1)));
}

static inline Mark *read_marks(ShadowPage *page, uint64_t offset) {
  return write_marks(page, offset) + units_of(page, page->size);
}

static inline Mark *foreign_marks(ShadowPage *page, uint64_t offset) {
  return page->foreign + units_of(page, (int)(offset & (SHADOW_PAGE - 1)));
}

static inline Epoch epoch_of_mark(const ShadowPage *page, Mark mark) {
  return page->events[mark >> LANE_BITS] | (mark & LANE_MASK);
}

// Mostly the event is that of the mark asked for before.
static inline Mark mark_of_event(Shadow *shadow, ShadowPage *page, Epoch event, unsigned lane) {
  if (page->events[page->recent] != event) shadow_find_event(shadow, page, event);
  return (Mark)(page->recent << LANE_BITS | lane);
}

static inline Mark mark_of_epoch(Shadow *shadow, ShadowPage *page, Epoch epoch) {
  Epoch event = epoch & ~LANE_MASK;
  return event ? mark_of_event(shadow, page, event, epoch & LANE_MASK) : (Mark)epoch;
}

// Marks are looked at and set four at a time.
typedef uint64_t FourMarks;

static inline FourMarks four_times(Mark mark) { return mark * 0x0001000100010001ull; }

// How many of so many marks, from the first on, are equal.
static inline int equal_marks(const Mark *marks, int count) {
  int run = 0;
  for (FourMarks four; run + 4 <= count; run += 4) {
    memcpy(&four, marks + run, sizeof four);
    if (four != four_times(marks[0])) break;
  }
  while (run < count && marks[run] == marks[0]) run++;
  return run;
}

// Whether all are that one.
static inline bool are_marks(const Mark *marks, int count, Mark mark) {
  FourMarks different = 0, four;
  for (; count >= 4; count -= 4, marks += 4) {
    memcpy(&four, marks, sizeof four);
    different |= four ^ four_times(mark);
  }
  for (; count > 0; count--) different |= (Mark)(*marks++ ^ mark);
  return !different;
}

static inline void set_marks(Mark *marks, int count, Mark mark) {
  FourMarks four = four_times(mark);
  for (; count >= 4; count -= 4, marks += 4) memcpy(marks, &four, sizeof four);
  for (; count > 0; count--) *marks++ = mark;
}

// ---- rows ----
//
// Lanes one after the other that access elements one after the other: their marks are equal or go up by one from lane
// to lane, in what kernels mostly do. `size` is that of an element, in units. Inlined with the sizes of nearly all
// rows, the loops become a few wide instructions.

typedef struct RowMarks {
  Mark first;     // the first lane's
  unsigned step;  // to the next lane's: 0 or 1
} RowMarks;

ALWAYS_INLINE FourMarks four_of_row(RowMarks row, int lane) {
  return four_times(row.first) + (FourMarks)lane * (row.step ? four_times(1) : 0);
}

ALWAYS_INLINE bool is_row_of(const Mark *marks, int size, int count, RowMarks row) {
  FourMarks different = 0, four;
  if (size >= 4) {
    for (int lane = 0; lane < count; lane++)
      for (int part = 0; part < size / 4; part++) {
        memcpy(&four, marks + lane * size + 4 * part, sizeof four);
        different |= four ^ four_of_row(row, lane);
      }
    return !different;
  }
  for (int lane = 0; lane < count; lane++)
    for (int unit = 0; unit < size; unit++)
      different |= (Mark)(marks[lane * size + unit] ^ (row.first + (unsigned)lane * row.step));
  return !different;
}

ALWAYS_INLINE void set_row_of(Mark *marks, int size, int count, RowMarks row) {
  if (size >= 4) {
    for (int lane = 0; lane < count; lane++)
      for (int part = 0; part < size / 4; part++) {
        FourMarks four = four_of_row(row, lane);
        memcpy(marks + lane * size + 4 * part, &four, sizeof four);
      }
    return;
  }
  for (int lane = 0; lane < count; lane++)
    for (int unit = 0; unit < size; unit++) marks[lane * size + unit] = (Mark)(row.first + (unsigned)lane * row.step);
}

// Calls f(marks, size, count, row), with constants in the commonest cases.
#define FOR_ROW(f, marks, size, count, ...)                                                                            \
  ((size) == 1 && (count) == LANES        ? f(marks, 1, LANES, __VA_ARGS__)                                            \
   : (size) == 4 && (count) == LANES / 2  ? f(marks, 4, LANES / 2, __VA_ARGS__)                                        \
   : (size) == 1 && (count) == LANES / 2  ? f(marks, 1, LANES / 2, __VA_ARGS__)                                        \
   : (size) == 4 && (count) == LANES      ? f(marks, 4, LANES, __VA_ARGS__)                                            \
   : (size) == 2 && (count) == LANES      ? f(marks, 2, LANES, __VA_ARGS__)                                            \
   : (size) == 8 && (count) == LANES      ? f(marks, 8, LANES, __VA_ARGS__)                                            \
   : (size) == 16 && (count) == LANES / 2 ? f(marks, 16, LANES / 2, __VA_ARGS__)                                       \
                                          : f(marks, size, count, __VA_ARGS__))

// For how many lanes from the first on the marks are a row, and which; 0: the first element's marks differ.
static inline int find_row(const Mark *marks, int size, int count, RowMarks *row) {
  unsigned step = count > 1 ? (Mark)(marks[size] - marks[0]) : 0;
  int most = step == 1 ? LANES - (int)(marks[0] & LANE_MASK) : LANES;
  *row = (RowMarks){marks[0], step == 1};
  if (step > 1) count = 1;
  if (count > most) count = most;
  if (FOR_ROW(is_row_of, marks, size, count, *row)) return count;
  int fit = 0;
  while (is_row_of(marks + fit * size, size, 1, (RowMarks){(Mark)(row->first + (unsigned)fit * row->step), 0})) fit++;
  return fit;
}

static inline void set_row(Mark *marks, int size, int count, RowMarks row) {
  FOR_ROW(set_row_of, marks, size, count, row);
}

// Whether all marks of the row are 0.
static inline bool is_blank_row(const Mark *marks, int size, int count) {
  return FOR_ROW(is_row_of, marks, size, count, (RowMarks){0, 0});
}

// The page at the offset, as the launch leaves it: with marks for accesses of so many bytes, or a multiple, from the
// offset on.
ShadowPage *shadow_make_page(Shadow *shadow, uint64_t offset, int size, uint32_t launch);
// Nothing of what the page remembers is left: all its bytes are about to be written.
static inline void shadow_forget_events(ShadowPage *page) {
  page->count = 1;
  page->recent = 0;
}

// How many of the bytes [offset, offset + size) from the first on have equal cells, and which. Called for each lane of
// each access, so never as a function.
ALWAYS_INLINE int shadow_run(const Shadow *shadow, uint64_t offset, int size, uint32_t launch, Cell *cell) {
  ShadowPage *page = shadow_page(shadow, offset, size, launch);
  if (!page) return shadow_run_slowly(shadow, offset, size, launch, cell);
  const Mark *write = write_marks(page, offset), *read = read_marks(page, offset);
  *cell = (Cell){.write = epoch_of_mark(page, *write), .read = epoch_of_mark(page, *read)};
  int run = equal_marks(read, equal_marks(write, units_of(page, size)));
  if (!page->foreign) return run << page->unit;
  cell->foreign = epoch_of_mark(page, *foreign_marks(page, offset));
  return equal_marks(foreign_marks(page, offset), run) << page->unit;
}

// After a write of the bytes [offset, offset + size): no reads since then.
static inline void shadow_write(Shadow *shadow, uint64_t offset, int size, uint32_t launch, Epoch write) {
  ShadowPage *page = shadow_page(shadow, offset, size, launch);
  if (!page || size == page->size) {
    shadow_write_slowly(shadow, offset, size, launch, write);
    return;
  }
  int units = units_of(page, size);
  set_marks(read_marks(page, offset), units, 0);
  if (page->foreign) set_marks(foreign_marks(page, offset), units, 0);
  set_marks(write_marks(page, offset), units, mark_of_epoch(shadow, page, write));
}

// After a read of bytes whose cells are equal: what becomes of a cell's two reads.
static inline void shadow_read(Shadow *shadow, uint64_t offset, int size, uint32_t launch, Epoch read, Epoch foreign) {
  ShadowPage *page = shadow_page(shadow, offset, size, launch);
  if (!page || (foreign && (!page->foreign || epoch_of_mark(page, *foreign_marks(page, offset)) != foreign)))
    shadow_read_slowly(shadow, offset, size, launch, read, foreign);
  else
    set_marks(read_marks(page, offset), units_of(page, size), mark_of_epoch(shadow, page, read));
}
