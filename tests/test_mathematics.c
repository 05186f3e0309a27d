// CUDA's mathematics on the emulator, as an H100 computed it: every sixteenth function of tests/mathematics, with its
// first inputs. `make test-mathematics` takes all functions and all inputs.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/program.h"
#include "support/sanitized.h"

// What hopper-run preloads into a program cannot have a sanitizer.
TestSuite(mathematics, .timeout = 120, .disabled = SANITIZED);

Test(mathematics, every_sixteenth_function) {
  char line[1000];
  const char *built = getenv("BUILT");
  snprintf(line, sizeof line, "--hazards=off %s/mathematics/sample check tests/mathematics 4096",
           built ? built : "build");
  Output *output = run_line("hopper-run", line);
  cr_expect_eq(output->code, 0, "%s%s", output->out, output->err);
  cr_expect(strstr(output->out, ", 0 wrong\n"), "%s%s", output->out, output->err);
  free(output);
}
