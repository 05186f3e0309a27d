// Memory of the host.
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

// Ends the process: a line on standard error, and exit code 2. A launch holds locks and memory in many host threads, so
// none of them can give up alone.
_Noreturn void out_of_memory(void);
// Called at the beginning of a host thread: what it allocates from now on costs the system little. This changes malloc
// for the whole process, which must want it.
void host_keep_memory(void);
// Zeroed, also of no bytes at all. Without memory: out_of_memory.
void *host_allocate(size_t count, size_t size);
// A larger copy of an array of items of a size, which replaces it. Without memory: out_of_memory.
void *host_enlarge(void *items, int *capacity, size_t size);
// The array with room for one item more than `count`: the same one, or a larger copy.
static inline void *host_grow(void *items, int count, int *capacity, size_t size) {
  return count < *capacity ? items : host_enlarge(items, capacity, size);
}

// ---- what it takes ----

typedef struct Usage {
  _Atomic size_t now, most;  // bytes
} Usage;

static inline void usage_add(Usage *usage, size_t bytes) {
  size_t now = atomic_fetch_add_explicit(&usage->now, bytes, memory_order_relaxed) + bytes;
  size_t most = atomic_load_explicit(&usage->most, memory_order_relaxed);
  while (now > most &&
         !atomic_compare_exchange_weak_explicit(&usage->most, &most, now, memory_order_relaxed, memory_order_relaxed)) {
  }
}

static inline void usage_subtract(Usage *usage, size_t bytes) {
  atomic_fetch_sub_explicit(&usage->now, bytes, memory_order_relaxed);
}

static inline size_t usage_most(const Usage *usage) { return atomic_load_explicit(&usage->most, memory_order_relaxed); }

// A function of which no call is left: what is constant where it is used is constant in it.

#define ALWAYS_INLINE static inline __attribute__((always_inline))

// What everything counts in: the lanes of a warp.

enum { LANES = 32 };
typedef uint32_t Mask;  // a bit for each lane
#define FULL_MASK 0xffffffffu
