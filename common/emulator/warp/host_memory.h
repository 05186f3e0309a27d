// Memory of the host. When there is none left the emulator aborts.
#pragma once

#include <stddef.h>

// Zeroed, also of no bytes at all.
void *host_allocate(size_t count, size_t size);
// A larger copy of an array of items of a size, which replaces it.
void *host_enlarge(void *items, int *capacity, size_t size);
// The array with room for one item more than `count`: the same one, or a larger copy.
static inline void *host_grow(void *items, int count, int *capacity, size_t size) {
  return count < *capacity ? items : host_enlarge(items, capacity, size);
}
