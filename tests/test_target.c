// What an H100 runs: PTX for sm_90a, and for older targets what those have. Each line here was given to ptxas 13.0 with
// -arch=sm_90a, and refused or accepted by it for the same reason.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "emulator/emulator.h"
#include "support/ptx_files.h"

TestSuite(target, .timeout = 30);

// Loads a kernel of one instruction, on its line 6. Returns what the emulator refuses it for, "" when it does not.
static const char *refusal(const char *version, const char *target, const char *instruction, int *line) {
  static EmulatorError error;
  char text[900];
  int length = snprintf(text, sizeof text,
                        ".version %s\n.target %s\n.address_size 64\n.entry k(.param .b64 p) { .reg .b64 %%rd<9>; .reg "
                        ".b32 %%r<9>; .reg .f32 %%f<9>; .reg .b16 %%h<9>; .reg .pred %%p;\n\n%s\nret; }\n",
                        version, target, instruction);
  Emulator *emulator = emulator_open(&(EmulatorOptions){.hazards = true, .threads = 1});
  EmulatorModule *module = load_checked(emulator, text, (size_t)length, &error);
  emulator_close(emulator);
  *line = error.line;
  cr_expect(module || error.message[0], "refused without a word: %s", instruction);
  return module ? "" : error.message;
}

static void expect_refused(const char *version, const char *target, const char *instruction, int line,
                           const char *reason) {
  int at;
  const char *message = refusal(version, target, instruction, &at);
  cr_expect(strstr(message, reason), ".version %s, %s, %s: '%s' does not say '%s'", version, target, instruction,
            message, reason);
  cr_expect_eq(at, line, ".version %s, %s, %s: line %d, not %d", version, target, instruction, at, line);
}

static void expect_accepted(const char *version, const char *target, const char *instruction) {
  int line;
  cr_expect_str_empty(refusal(version, target, instruction, &line), ".version %s, %s, %s", version, target,
                      instruction);
}

Test(target, a_version_that_nobody_knows_is_refused) {
  expect_refused("99.9", "sm_90a", "", 1, "newest known PTX is 9, of CUDA 13");
  expect_refused("10.0", "sm_90a", "", 1, "newest known PTX is 9, of CUDA 13");
  expect_refused("8.9", "sm_90a", "", 1, "no such version");
  expect_refused("7.9", "sm_90", "", 1, "no such version");
  expect_accepted("9.0", "sm_90a", "");
  expect_accepted("8.8", "sm_90a", "");
}

Test(target, a_target_that_an_H100_does_not_run_is_refused) {
  static const char *const others[] = {"sm_100a", "sm_100", "sm_100f", "sm_120a", "sm_91", "sm_90f", "sm_80a", "foo"};
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    expect_refused("9.0", others[i], "", 2, "an H100 runs PTX for sm_90a, or for sm_90 and older");
  expect_refused("7.8", "sm_90a", "", 2, "needs .version 8.0, this is 7.8");
  expect_refused("7.7", "sm_90", "", 2, "needs .version 7.8, this is 7.7");
  expect_accepted("8.0", "compute_90a", "");
  expect_accepted("7.8", "sm_90", "");
  expect_accepted("7.0", "sm_80", "");
}

// An instruction, and the oldest target that has it.
static const struct {
  const char *instruction;
  int target;  // tens of sm_, 1 more with an a
} needs[] = {
    {"wgmma.fence.sync.aligned;", 901},
    {"wgmma.commit_group.sync.aligned;", 901},
    {"setmaxnreg.dec.sync.aligned.u32 24;", 901},
    {"mapa.shared::cluster.u32 %r1, %r2, 0;", 900},
    {"elect.sync _|%p, 0xffffffff;", 900},
    {"stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r1], {%r2};", 900},
    {"griddepcontrol.wait;", 900},
    {"barrier.cluster.arrive.aligned;", 900},
    {"fence.acq_rel.cluster;", 900},
    {"fence.proxy.async;", 900},
    {"fence.mbarrier_init.release.cluster;", 900},
    {"ld.shared::cluster.u32 %r1, [%r2];", 900},
    {"red.global.add.v2.f32 [%rd1], {%f1, %f2};", 900},
    {"red.global.add.noftz.bf16 [%rd1], %h1;", 900},
    {"red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r1], %r2, [%r3];", 900},
    {"fma.rn.oob.f16 %h1, %h2, %h3, %h4;", 900},
    {"tensormap.replace.tile.rank.global.b1024.b32 [%rd1], 1;", 901},
    {"tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%rd1], [%r1], 128;", 900},
    {"mov.u32 %r1, %cluster_ctarank;", 900},
    {"mbarrier.try_wait.parity.shared.b64 %p, [%r1], 0;", 900},
    {"mbarrier.arrive.expect_tx.shared.b64 _, [%r1], 16;", 900},
    {"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], 16, [%r2];", 900},
    {"cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%rd1, {%r1}], [%r2];", 900},
    {"cp.async.bulk.wait_group 0;", 900},
    {"add.rn.bf16 %h1, %h2, %h3;", 900},
    {"cvt.rn.bf16.f16 %h1, %h2;", 900},
    {"cvt.rn.tf32.f32 %r1, %f1;", 900},
    {"min.s16x2 %r1, %r2, %r3;", 900},
    {"cvt.rn.satfinite.e4m3x2.f32 %h1, %f1, %f2;", 890},
    {"mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32 {%f1,%f2,%f3,%f4}, {%r1,%r1,%r2,%r3}, {%r1,%r2}, "
     "{%f1,%f2,%f3,%f4};",
     890},
    {"mma.sync.aligned.m16n8k16.row.col.f32.e5m2.e5m2.f32 {%f1,%f2,%f3,%f4}, {%r1,%r1}, {%r1}, {%f1,%f2,%f3,%f4};",
     890},
    {"max.xorsign.abs.f32 %f1, %f2, %f3;", 860},
    {"cp.async.ca.shared.global [%r1], [%rd1], 4;", 800},
    {"mbarrier.init.shared.b64 [%r1], 1;", 800},
    {"mbarrier.arrive.shared.b64 %rd1, [%r1];", 800},
    {"redux.sync.add.s32 %r1, %r2, 0xffffffff;", 800},
    {"cvt.rn.bf16.f32 %h1, %f1;", 800},
    {"cvt.rna.tf32.f32 %r1, %f1;", 800},
    {"fma.rn.bf16 %h1, %h2, %h3, %h4;", 800},
    {"max.NaN.f32 %f1, %f2, %f3;", 800},
    {"add.f32 %f1, %f2, %f3;", 750},
    {"shfl.sync.down.b32 %r1, %r2, 1, 31, 0xffffffff;", 750},
    {"ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [%r2];", 750},
    {"membar.gl;", 750},
};

Test(target, an_instruction_is_refused_below_the_target_that_has_it) {
  static const struct {
    const char *name;
    int number;
  } targets[] = {{"sm_75", 750}, {"sm_80", 800}, {"sm_86", 860}, {"sm_89", 890}, {"sm_90", 900}, {"sm_90a", 901}};
  for (size_t i = 0; i < sizeof needs / sizeof *needs; i++)
    for (size_t t = 0; t < sizeof targets / sizeof *targets; t++) {
      char reason[80];
      snprintf(reason, sizeof reason, " needs .target sm_%d%s, this module is for %s", needs[i].target / 10,
               needs[i].target % 10 ? "a" : "", targets[t].name);
      if (targets[t].number < needs[i].target)
        expect_refused("9.0", targets[t].name, needs[i].instruction, 6, reason);
      else
        expect_accepted("9.0", targets[t].name, needs[i].instruction);
    }
}

Test(target, a_cluster_is_refused_below_sm_90) {
  static const char text[] =
      ".version 9.0\n.target sm_80\n.address_size 64\n.entry k() .reqnctapercluster 2 { ret; }\n";
  Emulator *emulator = emulator_open(&(EmulatorOptions){.threads = 1});
  EmulatorError error;
  cr_expect_not(load_checked(emulator, text, strlen(text), &error));
  cr_expect_str_eq(error.message, "a cluster needs .target sm_90, this module is for sm_80");
  cr_expect_eq(error.line, 4);
  emulator_close(emulator);
}

// PTX for an older target is legal on an H100, and runs.
Test(target, a_kernel_for_an_older_target_runs) {
  static const char *const targets[] = {"sm_50", "sm_80", "sm_90"};
  for (int i = 0; i < 3; i++) {
    char text[400];
    int length =
        snprintf(text, sizeof text,
                 ".version 9.0\n.target %s\n.address_size 64\n.entry k(.param .u64 p) { .reg .u64 %%a; .reg "
                 ".u32 %%t; ld.param.u64 %%a, [p]; mov.u32 %%t, %%tid.x; red.global.add.u32 [%%a], %%t; ret; }\n",
                 targets[i]);
    Emulator *emulator = emulator_open(&(EmulatorOptions){.hazards = true, .threads = 1});
    EmulatorError error = {0};
    EmulatorModule *module = emulator_load(emulator, text, (size_t)length, &error);
    cr_assert(module, "%s: %s", targets[i], error.message);
    uint64_t buffer = emulator_alloc(emulator, 4);
    uint32_t sum = 0;
    emulator_fill(emulator, buffer, 0, 4);
    const void *arguments[] = {&buffer};
    EmulatorLaunch launch = {
        .kernel = "k", .grid = {1, 1, 1}, .block = {64, 1, 1}, .arguments = arguments, .argument_count = 1};
    cr_expect_eq(emulator_launch(emulator, module, &launch, &error), EMULATOR_OK, "%s", error.message);
    emulator_read(emulator, &sum, buffer, 4);
    cr_expect_eq(sum, 63 * 64 / 2);
    emulator_close(emulator);
  }
}
