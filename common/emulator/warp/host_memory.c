// Memory of the host: see host_memory.h.
#define _GNU_SOURCE  // program_invocation_short_name
#include "host_memory.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { EXIT_CODE = 2 };  // as for any other request that this host cannot fulfil

void out_of_memory(void) {
  static atomic_flag reported = ATOMIC_FLAG_INIT;
  while (atomic_flag_test_and_set(&reported)) pause();  // another host thread is about to end the process
  fflush(stdout);
  fprintf(stderr, "%s: the emulator needs more memory than the host has; a smaller problem fits\n",
          program_invocation_short_name);
  _exit(EXIT_CODE);
}

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
