// Values that nothing defines (report/undefined.h): they are reported where something depends on them, and nowhere
// else.
#include <criterion/criterion.h>

#include "support/matrix_kernel.h"
#include "support/run_ptx.h"

TestSuite(undefined, .timeout = 60);

// %p1 holds for the lower half of the warp, and only these lanes have written %r21's place, own; %rd4 is the lane's
// output.
#define PREPARE                                                                                                        \
  "setp.lt.u32 %p1, %r0, 16; setp.ge.u32 %p2, %r0, 16; mov.u64 %rd3, own; mov.u32 %r20, 7;\n"                          \
  "mul.wide.u32 %rd4, %r0, 16; add.u64 %rd4, %rd4, %rd1;\n"                                                            \
  "@%p1 st.local.u32 [%rd3], %r20;\n"
#define LOAD "ld.local.u32 %r21, [%rd3];\n"
#define STORE(register) "st.global.u32 [%rd4], " register ";\n"
#define SILENCE HAZARD_KIND_COUNT, 32, 0, false, NULL
#define LOCAL HAZARD_UNINITIALISED_READ, 32, 0, false, "local memory"
#define THERE HAZARD_UNINITIALISED_READ, 32, 0, false, "nothing was ever written there"
#define SHUFFLE HAZARD_DIVERGENT_ALIGNED, 32, 0, false, "an undefined value"

Test(undefined, only_what_is_selected_is_read) {
  static const HazardTest tests[] = {
      {PREPARE LOAD "selp.b32 %r22, %r21, %r20, %p1;\n" STORE("%r22"), SILENCE},
      {PREPARE LOAD "selp.b32 %r22, %r20, %r21, %p1;\n" STORE("%r22"), LOCAL},
      {PREPARE LOAD "selp.b32 %r22, %r20, %r21, %p2;\n" STORE("%r22"), SILENCE},
      {PREPARE LOAD "selp.b32 %r22, %r21, %r20, !%p2;\n" STORE("%r22"), SILENCE},
      {PREPARE LOAD "add.u32 %r23, %r20, 1; selp.b32 %r22, %r21, %r23, %p1;\n" STORE("%r22"), SILENCE},
      {PREPARE LOAD "setp.lt.u32 %p1, %r0, 20; selp.b32 %r22, %r21, %r20, %p1;\n" STORE("%r22"), LOCAL},
      {PREPARE LOAD "bra.uni THERE;\nTHERE: selp.b32 %r22, %r21, %r20, %p1;\n" STORE("%r22"), SILENCE},
      {PREPARE LOAD "slct.u32.s32 %r22, %r20, %r21, %r20;\n" STORE("%r22"), SILENCE},
      {PREPARE LOAD "neg.s32 %r24, %r20; slct.u32.s32 %r22, %r20, %r21, %r24;\n" STORE("%r22"), LOCAL},
  };
  EXPECT_HAZARDS(tests);
}

Test(undefined, a_value_that_nothing_needs_is_no_fault) {
  static const HazardTest tests[] = {
      {PREPARE LOAD, SILENCE},
      {PREPARE LOAD "add.u32 %r22, %r21, 1;\n", SILENCE},
      {PREPARE LOAD "@%p1 " STORE("%r21"), SILENCE},
      {PREPARE LOAD "@%p2 " STORE("%r21"), LOCAL},
      {PREPARE LOAD "mov.u32 %r21, 1;\n" STORE("%r21"), SILENCE},
      {PREPARE LOAD "@%p2 mov.u32 %r21, 1;\n" STORE("%r21"), SILENCE},
      {PREPARE LOAD "@%p1 mov.u32 %r21, 1;\n" STORE("%r21"), LOCAL},
      {PREPARE "ld.local.v2.u32 {%r21, %r24}, [%rd3];\n@%p1 " STORE("%r21"), SILENCE},  // a dead register
      {PREPARE "ld.local.v2.u32 {%r21, %r24}, [%rd3];\nadd.u32 %r24, %r24, 1;\n@%p1 " STORE("%r24"), LOCAL},
  };
  EXPECT_HAZARDS(tests);
}

Test(undefined, what_depends_on_a_value_is_reported) {
  static const HazardTest tests[] = {
      {"ld.shared.u32 %r21, [last];\nsetp.eq.u32 %p1, %r21, 5;\n@%p1 bra AWAY;\nAWAY:\n", THERE},
      {"ld.shared.u32 %r21, [last];\nsetp.lt.u32 %p1, %r21, 5;\n@%p1 bra AWAY;\nAWAY:\n", THERE},
      {"ld.shared.f32 %f1, [last];\nsetp.gt.f32 %p1, %f1, 0f3F800000;\n@%p1 bra AWAY;\nAWAY:\n", THERE},
      {PREPARE "ld.shared.u32 %r21, [last];\nsetp.eq.u32 %p3, %r21, 5;\n@%p3 " STORE("%r20"), THERE},
      {PREPARE "ld.shared.u32 %r21, [last];\nand.b32 %r21, %r21, 4;\nadd.u32 %r21, %r21, %r1;\n"
               "ld.shared.u32 %r22, [%r21];\n",
       THERE},
      {"ld.shared.u32 %r21, [last];\natom.global.add.u32 %r22, [%rd1], %r21;\n", THERE},
      {PREPARE "ld.shared.f32 %f1, [last];\nmul.f32 %f1, %f1, 0f00000000;\nst.global.f32 [%rd4], %f1;\n", THERE},
      {PREPARE "ld.shared.u32 %r21, [last];\nshfl.sync.idx.b32 %r22, %r21, 3, 31, -1;\n" STORE("%r22"), THERE},
      {"ld.shared.u32 %r21, [last];\nsetp.eq.u32 %p1, %r21, 5;\nvote.sync.any.pred %p1, %p1, -1;\n@%p1 bra AWAY;\n"
       "AWAY:\n",
       THERE},
      {"ld.shared.u32 %r21, [last];\nsetp.eq.u32 %p1, %r21, 5;\nmov.u32 %r22, 0;\n@%p1 mov.u32 %r22, 1;\n"
       "st.global.u32 [%rd1], %r22;\n",
       THERE},
  };
  EXPECT_HAZARDS(tests);
}

Test(undefined, bits_that_make_no_difference_are_no_fault) {
  static const HazardTest tests[] = {
      {PREPARE "ld.shared.u32 %r21, [last];\nand.b32 %r21, %r21, 0;\n" STORE("%r21"), SILENCE},
      {PREPARE "ld.shared.u32 %r21, [last];\nor.b32 %r21, %r21, -1;\n" STORE("%r21"), SILENCE},
      {PREPARE "ld.shared.u32 %r21, [last];\nxor.b32 %r21, %r21, 1;\n" STORE("%r21"), THERE},
      {PREPARE "ld.shared.u32 %r21, [last];\nmul.lo.u32 %r21, %r21, 0;\n" STORE("%r21"), SILENCE},
      {PREPARE "ld.shared.u32 %r21, [last];\nmul.lo.u32 %r21, %r21, 3;\n" STORE("%r21"), THERE},
      // A comparison whose result a second condition overrules: the merge of two sorted lists reads behind their ends.
      {"ld.shared.u32 %r21, [last];\nsetp.ge.u32 %p1, %r0, 64;\nsetp.lt.and.u32 %p2, %r21, 5, %p1;\n@%p2 bra AWAY;\n"
       "AWAY:\n",
       SILENCE},
      {"ld.shared.u32 %r21, [last];\nsetp.lt.u32 %p1, %r0, 64;\nsetp.lt.and.u32 %p2, %r21, 5, %p1;\n@%p2 bra AWAY;\n"
       "AWAY:\n",
       THERE},
      {"ld.shared.u32 %r21, [last];\nsetp.ge.u32 %p1, %r0, 64;\nsetp.lt.u32 %p2, %r21, 5;\nand.pred %p2, %p2, %p1;\n"
       "@%p2 bra AWAY;\nAWAY:\n",
       SILENCE},
      // The carry of an undefined sum.
      {PREPARE "ld.shared.u32 %r21, [last];\nadd.cc.u32 %r22, %r21, -1;\naddc.u32 %r23, 0, 0;\n" STORE("%r23"), THERE},
      {PREPARE "ld.shared.u32 %r21, [last];\nadd.cc.u32 %r22, %r21, -1;\nadd.cc.u32 %r22, %r20, 1;\n"
               "addc.u32 %r23, 0, 0;\n" STORE("%r23"),
       SILENCE},
  };
  EXPECT_HAZARDS(tests);
}

// The sum reads the product's factors, or copies of them: scalar/contraction.h.
#define FACTOR "ld.shared.f32 %f1, [last];\nmov.f32 %f2, 0f3F800000;\n"

Test(undefined, a_fused_product_hands_its_factors_on) {
  static const HazardTest tests[] = {
      {PREPARE FACTOR "mul.f32 %f3, %f2, %f1;\nadd.f32 %f4, %f3, %f2;\nst.global.f32 [%rd4], %f4;\n", THERE},
      {PREPARE FACTOR "mul.f32 %f3, %f1, %f2;\nsub.f32 %f4, %f2, %f3;\nst.global.f32 [%rd4], %f4;\n", THERE},
      {PREPARE FACTOR "mul.f32 %f1, %f1, %f2;\nadd.f32 %f1, %f1, %f2;\nst.global.f32 [%rd4], %f1;\n", THERE},
      {PREPARE FACTOR "mul.f32 %f2, %f2, %f1;\nadd.f32 %f2, %f2, 0f3F800000;\nst.global.f32 [%rd4], %f2;\n", THERE},
      {PREPARE FACTOR "mul.f32 %f3, %f1, %f2;\nadd.f32 %f4, %f3, %f2;\nst.global.f32 [%rd4], %f2;\n", SILENCE},
      {PREPARE FACTOR "mul.f32 %f1, %f2, %f2;\nadd.f32 %f1, %f1, %f2;\nst.global.f32 [%rd4], %f1;\n", SILENCE},
  };
  EXPECT_HAZARDS(tests);
}

// Lane 0 writes some bytes of last, and all bytes travel. %r30 is 1 in lane 0 alone.
#define BEGIN "setp.eq.u32 %p1, %r0, 0; mov.u32 %r20, 7;\n"
#define BYTE "@%p1 st.shared.u8 [last], %r20;\nbar.warp.sync -1;\n"
#define WORDS "@%p1 st.shared.v2.u32 [last], {%r20, %r20};\n@%p1 st.shared.u32 [last+8], %r20;\nbar.warp.sync -1;\n"

Test(undefined, padding_may_be_copied_and_not_computed_with) {
  static const HazardTest tests[] = {
      {BEGIN BYTE "@%p1 ld.shared.u64 %rd4, [last];\n@%p1 st.global.u64 [%rd1], %rd4;\n", SILENCE},
      {BEGIN BYTE "@%p1 ld.shared.u64 %rd4, [last];\n@%p1 and.b64 %rd4, %rd4, 255;\n@%p1 st.global.u64 [%rd1], %rd4;\n"
                  "@%p1 ld.global.u64 %rd5, [%rd1];\n@%p1 add.u64 %rd5, %rd5, 1;\n@%p1 st.global.u64 [%rd1], %rd5;\n",
       SILENCE},
      {BEGIN BYTE "@%p1 ld.shared.u64 %rd4, [last];\n@%p1 add.u64 %rd4, %rd4, 1;\n@%p1 st.global.u64 [%rd1], %rd4;\n",
       THERE},
      // What has been copied is as undefined as it was.
      {BEGIN BYTE "@%p1 ld.shared.u64 %rd4, [last];\n@%p1 st.global.u64 [%rd1], %rd4;\n"
                  "@%p1 ld.global.u64 %rd5, [%rd1];\n@%p1 add.u64 %rd5, %rd5, 1;\n@%p1 st.global.u64 [%rd1], %rd5;\n",
       THERE},
      {BEGIN BYTE "@%p1 ld.shared.u64 %rd4, [last];\n@%p1 st.local.u64 [own], %rd4;\n"
                  "@%p1 ld.local.u8 %r21, [own];\n@%p1 st.global.u8 [%rd1], %r21;\n",
       SILENCE},
      {BEGIN BYTE "@%p1 ld.shared.u64 %rd4, [last];\n@%p1 st.local.u64 [own], %rd4;\n"
                  "@%p1 ld.local.u8 %r21, [own+1];\n@%p1 st.global.u8 [%rd1], %r21;\n",
       LOCAL},
      // A word of a struct that nobody fills.
      {BEGIN WORDS "@%p1 ld.shared.v4.u32 {%r21, %r22, %r23, %r24}, [last];\n"
                   "@%p1 st.global.v4.u32 [%rd1], {%r21, %r22, %r23, %r24};\n",
       SILENCE},
      {BEGIN WORDS "@%p1 ld.shared.v4.u32 {%r21, %r22, %r23, %r24}, [last];\n"
                   "@%p1 add.u32 %r24, %r24, 1;\n@%p1 st.global.v4.u32 [%rd1], {%r21, %r22, %r23, %r24};\n",
       THERE},
      {BEGIN WORDS "@%p1 ld.shared.u32 %r21, [last+12];\n@%p1 st.global.u32 [%rd1], %r21;\n", THERE},
      // Halves of a word, put together and taken apart.
      {BEGIN BYTE
       "@%p1 ld.shared.u64 %rd4, [last];\n@%p1 mov.b64 {%r21, %r22}, %rd4;\n@%p1 st.global.u8 [%rd1], %r21;\n",
       SILENCE},
      {BEGIN BYTE "@%p1 ld.shared.u64 %rd4, [last];\n@%p1 shr.u64 %rd4, %rd4, 4;\n@%p1 cvt.u32.u64 %r21, %rd4;\n"
                  "@%p1 and.b32 %r21, %r21, 31;\n@%p1 add.u32 %r21, %r21, 1;\n@%p1 st.global.u32 [%rd1], %r21;\n",
       THERE},
      {BEGIN BYTE "@%p1 ld.shared.u64 %rd4, [last];\n@%p1 shr.u64 %rd4, %rd4, 4;\n@%p1 cvt.u32.u64 %r21, %rd4;\n"
                  "@%p1 and.b32 %r21, %r21, 15;\n@%p1 add.u32 %r21, %r21, 1;\n@%p1 st.global.u32 [%rd1], %r21;\n",
       SILENCE},
  };
  EXPECT_HAZARDS(tests);
}

// Local memory is the thread's own. An object with holes is copied in words there, as nvcc -G does.
Test(undefined, local_memory_may_be_copied_in_itself) {
  static const HazardTest tests[] = {
      {PREPARE LOAD "st.local.u32 [%rd3+8], %r21;\n", SILENCE},
      {PREPARE LOAD "st.local.u32 [%rd3+8], %r21;\nld.local.u32 %r22, [%rd3+8];\n@%p1 " STORE("%r22"), SILENCE},
      {PREPARE LOAD "st.local.u32 [%rd3+8], %r21;\nld.local.u32 %r22, [%rd3+8];\n@%p2 " STORE("%r22"), LOCAL},
      {PREPARE LOAD "add.u32 %r21, %r21, 1;\nst.local.u32 [%rd3+8], %r21;\n", LOCAL},
      {PREPARE "ld.shared.u32 %r21, [last];\nst.local.u32 [%rd3+8], %r21;\n", THERE},
  };
  EXPECT_HAZARDS(tests);
}

Test(undefined, an_exchange_needs_no_old_value) {
  static const HazardTest tests[] = {
      {PREPARE "atom.shared.exch.b32 %r21, [last], %r20;\n", SILENCE},
      {PREPARE "setp.eq.u32 %p1, %r0, 0;\n@%p1 atom.shared.exch.b32 %r21, [last], %r20;\n@%p1 " STORE("%r21"), THERE},
      {PREPARE "setp.eq.u32 %p1, %r0, 0;\n@%p1 atom.shared.exch.b32 %r21, [last], %r20;\n"
               "@%p1 atom.shared.exch.b32 %r21, [last], %r20;\n@%p1 " STORE("%r21"),
       SILENCE},
      {PREPARE "atom.shared.add.u32 %r21, [last], %r20;\n", THERE},
      {PREPARE "atom.shared.cas.b32 %r21, [last], %r20, 5;\n", THERE},
      {PREPARE LOAD "atom.global.exch.b32 %r22, [%rd4], %r21;\n", LOCAL},
  };
  EXPECT_HAZARDS(tests);
}

Test(undefined, a_shuffle_from_a_lane_that_is_not_a_member) {
  static const HazardTest tests[] = {
      {PREPARE "@%p1 shfl.sync.down.b32 %r21, %r20, 8, 31, 0xffff;\n@%p1 " STORE("%r21"), SHUFFLE},
      {PREPARE "@%p1 shfl.sync.down.b32 %r21, %r20, 8, 31, 0xffff;\nsetp.lt.u32 %p1, %r0, 8;\n@%p1 " STORE("%r21"),
       SILENCE},
      {PREPARE "@%p1 shfl.sync.down.b32 %r21, %r20, 8, 15, 0xffff;\n@%p1 " STORE("%r21"), SILENCE},
      {PREPARE "@%p1 shfl.sync.bfly.b32 %r21, %r20, 8, 31, 0xffff;\n@%p1 " STORE("%r21"), SILENCE},
      {PREPARE "@%p1 shfl.sync.bfly.b32 %r21, %r20, 16, 31, 0xffff;\n@%p1 " STORE("%r21"), SHUFFLE},
      // The maximum over a part of a warp takes the value in; a sum in lanes whose sums nobody needs does not matter.
      {PREPARE
       "@%p1 shfl.sync.down.b32 %r21, %r20, 8, 31, 0xffff;\n@%p1 max.u32 %r21, %r21, %r20;\n@%p1 " STORE("%r21"),
       SHUFFLE},
      {PREPARE "@%p1 shfl.sync.down.b32 %r21, %r20, 8, 31, 0xffff;\n@%p1 add.u32 %r21, %r21, %r20;\n"
               "@%p1 shfl.sync.down.b32 %r22, %r21, 4, 31, 0xffff;\n@%p1 add.u32 %r22, %r22, %r21;\n"
               "setp.lt.u32 %p1, %r0, 4;\n@%p1 " STORE("%r22"),
       SILENCE},
      {PREPARE "@%p2 exit;\nshfl.sync.down.b32 %r21, %r20, 8, 31, -1;\n" STORE("%r21"), SHUFFLE},
  };
  EXPECT_HAZARDS(tests);
}
