// cuda12.sh, with made-up compilers and a made-up stage: what it must refuse. (make test-cuda has the real ones.)
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "support/scratch.h"

#define CUDA12 "sh common/build/cuda12.sh ./nvrtc . ./ptxas 12.0 "
#define CLEAN "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads"

// A ptxas that says `words` of a kernel, and of wgmma.ptx that it serialises what has no wait.
static void fake_ptxas(const char *name, const char *words) {
  char body[1000];
  snprintf(body, sizeof body,
           "case \"$*\" in\n"
           "  --version) echo 'Cuda compilation tools, release 13.0, V13.0.88';;\n"
           "  *claim.ptx*) grep -q wait build/cuda12/claim.ptx || echo 'ptxas info : (C7514) serialized';;\n"
           "  *) while [ $# -gt 1 ]; do [ $1 = -o ] && echo cubin >$2; shift; done\n"
           "     echo \"%s\"\necho 'ptxas info : Used 168 registers'; echo 'ptxas info : Used 40 registers';;\n"
           "esac\n",
           words);
  scratch_write_script(name, body);
}

// CUDA 12.0 as the wheels would install it, and a stage 03, all of it right.
static void enter(void) {
  scratch_enter();
  scratch_run("ln -s \"$ROOT/common\" . && mkdir -p tests/cuda build/kernels build/cuda-12.0/bin build/cuda-12.0/lib\n"
              "touch build/cuda-12.0/lib/libnvrtc.so.12; echo 'Used 255 registers' >build/kernels/03-cp-async.log");
  scratch_write("tests/cuda/wgmma.ptx", "mma\nwait\n");
  scratch_write("tests/cuda/claims", "# a comment\n12.[0-4] 13.*|right||\n12.0|without wait|/wait/d|C7514\n");
  fake_ptxas("ptxas", CLEAN);
  fake_ptxas("build/cuda-12.0/bin/ptxas", CLEAN);
  scratch_write_script("nvrtc", "echo ptx >$3\n");
  scratch_write_script("stage-03", "case \"$*\" in\n"
                                   "  --help) echo '  --seqlen=N';;\n"
                                   "  *--ptx=build/cuda12/12.0/03-cp-async.ptx*--seqlen=*) ;;\n"
                                   "  *) exit 2;;\n"
                                   "esac\n");
}

TestSuite(cuda12, .init = enter, .fini = scratch_leave);

// Runs it and expects this row, and that it fails when the row has a failure, with these words.
static void expect(const char *arguments, const char *row, const char *words) {
  char command[200];
  snprintf(command, sizeof command, CUDA12 "%s", arguments);
  cr_expect_eq(scratch_run(command), words ? 1 : 0, "%s", scratch_output);
  cr_expect(scratch_has_line(row), "%s is not in\n%s", row, scratch_output);
  cr_expect(strstr(scratch_output, words ? words : "right: "), "%s", scratch_output);
  cr_expect(words || scratch_has_line("13.0 1/1 255"), "the release that built the stages: %s", scratch_output);
}

Test(cuda12, right) {
  expect("03-cp-async", "12.0 2/2 168", NULL);
  cr_expect(strstr(scratch_output, "\n    (C7514) serialized: 12.0\n"), "what ptxas answered: %s", scratch_output);
}

Test(cuda12, refuses_a_spill_that_the_stage_does_not_allow) {
  fake_ptxas("build/cuda-12.0/bin/ptxas", "    0 bytes stack frame, 8 bytes spill stores, 8 bytes spill loads");
  expect("03-cp-async", "12.0 2/2 refused", "registers are spilled");
  expect("'03-cp-async spills'", "12.0 2/2 168", NULL);
  expect("'03-cp-async stack spills-12.0'", "12.0 2/2 168*", NULL);
  expect("'03-cp-async stack spills-12.1'", "12.0 2/2 refused", "registers are spilled");
}

Test(cuda12, refuses_what_nvrtc_refuses) {
  scratch_write_script("nvrtc", "echo 'kernel.cu(7): warning: x' >&2; exit 1\n");
  expect("03-cp-async", "12.0 2/2 refused", "kernel.cu(7): warning: x");
}

Test(cuda12, shows_a_wrong_result) {
  scratch_write_script("stage-03", "case \"$*\" in\n"
                                   "  --help) echo '  --seqlen=N';;\n"
                                   "  *128*) echo 'result    WRONG: 3'; exit 1;;\n"
                                   "esac\n");
  expect("03-cp-async", "12.0 2/2 WRONG", "result    WRONG: 3");
}

Test(cuda12, gives_no_shape_to_what_is_no_attention_kernel) {
  scratch_write_script("stage-03", "case \"$*\" in *--seqlen*) exit 2;; *--ptx*) exit $(cat code);; esac\n");
  scratch_write("code", "0");
  expect("03-cp-async", "12.0 2/2 168", NULL);
  scratch_write("code", "1");
  expect("03-cp-async", "12.0 2/2 WRONG", "stage 03-cp-async: WRONG");
}

Test(cuda12, shows_a_claim_that_does_not_hold) {
  scratch_write("tests/cuda/claims", "12.0|without wait|/wait/d|C7517\n13.*|right||\n");
  expect("03-cp-async", "12.0 0/1 168", "expected \"C7517\", but it said \"ptxas info : (C7514) serialized\"");
}

Test(cuda12, shows_words_where_there_must_be_none) {
  scratch_write("tests/cuda/claims", "12.0|without wait|/wait/d|\n13.*|right||\n");
  expect("03-cp-async", "12.0 0/1 168", "but it said \"ptxas info : (C7514) serialized\"");
}

Test(cuda12, shows_an_edit_that_edits_nothing) {
  scratch_write("tests/cuda/claims", "12.0|without fence|/fence/d|\n13.*|right||\n");
  expect("03-cp-async", "12.0 0/1 168", "the edit \"/fence/d\" changes nothing");
}

Test(cuda12, names_the_releases_that_there_are) {
  cr_expect_eq(scratch_run("sh common/build/cuda12.sh ./nvrtc . ./ptxas 12.7 03-cp-async"), 1);
  cr_expect(strstr(scratch_output, "CUDA 12.7 is not one of 11.8, 12.0 to 12.6, 12.8, 12.9"), "%s", scratch_output);
}
