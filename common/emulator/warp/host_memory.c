// Memory of the host: see host_memory.h.
#include "host_memory.h"

#include <stdlib.h>

void *host_allocate(size_t count, size_t size) {
  void *memory = calloc(count ? count : 1, size);
  if (!memory) abort();
  return memory;
}

void *host_enlarge(void *items, int *capacity, size_t size) {
  *capacity = *capacity ? *capacity * 2 : 16;
  items = realloc(items, (size_t)*capacity * size);
  if (!items) abort();
  return items;
}
