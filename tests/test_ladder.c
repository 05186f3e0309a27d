// What people watch: `make ladder` prints one table, `make bench` records times and goes on after an interruption. The
// scripts run in a scratch folder, with made-up programs in place of the stages.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/harness.h"
#include "support/program.h"
#include "support/scratch.h"

// A folder that looks like the repository, with a recording of its own. Nobody's PyTorch is to be timed here.
static void enter(void) {
  scratch_enter();
  scratch_write_script("python3", "exit 1\n");
  cr_assert_eq(scratch_run("ln -s \"$ROOT/common\" . && mkdir -p plots/data && ln -s \"$ROOT\"/plots/*.gp plots"), 0);
  scratch_write("plots/data/nvidia-h200.csv", "stage,device,sm_clock_mhz,...\n"
                                              "00-scalar,NVIDIA H200,1,2,3,4,4,32,4096,64,0,50.0,1,2,20,10.0\n"
                                              "00-scalar,NVIDIA H200,1,2,3,4,32,16,512,128,1,5.0,1,2,20,21.0\n"
                                              "cuDNN,NVIDIA H200,1,2,3,4,4,32,4096,64,0,1.1,1,2,20,500.0\n");
}

TestSuite(ladder, .init = enter, .fini = scratch_leave);
TestSuite(bench, .init = enter, .fini = scratch_leave);

// The beginning of a report, on file descriptor 1 or 3; more of it and END follow.
#define REPORT(descriptor, name, device, result)                                                                       \
  "cat >&" #descriptor " <<end\n"                                                                                      \
  "stage     " name ": a title\n"                                                                                      \
  "device    " device "\n"                                                                                             \
  "problem   $*\n"                                                                                                     \
  "result    " result "\n"
#define END "end\n"

// What a stage prints on the emulator, which refuses --csv.
#define EMULATOR_REPORT(name, result)                                                                                  \
  "case \"$*\" in *--csv=-*) echo no clock >&2; exit 2;; esac\n" REPORT(1, name, "the emulator", result)
#define EMULATOR_STAGE(name, result, hazards, instructions)                                                            \
  EMULATOR_REPORT(name, result)                                                                                        \
  "hazards   " hazards "\n"                                                                                            \
  "counters  " instructions " warp instructions: fp32 50 %\n"                                                          \
  "          global memory: 12 loads of 4.0 sectors, 1,536 bytes; 1 store of 2.0 sectors, 64 bytes\n"                  \
  "          shared memory: 1,000 loads with 40 bank conflicts; 500 stores with 2 bank conflicts\n" END

// What it prints on a GPU: a header and a row of CSV, to standard output or a file, and the report, on standard error
// when the CSV takes standard output. It writes down how often it was called, and that for big problems alone.
#define GPU_STAGE(name, ms, tflops, compared)                                                                          \
  "batch=4 heads=32 seqlen=4096 head_dim=64 causal=0\n"                                                                \
  "for option; do case $option in --causal) causal=1;; --head-dim=*) head_dim=${option#*=};;\n"                        \
  "  --csv=-) csv=/dev/stdout; exec 3>&2;; --csv=*) csv=${option#*=}; exec 3>&1;;\n"                                   \
  "  --*=*) option=${option#--}; eval \"$option\" 2>/dev/null;; esac; done\n"                                          \
  "[ $seqlen = 128 ] || echo x >>calls\n" REPORT(3, name, "${GPU:-Test GPU} (1 SM)", "right: all") compared END        \
      "cat >$csv "                                                                                                     \
      "<<end\nstage,device,sm_clock_mhz,driver,cuda,date,batch,heads,seqlen,head_dim,causal,median_ms,min_ms,"         \
      "max_ms,repeats,tflops\n" name ",${GPU:-Test GPU},1,2,3,4,$batch,$heads,$seqlen,$head_dim,$causal," ms           \
      ",1,2,20," tflops "\n" END

// What a stage does that is not an attention kernel: its CSV has other columns. When it has none, it refuses --csv.
#define OTHER_STAGE(name)                                                                                              \
  "for option; do case $option in --csv=-) csv=/dev/stdout; exec 3>&2;; --csv=*) csv=${option#*=}; exec 3>&1;; esac\n" \
  "done\n" REPORT(3, name, "Test GPU", "right: 4,096 elements") END                                                    \
      "cat >$csv <<end\nstage,device,sm_clock_mhz,driver,cuda,date,quantity,n,tflops\n" name                           \
      ",Test GPU,1,2,3,4,one,8,\n" name ",Test GPU,1,2,3,4,many,8,99.5\n" name                                         \
      ",Test GPU,1,2,3,4,many,256,857.583360\n" END
// A matrix product, whose --help has a size.
#define PRODUCT_STAGE(name)                                                                                            \
  "for option; do case $option in --help) echo '  --size=N  all'; exit;; --size=*) size=${option#*=};;\n"              \
  "  --batch=*) echo 'not an attention kernel' >&2; exit 2;; --csv=*) csv=${option#*=};; esac; done\n" REPORT(         \
      1, name, "Test GPU", "right: 4,096 elements") END                                                                \
      "cat >$csv <<end\nstage,device,sm_clock_mhz,driver,cuda,date,k,tflops\n" name                                    \
      ",Test GPU,1,2,3,4,$size,99.5\n" END
#define STAGE_WITHOUT_CSV(name)                                                                                        \
  "case \"$*\" in *--csv=*) echo 'no attention kernel, and no row' >&2; exit 2;; esac\n" REPORT(                       \
      1, name, "Test GPU", "right: 4,096 elements") END

// ---- ladder.sh ----

#define LADDER "sh common/build/ladder.sh "

// Of several problems, the one that the table shows.
static void record_large_problem(void) {
  scratch_write("plots/data/nvidia-h200.csv", "stage,device,...\n"
                                              "00-scalar,NVIDIA H200,1,2,3,4,4,32,4096,64,0,50.0,1,2,20,10.0,1900\n"
                                              "00-scalar,NVIDIA H200,1,2,3,4,4,16,4096,128,1,5.0,1,2,20,20.0,1900\n"
                                              "00-scalar,NVIDIA H200,1,2,3,4,4,16,4096,128,0,5.0,1,2,20,21.6,1900\n");
}

Test(ladder, on_the_emulator_shows_counters) {
  record_large_problem();
  scratch_write_script("stage-00", EMULATOR_STAGE("00-scalar", "right: all", "none", "12,345,678"));
  scratch_write_script("stage-07", EMULATOR_STAGE("07-warp-specialization", "right: all", "none", "1,234"));
  cr_expect_eq(scratch_run(LADDER "'--seqlen=4 --causal' ./stage-00 ./stage-07"), 0, "%s", scratch_output);
  cr_expect(scratch_has_line("stage result hazards instructions traffic conflicts TFLOPS*"), "%s", scratch_output);
  cr_expect(scratch_has_line("00-scalar right none 12,345,678 1.6 kB 42 22"), "%s", scratch_output);
  cr_expect(scratch_has_line("07-warp-specialization right none 1,234 1.6 kB 42 -"), "%s", scratch_output);
  cr_expect(scratch_has_line("--seqlen=4 --causal"), "the stages get the options: %s", scratch_output);
  cr_expect(strstr(scratch_output, "plots/nvidia-h200-ladder.svg"), "it says where times are: %s", scratch_output);
}

Test(ladder, bytes_have_three_digits) {
  scratch_write_script(
      "stage-05",
      EMULATOR_REPORT(
          "05-wgmma",
          "right: all") "hazards   none\ncounters  9 warp instructions: fp32 50 %\n"
                        "          global memory: 1 load of 4.0 sectors, 999,500 bytes; 1 store of 2.0 sectors, 100 "
                        "bytes\n"
                        "          shared memory: 0 loads with 0 bank conflicts; 0 stores with 0 bank conflicts\n" END);
  cr_expect_eq(scratch_run(LADDER "'' ./stage-05"), 0, "%s", scratch_output);
  cr_expect(scratch_has_line("05-wgmma right none 9 1 MB 0 -"), "%s", scratch_output);
}

Test(ladder, bulk_copies_are_traffic) {
  scratch_write_script(
      "stage-06",
      EMULATOR_REPORT(
          "06-tma",
          "right: all") "counters  9 warp instructions: copy 100 %\n"
                        "          global memory: 0 loads; 2 stores of 16.0 sectors, 1,000 bytes\n"
                        "          shared memory: 0 loads with 0 bank conflicts; 0 stores with 0 bank conflicts\n"
                        "          besides: bulk copies wrote 7 bytes of shared memory; bulk copies read 98,304 bytes "
                        "of global memory; bulk copies wrote 4,500 bytes of global memory\n" END);
  cr_expect_eq(scratch_run(LADDER "'' ./stage-06"), 0, "%s", scratch_output);
  cr_expect(scratch_has_line("06-tma right - 9 104 kB 0 -"), "%s", scratch_output);
}

// The stages that read e4m3 and those of the backward pass are recorded apart. There a row names how it was measured.
Test(ladder, every_recording_is_looked_at) {
  record_large_problem();
  scratch_write("plots/data/nvidia-h200-e4m3.csv", "stage,...\n"
                                                   "00-scalar,NVIDIA H200,1,2,3,4,4,16,4096,128,0,1,1,2,20,99.0,cold\n"
                                                   "11-fp8,NVIDIA H200,1,2,3,4,4,16,4096,128,0,1,1,2,20,7.0,sustained\n"
                                                   "11-fp8,NVIDIA H200,1,2,3,4,4,16,4096,128,0,1,1,2,20,774.2,cold\n");
  scratch_write("plots/data/nvidia-h200-backward.csv",
                "12-backward,NVIDIA H200,1,2,3,4,4,16,4096,128,0,1,1,2,20,426.7,cold\n");
  scratch_write_script("stage-00", EMULATOR_STAGE("00-scalar", "right: all", "none", "1"));
  scratch_write_script("stage-11", EMULATOR_STAGE("11-fp8", "right: all", "none", "2"));
  scratch_write_script("stage-12", EMULATOR_STAGE("12-backward", "right: all", "none", "3"));
  cr_expect_eq(scratch_run(LADDER "'' ./stage-00 ./stage-11 ./stage-12"), 0, "%s", scratch_output);
  cr_expect(scratch_has_line("00-scalar right none 1 1.6 kB 42 22"), "%s", scratch_output);
  cr_expect(scratch_has_line("11-fp8 right none 2 1.6 kB 42 774"), "%s", scratch_output);
  cr_expect(scratch_has_line("12-backward right none 3 1.6 kB 42 427"), "%s", scratch_output);
  cr_expect(strstr(scratch_output, "recorded on an NVIDIA H200"), "%s", scratch_output);
}

// The length of the output's line that begins with these words, and at most that of a terminal's line.
static size_t line_length(const char *words) {
  char *line = strstr(scratch_output, words);
  cr_assert(line, "no line %s in\n%s", words, scratch_output);
  size_t length = strcspn(line, "\n");
  cr_expect_leq(length, 80, "%s", line);
  return length;
}

Test(ladder, columns_are_aligned) {
  scratch_write_script("stage-00", EMULATOR_STAGE("00-scalar", "right: all", "none", "123,456,789"));
  scratch_write_script("stage-07", EMULATOR_STAGE("07b-register-reallocation", "WRONG: all", "17", "1"));
  scratch_run(LADDER "'' ./stage-00 ./stage-07");
  size_t length = line_length("stage ");
  cr_expect_eq(line_length("00-scalar"), length, "%s", scratch_output);
  cr_expect_eq(line_length("07b-"), length, "%s", scratch_output);
  scratch_write_script("stage-00", GPU_STAGE("00-scalar", "1234.567890", "1.567", ""));
  scratch_write_script("stage-07", GPU_STAGE("07b-register-reallocation", "12.345678", "601.234", ""));
  scratch_run(LADDER "'' ./stage-00 ./stage-07");
  length = line_length("stage ");
  cr_expect_eq(line_length("00-scalar"), length, "%s", scratch_output);
  cr_expect_eq(line_length("07b-"), length, "%s", scratch_output);
}

// A stage that is not an attention kernel gets none of attention's options.
Test(ladder, gives_each_stage_its_own_options) {
  scratch_write_script("stage-00", EMULATOR_STAGE("00-scalar", "right: all", "none", "1"));
  scratch_write_script(
      "stage-04", "case \"$*\" in *--causal* | *--seqlen=*)\n"
                  "  echo '--causal: stage 04 is not an attention kernel and does not have this option' >&2; exit 2;;\n"
                  "esac\n" EMULATOR_STAGE("04-single-wgmma", "right: all", "none", "1"));
  cr_expect_eq(scratch_run(LADDER "'--seqlen=4 --seed=3 --causal' ./stage-04 ./stage-00"), 0, "%s", scratch_output);
  cr_expect(scratch_has_line("--seed=3"), "%s", scratch_output);
  cr_expect(scratch_has_line("04-single-wgmma right none 1 1.6 kB 42 -"), "%s", scratch_output);
  cr_expect(scratch_has_line("00-scalar right none 1 1.6 kB 42 -"), "%s", scratch_output);
}

Test(ladder, names_the_wrong_stage) {
  scratch_write_script("stage-00", EMULATOR_STAGE("00-scalar", "right: all", "none", "1,234"));
  scratch_write_script("stage-01", EMULATOR_STAGE("01-wmma-qk", "WRONG: 3 of 4", "2", "1,234") "exit 1\n");
  cr_expect_eq(scratch_run(LADDER "'' ./stage-01 ./stage-00"), 1, "%s", scratch_output);
  cr_expect(scratch_has_line("01-wmma-qk WRONG 2 1,234 1.6 kB 42 -"), "%s", scratch_output);
  cr_expect(scratch_has_line("00-scalar right none 1,234 1.6 kB 42 -"), "the others still run: %s", scratch_output);
}

Test(ladder, on_a_gpu_shows_times_beside_the_recorded_and_draws_them) {
  scratch_write_script("stage-03",
                       GPU_STAGE("03-cp-async", "6.0", "300.5",
                                 "compared  this run: 300 TFLOPS; NVIDIA H200, recorded: 324 (on a day)\n"));
  scratch_write_script("stage-04", OTHER_STAGE("04-single-wgmma"));
  scratch_write_script("stage-14", STAGE_WITHOUT_CSV("14-nothing"));
  scratch_write_script("stage-05", GPU_STAGE("05-wgmma-attention", "4.0", "450.75", ""));
  cr_expect_eq(scratch_run(LADDER "--seqlen=2048 ./stage-03 ./stage-04 ./stage-14 ./stage-05"), 0, "%s",
               scratch_output);
  cr_expect(scratch_has_line("stage result time/ms TFLOPS speedup recorded-TFLOPS"), "%s", scratch_output);
  cr_expect(strstr(scratch_output, "right      6.0000    300.5        -             324\n"), "%s", scratch_output);
  cr_expect(strstr(scratch_output, " right           -    857.6        -               -\n"), "%s", scratch_output);
  cr_expect(scratch_has_line("14-nothing right - - - -"), "%s", scratch_output);
  cr_expect(scratch_has_line("05-wgmma-attention right 4.0000 450.8 1.50x -"), "%s", scratch_output);
  cr_expect(strstr(scratch_output, "not an attention kernel, the TFLOPS are its best: ./stage-04 ./stage-14\n"), "%s",
            scratch_output);
  cr_expect(strstr(scratch_output, "picture: build/ladder.svg"), "%s", scratch_output);
  cr_expect_eq(scratch_run("grep -q '^stage,' build/ladder.csv && grep -c , build/ladder.csv"), 0);
  cr_expect_str_eq(scratch_output, "3\n", "a header and two rows");
  cr_expect_eq(scratch_run("grep -c 'wgmma-attention\\|sequence length 2048' build/ladder.svg"), 0);
  cr_expect_str_eq(scratch_output, "2\n", "the picture shows these stages and this problem");
}

// A stage of the backward pass is no faster or slower than one of the forward pass.
Test(ladder, compares_within_a_pass) {
  static const char backward[] = "set -- \"$@\" '; backward'\n";
  char script[2][4000];
  snprintf(script[0], sizeof script[0], "%s%s", backward, GPU_STAGE("12-backward", "9.0", "200.5", ""));
  snprintf(script[1], sizeof script[1], "%s%s", backward, GPU_STAGE("12b-faster", "6.0", "300.5", ""));
  scratch_write_script("stage-10", GPU_STAGE("10-last", "3.0", "600.5", ""));
  scratch_write_script("stage-12", script[0]);
  scratch_write_script("stage-12b", script[1]);
  cr_expect_eq(scratch_run(LADDER "'' ./stage-10 ./stage-12 ./stage-12b"), 0, "%s", scratch_output);
  cr_expect(scratch_has_line("12-backward right 9.0000 200.5 - -"), "%s", scratch_output);
  cr_expect(scratch_has_line("12b-faster right 6.0000 300.5 1.50x -"), "%s", scratch_output);
}

Test(ladder, shows_why_a_stage_did_not_run) {
  scratch_write_script("stage-00", "echo 'unknown option --x' >&2; exit 2\n");
  cr_expect_eq(scratch_run(LADDER "--x ./stage-00"), 2);
  cr_expect(scratch_has_line("./stage-00: not run (exit code 2): unknown option --x"), "%s", scratch_output);
}

// ---- bench.sh ----

// Two sequence lengths, that is 8 rows a stage. Ctrl-C has its usual meaning, also where a test runs in the background.
#define BENCH                                                                                                          \
  "PATH=.:$PATH SEQLENS=${SEQLENS:-512 4096} env --default-signal=INT sh common/build/bench.sh ./stage-00 ./stage-07"

// The program of a stage that does `first` before it reports.
static void write_stage(const char *name, const char *first, const char *then) {
  char text[3000];
  snprintf(text, sizeof text, "%s\n%s", first, then);
  scratch_write_script(name, text);
}

static void write_stages(const char *first) {
  write_stage("stage-00", first, GPU_STAGE("00-scalar", "50.0", "10.5", ""));
  write_stage("stage-07", first, GPU_STAGE("07-warp-specialization", "1.0", "512", ""));
}

// What a shell command prints, as a number.
static int count(const char *command) {
  scratch_run(command);
  return atoi(scratch_output);
}

// How many rows were measured since this was last asked.
static int measured(void) { return count("wc -l <calls; rm calls"); }

Test(bench, records_every_problem) {
  write_stages("");
  cr_expect_eq(scratch_run(BENCH), 0, "%s", scratch_output);
  cr_expect(scratch_has_line("07-warp-specialization 4096 128 causal 1.0000 512 -"), "%s", scratch_output);
  cr_expect(strstr(scratch_output, "times: plots/data/test-gpu.csv"), "%s", scratch_output);
  cr_expect_eq(count("sort -u plots/data/test-gpu.csv | wc -l"), 17, "a header and 16 different rows");
  cr_expect_eq(count("sed 1d plots/data/test-gpu.csv | grep -c '^0'"), 16, "the header is the first line");
  cr_expect_neq(scratch_run("ls build/bench"), 0, "nothing is left over");
  cr_expect_eq(measured(), 16);
  cr_expect_eq(scratch_run(BENCH), 0);
  cr_expect_eq(measured(), 16, "what is recorded is measured anew");
}

Test(bench, compares_with_what_was_recorded) {
  write_stages("");
  scratch_run(BENCH);
  cr_expect(scratch_has_line("00-scalar 4096 64 full 50.0000 10.5 10.0"), "%s", scratch_output);
  cr_expect(strstr(scratch_output, "TFLOPS at S = 4096, in brackets what was recorded on an NVIDIA H200"), "%s",
            scratch_output);
  cr_expect(scratch_has_line("00-scalar 10.5 (10.0) 10.5 10.5 10.5"), "%s", scratch_output);
  cr_expect(strstr(scratch_output, "of 2 problems recorded before: 0.50 (00-scalar, S 512, D 128, causal) to 1.05 "),
            "%s", scratch_output);
  cr_expect_eq(count("wc -l <plots/data/nvidia-h200.csv"), 4, "another GPU's record stays");
}

Test(bench, tflops_have_three_digits) {
  scratch_write("rows",
                "stage,device,...\n00-a,G,1,2,3,4,1,1,64,64,0,5,1,2,20,9.994\n00-b,G,1,2,3,4,1,1,64,64,0,5,1,2,20,"
                "9.996\n00-c,G,1,2,3,4,1,1,64,64,0,5,1,2,20,99.94\n00-d,G,1,2,3,4,1,1,64,64,0,5,1,2,20,99.96\n");
  cr_expect_eq(scratch_run("awk -f common/build/compare.awk plots/data/nvidia-h200.csv rows"), 0);
  static const char *const lines[] = {"00-a 64 64 full 5.0000 9.99 -", "00-b 64 64 full 5.0000 10.0 -",
                                      "00-c 64 64 full 5.0000 99.9 -", "00-d 64 64 full 5.0000 100 -"};
  for (int i = 0; i < 4; i++) cr_expect(scratch_has_line(lines[i]), "%s: %s", lines[i], scratch_output);
}

// Presses Ctrl-C in the sixth row, once.
#define INTERRUPTED                                                                                                    \
  "if [ -e interrupt ] && [ \"$(wc -l <calls)\" = 5 ]; then rm interrupt; kill -INT $PPID; exit 1; fi 2>/dev/null"

// Leaves five rows of stage-00.
static void interrupt(void) {
  write_stages(INTERRUPTED);
  scratch_run("rm -f plots/data/test-gpu.csv");
  scratch_write("interrupt", "");
  cr_expect_eq(scratch_run(BENCH), 130, "%s", scratch_output);
  cr_expect(scratch_has_line("bench: 5 of 16 rows are in build/bench; make bench goes on from there"), "%s",
            scratch_output);
  cr_expect_neq(scratch_run("ls plots/data/test-gpu.csv"), 0, "nothing is recorded before all is there");
  cr_expect_eq(measured(), 5);
}

Test(bench, goes_on_after_an_interruption) {
  interrupt();
  cr_expect_eq(scratch_run(BENCH), 0, "%s", scratch_output);
  cr_expect(scratch_has_line("00-scalar 512 64 full 50.0000 10.5 - kept"), "%s", scratch_output);
  cr_expect(scratch_has_line("00-scalar 4096 128 full 50.0000 10.5 -"), "%s", scratch_output);
  cr_expect_eq(measured(), 11);
  cr_expect_eq(count("sort -u plots/data/test-gpu.csv | wc -l"), 17, "a header and 16 different rows");
}

Test(bench, measures_again_what_has_changed) {
  interrupt();
  scratch_run("echo '# another kernel' >>stage-07");
  cr_expect_eq(scratch_run(BENCH), 0);
  cr_expect_eq(measured(), 11, "another stage's change means nothing");
  interrupt();
  scratch_run("echo '# another kernel' >>stage-00");
  cr_expect_eq(scratch_run(BENCH), 0);
  cr_expect_eq(measured(), 16, "another kernel");
  interrupt();
  cr_expect_eq(scratch_run("export REPEAT=7; " BENCH), 0);
  cr_expect_eq(measured(), 16, "more repeats");
  interrupt();
  cr_expect_eq(scratch_run("export GPU='Other GPU'; " BENCH), 0);
  cr_expect_eq(measured(), 16, "another GPU");
  cr_expect_eq(count("grep -c 'Other GPU' plots/data/other-gpu.csv"), 16);
}

Test(bench, a_wrong_result_is_shown_and_nothing_recorded) {
  write_stages("");
  write_stage("stage-07", "case \"$*\" in *4096*) echo 'result    WRONG: 3 of 4'; exit 1;; esac",
              GPU_STAGE("07-warp-specialization", "1.0", "512", ""));
  cr_expect_eq(scratch_run(BENCH), 1, "%s", scratch_output);
  cr_expect(scratch_has_line("result WRONG: 3 of 4"), "%s", scratch_output);
  cr_expect(strstr(scratch_output, "bench: 9 of 16 rows are in build/bench"), "%s", scratch_output);
  cr_expect_neq(scratch_run("ls plots/data/test-gpu.csv"), 0);
}

Test(bench, leaves_out_what_has_no_times) {
  write_stages("");
  scratch_write_script("stage-07", STAGE_WITHOUT_CSV("04-single-wgmma"));
  cr_expect_eq(scratch_run(BENCH), 0, "%s", scratch_output);
  cr_expect(scratch_has_line("./stage-07 is left out: it writes no times: no attention kernel, and no row"), "%s",
            scratch_output);
  cr_expect_eq(count("grep -c '^00-scalar' plots/data/test-gpu.csv"), 8);
  cr_expect_eq(count("wc -l <plots/data/test-gpu.csv"), 9);
}

// A stage that is not an attention kernel has a record of its own, which the next one replaces.
Test(bench, records_what_is_no_attention_apart) {
  write_stages("");
  scratch_write_script("stage-07", OTHER_STAGE("04-single-wgmma"));
  for (int i = 0; i < 2; i++) {
    cr_expect_eq(scratch_run(i ? BENCH : "sh common/build/bench.sh ./stage-07"), 0, "%s", scratch_output);
    cr_expect(strstr(scratch_output, "times of ./stage-07: plots/data/04-single-wgmma/test-gpu.csv\n"), "%s",
              scratch_output);
    cr_expect_eq(count("grep -c 04-single-wgmma, plots/data/04-single-wgmma/test-gpu.csv"), 3);
  }
  cr_expect_eq(count("wc -l <plots/data/test-gpu.csv"), 9, "attention is recorded beside it");
}

// Of a matrix product two sizes are recorded, below one header.
Test(bench, records_two_sizes_of_a_matrix_product) {
  scratch_write_script("stage-07", PRODUCT_STAGE("20-gemm"));
  cr_expect_eq(scratch_run("sh common/build/bench.sh ./stage-07"), 0, "%s", scratch_output);
  cr_expect_eq(count("grep -c '^20-gemm,Test GPU,1,2,3,4,[48][01]9[26],99.5$' plots/data/20-gemm/test-gpu.csv"), 2);
  cr_expect_eq(count("wc -l <plots/data/20-gemm/test-gpu.csv"), 3);
}

// A baseline needs more than a GPU. Without the GPU itself nobody is left out: the next test.
Test(bench, leaves_out_what_misses_a_library) {
  scratch_write_script("stage-00", GPU_STAGE("00-scalar", "25.0", "20.0", ""));
  scratch_write_script("stage-07", "echo no such library >&2; exit 3\n");
  cr_expect_eq(scratch_run(BENCH), 0, "%s", scratch_output);
  cr_expect(scratch_has_line("./stage-07 is left out: no such library"), "%s", scratch_output);
  cr_expect_eq(scratch_run("[ $(wc -l <plots/data/test-gpu.csv) = 9 ]"), 0, "a header and 8 rows");
}

Test(bench, without_a_gpu_says_so) {
  scratch_write_script("stage-00", "echo 'stage-00: --device=gpu: no CUDA driver' >&2; exit 3\n");
  cr_expect_eq(scratch_run(BENCH), 3, "%s", scratch_output);
  cr_expect(scratch_has_line("stage-00: --device=gpu: no CUDA driver"), "%s", scratch_output);
  cr_expect(strstr(scratch_output, "only a GPU can time a kernel"), "%s", scratch_output);
}

Test(bench, refuses_what_is_no_number) {
  write_stages("");
  static const char *const wrong[] = {"SEQLENS='512 x'", "SEQLENS=0", "SEQLENS=-4", "REPEAT=0", "REPEAT=1.5"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    char command[400];
    snprintf(command, sizeof command, "export %s; %s", wrong[i], BENCH);
    cr_expect_eq(scratch_run(command), 2, "%s: %s", wrong[i], scratch_output);
    cr_expect(strstr(scratch_output, ": whole numbers are allowed, from 1 on\n"), "%s: %s", wrong[i], scratch_output);
  }
}

// ---- what was recorded, inside the programs ----

Test(ladder, a_program_knows_every_recorded_row) {
  char path[1000];
  size_t size;
  snprintf(path, sizeof path, "%s/plots/data/nvidia-h200.csv", root_path());
  char *csv = read_whole(path, &size);
  cr_assert(csv);
  int rows = 0;
  for (char *line = strtok(csv, "\n"); line; line = strtok(NULL, "\n")) {
    char stage[40], device[40];
    int causal;
    double tflops;
    Shape shape;
    if (sscanf(line, "%39[^,],%39[^,],%*[^,],%*[^,],%*[^,],%*[^,],%d,%d,%d,%d,%d,%*f,%*f,%*f,%*d,%lf", stage, device,
               &shape.batch, &shape.heads, &shape.seqlen, &shape.head_dim, &causal, &tflops) != 8)
      continue;
    shape.causal = causal;
    Recorded row;
    cr_assert(recorded_find(stage, &shape, &row), "%s", line);
    cr_expect(row.tflops == tflops && !strcmp(row.device, device), "%s", line);
    rows++;
    shape.seqlen++;
    cr_expect(!recorded_find(stage, &shape, &row), "nobody recorded S = %d", shape.seqlen);
  }
  cr_expect_geq(rows, 24);
  free(csv);
}

Test(ladder, a_report_compares_with_the_recorded_row) {
  const Stage stage = {.name = "00-scalar"};
  Shape shape = {4, 32, 4096, 64, false};
  Timing timing = {.median = 100, .min = 99, .max = 101, .repeats = 3};
  Recorded row;
  char report[1000] = "", expected[200];
  cr_assert(recorded_find(stage.name, &shape, &row));
  FILE *out = fmemopen(report, sizeof report, "w");
  report_recorded(out, &stage, &shape, &timing, 12.345e11);
  shape.batch = 5;
  report_recorded(out, &stage, &shape, &timing, 12.345e11);
  fclose(out);
  snprintf(expected, sizeof expected, "compared  this run: 12.3 TFLOPS; NVIDIA H200, recorded: %.3g (on %s)\n",
           row.tflops, row.date);
  cr_expect_str_eq(report, expected, "one line, of the shape that was recorded: %s", report);
}
