#define _GNU_SOURCE  // program_invocation_short_name
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "usage.h"

enum { EXIT_CODE = 2 };  // as for any other request that this host cannot fulfil

void out_of_memory(void) {
  static atomic_flag reported = ATOMIC_FLAG_INIT;
  while (atomic_flag_test_and_set(&reported)) pause();  // another host thread is about to end the process
  fflush(stdout);
  fprintf(stderr, "%s: the emulator needs more memory than the host has; a smaller problem fits\n",
          program_invocation_short_name);
  _exit(EXIT_CODE);
}
