// Shadow memory: see shadow.h.
#include "shadow.h"

#include <stdlib.h>
#include <string.h>

#include "../host/host_memory.h"

// A mark could tell MOST_EVENTS apart. A page remembers at most 769: three accesses of 256 bytes, and the first event.
enum { MOST_EVENTS = 1 << (16 - LANE_BITS) };

// Stands for every page of which the host has written all, and which no kernel has touched since.
static ShadowPage host_page;

bool shadow_init(Shadow *shadow, uint64_t size, Usage *usage) {
  uint64_t pages = (size >> SHADOW_PAGE_SHIFT) + 1;
  *shadow =
      (Shadow){.pages = calloc(pages, sizeof *shadow->pages), .size = size, .kept_from = UINT32_MAX, .usage = usage};
  if (!shadow->pages) return false;
  usage_add(usage, pages * sizeof *shadow->pages);
  return true;
}

// ---- pages ----

static void *allocate(const Shadow *shadow, size_t size) {
  void *memory = host_allocate(1, size);
  usage_add(shadow->usage, size);
  return memory;
}

static void free_counted(const Shadow *shadow, void *memory, size_t size) {
  if (!memory) return;
  usage_subtract(shadow->usage, size);
  free(memory);
}

static uint16_t first_events(int unit) { return unit ? FIRST_EVENTS : FIRST_EVENTS_OF_BYTES; }

static size_t page_bytes(int size, int unit) {
  return sizeof(ShadowPage) + first_events(unit) * sizeof(Epoch) + 2 * (size_t)(size >> unit) * sizeof(Mark);
}

// The largest units, up to a power of two of bytes, that begin and end with the access.
static int unit_of(uint64_t offset, int size) {
  int unit = __builtin_ctzll(offset | (uint64_t)size);
  return unit < LARGEST_UNIT ? unit : LARGEST_UNIT;
}

static bool is_page(const ShadowPage *page) { return page && page != &host_page; }

static void forget_foreign(const Shadow *shadow, ShadowPage *page) {
  free_counted(shadow, page->foreign, (size_t)units_of(page, page->size) * sizeof(Mark));
  page->foreign = NULL;
}

static void free_page(const Shadow *shadow, ShadowPage *page) {
  if (!is_page(page)) return;
  free_page(shadow, page->older);
  forget_foreign(shadow, page);
  if (page->events != page->first) free_counted(shadow, page->events, page->capacity * sizeof(Epoch));
  free_counted(shadow, page, page_bytes(page->size, page->unit));
}

void shadow_destroy(Shadow *shadow) {
  if (!shadow->pages) return;
  uint64_t pages = (shadow->size >> SHADOW_PAGE_SHIFT) + 1;
  for (uint64_t i = 0; i < pages; i++) free_page(shadow, shadow->pages[i]);
  free_counted(shadow, shadow->pages, pages * sizeof *shadow->pages);
  shadow->pages = NULL;
}

// A page's bytes from the offset on.
static int left_in_page(const Shadow *shadow, uint64_t offset) {
  uint64_t left = SHADOW_PAGE - (offset & (SHADOW_PAGE - 1));
  return (int)(left < shadow->size - offset ? left : shadow->size - offset);
}

static ShadowPage *allocate_page(const Shadow *shadow, int size, int unit) {
  ShadowPage *page = allocate(shadow, page_bytes(size, unit));
  page->size = (uint16_t)size;
  page->unit = (uint8_t)unit;
  page->count = 1;
  page->capacity = first_events(unit);
  page->events = page->first;
  page->marks = (Mark *)(page->first + page->capacity);
  return page;
}

// A page on which every byte was written by the host, or never. unit: at most that.
static ShadowPage *new_page(const Shadow *shadow, uint64_t index, bool by_host, int unit, uint32_t launch) {
  int size = left_in_page(shadow, index << SHADOW_PAGE_SHIFT), largest = unit_of(0, size);
  ShadowPage *page = allocate_page(shadow, size, unit < largest ? unit : largest);
  page->launch = launch;
  set_marks(write_marks(page, 0), units_of(page, size), by_host ? EPOCH_HOST : EPOCH_NONE);
  return page;
}

// Each of the marks as often as one unit has others in it.
static void repeat_marks(Mark *to, const Mark *from, int count, int times) {
  for (int i = 0; i < count; i++) set_marks(to + i * times, times, from[i]);
}

// The page with smaller units, in the page's place.
static ShadowPage *split_units(const Shadow *shadow, uint64_t index, int unit) {
  ShadowPage *page = shadow->pages[index], *fine = allocate_page(shadow, page->size, unit);
  int count = units_of(page, page->size), times = 1 << (page->unit - unit);
  fine->launch = page->launch;
  fine->count = page->count;
  fine->recent = page->recent;
  fine->older = page->older;
  if (page->events == page->first) {
    memcpy(fine->first, page->first, page->count * sizeof(Epoch));
  } else {
    fine->events = page->events;
    fine->capacity = page->capacity;
  }
  repeat_marks(fine->marks, page->marks, 2 * count, times);
  if (page->foreign) {
    fine->foreign = allocate(shadow, (size_t)(count * times) * sizeof(Mark));
    repeat_marks(fine->foreign, page->foreign, count, times);
    forget_foreign(shadow, page);
  }
  free_counted(shadow, page, page_bytes(page->size, page->unit));
  return shadow->pages[index] = fine;
}

static void enlarge_events(const Shadow *shadow, ShadowPage *page, uint16_t capacity) {
  Epoch *events = allocate(shadow, capacity * sizeof(Epoch));
  memcpy(events, page->events, page->count * sizeof(Epoch));
  if (page->events != page->first) free_counted(shadow, page->events, page->capacity * sizeof(Epoch));
  page->events = events;
  page->capacity = capacity;
}

// Keeps what the page remembers behind it.
static void keep(const Shadow *shadow, ShadowPage *page) {
  ShadowPage *older = allocate_page(shadow, page->size, page->unit);
  older->launch = page->launch;
  older->foreign = page->foreign;
  older->older = page->older;
  if (page->count > older->capacity) enlarge_events(shadow, older, page->count);
  older->count = page->count;
  memcpy(older->events, page->events, page->count * sizeof(Epoch));
  memcpy(older->marks, page->marks, 2 * (size_t)units_of(page, page->size) * sizeof(Mark));
  page->foreign = NULL;
  page->older = older;
}

// Forgets what an earlier launch did: it all happened before this one, unless the two may run at the same time.
static void renew(const Shadow *shadow, ShadowPage *page, uint32_t launch) {
  ShadowPage **link = &page->older;
  while (*link && (*link)->launch >= shadow->kept_from) link = &(*link)->older;
  free_page(shadow, *link);
  *link = NULL;
  if (page->launch >= shadow->kept_from) keep(shadow, page);
  page->launch = launch;
  shadow_forget_events(page);
  Mark *write = write_marks(page, 0);
  int units = units_of(page, page->size);
  for (int i = 0; i < units; i++) write[i] = write[i] ? EPOCH_HOST : EPOCH_NONE;
  set_marks(read_marks(page, 0), units, 0);
  forget_foreign(shadow, page);
}

// ---- events ----

// Neighbours mostly have the same event, so marks are looked at four at a time: those of the event looked at last are
// done.
#define FOUR_EVENTS (~(FourMarks)0 / 0xffff * (Mark)~LANE_MASK)

// places[e] becomes 1 for the events of the marks.
static void find_used(const Mark *marks, int count, Mark *places) {
  FourMarks last = ~(FourMarks)0, four;
  int i = 0;
  for (; i + 4 <= count; i += 4) {
    memcpy(&four, marks + i, sizeof four);
    if ((four & FOUR_EVENTS) == last) continue;
    last = four_times((Mark)four) & FOUR_EVENTS;
    for (int j = 0; j < 4; j++) places[marks[i + j] >> LANE_BITS] = 1;
  }
  for (; i < count; i++) places[marks[i] >> LANE_BITS] = 1;
}

static Mark renumbered(Mark mark, const Mark *places) {
  return (Mark)(places[mark >> LANE_BITS] << LANE_BITS | (mark & LANE_MASK));
}

static void renumber(Mark *marks, int count, const Mark *places) {
  FourMarks from = ~(FourMarks)0, to = 0, four;
  int i = 0;
  for (; i + 4 <= count; i += 4) {
    memcpy(&four, marks + i, sizeof four);
    if ((four & FOUR_EVENTS) != from) {
      from = four_times((Mark)four) & FOUR_EVENTS;
      to = four_times(renumbered((Mark)from, places));
    }
    if ((four & FOUR_EVENTS) == from) {
      four = to | (four & ~FOUR_EVENTS);
      memcpy(marks + i, &four, sizeof four);
    } else {
      for (int j = 0; j < 4; j++) marks[i + j] = renumbered(marks[i + j], places);
    }
  }
  for (; i < count; i++) marks[i] = renumbered(marks[i], places);
}

// Drops the events that no unit remembers any more. The rest fill at most four fifths of the table then, so that the
// work is shared by at least a quarter as many accesses as are left.
static void drop_events(Shadow *shadow, ShadowPage *page) {
  Mark places[MOST_EVENTS];  // where an event goes
  memset(places, 0, page->count * sizeof *places);
  int count = page->count, units = units_of(page, page->size);
  find_used(page->marks, 2 * units, places);
  if (page->foreign) find_used(page->foreign, units, places);
  shadow_forget_events(page);
  places[0] = 0;
  for (int e = 1; e < count; e++) {
    if (!places[e]) continue;
    page->events[page->count] = page->events[e];
    places[e] = page->count++;
  }
  renumber(page->marks, 2 * units, places);
  if (page->foreign) renumber(page->foreign, units, places);
  int needed = page->count + page->count / 4 + 1;
  if (needed > page->capacity) enlarge_events(shadow, page, (uint16_t)needed);
}

// Looks the event up in the table, which has room for one more.
static uint16_t find_event(ShadowPage *page, Epoch event) {
  enum { STEP = 8 };  // at once: see STEP in clocks.c
  int at = 0, count = page->count;
  for (; at + STEP <= count; at += STEP) {
    uint64_t found = 0;
    for (int i = 0; i < STEP; i++) found |= -(uint64_t)(page->events[at + i] == event);
    if (found) break;
  }
  for (; at < count; at++)
    if (page->events[at] == event) return (uint16_t)at;
  page->events[page->count] = event;
  return page->count++;
}

void shadow_find_event(Shadow *shadow, ShadowPage *page, Epoch event) {
  if (page->count == page->capacity) drop_events(shadow, page);
  page->recent = find_event(page, event);
}

// ---- marks ----

// The page at the offset, as the launch finds it: NULL when it is none yet.
static ShadowPage *page_at(const Shadow *shadow, uint64_t offset, uint32_t launch) {
  ShadowPage *page = shadow->pages[offset >> SHADOW_PAGE_SHIFT];
  if (is_page(page) && page->launch != launch) renew(shadow, page, launch);
  return page;
}

// The same, with units for the access if it is a page.
static ShadowPage *split_page_at(const Shadow *shadow, uint64_t offset, int size, uint32_t launch) {
  ShadowPage *page = page_at(shadow, offset, launch);
  if (!is_page(page) || is_of_units(page, offset, size)) return page;
  return split_units(shadow, offset >> SHADOW_PAGE_SHIFT, unit_of(offset, size));
}

ShadowPage *shadow_make_page(Shadow *shadow, uint64_t offset, int size, uint32_t launch) {
  ShadowPage *page = split_page_at(shadow, offset, size, launch);
  if (is_page(page)) return page;
  uint64_t index = offset >> SHADOW_PAGE_SHIFT;
  return shadow->pages[index] = new_page(shadow, index, page != NULL, unit_of(offset, size), launch);
}

// shadow_run on one page.
static int run_in_page(const Shadow *shadow, uint64_t offset, int size, uint32_t launch, Cell *cell) {
  int left = left_in_page(shadow, offset);
  if (size > left) size = left;
  ShadowPage *page = split_page_at(shadow, offset, size, launch);
  if (is_page(page)) return shadow_run(shadow, offset, size, launch, cell);
  *cell = (Cell){.write = page ? EPOCH_HOST : EPOCH_NONE};
  return size;
}

static bool same_cell(const Cell *a, const Cell *b) {
  return a->write == b->write && a->read == b->read && a->foreign == b->foreign;
}

int shadow_run_slowly(const Shadow *shadow, uint64_t offset, int size, uint32_t launch, Cell *cell) {
  int run = run_in_page(shadow, offset, size, launch, cell);
  while (run < size && (offset + (uint64_t)run) % SHADOW_PAGE == 0) {
    Cell next;
    int more = run_in_page(shadow, offset + (uint64_t)run, size - run, launch, &next);
    if (!same_cell(cell, &next)) break;
    run += more;
  }
  return run;
}

int shadow_run_past(Shadow *shadow, uint64_t offset, int size, uint32_t launch, uint32_t past, Cell *cell) {
  ShadowPage *page = page_at(shadow, offset, launch), **link = is_page(page) ? &page->older : NULL;
  int left = left_in_page(shadow, offset);
  if (size > left) size = left;
  while (link && *link && (*link)->launch != past) link = &(*link)->older;
  *cell = (Cell){0};
  if (!link || !*link) return size;
  Shadow one = *shadow;
  one.pages = link;
  return shadow_run(&one, offset & (SHADOW_PAGE - 1), size, past, cell);
}

static int part_in_page(const Shadow *shadow, uint64_t offset, int size) {
  int left = left_in_page(shadow, offset);
  return size < left ? size : left;
}

void shadow_write_slowly(Shadow *shadow, uint64_t offset, int size, uint32_t launch, Epoch write) {
  for (int part; size > 0; size -= part, offset += (uint64_t)part) {
    part = part_in_page(shadow, offset, size);
    ShadowPage *page = shadow_make_page(shadow, offset, part, launch);
    int units = units_of(page, part);
    set_marks(read_marks(page, offset), units, 0);
    if (page->foreign) set_marks(foreign_marks(page, offset), units, 0);
    if (part == page->size) shadow_forget_events(page);
    set_marks(write_marks(page, offset), units, mark_of_epoch(shadow, page, write));
  }
}

void shadow_read_slowly(Shadow *shadow, uint64_t offset, int size, uint32_t launch, Epoch read, Epoch foreign) {
  for (int part; size > 0; size -= part, offset += (uint64_t)part) {
    part = part_in_page(shadow, offset, size);
    ShadowPage *page = shadow_make_page(shadow, offset, part, launch);
    int units = units_of(page, part);
    set_marks(read_marks(page, offset), units, mark_of_epoch(shadow, page, read));
    if (!foreign && !page->foreign) continue;
    if (!page->foreign) page->foreign = allocate(shadow, (size_t)units_of(page, page->size) * sizeof(Mark));
    set_marks(foreign_marks(page, offset), units, mark_of_epoch(shadow, page, foreign));
  }
}

// Whole pages are just noted: most of what the host writes no kernel ever touches.
void shadow_host_write(Shadow *shadow, uint64_t offset, uint64_t size) {
  for (uint64_t end = offset + size, part; offset < end; offset += part) {
    uint64_t index = offset >> SHADOW_PAGE_SHIFT, left = (uint64_t)left_in_page(shadow, offset);
    ShadowPage *page = shadow->pages[index];
    part = end - offset < left ? end - offset : left;
    if (page == &host_page) continue;
    bool whole = offset % SHADOW_PAGE == 0 && part == left;
    if (whole) {
      free_page(shadow, page);
      shadow->pages[index] = &host_page;
    } else {
      uint32_t launch = page ? page->launch : 0;  // none: the launches to come are later
      shadow_write(shadow, offset, (int)part, launch, EPOCH_HOST);
    }
  }
}
