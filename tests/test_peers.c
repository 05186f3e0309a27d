// plots/peers.py: its tests are in Python, tests/peers/test_peers.py.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/program.h"

#if defined __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED
#endif
#elif defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define SANITIZED
#endif

Test(peers, python_tests, .timeout = 120) {
#ifdef SANITIZED
  cr_skip_test("Python cannot load a library with a sanitizer in it");
#endif
  char command[1000];
  snprintf(command, sizeof command, "cd '%s' && python3 tests/peers/test_peers.py 2>&1", root_path());
  FILE *pipe = popen(command, "r");
  cr_assert(pipe);
  static char output[1 << 16];
  output[fread(output, 1, sizeof output - 1, pipe)] = 0;
  cr_expect_eq(pclose(pipe), 0, "%s", output);
}
