// Shadow memory: the last accesses of each byte, in about five bytes a byte.
//
// Of a byte three accesses are remembered, a Cell: 24 bytes, were each byte to have its own. But neighbours remember nearly
// the same: where a warp stores 128 bytes their epochs differ in the lane alone, which is an epoch's low five bits. What is
// above the lane is called an event here: this instruction, by this warp, at this clock. (A set of reads has low
// bits of the same kind: read_sets.h.) A page of 256 bytes has a table of the events that its bytes
// remember, and for each byte and access a mark of 16 bits:
//
//   mark = the event's place in the table, the lane        epoch = table[mark >> 5] | (mark & 31)
//
// So nothing is lost: a mark gives back its epoch to the bit. What it takes, in bytes a byte of memory:
//
//   4        the marks of the last write and of the last read
//   2        those of a second cluster's read, in a page that has seen one
//   3/4      the table of up to 24 events; a larger one is half as large again as the events that are remembered
//   1/8      the head of the page
//   1/32     the pointer to the page: all that one costs which no kernel touches
//
// That is below five, and below seven where two clusters read; it is below eight while a page remembers 82 events, or 39
// where two clusters read. A row of elements that warps access has 2 to 16 of them, for elements of 4 bytes to one byte;
// a column that a warp fills with one instruction an element has as many as the page has elements, if no loop makes them one.
// Beyond that are pages of single bytes which different warps or instructions wrote and read: 43 at the very most, when
// no two accesses of 256 bytes have the same event.
#pragma once

#include <string.h>

#include "../warp/program.h"
#include "../warp/usage.h"
#include "epoch.h"

enum { SHADOW_PAGE_SHIFT = 8, SHADOW_PAGE = 1 << SHADOW_PAGE_SHIFT };

// What is remembered of one byte.
typedef struct Cell {
  Epoch write;    // the last
  Epoch read;     // the reads since then: none, one, or a set of one cluster's
  Epoch foreign;  // one read since then by another cluster than that of `read`
} Cell;

// A byte's access in a page: event << LANE_BITS | lane.
typedef uint16_t Mark;

typedef struct ShadowPage {
  struct ShadowPage *older;  // what an earlier launch did that may run at the same time: overlap.h; mostly NULL
  uint32_t launch;           // the last to touch it: what is remembered are accesses of that launch
  uint16_t size;             // bytes; less than SHADOW_PAGE at the end of a region
  uint16_t count, capacity;  // events
  uint16_t recent;           // the event that was looked for last
  Epoch *events;             // the first is 0: with the lanes 0 and 1 it makes EPOCH_NONE and EPOCH_HOST
  Mark *foreign;             // of each byte, or NULL: no second cluster has read
  Mark marks[];              // of each byte's write, then of each byte's read
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
// What an earlier launch did to so many bytes from the offset on with equal cells, if it was kept: else the cell is empty.
int shadow_run_past(Shadow *shadow, uint64_t offset, int size, uint32_t launch, uint32_t past, Cell *cell);
// Looks an event up in the page's table, or adds it: then other marks of the page may change.
void shadow_find_event(Shadow *shadow, ShadowPage *page, Epoch event);

// The page that holds all of an access, when the launch has touched it before, or NULL.
static inline ShadowPage *shadow_page(const Shadow *shadow, uint64_t offset, int size, uint32_t launch) {
  ShadowPage *page = shadow->pages[offset >> SHADOW_PAGE_SHIFT];
  bool inside = (offset & (SHADOW_PAGE - 1)) + (uint64_t)size <= SHADOW_PAGE;
  return page && page->launch == launch && inside ? page : NULL;
}

static inline Mark *write_marks(ShadowPage *page, uint64_t offset) {
  return page->marks + (offset & (SHADOW_PAGE - 1));
}

static inline Mark *read_marks(ShadowPage *page, uint64_t offset) {
  return page->marks + page->size + (offset & (SHADOW_PAGE - 1));
}

static inline Mark *foreign_marks(ShadowPage *page, uint64_t offset) {
  return page->foreign + (offset & (SHADOW_PAGE - 1));
}

static inline Epoch epoch_of_mark(const ShadowPage *page, Mark mark) {
  return page->events[mark >> LANE_BITS] | (mark & LANE_MASK);
}

// Mostly the event is that of the mark asked for before.
static inline Mark mark_of_epoch(Shadow *shadow, ShadowPage *page, Epoch epoch) {
  Epoch event = epoch & ~LANE_MASK;
  if (event == 0) return (Mark)epoch;
  if (page->events[page->recent] != event) shadow_find_event(shadow, page, event);
  return (Mark)(page->recent << LANE_BITS | (epoch & LANE_MASK));
}

// Most accesses are of four bytes or a multiple: marks are looked at and set four at a time.
typedef uint64_t FourMarks;

static inline FourMarks four_times(Mark mark) { return mark * 0x0001000100010001ull; }

// How many marks from the first on are equal.
static inline int equal_marks(const Mark *marks, int size) {
  int run = 0;
  for (FourMarks four; run + 4 <= size; run += 4) {
    memcpy(&four, marks + run, sizeof four);
    if (four != four_times(marks[0])) break;
  }
  while (run < size && marks[run] == marks[0]) run++;
  return run;
}

// Whether all are that one.
static inline bool are_marks(const Mark *marks, int size, Mark mark) {
  FourMarks different = 0, four;
  for (; size >= 4; size -= 4, marks += 4) {
    memcpy(&four, marks, sizeof four);
    different |= four ^ four_times(mark);
  }
  for (; size > 0; size--) different |= (Mark)(*marks++ ^ mark);
  return !different;
}

static inline void set_marks(Mark *marks, int size, Mark mark) {
  FourMarks four = four_times(mark);
  for (; size >= 4; size -= 4, marks += 4) memcpy(marks, &four, sizeof four);
  for (; size > 0; size--) *marks++ = mark;
}

// ---- rows ----
//
// Lanes one after the other that access elements one after the other: their marks are equal or go up by one from lane to
// lane, in what kernels mostly do. Inlined with the sizes of nearly all rows, the loops become a few wide instructions.

typedef struct RowMarks {
  Mark first;     // the first lane's
  unsigned step;  // to the next lane's: 0 or 1
} RowMarks;

__attribute__((always_inline)) static inline FourMarks four_of_row(RowMarks row, int lane) {
  return four_times(row.first) + (FourMarks)lane * (row.step ? four_times(1) : 0);
}

__attribute__((always_inline)) static inline bool is_row_of(const Mark *marks, int size, int count, RowMarks row) {
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
    for (int byte = 0; byte < size; byte++)
      different |= (Mark)(marks[lane * size + byte] ^ (row.first + (unsigned)lane * row.step));
  return !different;
}

__attribute__((always_inline)) static inline void set_row_of(Mark *marks, int size, int count, RowMarks row) {
  if (size >= 4) {
    for (int lane = 0; lane < count; lane++)
      for (int part = 0; part < size / 4; part++) {
        FourMarks four = four_of_row(row, lane);
        memcpy(marks + lane * size + 4 * part, &four, sizeof four);
      }
    return;
  }
  for (int lane = 0; lane < count; lane++)
    for (int byte = 0; byte < size; byte++) marks[lane * size + byte] = (Mark)(row.first + (unsigned)lane * row.step);
}

// Calls f(marks, size, count, row), with constants in the commonest cases.
#define FOR_ROW(f, marks, size, count, ...)                                                                            \
  ((size) == 4 && (count) == LANES        ? f(marks, 4, LANES, __VA_ARGS__)                                            \
   : (size) == 4 && (count) == LANES / 2  ? f(marks, 4, LANES / 2, __VA_ARGS__)                                        \
   : (size) == 2 && (count) == LANES      ? f(marks, 2, LANES, __VA_ARGS__)                                            \
   : (size) == 1 && (count) == LANES      ? f(marks, 1, LANES, __VA_ARGS__)                                            \
   : (size) == 8 && (count) == LANES      ? f(marks, 8, LANES, __VA_ARGS__)                                            \
   : (size) == 16 && (count) == LANES / 2 ? f(marks, 16, LANES / 2, __VA_ARGS__)                                       \
                                          : f(marks, size, count, __VA_ARGS__))

// For how many lanes from the first on the marks are a row, and which; 0: the first element's bytes differ.
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

// The page at the offset, as the launch leaves it: with marks.
ShadowPage *shadow_make_page(Shadow *shadow, uint64_t offset, uint32_t launch);
// Nothing of what the page remembers is left: all its bytes are about to be written.
static inline void shadow_forget_events(ShadowPage *page) {
  page->count = 1;
  page->recent = 0;
}

// How many of the bytes [offset, offset + size) from the first on have equal cells, and which. Called for each lane of each
// access, so never as a function.
__attribute__((always_inline)) static inline int shadow_run(const Shadow *shadow, uint64_t offset, int size,
                                                            uint32_t launch, Cell *cell) {
  ShadowPage *page = shadow_page(shadow, offset, size, launch);
  if (!page) return shadow_run_slowly(shadow, offset, size, launch, cell);
  const Mark *write = write_marks(page, offset), *read = read_marks(page, offset);
  *cell = (Cell){.write = epoch_of_mark(page, *write), .read = epoch_of_mark(page, *read)};
  int run = equal_marks(read, equal_marks(write, size));
  if (!page->foreign) return run;
  cell->foreign = epoch_of_mark(page, *foreign_marks(page, offset));
  return equal_marks(foreign_marks(page, offset), run);
}

// After a write of the bytes [offset, offset + size): no reads since then.
static inline void shadow_write(Shadow *shadow, uint64_t offset, int size, uint32_t launch, Epoch write) {
  ShadowPage *page = shadow_page(shadow, offset, size, launch);
  if (!page || size == page->size) {
    shadow_write_slowly(shadow, offset, size, launch, write);
    return;
  }
  set_marks(read_marks(page, offset), size, 0);
  if (page->foreign) set_marks(foreign_marks(page, offset), size, 0);
  set_marks(write_marks(page, offset), size, mark_of_epoch(shadow, page, write));
}

// After a read of bytes whose cells are equal: what becomes of a cell's two reads.
static inline void shadow_read(Shadow *shadow, uint64_t offset, int size, uint32_t launch, Epoch read, Epoch foreign) {
  ShadowPage *page = shadow_page(shadow, offset, size, launch);
  if (!page || (foreign && (!page->foreign || epoch_of_mark(page, *foreign_marks(page, offset)) != foreign)))
    shadow_read_slowly(shadow, offset, size, launch, read, foreign);
  else
    set_marks(read_marks(page, offset), size, mark_of_epoch(shadow, page, read));
}
