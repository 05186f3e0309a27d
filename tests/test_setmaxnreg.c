// setmaxnreg on the emulator: what a launch allots, what the block's pool gives, and which numbers the text may hold.
// What is wrong with its use is in tests/hazards/setmaxnreg.cu.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "emulator/emulator.h"
#include "support/ptx_files.h"

TestSuite(setmaxnreg, .timeout = 60);

static Emulator *open_emulator(void) {
  Emulator *emulator = emulator_open(&(EmulatorOptions){.hazards = true, .threads = 1, .step_limit = 1 << 22});
  cr_assert(emulator);
  return emulator;
}

static EmulatorModule *load(Emulator *emulator, const char *directives, const char *body, EmulatorError *error) {
  char text[800];
  snprintf(text, sizeof text,
           ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry test() %s {\n"
           ".reg .b32 %%t; .reg .pred %%p; mov.u32 %%t, %%tid.x; setp.lt.u32 %%p, %%t, 128;\n%s ret;\n}\n",
           directives, body);
  return load_checked(emulator, text, strlen(text), error);
}

static HazardGrade first_grade;  // of the last run's first hazard

// Launches a kernel of so many threads. Returns the detail of its first hazard, "" when there is none.
static const char *run(const char *directives, const char *body, unsigned threads, char detail[HAZARD_DETAIL]) {
  Emulator *emulator = open_emulator();
  EmulatorError error = {0};
  EmulatorModule *module = load(emulator, directives, body, &error);
  cr_assert(module, "line %d: %s", error.line, error.message);
  EmulatorLaunch launch = {.kernel = "test", .grid = {1, 1, 1}, .block = {threads, 1, 1}};
  cr_assert_neq(emulator_launch(emulator, module, &launch, &error), EMULATOR_INVALID, "%s", error.message);
  int count;
  const Hazard *hazards = emulator_hazards(emulator, &count);
  for (int i = 0; i < count; i++) cr_expect_eq(hazards[i].kind, HAZARD_SETMAXNREG);
  snprintf(detail, HAZARD_DETAIL, "%s", count ? hazards[0].detail : "");
  if (count) first_grade = hazards[0].grade;
  emulator_close(emulator);
  return detail;
}

// The numbers are those of ptxas 13.0, "Used 168 registers" and so on, 255 being handed out as 256.
static const struct {
  const char *directives;
  unsigned threads;
  int inc;  // the count of a setmaxnreg.inc in the kernel, 0: none
  int registers;
} kernels[] = {
    {".maxntid 384 .minnctapersm 1", 384, 0, 168},
    {".maxntid 416 .minnctapersm 1", 416, 0, 128},
    {".maxntid 416 .minnctapersm 2", 416, 0, 72},
    {".maxntid 160 .minnctapersm 2", 160, 0, 168},
    {".maxntid 288 .minnctapersm 2", 288, 0, 96},
    {".maxntid 33 .minnctapersm 7", 33, 0, 128},
    {".maxntid 224 .minnctapersm 3", 224, 0, 80},
    {".maxntid 1024 .minnctapersm 1", 1024, 0, 64},
    {".maxntid 128 .minnctapersm 1", 128, 0, 256},
    {".reqntid 96 .minnctapersm 3", 96, 0, 168},
    {".maxnreg 100", 128, 0, 104},
    {".maxntid 256 .minnctapersm 1", 256, 240, 240},
    {".reqntid 256 .minnctapersm 1", 256, 160, 160},
    {".maxntid 256 .minnctapersm 1", 256, 32, 32},
    {".maxntid 256 .minnctapersm 1", 256, 256, 256},
    {".maxntid 384 .minnctapersm 1", 384, 160, 160},
    {".maxntid 384 .minnctapersm 1", 384, 240, 168},
    {".maxntid 256 .minnctapersm 2", 256, 120, 120},
    {".maxntid 416 .minnctapersm 1", 416, 240, 128},
    {".maxnreg 168", 128, 240, 168},
    {".maxnreg 168", 128, 160, 160},
    {".maxnreg 100", 128, 104, 104},
    {".maxntid 384 .maxnreg 240", 384, 240, 240},
    {".maxntid 256 .minnctapersm 2 .maxnreg 200", 256, 240, 128},
    {".maxntid 384 .minnctapersm 1 .maxnreg 100", 384, 240, 104},
};

// The .inc is in the kernel and not executed.
Test(setmaxnreg, allotted) {
  for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
    char inc[80] = "", body[300], detail[HAZARD_DETAIL], expected[80];
    if (kernels[i].inc)
      snprintf(inc, sizeof inc, "setp.gt.u32 %%p, %%t, 2000;\n@%%p setmaxnreg.inc.sync.aligned.u32 %d;\n",
               kernels[i].inc);
    snprintf(body, sizeof body, "%ssetmaxnreg.dec.sync.aligned.u32 %d;\n", inc, kernels[i].registers);
    cr_expect_str_eq(run(kernels[i].directives, body, kernels[i].threads, detail), "", "%s: %s", kernels[i].directives,
                     detail);
    if (kernels[i].registers == 256) continue;
    snprintf(body, sizeof body, "%ssetmaxnreg.dec.sync.aligned.u32 %d;\n", inc, kernels[i].registers + 8);
    snprintf(expected, sizeof expected, "and the warp has %d", kernels[i].registers);
    cr_expect(strstr(run(kernels[i].directives, body, kernels[i].threads, detail), expected), "%s: %s",
              kernels[i].directives, detail);
  }
}

// A second block on each SM halves what a block has: the counts of one do not fit.
Test(setmaxnreg, two_blocks) {
  static const char *const body =
      "@%p setmaxnreg.dec.sync.aligned.u32 24;\n@!%p setmaxnreg.inc.sync.aligned.u32 240;\n";
  char detail[HAZARD_DETAIL];
  cr_expect_str_eq(run(".maxntid 256 .minnctapersm 1", body, 256, detail), "", "%s", detail);
  run(".maxntid 256 .minnctapersm 2", body, 256, detail);
  cr_expect(strstr(detail, "24 + 240 registers a thread x 128 need 33,792, the launch gave 256 x 128 = 32,768"), "%s",
            detail);
}

// 128 threads give back 168 - 24 registers: the other 256 may have 72 more each.
Test(setmaxnreg, pool) {
  static const char *const fits =
      "@%p setmaxnreg.dec.sync.aligned.u32 24;\n@!%p setmaxnreg.inc.sync.aligned.u32 240;\n";
  static const char *const too_much =
      "@%p setmaxnreg.dec.sync.aligned.u32 32;\n@!%p setmaxnreg.inc.sync.aligned.u32 240;\n";
  char detail[HAZARD_DETAIL];
  cr_expect_str_eq(run(".maxntid 384 .minnctapersm 1", fits, 384, detail), "", "%s", detail);
  run(".maxntid 384 .minnctapersm 1", too_much, 384, detail);
  cr_expect(strstr(detail, "32 + 240 + 240 registers a thread x 128 need 65,536, the launch gave 384 x 168 = 64,512"),
            "%s", detail);
}

// The pool is the block's: what one block gives back another does not get, so a block of one warpgroup can only give.
Test(setmaxnreg, of_the_block) {
  char detail[HAZARD_DETAIL];
  run(".maxntid 128 .minnctapersm 4", "setmaxnreg.inc.sync.aligned.u32 136;\n", 128, detail);
  cr_expect(strstr(detail, "136 registers a thread x 128 need 17,408, the launch gave 128 x 128 = 16,384"), "%s",
            detail);
}

// Between two that change something all warps of the warpgroup must meet. One that changes nothing is a formal finding.
Test(setmaxnreg, without_a_meeting) {
  static const struct {
    const char *body, *detail;
    HazardGrade grade;
  } cases[] = {
      {"setmaxnreg.dec.sync.aligned.u32 40;\nsetmaxnreg.dec.sync.aligned.u32 32;\n", "have not synchronised",
       HAZARD_FAULT},
      {"setmaxnreg.dec.sync.aligned.u32 40;\nsetmaxnreg.dec.sync.aligned.u32 40;\n", "This one changes nothing",
       HAZARD_FORMAL},
      {"setmaxnreg.dec.sync.aligned.u32 40;\nbar.sync 0;\nsetmaxnreg.inc.sync.aligned.u32 40;\nbar.sync 0;\n"
       "setmaxnreg.dec.sync.aligned.u32 32;\n",
       "", HAZARD_FAULT},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char detail[HAZARD_DETAIL];
    run(".maxntid 128 .minnctapersm 1", cases[i].body, 128, detail);
    cr_expect(*cases[i].detail ? strstr(detail, cases[i].detail) != NULL : !*detail, "%s: %s", cases[i].body, detail);
    if (*detail) cr_expect_eq(first_grade, cases[i].grade, "%s", cases[i].body);
  }
}

// The warps of a warpgroup must execute one setmaxnreg. With two that ask for the same the hardware is right.
Test(setmaxnreg, of_two_instructions) {
  static const struct {
    const char *odd, *even;
    HazardGrade grade;
  } cases[] = {
      {"dec.sync.aligned.u32 40", "dec.sync.aligned.u32 40", HAZARD_FORMAL},
      {"dec.sync.aligned.u32 40", "dec.sync.aligned.u32 32", HAZARD_FAULT},
      {"dec.sync.aligned.u32 168", "inc.sync.aligned.u32 168", HAZARD_FAULT},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char body[200], detail[HAZARD_DETAIL];
    snprintf(body, sizeof body,
             "and.b32 %%t, %%t, 32; setp.ne.u32 %%p, %%t, 0;\n@%%p setmaxnreg.%s;\n@!%%p setmaxnreg.%s;\n",
             cases[i].odd, cases[i].even);
    run(".maxntid 384 .minnctapersm 1", body, 384, detail);
    cr_expect(strstr(detail, "executes another setmaxnreg"), "%s: %s", body, detail);
    cr_expect_eq(first_grade, cases[i].grade, "%s", body);
  }
}

// The counter has the registers of all threads after each change. One that changes nothing adds nothing.
Test(setmaxnreg, counted) {
  static const struct {
    const char *body;
    unsigned registers;
  } cases[] = {
      {"@%p setmaxnreg.dec.sync.aligned.u32 24;\n@!%p setmaxnreg.inc.sync.aligned.u32 240;\n", 128 * (24 + 2 * 240)},
      {"@%p setmaxnreg.dec.sync.aligned.u32 24;\n@!%p setmaxnreg.inc.sync.aligned.u32 232;\n", 128 * (24 + 2 * 232)},
      {"setmaxnreg.dec.sync.aligned.u32 40;\nbar.sync 0;\nsetmaxnreg.inc.sync.aligned.u32 40;\nbar.sync 0;\n"
       "setmaxnreg.dec.sync.aligned.u32 32;\n",
       384 * (40 + 32)},
      {"bar.sync 0;\n", 0},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    Emulator *emulator = open_emulator();
    EmulatorError error = {0};
    EmulatorModule *module = load(emulator, ".maxntid 384 .minnctapersm 1", cases[i].body, &error);
    cr_assert(module, "line %d: %s", error.line, error.message);
    EmulatorLaunch launch = {.kernel = "test", .grid = {3, 1, 1}, .block = {384, 1, 1}};
    cr_assert_eq(emulator_launch(emulator, module, &launch, &error), EMULATOR_OK, "%s", error.message);
    EmulatorCounters counters = emulator_counters(emulator);
    cr_expect_eq(counters.value[COUNTER_SETMAXNREG_REGISTERS], 3 * cases[i].registers, "%s", cases[i].body);
    emulator_close(emulator);
  }
}

// As ptxas has it.
Test(setmaxnreg, numbers) {
  static const struct {
    const char *text, *message;
  } wrong[] = {
      {"setmaxnreg.inc.sync.aligned.u32 100;", "a multiple of 8 from 24 to 256"},
      {"setmaxnreg.dec.sync.aligned.u32 16;", "a multiple of 8 from 24 to 256"},
      {"setmaxnreg.inc.sync.aligned.u32 264;", "a multiple of 8 from 24 to 256"},
      {"setmaxnreg.inc.sync.aligned.u32 %t;", "an immediate"},
      {"setmaxnreg.sync.aligned.u32 40;", "needs .inc or .dec"},
      {"setmaxnreg.dec.aligned.u32 40;", ".sync.aligned"},
      {"setmaxnreg.dec.sync.aligned.u32;", "operands"},
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    Emulator *emulator = open_emulator();
    EmulatorError error = {0};
    cr_expect_null(load(emulator, ".maxntid 128 .minnctapersm 1", wrong[i].text, &error), "%s", wrong[i].text);
    cr_expect(strstr(error.message, wrong[i].message), "%s: %s", wrong[i].text, error.message);
    cr_expect_eq(error.line, 6, "%s: line %d", wrong[i].text, error.line);
    emulator_close(emulator);
  }
}
