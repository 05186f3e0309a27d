// What the programs do where the machine does not play along: a line on standard error and one of the exit codes that
// README.md promises.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/program.h"
#include "support/scratch.h"

TestSuite(failures, .timeout = 120, .init = scratch_enter, .fini = scratch_leave);

static int lines_of(const char *text) {
  int lines = 0;
  for (; *text; text++) lines += *text == '\n';
  return lines;
}

// ---- memory ----

#ifndef __SANITIZE_ADDRESS__  // which needs a large address space of its own
// With more and more memory, from too little for a launch to enough: no run ends without a word.
Test(failures, out_of_memory_is_told) {
  int told = 0, code = 2;
  for (int kilobytes = 8000; kilobytes <= 40000; kilobytes += 1000) {
    char command[200];
    snprintf(command, sizeof command,
             "ulimit -v %d && \"$ROOT\"/stage-00 --device=emulator --seqlen=64 >report 2>errors; code=$?; cat errors; "
             "exit $code",
             kilobytes);
    code = scratch_run(command);
    cr_expect(code == 0 || code == 2, "%d KB: exit code %d: %s", kilobytes, code, scratch_output);
    cr_expect_eq(lines_of(scratch_output), code != 0, "%d KB: %s", kilobytes, scratch_output);
    told += strstr(scratch_output, "the emulator needs more memory than the host has") != NULL;
  }
  cr_expect_eq(code, 0, "the largest is not enough: %s", scratch_output);
  cr_expect_geq(told, 1, "no run ended inside a launch");
}
#endif
