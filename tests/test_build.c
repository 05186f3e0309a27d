// The build's own scripts and the Makefile, with made-up programs in place of nvcc and of the stages.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

static char scratch[] = "/tmp/hopper-ladder-build-XXXXXX";
static char output[1 << 16];  // what the last command printed

// Runs a shell command in the scratch folder, where $ROOT is the repository. Returns its exit status.
static int run(const char *command) {
  char text[2000];
  const char *root = getenv("HL_ROOT") ? getenv("HL_ROOT") : ".";
  char *absolute = realpath(root, NULL);
  cr_assert(absolute);
  // A make that runs this test must not be felt by a make that this test runs.
  snprintf(text, sizeof text, "unset MAKEFLAGS MAKELEVEL; cd %s && ROOT='%s' && { %s; } 2>&1", scratch, absolute,
           command);
  free(absolute);
  FILE *pipe = popen(text, "r");
  cr_assert(pipe);
  output[fread(output, 1, sizeof output - 1, pipe)] = 0;
  int status = pclose(pipe);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// An executable script in the scratch folder.
static void write_script(const char *name, const char *body) {
  char path[200];
  snprintf(path, sizeof path, "%s/%s", scratch, name);
  FILE *file = fopen(path, "w");
  cr_assert(file);
  fprintf(file, "#!/bin/sh\n%s", body);
  fclose(file);
  cr_assert(chmod(path, 0755) == 0);
}

static void enter(void) { cr_assert(mkdtemp(scratch)); }

static void leave(void) {
  char command[100];
  snprintf(command, sizeof command, "rm -rf %s", scratch);
  cr_expect(system(command) == 0);
}

TestSuite(build, .init = enter, .fini = leave);

// ---- ptxas.sh: what ptxas only mentions fails the build ----

// An nvcc that writes `out` as its cubin and says `words`.
static void fake_nvcc(const char *words) {
  char body[1000];
  snprintf(body, sizeof body,
           "while [ $# -gt 1 ]; do [ $1 = -o ] && echo cubin >$2; shift; done\n"
           "echo \"ptxas info    : Compiling entry function 'k' for 'sm_90a'\"\necho \"%s\"\n",
           words);
  write_script("nvcc", body);
}

#define ASSEMBLE "rm -f k.cubin; sh \"$ROOT/common/build/ptxas.sh\" ./nvcc k.ptx k.cubin "
#define CLEAN "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads"

Test(build, ptxas_accepts_a_clean_kernel) {
  fake_nvcc(CLEAN);
  cr_expect_eq(run(ASSEMBLE), 0, "%s", output);
  cr_expect_str_empty(output);
  cr_expect_eq(run("grep -q spill k.log && cat k.cubin"), 0, "the log is kept");
  cr_expect_str_eq(output, "cubin\n");
}

Test(build, ptxas_refuses_what_the_stage_does_not_allow) {
  static const struct {
    const char *words, *allow, *names;
  } cases[] = {
      {"    0 bytes stack frame, 40 bytes spill stores, 0 bytes spill loads", "spills", "spilled"},
      {"    0 bytes stack frame, 0 bytes spill stores, 8 bytes spill loads", "spills", "spilled"},
      {"    16 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads", "stack", "stack frame"},
      {"ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized", "serialised",
       "serialised"},
      {"ptxas info    : (C7519) Potential Performance Loss", "serialised", "serialised"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    fake_nvcc(cases[i].words);
    cr_expect_eq(run(ASSEMBLE), 1, "%s", cases[i].words);
    cr_expect(strstr(output, cases[i].names), "%s: %s", cases[i].words, output);
    cr_expect(strstr(output, "Compiling entry function 'k'"), "the kernel is named: %s", output);
    cr_expect_eq(run("ls k.cubin"), 2, "no cubin is left");
    char allowed[300];
    snprintf(allowed, sizeof allowed, "%s other %s", ASSEMBLE, cases[i].allow);
    cr_expect_eq(run(allowed), 0, "allowed by %s: %s", cases[i].allow, output);
  }
}

Test(build, ptxas_passes_an_error_on) {
  write_script("nvcc", "echo 'ptxas fatal: no'; exit 255\n");
  cr_expect_eq(run(ASSEMBLE), 1);
  cr_expect(strstr(output, "ptxas fatal: no"));
}

// ---- ladder.sh: one table ----

#define LADDER "sh \"$ROOT/common/build/ladder.sh\" "

// What a stage prints on the emulator, which refuses --csv.
#define EMULATOR_STAGE(name, result, hazards)                                                                          \
  "case \"$*\" in *--csv=-*) echo no clock >&2; exit 2;; esac\n"                                                       \
  "cat <<end\n"                                                                                                        \
  "stage     " name ": a title\n"                                                                                      \
  "device    the emulator\n"                                                                                           \
  "problem   $*\n"                                                                                                     \
  "result    " result "\n"                                                                                             \
  "hazards   " hazards "\n"                                                                                            \
  "counters  1,234 warp instructions: fp32 50 %%\n"                                                                    \
  "          global memory: 12 loads of 4.0 sectors, 1,536 bytes; 1 store of 2.0 sectors, 64 bytes\n"                  \
  "          shared memory: 1,000 loads with 40 bank conflicts; 500 stores with 2 bank conflicts\n"                    \
  "end\n"

// What it prints on a GPU: the CSV, and the report on standard error.
#define GPU_STAGE(name, ms, tflops)                                                                                    \
  "cat >&2 <<end\n"                                                                                                    \
  "stage     " name ": a title\n"                                                                                      \
  "device    Test GPU\n"                                                                                               \
  "problem   $*\n"                                                                                                     \
  "result    right: all\n"                                                                                             \
  "end\n"                                                                                                              \
  "echo stage,...\n"                                                                                                   \
  "echo '" name ",Test GPU,1,2,3,4,5,6,7,8,9," ms ",1,2,20," tflops "'\n"

// True when one line of the output has exactly these words.
static bool has_row(const char *words) {
  char squeezed[sizeof output];
  size_t length = 0;
  for (const char *c = output; *c; c++)
    if (*c != ' ' || (length && squeezed[length - 1] != ' ')) squeezed[length++] = *c;
  squeezed[length] = 0;
  const char *found = strstr(squeezed, words);
  return found && (found == squeezed || found[-1] == '\n') && found[strlen(words)] == '\n';
}

// The dynamic linker would give the driver, and the tools that load themselves into a program, our function for libc's:
// an `accept` of ours once made every stage crash under compute-sanitizer.
Test(build, a_stage_exports_no_function) {
  run("for stage in $ROOT/stage-[0-9][0-9]; do nm -D $stage; done | grep -c ' T '");
  cr_assert_str_eq(output, "0\n", "stages export functions: %s", output);
}

Test(build, ladder_on_the_emulator_shows_counters) {
  write_script("stage-00", EMULATOR_STAGE("00-scalar", "right: all", "none"));
  write_script("stage-01", EMULATOR_STAGE("01-wmma-qk", "right: all", "none"));
  cr_expect_eq(run(LADDER "'--seqlen=4 --causal' ./stage-00 ./stage-01"), 0, "%s", output);
  cr_expect(has_row("stage result hazards instructions bytes-loaded bytes-stored conflicts"), "%s", output);
  cr_expect(has_row("00-scalar right none 1,234 1,536 64 42"), "%s", output);
  cr_expect(has_row("01-wmma-qk right none 1,234 1,536 64 42"), "%s", output);
  cr_expect(strstr(output, "--seqlen=4 --causal\n"), "the stages get the options: %s", output);
}

Test(build, ladder_names_the_wrong_stage) {
  write_script("stage-00", EMULATOR_STAGE("00-scalar", "right: all", "none"));
  write_script("stage-01", EMULATOR_STAGE("01-wmma-qk", "WRONG: 3 of 4", "2") "exit 1\n");
  cr_expect_eq(run(LADDER "'' ./stage-01 ./stage-00"), 1, "%s", output);
  cr_expect(has_row("01-wmma-qk WRONG 2 1,234 1,536 64 42"), "%s", output);
  cr_expect(has_row("00-scalar right none 1,234 1,536 64 42"), "the others still run: %s", output);
}

Test(build, ladder_on_a_gpu_shows_times_and_speedups) {
  write_script("stage-00", GPU_STAGE("00-scalar", "30.5", "1.75"));
  write_script("stage-01", GPU_STAGE("01-wmma-qk", "6.1", "8.75"));
  cr_expect_eq(run(LADDER "'' ./stage-00 ./stage-01"), 0, "%s", output);
  cr_expect(has_row("stage result hazards time/ms TFLOPS speedup"), "%s", output);
  cr_expect(has_row("00-scalar right - 30.5 1.75 -"), "%s", output);
  cr_expect(has_row("01-wmma-qk right - 6.1 8.75 5.00x"), "%s", output);
}

Test(build, ladder_shows_why_a_stage_did_not_run) {
  write_script("stage-00", "echo 'unknown option --x' >&2; exit 2\n");
  cr_expect_eq(run(LADDER "--x ./stage-00"), 2);
  cr_expect(strstr(output, "unknown option --x"), "%s", output);
  cr_expect(strstr(output, "./stage-00: not run"), "%s", output);
}

// ---- the Makefile ----

Test(build, adding_a_folder_adds_its_target) {
  cr_assert_eq(run("cp -r \"$ROOT/Makefile\" . && mkdir -p stages/00-scalar && make -s help"), 0, "%s", output);
  cr_expect(strstr(output, "stage-00") && !strstr(output, "stage-42"), "%s", output);
  cr_assert_eq(run("mkdir -p stages/42-new && make -s help"), 0, "%s", output);
  cr_expect(strstr(output, "stage-00") && strstr(output, "stage-42"), "%s", output);
}

Test(build, help_names_every_target) {
  cr_assert_eq(run("make -s -C \"$ROOT\" help"), 0, "%s", output);
  static const char *const targets[] = {"ladder", "test",   "test-gpu", "test-deep", "bench",   "bench-emulator",
                                        "plot",   "format", "clean",    "deps",      "stage-NN"};
  for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
    char words[40];
    snprintf(words, sizeof words, "make %s ", targets[i]);
    cr_expect(strstr(output, words), "make help does not know %s", targets[i]);
  }
}
