// A piece of memory with exact bounds and, where races are looked for, a shadow.
#pragma once

#include "shadow.h"

typedef enum RegionKind { REGION_GLOBAL, REGION_SHARED, REGION_CONST } RegionKind;

typedef struct Region {
  RegionKind kind;
  uint64_t base;  // address of its first byte, in its own space
  uint64_t size;  // bytes
  uint8_t *data;
  Shadow shadow;     // without hazard checks it has no pages
  const char *name;  // of a module's variable, NULL for an allocation
  bool freed;
  bool is_host;               // base is the host's address of data
  bool borrowed;              // data belongs to the host
  bool is_heap;               // a kernel's malloc returned it
  bool is_mapped;             // data is of mmap
  struct UsedMap *used_maps;  // tensor maps in global memory that copies have used: async/tensor_map_edit.c
  int used_map_count, used_map_capacity;
  struct RegionUsage *usage;
} Region;

// Bytes of a region.
typedef struct Span {
  const Region *region;
  uint64_t offset;
  int size;
} Span;

static inline uint64_t span_address(const Span *span) { return span->region->base + span->offset; }

enum { REGION_POISON = 0xcb };

// What regions take of the host's memory.
typedef struct RegionUsage {
  Usage data, shadow;
} RegionUsage;

// Allocates data and, with_shadow, the beginning of a shadow; poisons the data. False when memory is exhausted.
bool region_init(Region *region, RegionKind kind, uint64_t base, uint64_t size, bool with_shadow, RegionUsage *usage);
void region_destroy(Region *region);
// Marks bytes as written by the host, before the launch.
void region_host_write(Region *region, uint64_t offset, uint64_t size);

// Regions sorted by address, which never overlap. A freed one is kept as a tombstone, so that a use after free is
// reported as such; only the host's memory may be mapped where it was before, and then the tombstone goes.
typedef struct RegionTable {
  Region **items;
  int count, capacity;
  uint64_t next_base;
  uint64_t heap_size, heap_used;  // bytes that malloc in kernels may give out, and those that it has given
  RegionUsage *usage;
} RegionTable;

// The region that contains the address, or NULL; *nearest is then the closest one, if any.
Region *region_find(const RegionTable *table, uint64_t address, const Region **nearest);
Region *region_add(RegionTable *table, RegionKind kind, uint64_t size, bool with_shadow);
// Memory that was freed, at its old address: poisoned and unwritten. NULL when no freed region of region_add begins
// there.
Region *region_renew(RegionTable *table, uint64_t base, bool with_shadow);
// The host's memory at its own address, which counts as written. The base is memory, rounded down to a page of the
// shadow. NULL when it overlaps a region.
Region *region_map(RegionTable *table, void *memory, uint64_t size, bool with_shadow);
// Memory that the host and kernels reach by one address, poisoned.
Region *region_add_shared(RegionTable *table, uint64_t size, bool with_shadow);
// malloc and free of kernels. NULL when the heap has too little left. keep: what was freed stays readable, because an
// asynchronous operation may still use it.
Region *region_add_heap(RegionTable *table, uint64_t size, bool with_shadow);
void region_free_heap(RegionTable *table, Region *region, bool keep);
void region_table_destroy(RegionTable *table);
