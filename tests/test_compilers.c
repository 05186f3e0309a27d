// What hopper-run prepares for programs that compile kernels while they run: stand-ins for ptxas and nvcc, and caches;
// and for pytest.
// A shell takes the place of Triton and the others here.
#include <criterion/criterion.h>
#include <string.h>

#include "support/sanitized.h"
#include "support/scratch.h"

TestSuite(compilers, .init = scratch_enter, .fini = scratch_leave, .timeout = 60, .disabled = SANITIZED);

#define RUN "\"$ROOT/hopper-run\" "

static void expect_run(const char *command, int code) {
  int actual = scratch_run(command);
  cr_expect_eq(actual, code, "exit code %d\n%s", actual, scratch_output);
}

static void expect_line(const char *words) {
  cr_expect(scratch_has_line(words), "no line \"%s\" in\n%s", words, scratch_output);
}

// ---- ptxas ----

Test(compilers, ptxas_hands_ptx_on) {
  scratch_write("in.ptx", ".version 8.0\n");
  expect_run(RUN "sh -c '\"$TRITON_PTXAS_PATH\" -lineinfo -v --gpu-name=sm_90a in.ptx -o out && "
                 "\"$TRITON_PTXAS_BLACKWELL_PATH\" -arch sm_90a -o other in.ptx' && cmp in.ptx out && cmp in.ptx other",
             0);
}

Test(compilers, ptxas_has_a_version) {
  expect_run(RUN "sh -c '\"$TRITON_PTXAS_PATH\" --version'", 0);
  cr_expect(strstr(scratch_output, "release 13.0, V13.0."), "%s", scratch_output);
}

Test(compilers, ptxas_needs_a_file) {
  expect_run(RUN "sh -c '\"$TRITON_PTXAS_PATH\" -v -o out'", 1);
  cr_expect(strstr(scratch_output, "needs a file"), "%s", scratch_output);
}

// ---- nvcc ----

// A toolkit whose nvcc prints its arguments, a word a line, and whether it would preload something.
static void make_toolkit(void) {
  expect_run("mkdir -p toolkit/bin toolkit/include && echo 12 >toolkit/include/cuda.h", 0);
  scratch_write_script("toolkit/bin/nvcc", "echo nvcc \"$@\"; echo preloads $LD_PRELOAD.\n");
  scratch_write_script("toolkit/bin/cuobjdump", "echo cuobjdump\n");
}

#define WITH_TOOLKIT "CUDA_HOME=$PWD/toolkit " RUN

Test(compilers, nvcc_writes_ptx_for_a_cubin) {
  make_toolkit();
  expect_run(WITH_TOOLKIT "sh -c '\"$CUDA_HOME\"/bin/nvcc --cubin -arch sm_90a \"a b.cu\" -o out'", 0);
  expect_line("nvcc -ptx -arch sm_90a a b.cu -o out -lineinfo");
  expect_line("preloads .");
  expect_run(WITH_TOOLKIT "sh -c 'nvcc -cubin -I/include some/kernel.cu'", 0);
  expect_line("nvcc -ptx -I/include some/kernel.cu -lineinfo -o kernel.cubin");
}

Test(compilers, nvcc_is_the_users_otherwise) {
  make_toolkit();
  expect_run(WITH_TOOLKIT "sh -c 'nvcc -c a.cu \"-DA=\\\"b c\\\"\"'", 0);
  expect_line("nvcc -c a.cu -DA=\"b c\"");
}

Test(compilers, toolkit_is_the_users_otherwise) {
  make_toolkit();
  expect_run(WITH_TOOLKIT "sh -c '\"$CUDA_HOME\"/bin/cuobjdump; cat \"$CUDA_HOME\"/include/cuda.h'", 0);
  expect_line("cuobjdump");
  expect_line("12");
}

Test(compilers, toolkit_is_found_on_the_path) {
  make_toolkit();
  expect_run("unset CUDA_HOME CUDA_PATH; PATH=$PWD/toolkit/bin:$PATH " RUN "sh -c 'nvcc -v; cat $CUDA_HOME/include/*'",
             0);
  expect_line("nvcc -v");
  expect_line("12");
}

// ---- caches ----

#define FILL                                                                                                           \
  "for folder in \"$TRITON_CACHE_DIR\" \"$PYCUDA_CACHE_DIR\" \"$TILELANG_CACHE_DIR\" \"$NUMBA_CACHE_DIR\" "            \
  "\"$TORCHINDUCTOR_CACHE_DIR\" \"$CUPY_CACHE_DIR\"; do mkdir -p \"$folder/deep\" && echo 1 >\"$folder/deep/cubin\" "  \
  "&& echo \"$folder\"; done >>\"$NOTE\"; touch \"$CACHEDB\" && echo \"$CACHEDB\" >>\"$NOTE\"; "
#define NONE_IS_LEFT "[ $(wc -l <note) = 7 ] && while read path; do [ ! -e \"$path\" ] || exit 9; done <note"

Test(compilers, caches_go_with_the_run) {
  scratch_write_script("fill", FILL);
  expect_run("export NOTE=$PWD/note; " RUN "./fill && " NONE_IS_LEFT, 0);
}

Test(compilers, caches_go_after_an_interrupt) {
  scratch_write_script("fill", FILL "kill -INT $PPID; kill -TERM $$\n");
  expect_run("export NOTE=$PWD/note; " RUN "./fill; [ $? = 143 ] && " NONE_IS_LEFT, 0);
}

Test(compilers, caches_are_those_of_one_run) {
  expect_run(
      "export TRITON_CACHE_DIR=$PWD/mine; mkdir mine; touch mine/cubin; for i in 1 2; do " RUN
      "sh -c 'echo $TRITON_CACHE_DIR; ls $TRITON_CACHE_DIR 2>/dev/null; mkdir -p $TRITON_CACHE_DIR' >run$i; done; "
      "[ $(wc -l <run1) = 1 ] && [ $(wc -l <run2) = 1 ] && ! cmp -s run1 run2 && ! grep -q mine run1 && ls mine",
      0);
  expect_line("cubin");
}

// A folder that is linked from the caches is the user's.
Test(compilers, links_are_not_followed) {
  expect_run("mkdir mine && touch mine/file && MINE=$PWD/mine " RUN "sh -c 'ln -s $MINE $TRITON_CACHE_DIR' && ls mine",
             0);
  expect_line("file");
}

// ---- Python ----

Test(compilers, python_finds_a_plugin_and_keeps_the_users) {
  expect_run("export PYTHONPATH=/some/where PYTEST_PLUGINS=mine; " RUN
             "sh -c 'echo $PYTEST_PLUGINS; echo ${PYTHONPATH#*:}; ls ${PYTHONPATH%%:*}'",
             0);
  expect_line("hopper_run_pytest,mine");
  expect_line("/some/where");
  expect_line("hopper_run_pytest.py");
}

// What the plugin asks for after each test.
Test(compilers, findings_since_the_last_call) {
  expect_run(RUN "python3 \"$ROOT/tests/runner/findings.py\" 2>/dev/null", 1);
  static const char *const lines[] = {
      "before cuInit: False, False", "right: False, False",    "race: True, True",
      "right again: False, False",   "race again: True, True", "nothing since: False, False"};
  for (int i = 0; i < 6; i++) expect_line(lines[i]);
}

// A module of that name stands for Triton, whose timers would divide by the time between two events.
Test(compilers, timers_of_triton_call_once) {
  expect_run("mkdir -p triton && touch triton/__init__.py", 0);
  scratch_write("triton/testing.py", "def do_bench(fn, **options):\n    raise ZeroDivisionError\n");
  scratch_write("program.py", "import triton.testing\n"
                              "print(triton.testing.do_bench(lambda: print('called')))\n"
                              "print(triton.testing.do_bench(lambda: 0, warmup=1, quantiles=[0.5, 0.2]))\n"
                              "print(triton.testing.do_bench(lambda: 0, return_mode='all'))\n");
  expect_run(RUN "python3 program.py", 0);
  static const char *const lines[] = {"called", "nan", "[nan, nan]", "[nan]"};
  for (int i = 0; i < 4; i++) expect_line(lines[i]);
  expect_run("python3 program.py", 1);  // as it is without hopper-run
}
