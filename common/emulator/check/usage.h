// How much of the host's memory a purpose takes. Host threads count side by side.
#pragma once

#include <stdatomic.h>
#include <stddef.h>

// Ends the process: a line on standard error, and exit code 2. A launch holds locks and memory in many host threads, so none
// of them can give up alone. out_of_memory.c
_Noreturn void out_of_memory(void);

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
