// The tests in Python: of names in the code, of the pages, of make explain, of the plots and of plots/peers.py.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/program.h"
#include "support/sanitized.h"
#include "support/scratch.h"

static void run_python(const char *script) {
  if (SANITIZED) cr_skip_test("nothing in C is tested, and Python cannot load a library with a sanitizer in it");
  char command[1000];
  snprintf(command, sizeof command, FORGET_MAKE "cd '%s' && python3 tests/%s 2>&1", root_path(), script);
  FILE *pipe = popen(command, "r");
  cr_assert(pipe);
  static char output[1 << 16];
  output[fread(output, 1, sizeof output - 1, pipe)] = 0;
  cr_expect_eq(pclose(pipe), 0, "%s", output);
}

Test(training, python, .timeout = 120) { run_python("test_training.py"); }
Test(gpu_training, trains_like_pytorch, .timeout = 300) { run_python("test_training.py Gpu"); }
Test(generating, python, .timeout = 120) { run_python("test_generating.py"); }
Test(gpu_generating, generates_like_pytorch, .timeout = 300) { run_python("test_generating.py Gpu"); }
Test(pages, python, .timeout = 300) { run_python("test_pages.py"); }
Test(names, python, .timeout = 120) { run_python("test_names.py"); }
Test(quizzes, python, .timeout = 300) { run_python("test_quizzes.py"); }
Test(explain, python, .timeout = 60) { run_python("test_explain.py"); }
Test(cases, python, .timeout = 600) { run_python("test_cases.py"); }
Test(plots, python, .timeout = 120) { run_python("test_plots.py"); }
Test(peers, python, .timeout = 120) { run_python("peers/test_peers.py"); }
Test(peers, decode, .timeout = 120) { run_python("peers/test_decode_peers.py"); }
Test(peers, others, .timeout = 60) { run_python("peers/test_other_peers.py"); }
