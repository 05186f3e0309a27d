// .sync instructions that the lanes of a warp execute at several places of the program. The H200's results of the plain
// cases are in tests/rules; here are operands that stand in each other's way.
#include <criterion/criterion.h>
#include <stdio.h>

#include "support/run_kernel.h"

TestSuite(meeting, .timeout = 60);

enum { LANES_OF_WARP = 32, LOWER = 0xffff };  // lanes 0 to 15 go one way

// %t is the lane, %p that it is odd. Lanes 0 to 15 execute one text, the others the other; then each stores %v.
static void run_ways(const char *lower, const char *upper, uint32_t out[LANES_OF_WARP]) {
  static char text[4000];
  snprintf(text, sizeof text,
           PTX_HEADER ".visible .entry test(.param .u64 out) {\n.reg .b32 %%t, %%v, %%a, %%b, %%m, %%k;\n"
                      ".reg .b64 %%o, %%w, %%x, %%y;\n.reg .pred %%p, %%q, %%r;\nld.param.u64 %%o, [out];\n"
                      "mov.u32 %%t, %%tid.x;\nmad.wide.u32 %%o, %%t, 4, %%o;\nand.b32 %%v, %%t, 1;\n"
                      "setp.ne.u32 %%p, %%v, 0;\nadd.u32 %%a, %%t, 100;\nadd.u32 %%b, %%t, 200;\nmov.u32 %%k, 7;\n"
                      "setp.lt.u32 %%q, %%t, 16;\n@%%q bra LOWER;\n%s\nbra JOIN;\nLOWER:\n%s\nJOIN:\n"
                      "st.global.u32 [%%o], %%v;\nret;\n}\n",
           upper, lower);
  for (uint64_t schedule = 0; schedule < SCHEDULES; schedule++) {
    Machine machine = machine_open(text, schedule);
    uint64_t address = machine_upload(&machine, NULL, LANES_OF_WARP * sizeof *out);
    EmulatorStatus status = machine_launch(&machine, (Shape){1, LANES_OF_WARP, 0}, (const void *[]){&address}, 1);
    cr_assert_eq(status, EMULATOR_OK, "%s", text);
    machine_download(&machine, out, address, LANES_OF_WARP * sizeof *out);
    machine_close(&machine);
  }
}

#define EXPECT_LANES(lower, upper, value)                                                                              \
  do {                                                                                                                 \
    uint32_t out[LANES_OF_WARP];                                                                                       \
    run_ways(lower, upper, out);                                                                                       \
    for (uint32_t lane = 0; lane < LANES_OF_WARP; lane++)                                                              \
      cr_expect_eq(out[lane], value, "lane %u: %u", lane, out[lane]);                                                  \
  } while (0)

Test(meeting, a_predicate_negated_at_one_place) {
  EXPECT_LANES("vote.sync.ballot.b32 %v, %p, -1;", "vote.sync.ballot.b32 %v, !%p, -1;",
               (0xaaaaaaaa & LOWER) | (0x55555555 & ~(uint32_t)LOWER));
  EXPECT_LANES("vote.sync.any.pred %r, %p, -1; selp.u32 %v, 1, 0, %r;",
               "setp.ne.u32 %q, %t, %t; vote.sync.any.pred %p, %q, -1; selp.u32 %v, 1, 0, %p;", 1);
}

// The sources of one place are the destination and the lane number of the other.
Test(meeting, registers_in_other_roles) {
  EXPECT_LANES("and.b32 %v, %t, 15; shfl.sync.idx.b32 %a, %b, %v, 31, -1; mov.u32 %v, %a;",
               "and.b32 %a, %t, 15; shfl.sync.idx.b32 %b, %a, %a, 31, -1; mov.u32 %v, %b;", 200 + (lane & 15));
  EXPECT_LANES("shfl.sync.bfly.b32 %a, %a, 16, 31, -1; mov.u32 %v, %a;", "shfl.sync.bfly.b32 %v, %b, 16, 31, -1;",
               lane < 16 ? 200 + lane + 16 : 100 + lane - 16);
}

// What only the other place writes stays as it was.
Test(meeting, registers_of_the_other_place) {
  EXPECT_LANES("shfl.sync.idx.b32 %k|%r, %a, 3, 31, -1; mov.u32 %v, %b;",
               "shfl.sync.idx.b32 %v, %a, 3, 31, -1; add.u32 %v, %v, %k;", lane < 16 ? 200 + lane : 103 + 7);
  EXPECT_LANES("redux.sync.add.u32 %v, 1, -1;", "redux.sync.add.u32 %v, %t, -1;", 16 + (16 + 31) * 8);
}

Test(meeting, wide_values) {
  EXPECT_LANES("cvt.u64.u32 %w, %t; and.b64 %w, %w, 1; match.any.sync.b64 %v, %w, -1;",
               "cvt.u64.u32 %x, %t; and.b64 %x, %x, 1; shl.b64 %y, %x, 40; match.any.sync.b64 %v, %y, -1;",
               lane < 16  ? (lane & 1 ? 0xaaaa : 0x55555555)
               : lane & 1 ? 0xaaaa0000
                          : 0x55555555);
  EXPECT_LANES("elect.sync %v|%r, -1; selp.u32 %v, 1, 0, %r;", "elect.sync %a|%q, -1; selp.u32 %v, 1, 0, %q;",
               lane == 0);
}

// Lanes of each way belong to two teams.
Test(meeting, several_teams) {
  EXPECT_LANES("and.b32 %k, %t, 8; setp.ne.u32 %r, %k, 0; selp.u32 %m, 0xff00ff00, 0x00ff00ff, %r; redux.sync.max.u32 "
               "%v, %t, %m;",
               "and.b32 %a, %t, 8; setp.ne.u32 %q, %a, 0; selp.u32 %b, 0xff00ff00, 0x00ff00ff, %q; redux.sync.max.u32 "
               "%v, %t, %b;",
               lane & 8 ? 31 : 23);
}

// Two of three places; the third has lanes that no mask names.
Test(meeting, three_places) {
  EXPECT_LANES(
      "setp.lt.u32 %r, %t, 8; @%r bra FIRST; redux.sync.min.u32 %v, %b, 0xffffff00; bra JOIN;\nFIRST: mov.u32 %v, 5;",
      "redux.sync.min.u32 %v, %a, 0xffffff00;", lane < 8 ? 5 : 116);
}

// Another operation is another instruction: they do not meet.
Test(meeting, other_qualifiers) {
  static const char text[] = PTX_HEADER
      ".visible .entry test() {\n.reg .b32 %t, %v;\n.reg .pred %q;\nmov.u32 %t, %tid.x;\nsetp.lt.u32 %q, %t, 16;\n"
      "@%q bra LOWER;\nredux.sync.min.u32 %v, %t, -1;\nbra JOIN;\nLOWER:\nredux.sync.max.u32 %v, %t, "
      "-1;\nJOIN:\nret;\n}\n";
  Machine machine = machine_open(text, 0);
  cr_expect_eq(machine_launch(&machine, (Shape){1, LANES_OF_WARP, 0}, NULL, 0), EMULATOR_FAULT);
  machine_close(&machine);
}

// Lanes of a warp wait for others at a barrier, and these come there with the last instruction of the warp's turn:
// nothing else will run it, and both groups would wait for ever. Lane 0 falls behind in a loop of its own, until the
// others are let pass.
Test(meeting, at_the_end_of_a_turn) {
  static const char text[] = PTX_HEADER
      ".visible .entry test(.param .u64 out) {\n.reg .b32 %t, %i, %k, %v;\n.reg .b64 %o;\n.reg .pred %p, %q;\n"
      "ld.param.u64 %o, [out];\nmov.u32 %t, %tid.x;\nmov.u32 %k, 0;\nmov.u32 %v, 0;\n"
      "ROUND:\nsetp.ne.u32 %p, %t, 0;\nmov.u32 %i, 0;\n@%p bra JOIN;\n"
      "ALONE:\nadd.u32 %i, %i, 1;\nsetp.lt.u32 %q, %i, 1200;\n@%q bra ALONE;\n"
      "JOIN:\nadd.u32 %v, %v, 1;\nbar.sync 0;\nadd.u32 %k, %k, 1;\nsetp.lt.u32 %q, %k, 20;\n@%q bra ROUND;\n"
      "setp.ne.u32 %p, %t, 0;\n@%p ret;\nst.global.u32 [%o], %v;\nret;\n}\n";
  for (uint64_t schedule = 1; schedule <= 100; schedule++) {
    Machine machine = machine_open(text, schedule);
    uint64_t address = machine_upload(&machine, NULL, 4);
    uint32_t rounds = 0;
    cr_assert_eq(machine_launch(&machine, (Shape){1, LANES_OF_WARP, 0}, (const void *[]){&address}, 1), EMULATOR_OK,
                 "schedule %llu", (unsigned long long)schedule);
    machine_download(&machine, &rounds, address, 4);
    cr_expect_eq(rounds, 20);
    machine_close(&machine);
  }
}
