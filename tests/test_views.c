// Ways to look at one stage: make profile-NN, sanitize-NN, trace-NN, ptx-NN, sass-NN, diff-NN, read-NN. The scripts run
// in a scratch folder, with made-up programs in place of the stages and of NVIDIA's tools.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/program.h"
#include "support/scratch.h"

// A folder that looks like the repository, and a PATH that begins with it.
static void enter(void) {
  scratch_enter();
  cr_assert_eq(scratch_run("ln -s \"$ROOT/common\" . && mkdir -p plots/data build/kernels stages/07-x"), 0);
}

TestSuite(views, .init = enter, .fini = scratch_leave, .timeout = 120);

// A stage on a GPU prints what it did.
static const char gpu_stage[] =
    "case \"$*\" in *--help*) echo '  --seqlen=N   queries and keys'; exit;; esac\n"
    "d=64; case \"$*\" in *--head-dim=128*) d=128;; esac\n"
    "s=128; case \"$*\" in *--seqlen=4096*) s=4096;; esac\n"
    "echo 'stage     07-x: a title'\n"
    "echo 'device    Test GPU (132 SMs, 1980 MHz, driver 1.2.3, CUDA 13.0)'\n"
    "echo \"problem   batch 1, heads 2, seqlen $s, head dim $d, not causal; input normal\"\n";

// Without a GPU it says why, and exits with 3.
static const char no_gpu_stage[] = "case \"$*\" in *--help*) exit;; esac\n"
                                   "echo 'stage-07: --device=gpu: no driver anywhere' >&2; exit 3\n";

static bool output_has(const char *text) { return strstr(scratch_output, text) != NULL; }

static int output_lines(void) {
  int lines = 0;
  for (const char *c = scratch_output; *c; c++) lines += *c == '\n';
  return lines;
}

// ---- what is missing is told in one line ----

Test(views, without_a_gpu) {
  static const char *const commands[] = {"sh common/build/sanitize.sh /nowhere ./stage-07",
                                         "sh common/build/profile.sh /nowhere ./stage-07",
                                         "sh common/build/trace.sh ./stage-07 ./trace-07"};
  scratch_write_script("stage-07", no_gpu_stage);
  scratch_write("stages/07-x/kernel.cu", "trace_begin(ALL);\n");
  for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
    cr_expect_eq(scratch_run(commands[i]), 3, "%s: %s", commands[i], scratch_output);
    cr_expect(output_has("needs a Hopper GPU") && output_has("(no driver anywhere)"), "%s", scratch_output);
    cr_expect_eq(output_lines(), 1, "%s", scratch_output);
  }
}

Test(views, without_the_tools) {
  scratch_write_script("stage-07", gpu_stage);
  cr_expect_eq(scratch_run("PATH=/usr/bin:/bin sh common/build/sanitize.sh /nowhere ./stage-07"), 3);
  cr_expect(output_has("compute-sanitizer is not on PATH nor in /nowhere"), "%s", scratch_output);
  cr_expect_eq(scratch_run("PATH=/usr/bin:/bin sh common/build/profile.sh /nowhere ./stage-07"), 3);
  cr_expect(output_has("ncu is not on PATH nor in /nowhere"), "%s", scratch_output);
  cr_expect_eq(output_lines(), 1, "%s", scratch_output);
}

Test(views, without_time_stamps) {
  scratch_write_script("stage-07", gpu_stage);
  scratch_write("stages/07-x/kernel.cu", "no marks\n");
  scratch_run("mkdir stages/08-y && echo 'trace_begin(ALL);' >stages/08-y/kernel.cu");
  cr_expect_eq(scratch_run("sh common/build/trace.sh ./stage-07 ./trace-07"), 1);
  cr_expect_str_eq(scratch_output, "trace-07: stage 07 has no time stamps; these have: 08-y\n");
}

// ---- make ----

Test(views, a_stage_that_is_not_there) {
  static const char *const targets[] = {"stage-42", "trace-42", "profile-42", "sanitize-42",
                                        "ptx-42",   "sass-42",  "diff-4",     "read-42"};
  enum { TARGETS = sizeof targets / sizeof *targets };
  char command[300] = "make -k -C \"$ROOT\" --no-print-directory", told[100];
  for (size_t i = 0; i < TARGETS; i++) strcat(strcat(command, " "), targets[i]);
  cr_expect_eq(scratch_run(command), 2, "%s: %s", command, scratch_output);
  for (size_t i = 0; i < TARGETS; i++) {
    snprintf(told, sizeof told, "make %s: there is no such stage; there are 00 00b ", targets[i]);
    cr_expect(output_has(told), "%s", scratch_output);
  }
}

// The checkouts of FlashAttention-3 are the user's.
Test(views, flash_attention_3_needs_checkouts) {
  cr_expect_eq(scratch_run("make -C \"$ROOT\" --no-print-directory flash-attention-3 FLASH_ATTENTION= CUTLASS="), 2);
  cr_expect(output_has("flash-attention-3: FLASH_ATTENTION=FOLDER and CUTLASS=FOLDER name checkouts of the two\n"),
            "%s", scratch_output);
}

// ---- sanitize.sh ----

// A compute-sanitizer that finds what its argument says: in stage-08, a race at head dimension 128, and a crash.
static const char sanitizer[] =
    "case \"$*\" in\n"
    "*--help*) echo '  --check-warpgroup-mma arg (=yes)'; exit;;\n"
    "*racecheck*stage-08*=128*) echo '========= Error: Race reported between Write access at k in kernel.cu:12'\n"
    "  echo '========= RACECHECK SUMMARY: 3 hazards displayed (3 errors, 0 warnings)'; exit 86;;\n"
    "*racecheck*) echo '========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)';;\n"
    "*synccheck*stage-08*) echo 'it crashed'; exit 139;;\n"
    "*memcheck*warpgroup-mma\\ yes*|*synccheck*warpgroup-mma\\ yes*) echo '========= ERROR SUMMARY: 0 errors';;\n"
    "*initcheck*warpgroup*) echo '========= unknown option'; exit 1;;\n"
    "*initcheck*stage-09*) echo '========= ERROR SUMMARY: 0 errors'; exit 1;;\n"
    "*initcheck*) echo '========= ERROR SUMMARY: 0 errors';;\n"
    "esac\n";

Test(views, sanitize_prints_a_table) {
  scratch_write_script("compute-sanitizer", sanitizer);
  scratch_write_script("stage-07", gpu_stage);
  scratch_run("cp stage-07 stage-08; cp stage-07 stage-09");
  cr_expect_eq(scratch_run("PATH=$PWD:$PATH sh common/build/sanitize.sh /nowhere ./stage-07"), 0, "%s", scratch_output);
  cr_expect(scratch_has_line("stage memcheck racecheck initcheck synccheck"), "%s", scratch_output);
  cr_expect(scratch_has_line("stage-07 clean clean clean clean"), "%s", scratch_output);

  // A number of errors; a tool that does not come to its end; a stage that is wrong where no tool finds anything.
  cr_expect_eq(scratch_run("PATH=$PWD:$PATH sh common/build/sanitize.sh /nowhere ./stage-07 ./stage-08 ./stage-09"), 1);
  cr_expect(scratch_has_line("stage-07 clean clean clean clean"), "%s", scratch_output);
  cr_expect(scratch_has_line("stage-08 clean 3 clean failed"), "%s", scratch_output);
  cr_expect(scratch_has_line("stage-09 clean clean failed clean"), "%s", scratch_output);
  cr_expect(output_has("build/sanitize/stage-08-racecheck-128.log:\n========= Error: Race reported"), "%s",
            scratch_output);
  cr_expect(!output_has("stage-08-racecheck-64.log"), "%s", scratch_output);
}

// A stage that is not an attention kernel has no option for the shape of one.
static const char lone_stage[] = "case \"$*\" in\n"
                                 "*--help*) echo '  --seed=N'; exit;;\n"
                                 "*--seqlen*|*--head-dim*) exit 2;;\n"
                                 "esac\n"
                                 "echo 'device    Test GPU (132 SMs, 1980 MHz, driver 1.2.3, CUDA 13.0)'\n"
                                 "echo 'problem   one instruction'\n";

Test(views, sanitize_gives_a_stage_the_options_that_it_has) {
  scratch_write_script("compute-sanitizer", "case \"$*\" in *--help*) exit;; esac\n"
                                            "while [ $1 != ./stage-07 ]; do shift; done; \"$@\" || exit\n"
                                            "echo '========= ERROR SUMMARY: 0 errors'\n");
  scratch_write_script("stage-07", lone_stage);
  cr_expect_eq(scratch_run("PATH=$PWD:$PATH sh common/build/sanitize.sh /nowhere ./stage-07"), 0, "%s", scratch_output);
  cr_expect(scratch_has_line("stage-07 clean clean clean clean"), "%s", scratch_output);
}

// ---- profile.sh ----

// An ncu that knows few metrics, and prints as Nsight Compute 2025.3 does: some words, a header, units, a row a kernel.
static const char ncu[] =
    "case \"$*\" in\n"
    "*--query-metrics*) for m in gpu__time_duration l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld \\\n"
    "  smsp__average_warps_issue_stalled_wait_per_issue_active "
    "smsp__average_warps_issue_stalled_barrier_per_issue_active \\\n"
    "  smsp__average_warps_issue_stalled_misc_per_issue_active; do echo \"$m  Counter  ns\"; done; exit;;\n"
    "*--version*) echo 'Version 2025.3.1.0 (build 1) (public-release)'; exit;;\n"
    "*xu*|*--clock-control\\ base*) echo 'Failed to find metric'; exit 1;;\n"
    "esac\n"
    "conflicts=17,920; case \"$*\" in *--head-dim=128*) conflicts=0;; esac\n"
    "while [ $1 != --log-file ]; do shift; done\n"
    "log=$2; shift 2\n"
    "\"$@\" || exit\n"
    "cat >$log <<end\n"
    "==PROF== Connected to process 1\n"
    "==PROF== Disconnected from process 1\n"
    "\"ID\",\"Process ID\",\"Process Name\",\"Host Name\",\"Kernel Name\",\"Context\",\"Stream\",\"Block Size\",\"Grid "
    "Size\","
    "\"Device\",\"CC\",\"gpu__time_duration.sum\",\"l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum\","
    "\"launch__registers_per_thread\",\"smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio\","
    "\"smsp__average_warps_issue_stalled_misc_per_issue_active.ratio\","
    "\"smsp__average_warps_issue_stalled_wait_per_issue_active.ratio\"\n"
    "\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"ns\",\"\",\"register/"
    "thread\",\"inst\",\"inst\",\"inst\"\n"
    "\"0\",\"1\",\"stage-07\",\"127.0.0.1\",\"scores(int, float)\",\"1\",\"7\",\"(128, 1, 1)\",\"(2, 1, "
    "1)\",\"0\",\"9.0\","
    "\"1,234,500\",\"$conflicts\",\"168\",\"1.5\",\"0.01\",\"0.5\"\n"
    "\"1\",\"1\",\"stage-07\",\"127.0.0.1\",\"output\",\"1\",\"7\",\"(128, 1, 1)\",\"(2, 1, 1)\",\"0\",\"9.0\","
    "\"7,000\",\"3\",\"32\",\"0.25\",\"0\",\"0.75\"\n"
    "end\n";

Test(views, profile_prints_a_table_and_records_it) {
  scratch_write_script("ncu", ncu);
  scratch_write_script("stage-07", gpu_stage);
  cr_expect_eq(scratch_run("PATH=$PWD:$PATH sh common/build/profile.sh /nowhere ./stage-07 'without a thing'"), 0, "%s",
               scratch_output);
  // A column for each kernel of each head dimension; a metric that this ncu does not know is a dash; of the reasons to
  // wait, those that matter, as shares of all.
  static const char *const table[] = {
      "stage-07 without a thing on Test GPU",
      " scores output scores output",
      " B=1 H=2 S=4096 D=64 B=1 H=2 S=4096 D=64 B=1 H=2 S=4096 D=128 B=1 H=2 S=4096 D=128",
      "time 1234.5 7.0 1234.5 7.0 of one launch, in microseconds, caches empty at its start",
      "issue slots - - - - of the cycles in which a scheduler issued an instruction",
      "bank conflicts, loads 17,920 3 0 3 clocks that loads took beyond what their bytes need",
      "registers 168 32 168 32 of a thread; 65,536 are on an SM",
      "waits: fixed latency 24.9 % 75.0 % 24.9 % 75.0 % the few cycles that an instruction before it takes",
      "waits: barrier 74.6 % 25.0 % 74.6 % 25.0 % for other warps at __syncthreads or bar.sync",
      "recorded in plots/data/ncu/stage-07-without-a-thing.csv",
  };
  for (size_t i = 0; i < sizeof table / sizeof *table; i++)
    cr_expect(scratch_has_line(table[i]), "no line '%s' in\n%s", table[i], scratch_output);
  cr_expect(!output_has("waits: other "), "%s", scratch_output);

  // Every number of both problems is recorded, as Nsight Compute gave it.
  size_t size;
  char *csv = scratch_read("plots/data/ncu/stage-07-without-a-thing.csv", &size);
  cr_assert(csv);
  static const char head[] = "program,kernel,batch,heads,seqlen,head_dim,causal,metric,value,unit,device,driver,ncu,"
                             "ncu_options,date\n";
  cr_expect(!strncmp(csv, head, strlen(head)), "%s", csv);
  cr_expect(strstr(csv, "\nstage-07 without a thing,scores,1,2,128,64,0,l1tex__data_bank_conflicts_pipe_lsu_mem_shared_"
                        "op_ld.sum,17920,,Test GPU,1.2.3,2025.3.1.0,--clock-control none,2"),
            "%s", csv);
  cr_expect(strstr(csv, "\nstage-07 without a thing,output,1,2,4096,128,0,gpu__time_duration.sum,7000,ns,Test GPU,"),
            "%s", csv);
  int rows = -1;
  for (const char *c = csv; *c; c++) rows += *c == '\n';
  cr_expect_eq(rows, 4 * 2 * 6, "%d rows", rows);
  free(csv);
}

Test(views, profile_of_a_stage_that_is_no_attention_kernel) {
  scratch_write_script("ncu", ncu);
  scratch_write_script("stage-07", lone_stage);
  cr_expect_eq(scratch_run("PATH=$PWD:$PATH sh common/build/profile.sh /nowhere ./stage-07"), 0, "%s", scratch_output);
  cr_expect(scratch_has_line(" scores output"), "%s", scratch_output);
  cr_expect(scratch_has_line("recorded in plots/data/ncu/stage-07.csv"), "%s", scratch_output);
  cr_expect_eq(scratch_run("grep -c '^stage-07,output,,,,,,gpu__time_duration.sum,7000,ns,Test GPU,' plots/data/ncu/*"),
               0);
  cr_expect_str_eq(scratch_output, "1\n");
}

Test(views, profile_without_permission) {
  scratch_write_script(
      "ncu", "case \"$*\" in *query*) echo gpu__time_duration; exit;; esac\n"
             "while [ $1 != --log-file ]; do shift; done; echo '==ERROR== ERR_NVGPUCTRPERM - no' >$2; exit 1\n");
  scratch_write_script("stage-07", gpu_stage);
  cr_expect_eq(scratch_run("PATH=$PWD:$PATH sh common/build/profile.sh /nowhere ./stage-07 2>&1 | tail -n 1"), 0);
  cr_expect(output_has("the driver lets only root read the GPU's counters"), "%s", scratch_output);
}

// ---- listing.sh ----

static const char kernel_cu[] = "// line 1\n__device__ void inner() {}\nvoid outer() { inner(); }\n";
static const char ptxas_log[] = "ptxas info    : Compiling entry function 'outer' for 'sm_90a'\n"
                                "ptxas info    : Function properties for outer\n"
                                "    8 bytes stack frame, 4 bytes spill stores, 12 bytes spill loads\n"
                                "ptxas info    : Used 168 registers, used 1 barriers\n";
static const char ptx[] = ".version 9.0\n"
                          ".visible .entry outer(\n"
                          "\t.param .u64 outer_param_0\n"
                          ")\n"
                          "{\n"
                          "\t.reg .b32 \t%r<3>;\n"
                          "\t.loc\t1 3 1\n"
                          "\n"
                          "\tmov.u32 \t%r1, %tid.x;\n"
                          "\t.loc\t1 2 1, function_name $L__info_string0, inlined_at 1 3 1\n"
                          "\t// begin inline asm\n"
                          "\t{ wgmma.fence.sync.aligned; }\n"
                          "\twgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16\n"
                          "\t\t{%f1},\n"
                          "\t\t%rd1, %rd2, 1, 1, 1, 0, 0;\n"
                          "\t// end inline asm\n"
                          "$L__BB0_1:\n"
                          "\t@%p1 bra \t$L__BB0_1;\n"
                          "\t.loc\t1 2 5\n"
                          "\tmov.u32 \t%r2, 7;\n"
                          "\tret;\n"
                          "}\n"
                          "\t.file\t1 \"stages/07-x/kernel.cu\"\n"
                          "\t.section\t.debug_str\n"
                          "\t{\n"
                          "\t}\n";

Test(views, ptx_with_source_lines) {
  scratch_write("stages/07-x/kernel.cu", kernel_cu);
  scratch_write("build/kernels/07-x.log", ptxas_log);
  scratch_write("build/kernels/07-x.ptx", ptx);
  cr_expect_eq(scratch_run("sh common/build/listing.sh ptx 07-x"), 0, "%s", scratch_output);
  cr_expect_str_eq(scratch_output, "outer: 168 registers a thread, 16 bytes spilled; 6 instructions: "
                                   "1 wgmma.fence, 1 wgmma.mma_async, 2 mov, 1 bra, 1 ret\n"
                                   "build/listing/07-x.ptx\n");
  size_t size;
  char *listing = scratch_read("build/listing/07-x.ptx", &size);
  cr_assert(listing);
  cr_expect(strstr(listing, "// kernel.cu:3      void outer() { inner(); }\n\n\tmov.u32 \t%r1, %tid.x;\n"
                            "// kernel.cu:2      __device__ void inner() {}\n\t// begin"),
            "%s", listing);
  // A source line is shown once, not for each of its columns; nothing is left of the debug information.
  cr_expect(strstr(listing, "bra \t$L__BB0_1;\n\tmov.u32 \t%r2, 7;\n\tret;\n}\n"), "%s", listing);
  cr_expect(!strstr(listing, ".loc") && !strstr(listing, ".file") && !strstr(listing, "debug"), "%s", listing);
  free(listing);
}

// What nvdisasm -c -g prints.
static const char nvdisasm[] = "[ \"$1 $2\" = '-c -g' ] || exit 1\n"
                               "cat <<'end'\n"
                               "\t.target\tsm_90a\n"
                               "//--------------------- .text.outer       --------------------------\n"
                               "\t.section\t.text.outer,\"ax\",@progbits\n"
                               "outer:\n"
                               ".text.outer:\n"
                               "\t//## File \"stages/07-x/kernel.cu\", line 3\n"
                               "        /*0000*/                   LDC R1, c[0x0][0x28] ;\n"
                               "\t//## File \"stages/07-x/kernel.cu\", line 2\n"
                               "        /*0010*/              @!P1 CS2R.32 R5, SR_CLOCKLO ;\n"
                               "        /*0020*/                   HGMMA.64x8x16.F32 R24, gdesc[UR4] ;\n"
                               ".L_x_0:\n"
                               "        /*0030*/                   BRA `(.L_x_0);\n"
                               "end\n";

Test(views, sass_with_source_lines) {
  scratch_write("stages/07-x/kernel.cu", kernel_cu);
  scratch_write("build/kernels/07-x.log", ptxas_log);
  scratch_write_script("nvdisasm", nvdisasm);
  cr_expect_eq(scratch_run("sh common/build/listing.sh sass 07-x ./nvdisasm"), 0, "%s", scratch_output);
  cr_expect_str_eq(scratch_output, "outer: 168 registers a thread, 16 bytes spilled; 4 instructions: "
                                   "1 HGMMA, 1 BRA, 1 CS2R, 1 LDC\n"
                                   "build/listing/07-x.sass\n");
  size_t size;
  char *listing = scratch_read("build/listing/07-x.sass", &size);
  cr_assert(listing);
  cr_expect(strstr(listing, "// kernel.cu:3      void outer() { inner(); }\n        /*0000*/ "), "%s", listing);
  cr_expect(strstr(listing, "// kernel.cu:2      __device__ void inner() {}\n        /*0010*/ "), "%s", listing);
  free(listing);
}

// ---- read.sh ----

Test(views, read_without_comments_and_answers) {
  scratch_write("stages/07-x/README.md",
                "# X\n\nA [warp\n  group](../../notes/glossary.md#g) has [a\nnote](../n.md).\n"
                "<!-- 3: counts(\"07\") -->\n\n<!-- printed: ./stage-07 -->\n\n    code\n"
                "<!-- 4: two\n  lines -->\n\n![A grid of\n8 rows](../../plots/x.svg)\n\n"
                "<details><summary>Answers</summary>\n\n1. Yes.\n   <!-- 5: x -->\n</details>\n\n"
                "## Next\n");
  cr_expect_eq(scratch_run("sh common/build/read.sh read 07"), 0);
  cr_expect_str_eq(scratch_output, "# X\n\nA warp\n  group has [a\nnote](../n.md).\n\n    code\n\n"
                                   "[Picture: A grid of\n8 rows]\n\nmake answers-07 shows the answers.\n\n## Next\n");
  cr_expect_eq(scratch_run("sh common/build/read.sh answers 07"), 0);
  cr_expect_str_eq(scratch_output, "\n1. Yes.\n");
}

// ---- diff.sh ----

// The rung below 07 is 05b, an attention kernel like 05, and not 06. A header that both have is not new, and one of the
// stage's own is, where the kernel includes it; how far a line is indented does not matter.
Test(views, diff_with_the_stage_below) {
  cr_assert_eq(scratch_run("for stage in 05-z 05b-a 06-other; do mkdir stages/$stage; done && cd stages &&"
                           "echo '  .launch = launch,' | tee 05-z/stage.c 05b-a/stage.c >07-x/stage.c && "
                           "echo shared >05b-a/shared.h && echo new in header >07-x/own.h && "
                           "printf '#include \"shared.h\"\nsame\nold\n  moved\n' >05b-a/kernel.cu && "
                           "printf '#include \"../05b-a/shared.h\"\n#include \"own.h\"\n#include \"ptx/tma.h\"\n"
                           "same\n    moved\n' >07-x/kernel.cu"),
               0, "%s", scratch_output);
  cr_expect_eq(scratch_run("sh common/build/diff.sh 07"), 0, "%s", scratch_output);
  cr_expect_str_eq(scratch_output, "07-x against 05b-a: 2 new device lines, 1 gone\n\n"
                                   "stages/05b-a/shared.h:1\n shared\n+new in header\n+#include \"ptx/tma.h\"\n same\n"
                                   "-old\n     moved\n");
  cr_expect_eq(scratch_run("sh common/build/diff.sh 05"), 2);
  cr_expect_str_eq(scratch_output, "diff-05: 05-z is the lowest stage of the forward pass; there is none below it\n");
}

// A stage of the backward pass is compared with one of the backward pass.
Test(views, diff_within_the_pass) {
  cr_assert_eq(
      scratch_run("for stage in 05-a 12-b 12b-c; do mkdir stages/$stage; echo $stage >stages/$stage/kernel.cu; "
                  "echo '  .launch = launch,' >stages/$stage/stage.c; done && "
                  "echo '  .backward = true,' | tee -a stages/12-b/stage.c >>stages/12b-c/stage.c"),
      0);
  cr_expect_eq(scratch_run("sh common/build/diff.sh 12b"), 0, "%s", scratch_output);
  cr_expect(strstr(scratch_output, "12b-c against 12-b: 1 new device lines, 1 gone\n"), "%s", scratch_output);
  cr_expect_eq(scratch_run("sh common/build/diff.sh 12"), 2);
  cr_expect_str_eq(scratch_output, "diff-12: 12-b is the lowest stage of the backward pass; there is none below it\n");
}

// A matrix product is compared with a matrix product.
Test(views, diff_of_matrix_products) {
  cr_assert_eq(scratch_run("for stage in 05-a 20-b 20b-c; do mkdir stages/$stage; echo $stage "
                           ">stages/$stage/kernel.cu; echo '  .gemm = launch,' >stages/$stage/stage.c; done && "
                           "echo '  .launch = launch,' >stages/05-a/stage.c"),
               0);
  cr_expect_eq(scratch_run("sh common/build/diff.sh 20b"), 0, "%s", scratch_output);
  cr_expect(strstr(scratch_output, "20b-c against 20-b: 1 new device lines, 1 gone\n"), "%s", scratch_output);
  cr_expect_eq(scratch_run("sh common/build/diff.sh 20"), 2);
}
