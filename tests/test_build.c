// The build's own scripts and the Makefile, with made-up programs in place of nvcc and of the stages.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "support/scratch.h"

TestSuite(build, .init = scratch_enter, .fini = scratch_leave);

// ---- make install: another machine may have another processor ----

#define INSTALL "env -i PATH=\"$PATH\" make -C \"$ROOT\" -n install PREFIX=/nowhere "

Test(build, what_is_installed_runs_on_any_processor) {
  cr_expect_eq(
      scratch_run(INSTALL ">commands && grep -q BUILD=build/portable commands && ! grep march=native commands"), 0,
      "%s", scratch_output);
}

Test(build, what_is_installed_is_for_a_processor_that_is_asked_for) {
  cr_expect_eq(scratch_run(INSTALL "ARCH=native >commands && ! grep BUILD=build/portable commands"), 0, "%s",
               scratch_output);
}

// ---- ptxas.sh: what ptxas only mentions fails the build ----

// An nvcc that writes `out` as its cubin and says `words`.
static void fake_nvcc(const char *words) {
  char body[1000];
  snprintf(body, sizeof body,
           "while [ $# -gt 1 ]; do [ $1 = -o ] && echo cubin >$2; shift; done\n"
           "echo \"ptxas info    : Compiling entry function 'k' for 'sm_90a'\"\necho \"%s\"\n",
           words);
  scratch_write_script("nvcc", body);
}

#define ASSEMBLE "rm -f k.cubin; sh \"$ROOT/common/build/ptxas.sh\" ./nvcc k.ptx k.cubin "
#define CLEAN "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads"

Test(build, ptxas_accepts_a_clean_kernel) {
  fake_nvcc(CLEAN);
  cr_expect_eq(scratch_run(ASSEMBLE), 0, "%s", scratch_output);
  cr_expect_str_empty(scratch_output);
  cr_expect_eq(scratch_run("grep -q spill k.log && cat k.cubin"), 0, "the log is kept");
  cr_expect_str_eq(scratch_output, "cubin\n");
}

Test(build, ptxas_refuses_what_the_stage_does_not_allow) {
  static const struct {
    const char *words, *allow, *names;
  } cases[] = {
      {"    0 bytes stack frame, 40 bytes spill stores, 0 bytes spill loads", "spills", "k: 0 bytes stack frame, 40 b"},
      {"    0 bytes stack frame, 0 bytes spill stores, 8 bytes spill loads", "spills", "registers are spilled"},
      {"    16 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads", "stack", "the kernel has a stack frame"},
      {"    16 bytes stack frame, 8 bytes spill stores, 8 bytes spill loads", "stack spills", "registers are spilled"},
      {"ptxas info    : (C7509) Potential Performance Loss: wgmma.mma_async instructions are serialized due to the "
       "presence of Extern calls in the function 'k'",
       "serialised", "a function of another file is called"},
      {"ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized due to wgmma "
       "pipeline crossing function boundary at a function call in the function 'k'",
       "serialised", "k: wgmma.mma_async"},
      {"ptxas info    : (C7519) Potential Performance Loss", "serialised", "(C7519)"},
      {"ptxas info    : (C7520) Potential Performance Loss", "serialised", "(C7520)"},
      {"ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' ignored; unable to determine register count "
       "at entry.",
       "setmaxnreg", "no __launch_bounds__"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    fake_nvcc(cases[i].words);
    cr_expect_eq(scratch_run(ASSEMBLE), 1, "%s", cases[i].words);
    cr_expect(strstr(scratch_output, cases[i].names), "%s: %s", cases[i].words, scratch_output);
    char stage_mk[100];
    snprintf(stage_mk, sizeof stage_mk, "ALLOW_k := %s\n", cases[i].allow);
    cr_expect(strstr(scratch_output, stage_mk), "%s: %s", cases[i].words, scratch_output);
    cr_expect_eq(scratch_run("ls k.cubin"), 2, "no cubin is left");
    char allowed[300];
    snprintf(allowed, sizeof allowed, "%s other %s", ASSEMBLE, cases[i].allow);
    cr_expect_eq(scratch_run(allowed), 0, "allowed by %s: %s", cases[i].allow, scratch_output);
  }
}

// The source line of an index that is known only at run time, and of a remark; a header's line is that of its caller, and
// line 0 is none.
Test(build, ptxas_refusal_names_the_source_line) {
  scratch_write("k.ptx", "\t.local .align 4 .b8 \t__local_depot0[16];\n"
                         "\t.loc\t1 5 7\n"
                         "\tadd.u64 \t%rd1, %SPL, 0;\n"
                         "\tst.local.f32 \t[%rd1+4], %f1;\n"
                         "\t.loc\t2 8 3, function_name $L__info_string0, inlined_at 1 6 3\n"
                         "\t.loc\t1 0 3\n"
                         "\tld.local.f32 \t%f2, [%rd7];\n"
                         "\t.loc\t1 9 3\n"
                         "\t.file\t1 \"stages/k/kernel.cu\"\n"
                         "\t.file\t2 \"common/ptx/wgmma.h\"\n");
  fake_nvcc("    16 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads");
  cr_expect_eq(scratch_run(ASSEMBLE), 1);
  cr_expect(strstr(scratch_output, "run time here: stages/k/kernel.cu:6\n"), "%s", scratch_output);
  fake_nvcc("ptxas info    : (C7517) warpgroup.wait is injected in around line 3 by compiler to allow use of registers "
            "defined by GMMA in function 'k'\n"
            "ptxas info    : (C7517) warpgroup.wait is injected in around line 7 by compiler to allow use of registers "
            "defined by GMMA in function 'k'");
  cr_expect_eq(scratch_run(ASSEMBLE), 1);
  cr_expect(strstr(scratch_output, "near stages/k/kernel.cu:5, 6.\n"), "%s", scratch_output);
}

// ptxas itself in the place of nvcc: -Xptxas and -cubin are nvcc's alone.
Test(build, ptxas_needs_no_nvcc) {
  scratch_write_script("ptxas",
                       "case \" $* \" in *' -Xptxas '*|*' -cubin '*) exit 255;; *' -v '*) ;; *) exit 255;; esac\n"
                       "while [ $# -gt 1 ]; do [ $1 = -o ] && echo cubin >$2; shift; done\n");
  cr_expect_eq(scratch_run("sh \"$ROOT/common/build/ptxas.sh\" ./ptxas k.ptx k.cubin && cat k.cubin"), 0, "%s",
               scratch_output);
  cr_expect_str_eq(scratch_output, "cubin\n");
}

// A ptxas that crashes on line numbers, as that of CUDA 12.0 may: it gets the PTX without them, and only then.
Test(build, ptxas_that_crashes_gets_no_line_numbers) {
  scratch_write("k.ptx", "\t.loc\t1 2 3\n\tret;\n");
  scratch_write_script("nvcc",
                       "file=k.ptx\n"
                       "while [ $# -gt 1 ]; do [ $1 = -o ] && out=$2; [ $1 = k.cubin.ptx ] && file=$1; shift; done\n"
                       "cat $file >$out; ! grep -q loc $file || kill -SEGV $$\n");
  cr_expect_eq(scratch_run(ASSEMBLE "&& cat k.cubin"), 0, "%s", scratch_output);
  cr_expect(strstr(scratch_output, "crashes on its line numbers"), "it is said: %s", scratch_output);
  cr_expect(strstr(scratch_output, "\n\tret;\n") && !strstr(scratch_output, ".loc"), "%s", scratch_output);
  scratch_write_script("nvcc", "kill -SEGV $$\n");
  cr_expect_eq(scratch_run(ASSEMBLE), 1, "a crash that has other reasons: %s", scratch_output);
}

Test(build, ptxas_passes_an_error_on) {
  scratch_write_script("nvcc", "echo 'ptxas fatal: no'; exit 255\n");
  cr_expect_eq(scratch_run(ASSEMBLE), 1);
  cr_expect(strstr(scratch_output, "ptxas fatal: no"));
}

// ---- deps.sh ----

// pip is asked for wheels alone: a source package would run a program of its own to install itself.
Test(build, the_compiler_comes_from_wheels) {
  scratch_write_script("python3", "case \"$*\" in *' --version') exit;; *--only-binary=:all:*) ;; *) exit 1;; esac\n"
                                  "while [ $1 != --target ]; do shift; done\n"
                                  "mkdir -p $2/nvidia/cu13/bin && echo disassembler >$2/nvidia/cu13/bin/nvdisasm\n");
  cr_expect_eq(scratch_run("PATH=.:$PATH sh \"$ROOT/common/build/deps.sh\" nvdisasm build/nvdisasm"), 0, "%s",
               scratch_output);
  cr_expect_eq(scratch_run("cat build/nvdisasm/nvidia/cu13/bin/nvdisasm"), 0, "%s", scratch_output);
  cr_expect_str_eq(scratch_output, "disassembler\n");
}

// A machine with this package manager and nothing that the build needs. `user` is 0 for root.
static int find_criterion(const char *manager, int user) {
  char command[500];
  scratch_write_script("refuse", "exit 1\n");
  snprintf(
      command, sizeof command,
      "rm -rf bin && mkdir -p bin build && for tool in sh env mktemp mkdir rm tail; do "
      "ln -s $(command -v $tool) bin; done; for tool in cc g++ python3 gnuplot sudo; do cp refuse bin/$tool; done; "
      "printf '#!/bin/sh\\necho %d' >bin/id; chmod +x bin/id; "
      "[ %s = none ] || { printf '#!/bin/sh\\necho \"$@\" >&3' >bin/%s && chmod +x bin/%s; }",
      user, manager, manager, manager);
  cr_assert_eq(scratch_run(command), 0, "%s", scratch_output);
  return scratch_run("PATH=$PWD/bin sh \"$ROOT/common/build/deps.sh\" criterion 3>&1");
}

Test(build, packages_come_from_the_systems_manager) {
  static const struct {
    const char *manager;
    int user, code;
    const char *says;
  } cases[] = {
      {"apt-get", 0, 0, "installing the system's packages: libcriterion-dev\ninstall -y --no-install-recommends libc"},
      {"dnf", 0, 0, "installing the system's packages: criterion-devel\ninstall -y criterion-devel\n"},
      {"dnf", 1000, 1, "type: sudo dnf install -y gcc-c++ python3-pip criterion-devel gnuplot\n"},
      {"pacman", 0, 1, "Criterion is missing; it is in Arch's user repository: https://aur.archlinux.org/packages/cr"},
      {"none", 0, 1, "Criterion is missing; install it with your system's packages (on Debian: libcriterion-dev)\n"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    cr_expect_eq(find_criterion(cases[i].manager, cases[i].user), cases[i].code, "%s", scratch_output);
    cr_expect(strstr(scratch_output, cases[i].says), "%s: %s", cases[i].manager, scratch_output);
  }
}

// ---- rooms.sh: the emulator's files include and call downwards ----

// A house of two rooms with a file in each, which have these includes and these calls.
static int check_rooms(const char *low, const char *high) {
  scratch_run("mkdir -p notes common/emulator/low common/emulator/high && touch common/emulator/emulator.h "
              "common/emulator/Makefile && "
              "for room in low high; do touch common/emulator/$room/$room.h; echo \"| \\`$room/\\` | |\"; done "
              ">notes/emulator.md");
  scratch_write("common/emulator/low/low.c", low);
  scratch_write("common/emulator/high/high.c", high);
  return scratch_run("cd common/emulator && for f in */*.c; do cc -c $f -o ${f%.c}.o || exit 9; done && cd ../.. && "
                     "sh \"$ROOT/common/build/rooms.sh\" common/emulator/*/*.o");
}

Test(build, rooms_are_used_from_above_alone) {
  cr_expect_eq(check_rooms("void f(void) {}", "#include \"../low/low.h\"\nvoid f(void); void g(void) { f(); }"), 0,
               "%s", scratch_output);
  cr_expect_str_empty(scratch_output);
  cr_expect_eq(check_rooms("#include \"../high/high.h\"\nvoid f(void) {}", "void g(void) {}"), 1);
  cr_expect_str_eq(scratch_output, "low/low reaches up to high/high: includes\n");
  cr_expect_eq(check_rooms("void g(void); void f(void) { g(); }", "void g(void) {}"), 1);
  cr_expect_str_eq(scratch_output, "low/low reaches up to high/high: g\n");
  cr_expect_eq(scratch_run("mkdir common/emulator/cellar"), 0);
  cr_expect_eq(check_rooms("void f(void) {}", "void g(void) {}"), 1);
  cr_expect(strstr(scratch_output, "common/emulator has Makefile cellar emulator.h high low"), "%s", scratch_output);
}

// Two files of one room may call each other in one direction.
Test(build, files_do_not_call_each_other_in_a_circle) {
  static const char mutual[] = "void f(void); void g(void) { f(); }";
  cr_expect_eq(scratch_run("mkdir -p common/emulator/low"), 0);
  scratch_write("common/emulator/low/other.c", mutual);
  cr_expect_eq(check_rooms("void f(void) {}", ""), 0, "%s", scratch_output);
  cr_expect_eq(check_rooms("void g(void); void f(void) { g(); }", ""), 1);
  cr_expect(strstr(scratch_output, "these files call each other in a circle: "), "%s", scratch_output);
  cr_expect(strstr(scratch_output, "low/low") && strstr(scratch_output, "low/other"), "%s", scratch_output);
}

// ---- the Makefile ----

// The dynamic linker would give the driver, and the tools that load themselves into a program, our function for libc's:
// an `accept` of ours once made every stage crash under compute-sanitizer.
Test(build, a_stage_exports_no_function) {
  scratch_run("for stage in \"$ROOT\"/stage-[0-9][0-9]*; do nm -D \"$stage\"; done | grep -c ' T '");
  cr_assert_str_eq(scratch_output, "0\n", "stages export functions: %s", scratch_output);
}

Test(build, adding_a_folder_adds_its_target) {
  cr_assert_eq(scratch_run("cp \"$ROOT/Makefile\" . && mkdir -p stages/00-scalar common &&"
                           "ln -s \"$ROOT/common/build\" common && make -s BUILD=build help"),
               0, "%s", scratch_output);
  cr_expect(strstr(scratch_output, "stage-00") && !strstr(scratch_output, "stage-42"), "%s", scratch_output);
  cr_assert_eq(scratch_run("mkdir -p stages/42b-newer stages/42-new && make -s BUILD=build help"), 0, "%s",
               scratch_output);
  cr_expect(strstr(scratch_output, "stage-00 stage-42 stage-42b\n"), "%s", scratch_output);
}

// A tree of links to this one, in which nothing is built.
static void enter_fresh_tree(void) {
  cr_assert_eq(
      scratch_run("for part in Makefile common examples stages plots tests; do cp -rs \"$ROOT/$part\" .; done"), 0,
      "%s", scratch_output);
}

// Whoever asks what would be done changes nothing.
Test(build, a_question_writes_nothing) {
  enter_fresh_tree();
  cr_expect_eq(scratch_run("make -n NVCC=absent test >steps && grep -q run-tests steps"), 0, "%s", scratch_output);
  cr_expect_eq(scratch_run("make -n NVCC=absent BUILD=other root >steps"), 0, "%s", scratch_output);
  cr_expect_eq(scratch_run("make -q NVCC=absent stage-00"), 1, "%s", scratch_output);
  cr_expect_eq(scratch_run("ls -d build other"), 2, "%s", scratch_output);
}

// make splits a path at its blanks, and nvcc at its shell's: no step names the folder in which it runs.
Test(build, the_folder_may_have_any_name) {
  enter_fresh_tree();
  cr_expect_eq(scratch_run("mkdir 'odd ä [x]' && mv Makefile common examples stages plots tests odd* && cd odd* && "
                           "make -n NVCC=absent test test-gpu install >steps && ! grep -F '[x]' steps"),
               0, "%s", scratch_output);
}

// Also what needs nvcc, which is looked for once; and what other flags would change is to be built.
Test(build, what_is_built_is_not_built_again) {
  enter_fresh_tree();
  scratch_write_script("nvcc", "while [ $# -gt 1 ]; do [ $1 = -o ] && echo code >$2; shift; done\n");
  const char *const make = "PATH=.:$PATH make NVCC=nvcc build/kernels/00-scalar.ptx build/common/harness/csv.o";
  char command[200];
  cr_assert_eq(scratch_run(make), 0, "%s", scratch_output);
  snprintf(command, sizeof command, "%s -q", make);
  cr_expect_eq(scratch_run(command), 0, "%s", scratch_output);
  snprintf(command, sizeof command, "%s -q CFLAGS=-O1", make);
  cr_expect_eq(scratch_run(command), 1, "%s", scratch_output);
}

// Only what nvcc compiles, or what includes CUDA's headers, waits for it.
Test(build, c_needs_no_nvcc) {
  enter_fresh_tree();
  cr_assert_eq(scratch_run("make -n NVCC=absent build/common/harness/csv.o build/stages/06-tma/stage.o"), 0, "%s",
               scratch_output);
  cr_expect_not(strstr(scratch_output, "absent") || strstr(scratch_output, "deps.sh"), "%s", scratch_output);
  cr_assert_eq(scratch_run("make -n NVCC=absent build/common/device/gpu.o"), 0, "%s", scratch_output);
  cr_expect(strstr(scratch_output, "deps.sh nvcc"), "%s", scratch_output);
}

// Builds a copy of the emulator's folder with this compiler and these flags, and a program with it; and once more the
// program as on a host whose fesetround does nothing.
static void build_emulator(const char *cc, const char *flags) {
  char command[1000];
  scratch_write("no_modes.c", "int fesetround(int mode);\nint fesetround(int mode) { return (void)mode, 0; }\n");
  snprintf(
      command, sizeof command,
      "rm -rf alone && cp -rL \"$ROOT/common/emulator\" alone && rm -rf alone/build && "
      "make -s -C alone -j2 CC=%s CFLAGS='%s' && for also in '' no_modes.c; do "
      "%s %s -Ialone \"$ROOT/tests/emulator/alone.c\" $also alone/build/libhopper_emulator.a -lm -pthread -o program "
      "&& env -i ./program; done",
      cc, flags, cc, flags);
  cr_expect_eq(scratch_run(command), 0, "%s %s: %s", cc, flags, scratch_output);
  cr_expect_str_eq(scratch_output, "right\nright\n");
}

Test(build, the_emulator_builds_by_itself) { build_emulator("cc", "-O0 -Wno-format-truncation"); }

Test(build, the_emulator_has_no_warnings_of_clang) {
  if (scratch_run("command -v clang")) cr_skip_test("there is no clang");
  build_emulator("clang", "-O0 -Werror");
}

// -Wno-psabi: GCC has changed the layout of a structure that no other compiler's object will see.
Test(build, the_emulator_runs_in_32_bits) {
  static const char flags[] = "-O0 -m32 -msse2 -mfpmath=sse -Wno-psabi -Wno-format-truncation";
  if (scratch_run("echo 'int main(void) { return sizeof(long) != 4; }' | cc -m32 -x c - -o probe && ./probe"))
    cr_skip_test("the compiler or the system has no 32 bits (on Debian: gcc-multilib)");
  build_emulator("cc", flags);
}

// x87 computes in 80 bits, which one line says.
Test(build, the_emulator_refuses_arithmetic_in_more_bits) {
  if (scratch_run("echo | cc -m32 -mfpmath=387 -dM -E - | grep '__FLT_EVAL_METHOD__ 2'")) cr_skip_test("not x86");
  scratch_write("empty.c", "");
  cr_expect_neq(
      scratch_run("cc -m32 -mfpmath=387 -std=c11 -fsyntax-only -include \"$ROOT/common/emulator/warp/lanes.h\" "
                  "empty.c"),
      0);
  cr_expect(strstr(scratch_output, "compile with -msse2 -mfpmath=sse"), "%s", scratch_output);
}
