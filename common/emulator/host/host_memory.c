// Memory of the host: see host_memory.h.
#define _GNU_SOURCE  // program_invocation_short_name, madvise, where they are
#include "host_memory.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef __GLIBC__
#include <malloc.h>
#include <sys/mman.h>
#endif

enum { EXIT_CODE = 2 };  // as for any other request that this host cannot fulfil

void out_of_memory(void) {
  static atomic_flag reported = ATOMIC_FLAG_INIT;
  while (atomic_flag_test_and_set(&reported)) sched_yield();  // another host thread is about to end the process
#ifdef __GLIBC__
  const char *const program = program_invocation_short_name;
#else
  const char *const program = "error";
#endif
  fflush(stdout);
  fprintf(stderr, "%s: the emulator needs more memory than the host has; a smaller problem fits\n", program);
  _Exit(EXIT_CODE);
}

#ifdef __GLIBC__

// Extends the thread's heap, and asks for huge pages there.
static void *extend_heap(size_t size) {
  enum { HUGE_PAGE = 2 << 20 };
  uint8_t *room = malloc(size);
  if (room) madvise(room + (HUGE_PAGE - (uintptr_t)room % HUGE_PAGE), size - HUGE_PAGE, MADV_HUGEPAGE);
  return room;
}

// glibc extends a thread's heap page by page, returns pages to the system when a block ends, and maps large allocations
// one by one. That was a third of the time of a small launch. Here the heap becomes as large as glibc lets a thread's
// be, 64 MiB, and stays so. The system provides its pages when they are first used. Under ASan mallopt fails, and
// nothing is done.
void host_keep_memory(void) {
  enum { LARGEST = 32 << 20, ROOM = 30 << 20 };  // glibc refuses a threshold above LARGEST
  if (!mallopt(M_MMAP_THRESHOLD, LARGEST) || !mallopt(M_TRIM_THRESHOLD, INT32_MAX)) return;
  void *first = extend_heap(ROOM), *second = extend_heap(ROOM);
  free(second);
  free(first);
}

#else

void host_keep_memory(void) {}

#endif

void *host_allocate(size_t count, size_t size) {
  void *memory = calloc(count ? count : 1, size);
  if (!memory) out_of_memory();
  return memory;
}

void *host_enlarge(void *items, int *capacity, size_t size) {
  *capacity = *capacity ? *capacity * 2 : 16;
  items = realloc(items, (size_t)*capacity * size);
  if (!items) out_of_memory();
  return items;
}
