// Shadow memory: see shadow.h.
#include "shadow.h"

#include <stdlib.h>
#include <string.h>

#include "../warp/host_memory.h"

// A mark could tell MOST_EVENTS apart. A page remembers at most 769: three accesses of 256 bytes, and the first event.
enum { FIRST_EVENTS = 24, MOST_EVENTS = 1 << (16 - LANE_BITS) };

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

static void *allocate(Shadow *shadow, size_t size) {
  void *memory = host_allocate(1, size);
  usage_add(shadow->usage, size);
  return memory;
}

static void release(const Shadow *shadow, void *memory, size_t size) {
  if (!memory) return;
  usage_subtract(shadow->usage, size);
  free(memory);
}

static size_t page_bytes(int size) { return sizeof(ShadowPage) + 2 * (size_t)size * sizeof(Mark); }

static bool is_page(const ShadowPage *page) { return page && page != &host_page; }

static void forget_foreign(const Shadow *shadow, ShadowPage *page) {
  release(shadow, page->foreign, page->size * sizeof(Mark));
  page->foreign = NULL;
}

static void free_page(const Shadow *shadow, ShadowPage *page) {
  if (!is_page(page)) return;
  free_page(shadow, page->older);
  forget_foreign(shadow, page);
  release(shadow, page->events, page->capacity * sizeof(Epoch));
  release(shadow, page, page_bytes(page->size));
}

void shadow_destroy(Shadow *shadow) {
  if (!shadow->pages) return;
  uint64_t pages = (shadow->size >> SHADOW_PAGE_SHIFT) + 1;
  for (uint64_t i = 0; i < pages; i++) free_page(shadow, shadow->pages[i]);
  release(shadow, shadow->pages, pages * sizeof *shadow->pages);
  shadow->pages = NULL;
}

// A page's bytes from the offset on.
static int left_in_page(const Shadow *shadow, uint64_t offset) {
  uint64_t left = SHADOW_PAGE - (offset & (SHADOW_PAGE - 1));
  return (int)(left < shadow->size - offset ? left : shadow->size - offset);
}

// A page on which every byte was written by the host, or never.
static ShadowPage *new_page(Shadow *shadow, uint64_t index, bool by_host, uint32_t launch) {
  int size = left_in_page(shadow, index << SHADOW_PAGE_SHIFT);
  ShadowPage *page = allocate(shadow, page_bytes(size));
  page->launch = launch;
  page->size = (uint16_t)size;
  page->events = allocate(shadow, FIRST_EVENTS * sizeof(Epoch));
  page->capacity = FIRST_EVENTS;
  page->count = 1;
  set_marks(write_marks(page, 0), size, by_host ? EPOCH_HOST : EPOCH_NONE);
  return page;
}

// Keeps what the page remembers behind it.
static void keep(Shadow *shadow, ShadowPage *page) {
  ShadowPage *older = allocate(shadow, page_bytes(page->size));
  memcpy(older, page, page_bytes(page->size));
  older->events = allocate(shadow, page->capacity * sizeof(Epoch));
  memcpy(older->events, page->events, page->count * sizeof(Epoch));
  page->foreign = NULL;
  page->older = older;
}

// Forgets what an earlier launch did: it all happened before this one, unless the two may run at the same time.
static void renew(Shadow *shadow, ShadowPage *page, uint32_t launch) {
  ShadowPage **link = &page->older;
  while (*link && (*link)->launch >= shadow->kept_from) link = &(*link)->older;
  free_page(shadow, *link);
  *link = NULL;
  if (page->launch >= shadow->kept_from) keep(shadow, page);
  page->launch = launch;
  shadow_forget_events(page);
  Mark *write = write_marks(page, 0);
  for (int i = 0; i < page->size; i++) write[i] = write[i] ? EPOCH_HOST : EPOCH_NONE;
  set_marks(read_marks(page, 0), page->size, 0);
  forget_foreign(shadow, page);
}

// ---- events ----

// Neighbours mostly have the same event, so marks are looked at four at a time: those of the event looked at last are done.
#define FOUR_EVENTS (~(FourMarks)0 / 0xffff * (Mark)~LANE_MASK)

// places[e] becomes 1 for the events of the marks.
static void find_used(const Mark *marks, int size, Mark *places) {
  FourMarks last = ~(FourMarks)0, four;
  int i = 0;
  for (; i + 4 <= size; i += 4) {
    memcpy(&four, marks + i, sizeof four);
    if ((four & FOUR_EVENTS) == last) continue;
    last = four_times((Mark)four) & FOUR_EVENTS;
    for (int j = 0; j < 4; j++) places[marks[i + j] >> LANE_BITS] = 1;
  }
  for (; i < size; i++) places[marks[i] >> LANE_BITS] = 1;
}

static Mark renumbered(Mark mark, const Mark *places) {
  return (Mark)(places[mark >> LANE_BITS] << LANE_BITS | (mark & LANE_MASK));
}

static void renumber(Mark *marks, int size, const Mark *places) {
  FourMarks from = ~(FourMarks)0, to = 0, four;
  int i = 0;
  for (; i + 4 <= size; i += 4) {
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
  for (; i < size; i++) marks[i] = renumbered(marks[i], places);
}

// Drops the events that no byte remembers any more. The rest fill at most two thirds of the table then, so that the work
// is shared by at least half as many accesses as are left.
static void drop_events(Shadow *shadow, ShadowPage *page) {
  Mark places[MOST_EVENTS];  // where an event goes
  memset(places, 0, page->count * sizeof *places);
  find_used(page->marks, 2 * page->size, places);
  if (page->foreign) find_used(page->foreign, page->size, places);
  int count = page->count;
  shadow_forget_events(page);
  places[0] = 0;
  for (int e = 1; e < count; e++) {
    if (!places[e]) continue;
    page->events[page->count] = page->events[e];
    places[e] = page->count++;
  }
  renumber(page->marks, 2 * page->size, places);
  if (page->foreign) renumber(page->foreign, page->size, places);
  int needed = page->count + page->count / 2;
  if (needed <= page->capacity) return;
  usage_add(shadow->usage, (size_t)(needed - page->capacity) * sizeof(Epoch));
  page->capacity = (uint16_t)needed;
  page->events = realloc(page->events, page->capacity * sizeof(Epoch));
  if (!page->events) out_of_memory();
}

// Looks the event up in the table, which has room for one more.
static uint16_t find_event(ShadowPage *page, Epoch event) {
  enum { STEP = 8 };  // at once: see STEP in clocks.c
  int at = 0, count = page->count;
  for (; at + STEP <= count; at += STEP) {
    uint32_t found = 0;
    for (int i = 0; i < STEP; i++) found |= (uint32_t)(page->events[at + i] == event) << i;
    if (found) return (uint16_t)(at + __builtin_ctz(found));
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
  if (is_page(page) && page->launch != launch) renew((Shadow *)shadow, page, launch);
  return page;
}

// The same, and makes it one.
ShadowPage *shadow_make_page(Shadow *shadow, uint64_t offset, uint32_t launch) {
  ShadowPage *page = page_at(shadow, offset, launch);
  if (is_page(page)) return page;
  uint64_t index = offset >> SHADOW_PAGE_SHIFT;
  return shadow->pages[index] = new_page(shadow, index, page != NULL, launch);
}

// shadow_run on one page.
static int run_in_page(const Shadow *shadow, uint64_t offset, int size, uint32_t launch, Cell *cell) {
  ShadowPage *page = page_at(shadow, offset, launch);
  int left = left_in_page(shadow, offset);
  if (size > left) size = left;
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
  const ShadowPage *page = page_at(shadow, offset, launch);
  int left = left_in_page(shadow, offset);
  if (size > left) size = left;
  page = is_page(page) ? page->older : NULL;
  while (page && page->launch != past) page = page->older;
  *cell = (Cell){0};
  if (!page) return size;
  Shadow one = *shadow;
  one.pages = (ShadowPage *[]){(ShadowPage *)page};
  return shadow_run(&one, offset & (SHADOW_PAGE - 1), size, past, cell);
}

static int part_of(const Shadow *shadow, uint64_t offset, int size) {
  int left = left_in_page(shadow, offset);
  return size < left ? size : left;
}

void shadow_write_slowly(Shadow *shadow, uint64_t offset, int size, uint32_t launch, Epoch write) {
  for (int part; size > 0; size -= part, offset += (uint64_t)part) {
    part = part_of(shadow, offset, size);
    ShadowPage *page = shadow_make_page(shadow, offset, launch);
    set_marks(read_marks(page, offset), part, 0);
    if (page->foreign) set_marks(foreign_marks(page, offset), part, 0);
    if (part == page->size) shadow_forget_events(page);
    set_marks(write_marks(page, offset), part, mark_of_epoch(shadow, page, write));
  }
}

void shadow_read_slowly(Shadow *shadow, uint64_t offset, int size, uint32_t launch, Epoch read, Epoch foreign) {
  for (int part; size > 0; size -= part, offset += (uint64_t)part) {
    part = part_of(shadow, offset, size);
    ShadowPage *page = shadow_make_page(shadow, offset, launch);
    set_marks(read_marks(page, offset), part, mark_of_epoch(shadow, page, read));
    if (!foreign && !page->foreign) continue;
    if (!page->foreign) page->foreign = allocate(shadow, page->size * sizeof(Mark));
    set_marks(foreign_marks(page, offset), part, mark_of_epoch(shadow, page, foreign));
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
