// Loads of local memory whose value a selp discards (memory/discarded.h): no thread reads what it does not select.
#include <criterion/criterion.h>

#include "support/matrix_kernel.h"
#include "support/run_ptx.h"

TestSuite(discarded, .timeout = 60);

// %p1 holds for the lower half of the warp, and only these lanes have written %r21's place, own.
#define PREPARE                                                                                                        \
  "setp.lt.u32 %p1, %r0, 16; setp.ge.u32 %p2, %r0, 16; mov.u64 %rd3, own; mov.u32 %r20, 7;\n"                          \
  "@%p1 st.local.u32 [%rd3], %r20;\n"
#define LOAD "ld.local.u32 %r21, [%rd3];\n"
#define SILENCE HAZARD_KIND_COUNT, 32, 0, false, NULL
#define REPORT HAZARD_UNINITIALISED_READ, 32, 0, false, "local memory"

Test(discarded, only_what_is_selected_is_read) {
  static const HazardTest tests[] = {
      {PREPARE LOAD "selp.b32 %r22, %r21, %r20, %p1;\n", SILENCE},
      {PREPARE LOAD "selp.b32 %r22, %r20, %r21, %p1;\n", REPORT},
      {PREPARE LOAD "selp.b32 %r22, %r20, %r21, %p2;\n", SILENCE},
      {PREPARE LOAD "selp.b32 %r22, %r21, %r20, !%p2;\n", SILENCE},
      {PREPARE LOAD "selp.b32 %r22, %r20, %r21, !%p2;\n", REPORT},
      {PREPARE LOAD "add.u32 %r23, %r20, 1; selp.b32 %r22, %r21, %r23, %p1;\n", SILENCE},
      {PREPARE "@%p1 " LOAD "selp.b32 %r22, %r21, %r20, %p2;\n", SILENCE},
  };
  EXPECT_HAZARDS(tests);
}

Test(discarded, what_may_be_read_otherwise_is_reported) {
  static const HazardTest tests[] = {
      {PREPARE LOAD "selp.b32 %r22, %r21, %r20, %p1; add.u32 %r23, %r21, 1;\n", REPORT},     // a second reader
      {PREPARE LOAD "selp.b32 %r22, %r21, %r21, %p1;\n", REPORT},                            // twice the same
      {PREPARE LOAD "setp.lt.u32 %p1, %r0, 20; selp.b32 %r22, %r21, %r20, %p1;\n", REPORT},  // another predicate
      {PREPARE LOAD "@%p1 selp.b32 %r22, %r21, %r20, %p1;\n", REPORT},                       // it may not execute
      {PREPARE LOAD "bra.uni THERE;\nTHERE: selp.b32 %r22, %r21, %r20, %p1;\n", REPORT},     // not straight on
      {PREPARE LOAD "slct.u32.s32 %r22, %r20, %r21, %r20;\n", REPORT},                       // no selp
      {PREPARE "ld.local.v2.u32 {%r21, %r24}, [%rd3];\nselp.b32 %r22, %r21, %r20, %p1;\n", REPORT},  // two registers
  };
  EXPECT_HAZARDS(tests);
}
