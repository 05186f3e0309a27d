// Memory of the host.
#pragma once

#include <stddef.h>

// Ends the process: a line on standard error, and exit code 2. A launch holds locks and memory in many host threads, so none
// of them can give up alone.
_Noreturn void out_of_memory(void);
// Called at the beginning of a host thread: what it allocates from now on costs the system little. Optional.
void host_prepare(void);
// Zeroed, also of no bytes at all. Without memory: out_of_memory.
void *host_allocate(size_t count, size_t size);
// A larger copy of an array of items of a size, which replaces it. Without memory: out_of_memory.
void *host_enlarge(void *items, int *capacity, size_t size);
// The array with room for one item more than `count`: the same one, or a larger copy.
static inline void *host_grow(void *items, int count, int *capacity, size_t size) {
  return count < *capacity ? items : host_enlarge(items, capacity, size);
}
