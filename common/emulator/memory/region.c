// Memory with exact bounds: see region.h.
#include "region.h"

#include <stdlib.h>
#include <string.h>

bool region_init(Region *region, RegionKind kind, uint64_t base, uint64_t size, bool with_shadow, RegionUsage *usage) {
  *region = (Region){.kind = kind, .base = base, .size = size, .usage = usage};
  region->data = malloc(size ? size : 1);
  if (!region->data) return false;
  if (with_shadow && !shadow_init(&region->shadow, size, &usage->shadow)) {
    free(region->data);
    return false;
  }
  memset(region->data, REGION_POISON, size);
  usage_add(&usage->data, size);
  return true;
}

void region_destroy(Region *region) {
  if (!region->data) return;
  usage_subtract(&region->usage->data, region->size);
  free(region->data);
  region->data = NULL;
  shadow_destroy(&region->shadow);
}

void region_host_write(Region *region, uint64_t offset, uint64_t size) {
  if (region->shadow.pages) shadow_host_write(&region->shadow, offset, size);
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

Region *region_add(RegionTable *table, RegionKind kind, uint64_t size, bool with_shadow) {
  if (size >> 39) return NULL;  // 512 GB: more than any GPU has
  Region *region = malloc(sizeof *region);
  if (!region || !region_init(region, kind, table->next_base, size, with_shadow, table->usage)) {
    free(region);
    return NULL;
  }
  if (table->count == table->capacity) {
    table->capacity = table->capacity ? table->capacity * 2 : 16;
    table->items = realloc(table->items, (size_t)table->capacity * sizeof *table->items);
    if (!table->items) out_of_memory();
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
