// Loads whose value one thread stores (memory/passes.h): the others have read nothing.
#include <criterion/criterion.h>

#include "support/matrix_kernel.h"

TestSuite(postponed, .timeout = 60);

// Thread 0 is that of %p1. %rd1 is the output, a counter that all threads know.
#define ONE "setp.eq.u32 %p1, %r0, 0;\n"
#define LOAD "ld.global.u32 %r20, [%rd1];\nadd.u32 %r21, %r20, 1;\n"
#define SILENCE HAZARD_KIND_COUNT, 64, 0, false, NULL
#define RACE HAZARD_GLOBAL_RACE, 64, 0, false, NULL

Test(postponed, a_load_is_one_of_the_threads_that_store) {
  static const HazardTest tests[] = {
      {ONE LOAD "@%p1 st.global.u32 [%rd1], %r21;\n", SILENCE},
      {LOAD ONE "@%p1 st.global.u32 [%rd1], %r21;\n", SILENCE},
      {ONE LOAD "@!%p1 bra DONE;\nst.global.u32 [%rd1], %r21;\nDONE:\n", SILENCE},
      {ONE LOAD "@%p1 st.global.u32 [%rd1], %r21;\n@!%p1 st.global.u32 [%rd1+128], %r20;\n", RACE},
      // Triton sets the register to 0 before each load, for the lanes that do not load.
      {ONE "mov.u32 %r20, 0;\n" LOAD "@%p1 st.global.u32 [%rd1], %r21;\n", SILENCE},
      {ONE "mov.u32 %r20, 0;\nsetp.lt.u32 %p2, %r0, 8;\n@%p2 ld.global.u32 %r20, [%rd1];\nadd.u32 %r21, %r20, 1;\n"
           "@%p1 st.global.u32 [%rd1], %r21;\n",
       SILENCE},
      // The store of thread 0, which did not load, is no access to where it would have loaded from.
      {ONE "mov.u32 %r20, 0;\nmov.u64 %rd5, 64;\n@!%p1 mov.u64 %rd5, %rd1;\n@!%p1 ld.global.u32 %r20, [%rd5];\n"
           "@%p1 st.global.u32 [%rd1], %r20;\n",
       SILENCE},
      {ONE LOAD "st.global.u32 [%rd1], %r21;\n", RACE},
      {"setp.lt.u32 %p1, %r0, 2;\n" LOAD "@%p1 st.global.u32 [%rd1], %r21;\n", RACE},
      {"rem.u32 %r22, %r0, 32; setp.eq.u32 %p1, %r22, 0;\n" LOAD "@%p1 st.global.u32 [%rd1], %r21;\n", RACE},
  };
  EXPECT_HAZARDS(tests);
}

Test(postponed, a_value_that_is_used_otherwise_has_been_read) {
  static const HazardTest tests[] = {
      {ONE LOAD "setp.eq.u32 %p2, %r20, 5;\n@%p1 st.global.u32 [%rd1], %r21;\n@%p2 st.global.u32 [%rd1+64], %r0;\n",
       RACE},
      {ONE LOAD "ld.acquire.gpu.global.u32 %r24, [%rd1+64];\n@%p1 st.global.u32 [%rd1], %r21;\n", RACE},
      {ONE LOAD "bar.sync 0;\n@%p1 st.global.u32 [%rd1], %r21;\n", SILENCE},  // the barrier orders them
      {ONE LOAD "@%p1 st.global.u32 [%rd1], %r21;\nred.global.max.u32 [%rd1+64], %r20;\n", RACE},
      {"mov.u32 %r23, 0;\n" ONE LOAD "@%p1 st.global.u32 [%rd1], %r21;\nbra.uni NEXT;\n"
       "NEXT: red.global.max.u32 [%rd1+64], %r21;\n",
       RACE},
      {ONE LOAD "@%p1 st.global.u32 [%rd1], %r21;\nbar.sync 0;\nred.global.max.u32 [%rd1+64], %r20;\n", RACE},
      {ONE "mov.u32 %r20, 0;\n" LOAD "@%p1 st.global.u32 [%rd1], %r21;\nbar.sync 0;\n"
           "red.global.max.u32 [%rd1+64], %r20;\n",
       RACE},
      // The guard of the load is another one at the store.
      {ONE "setp.lt.u32 %p2, %r0, 8;\n@%p2 ld.global.u32 %r20, [%rd1];\nsetp.lt.u32 %p2, %r0, 0;\n"
           "@%p1 st.global.u32 [%rd1], %r20;\n",
       RACE},
      // The address depends on it.
      {ONE LOAD "mul.wide.u32 %rd5, %r20, 0;\nadd.u64 %rd5, %rd5, %rd1;\n@%p1 st.global.u32 [%rd5], %r21;\n", RACE},
  };
  EXPECT_HAZARDS(tests);
}

Test(postponed, what_was_never_written_is_found_all_the_same) {
  static const HazardTest tests[] = {
      {ONE "ld.shared.u32 %r20, [last];\nadd.u32 %r21, %r20, 1;\n@%p1 st.global.u32 [%rd1], %r21;\n",
       HAZARD_UNINITIALISED_READ, 64, 0, false, "nothing was ever written there"},
      {"setp.gt.u32 %p1, %r0, 99;\nld.shared.u32 %r20, [last];\nadd.u32 %r21, %r20, 1;\n@%p1 st.global.u32 [%rd1], "
       "%r21;\n",
       SILENCE},
  };
  EXPECT_HAZARDS(tests);
}
