// Memory with exact bounds: see region.h.
#define _GNU_SOURCE  // memfd_create, on Linux
#include "region.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#ifdef __linux__
#include <sys/mman.h>
#include <unistd.h>
#endif

#include "../host/host_memory.h"

// ---- poisoned memory ----
//
// A large region is mapped to a file of poison, again and again. So a page costs time and memory when it is first
// written, and the part that a program never touches costs nothing.

#ifdef __linux__

enum { LARGE = 32 << 20, POISON_FILE = 16 << 20 };

static int poison_file = -1;

static void make_poison_file(void) {
  int file = memfd_create("poison", MFD_CLOEXEC);
  if (file < 0) return;
  void *bytes =
      ftruncate(file, POISON_FILE) ? MAP_FAILED : mmap(NULL, POISON_FILE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (bytes == MAP_FAILED) {
    close(file);
    return;
  }
  memset(bytes, REGION_POISON, POISON_FILE);
  munmap(bytes, POISON_FILE);
  poison_file = file;
}

// NULL when the host cannot do it, or need not.
static uint8_t *map_poison(size_t size) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, make_poison_file);
  const int access = PROT_READ | PROT_WRITE, flags = MAP_PRIVATE | MAP_NORESERVE;
  if (size < LARGE || poison_file < 0) return NULL;
  uint8_t *memory = mmap(NULL, size, access, flags | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return NULL;
  for (size_t done = 0, part; done < size; done += part) {
    part = size - done < POISON_FILE ? size - done : POISON_FILE;
    if (mmap(memory + done, part, access, flags | MAP_FIXED, poison_file, 0) != MAP_FAILED) continue;
    munmap(memory, size);
    return NULL;
  }
  return memory;
}

static void unmap_poison(void *memory, size_t size) { munmap(memory, size); }

#else

static uint8_t *map_poison(size_t size) { return (void)size, NULL; }
static void unmap_poison(void *memory, size_t size) { (void)memory, (void)size; }

#endif

static bool allocate_poisoned(Region *region) {
  size_t size = (size_t)region->size;  // of 32 bits on some hosts: nobody can ask for more there
  region->data = map_poison(size);
  region->is_mapped = region->data != NULL;
  if (region->is_mapped) return true;
  region->data = malloc(size ? size : 1);
  if (region->data) memset(region->data, REGION_POISON, size);
  return region->data != NULL;
}

static void free_data(Region *region) {
  if (region->is_mapped)
    unmap_poison(region->data, region->size);
  else if (!region->borrowed)
    free(region->data);
}

bool region_init(Region *region, RegionKind kind, uint64_t base, uint64_t size, bool with_shadow, RegionUsage *usage) {
  *region = (Region){.kind = kind, .base = base, .size = size, .usage = usage};
  if (!allocate_poisoned(region)) return false;
  if (with_shadow && !shadow_init(&region->shadow, size, &usage->shadow)) {
    free_data(region);
    return false;
  }
  usage_add(&usage->data, size);
  return true;
}

void region_destroy(Region *region) {
  if (!region->data) return;
  shadow_destroy(&region->shadow);  // first: at every moment the usage counts the memory of a shadow, too
  if (!region->borrowed) usage_subtract(&region->usage->data, region->size);
  free_data(region);
  free(region->used_maps);
  region->data = NULL;
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

static void insert_region(RegionTable *table, int at, Region *region) {
  table->items = host_grow(table->items, table->count, &table->capacity, sizeof *table->items);
  memmove(table->items + at + 1, table->items + at, (size_t)(table->count - at) * sizeof *table->items);
  table->items[at] = region;
  table->count++;
}

Region *region_add(RegionTable *table, RegionKind kind, uint64_t size, bool with_shadow) {
  if (size >> 39) return NULL;  // 512 GB: more than any GPU has
  Region *region = malloc(sizeof *region);
  if (!region || !region_init(region, kind, table->next_base, size, with_shadow, table->usage)) {
    free(region);
    return NULL;
  }
  insert_region(table, region_above(table, region->base), region);
  // A gap after every region: an index one row too far must not land in a neighbour.
  table->next_base += (size + 0xffff) / 0x1000 * 0x1000;
  return region;
}

Region *region_renew(RegionTable *table, uint64_t base, bool with_shadow) {
  int at = region_above(table, base) - 1;
  Region *region = at >= 0 ? table->items[at] : NULL;
  if (!region || region->base != base || !region->freed || region->is_host) return NULL;
  if (region_init(region, region->kind, base, region->size, with_shadow, table->usage)) return region;
  region->freed = true;
  return NULL;
}

// ---- the host's memory ----

static void drop(RegionTable *table, int at) {
  free(table->items[at]);
  table->count--;
  memmove(table->items + at, table->items + at + 1, (size_t)(table->count - at) * sizeof *table->items);
}

// Makes room for [base, base + size) by dropping tombstones; -1 when a region that lives is in the way, else the index
// at which a new one belongs.
static int clear_range(RegionTable *table, uint64_t base, uint64_t size) {
  int at = region_above(table, base);
  while (at > 0 && table->items[at - 1]->base + table->items[at - 1]->size > base) {
    if (!table->items[at - 1]->freed) return -1;
    drop(table, --at);
  }
  while (at < table->count && table->items[at]->base - base < size) {
    if (!table->items[at]->freed) return -1;
    drop(table, at);
  }
  return at;
}

Region *region_map(RegionTable *table, void *memory, uint64_t size, bool with_shadow) {
  uint64_t address = (uint64_t)(uintptr_t)memory, base = address / SHADOW_PAGE * SHADOW_PAGE;
  size += address - base;
  int at = clear_range(table, base, size);
  if (at < 0) return NULL;
  Region *region = host_allocate(1, sizeof *region);
  *region = (Region){.kind = REGION_GLOBAL,
                     .base = base,
                     .size = size,
                     .data = (uint8_t *)memory - (address - base),
                     .is_host = true,
                     .borrowed = true,
                     .usage = table->usage};
  if (with_shadow && !shadow_init(&region->shadow, size, &table->usage->shadow)) {
    free(region);
    return NULL;
  }
  region_host_write(region, 0, size);
  insert_region(table, at, region);
  return region;
}

Region *region_add_shared(RegionTable *table, uint64_t size, bool with_shadow) {
  size_t rounded = (size + SHADOW_PAGE - 1) / SHADOW_PAGE * SHADOW_PAGE;
  void *memory = aligned_alloc(SHADOW_PAGE, rounded ? rounded : SHADOW_PAGE);
  Region *region = memory ? region_map(table, memory, size, with_shadow) : NULL;
  if (!region) {
    free(memory);
    return NULL;
  }
  region->borrowed = false;
  usage_add(&table->usage->data, size);
  return region;
}

// ---- the heap of kernels ----

Region *region_add_heap(RegionTable *table, uint64_t size, bool with_shadow) {
  if (size == 0) size = 1;
  if (size > table->heap_size || table->heap_used > table->heap_size - size) return NULL;
  Region *region = region_add(table, REGION_GLOBAL, size, with_shadow);
  if (!region) return NULL;
  region->is_heap = true;
  table->heap_used += size;
  return region;
}

void region_free_heap(RegionTable *table, Region *region, bool keep) {
  table->heap_used -= region->size;
  region->freed = true;
  if (!keep) region_destroy(region);
}

void region_table_destroy(RegionTable *table) {
  for (int i = 0; i < table->count; i++) {
    region_destroy(table->items[i]);
    free(table->items[i]);
  }
  free(table->items);
}
