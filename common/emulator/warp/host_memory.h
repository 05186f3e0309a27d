// Memory of the host. When there is none left the emulator aborts.
#pragma once

#include <stddef.h>

// Zeroed, also of no bytes at all.
void *host_allocate(size_t count, size_t size);
// An array of items of a size, with room for one more than `count`: the same one, or a larger copy that replaces it.
void *host_grow(void *items, int count, int *capacity, size_t size);
