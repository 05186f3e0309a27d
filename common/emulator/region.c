// Memory with exact bounds: see region.h.
#include "region.h"

#include <stdlib.h>
#include <string.h>

bool region_init(Region *region, RegionKind kind, uint64_t base, uint64_t size, bool with_cells) {
  *region = (Region){.kind = kind, .base = base, .size = size};
  region->data = malloc(size ? size : 1);
  if (region->data && with_cells) {
    // calloc of something large is mapped zero pages: cells cost nothing until touched.
    region->cells = calloc(size ? size : 1, sizeof(Cell));
    region->ages = calloc((size >> REGION_PAGE_SHIFT) + 1, sizeof(uint32_t));
  }
  if (!region->data || (with_cells && (!region->cells || !region->ages))) {
    region_destroy(region);
    return false;
  }
  memset(region->data, REGION_POISON, size);
  return true;
}

void region_destroy(Region *region) {
  free(region->data);
  free(region->cells);
  free(region->ages);
  region->data = NULL;
  region->cells = NULL;
  region->ages = NULL;
}

// Whole pages are just noted: most of what the host writes no kernel ever touches at once.
void region_host_write(Region *region, uint64_t offset, uint64_t size) {
  if (!region->cells) return;
  for (uint64_t at = offset, end = offset + size, next; at < end; at = next) {
    uint64_t page = at >> REGION_PAGE_SHIFT, page_end = (page + 1) << REGION_PAGE_SHIFT;
    if (page_end > region->size) page_end = region->size;
    next = page_end < end ? page_end : end;
    if (region->ages[page] == REGION_HOST_PAGE) continue;
    if (at == page << REGION_PAGE_SHIFT && next == page_end)
      region->ages[page] = REGION_HOST_PAGE;
    else
      for (uint64_t i = at; i < next; i++) region->cells[i] = (Cell){.write = EPOCH_HOST};
  }
}

// Index of the first region whose base is above the address.
static int region_above(const RegionTable *table, uint64_t address) {
  int low = 0, high = table->count;
  while (low < high) {
    int middle = (low + high) / 2;
    if (table->items[middle]->base <= address)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

Region *region_find(const RegionTable *table, uint64_t address, const Region **nearest) {
  int above = region_above(table, address);
  Region *below = above > 0 ? table->items[above - 1] : NULL;
  if (below && address - below->base < below->size && !below->freed) return below;
  if (nearest) *nearest = below ? below : above < table->count ? table->items[above] : NULL;
  return NULL;
}

Region *region_add(RegionTable *table, RegionKind kind, uint64_t size, bool with_cells) {
  if (size > UINT64_MAX / sizeof(Cell) / 2) return NULL;
  Region *region = malloc(sizeof *region);
  if (!region || !region_init(region, kind, table->next_base, size, with_cells)) {
    free(region);
    return NULL;
  }
  if (table->count == table->capacity) {
    table->capacity = table->capacity ? table->capacity * 2 : 16;
    table->items = realloc(table->items, (size_t)table->capacity * sizeof *table->items);
    if (!table->items) abort();
  }
  table->items[table->count++] = region;
  // A gap after every region: an index one row too far must not land in a neighbour.
  table->next_base += (size + 0xffff) / 0x1000 * 0x1000;
  return region;
}

void region_table_destroy(RegionTable *table) {
  for (int i = 0; i < table->count; i++) {
    region_destroy(table->items[i]);
    free(table->items[i]);
  }
  free(table->items);
}
