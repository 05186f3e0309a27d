// Mistakes of kernels with a sparse A and with 8-bit operands of wgmma. test_matrix_golden.c tests the results.
#include <criterion/criterion.h>

#include "support/matrix_kernel.h"
#include "support/run_ptx.h"

TestSuite(matrix_sparse, .timeout = 60);

// Descriptors of A in %rd4 and of B in %rd5, 4 KiB on, both K-major without swizzle; valid metadata in %r20.
#define PREPARE                                                                                                        \
  "fence.proxy.async; bar.sync 0; shr.u32 %r2, %r1, 4; cvt.u64.u32 %rd3, %r2; or.b64 %rd4, %rd3, 0x1000080000;\n"      \
  "add.u64 %rd3, %rd3, 256; or.b64 %rd5, %rd3, 0x2000080000; setp.eq.u32 %p1, 0, 0; mov.u32 %r20, 0x44444444;\n"       \
  "ld.global.b32 %r21, [%rd0]; ld.global.b32 %r22, [%rd0]; ld.global.b32 %r23, [%rd0]; ld.global.b32 %r24, [%rd0];\n"  \
  "mov.f32 %f0, 0f00000000; mov.f32 %f1, 0f00000000; mov.f32 %f2, 0f00000000; mov.f32 %f3, 0f00000000;\n"
#define FENCE "wgmma.fence.sync.aligned;\n"
#define SPARSE                                                                                                         \
  "wgmma.mma_async.sp.sync.aligned.m64n8k64.f32.e4m3.e4m3 {%f0, %f1, %f2, %f3}, %rd4, %rd5, %r20, 0, %p1, 1, 1;\n"
#define DENSE                                                                                                          \
  "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e5m2 {%f0, %f1, %f2, %f3}, {%r21, %r22, %r23, %r24}, %rd5, %p1, "    \
  "1, 1;\n"
#define COMMIT "wgmma.commit_group.sync.aligned;\n"
#define WAIT "wgmma.wait_group.sync.aligned 0;\n"
#define MMA                                                                                                            \
  "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f0, %f1, %f2, %f3}, {%r21, %r22}, {%r23, %r24}, "            \
  "{%f0, %f1, %f2, %f3}, %r20, 0;\n"

Test(matrix_sparse, metadata_must_be_valid) {
  static const HazardTest tests[] = {
      {PREPARE FENCE SPARSE COMMIT WAIT, HAZARD_KIND_COUNT, 128, 0, false, NULL},
      {PREPARE "mov.u32 %r20, 0x44440444;\n" FENCE SPARSE COMMIT WAIT, HAZARD_DESCRIPTOR, 128, 0, false,
       "two of each four elements, in order"},
      {PREPARE MMA, HAZARD_KIND_COUNT, 32, 0, false, NULL},
      {PREPARE "mov.u32 %r20, 0x44464444;\n" MMA, HAZARD_DESCRIPTOR, 32, 0, false, "two of each four elements"},
      // Lanes that the selector does not name may hold anything.
      {PREPARE "and.b32 %r3, %r0, 3; setp.eq.u32 %p2, %r3, 1; @%p2 mov.u32 %r20, 0;\n" MMA, HAZARD_KIND_COUNT, 32, 0,
       false, NULL},
  };
  EXPECT_HAZARDS(tests);
}

Test(matrix_sparse, wgmma_holds_its_registers) {
  static const HazardTest tests[] = {
      {PREPARE FENCE SPARSE COMMIT "add.u32 %r20, %r20, 1;\n" WAIT, HAZARD_REGISTER_IN_FLIGHT, 128, 0, false, NULL},
      {PREPARE FENCE SPARSE COMMIT "add.u32 %r25, %r20, 1;\n" WAIT, HAZARD_KIND_COUNT, 128, 0, false, NULL},
      {PREPARE FENCE SPARSE COMMIT WAIT "add.u32 %r20, %r20, 1;\n", HAZARD_KIND_COUNT, 128, 0, false, NULL},
      {PREPARE FENCE DENSE COMMIT WAIT, HAZARD_KIND_COUNT, 128, 0, false, NULL},
      {PREPARE FENCE DENSE COMMIT "add.u32 %r22, %r22, 1;\n" WAIT, HAZARD_REGISTER_IN_FLIGHT, 128, 0, false, NULL},
      {PREPARE FENCE DENSE COMMIT "add.f32 %f0, %f0, %f1;\n" WAIT, HAZARD_REGISTER_IN_FLIGHT, 128, 0, false, NULL},
  };
  EXPECT_HAZARDS(tests);
}

// nvcc puts a constant into its register again in each round of a loop, while the product before still reads it.
Test(matrix_sparse, a_constant_is_repeated_while_it_is_read) {
#define ONES "mov.u32 %r21, 0x38383838; mov.u32 %r22, 0x38383838; mov.u32 %r23, 0x38383838; mov.u32 %r24, 0x38383838;\n"
  static const HazardTest tests[] = {
      {PREPARE FENCE SPARSE "mov.u32 %r20, 0x44444444;\n" SPARSE COMMIT WAIT, HAZARD_KIND_COUNT, 128, 0, false, NULL},
      {PREPARE ONES FENCE DENSE ONES DENSE COMMIT WAIT, HAZARD_KIND_COUNT, 128, 0, false, NULL},
      // Another constant, another value in one lane, and a register that is still read after the constant.
      {PREPARE FENCE SPARSE "mov.u32 %r20, 0x88888888;\n" SPARSE COMMIT WAIT, HAZARD_REGISTER_IN_FLIGHT, 128, 0, false,
       "mov writes"},
      {PREPARE "setp.eq.u32 %p2, %r0, 5; @%p2 mov.u32 %r20, 0x88888888;\n" FENCE SPARSE
               "mov.u32 %r20, 0x44444444;\n" SPARSE COMMIT WAIT,
       HAZARD_REGISTER_IN_FLIGHT, 128, 0, false, "mov writes"},
      {PREPARE FENCE SPARSE "mov.u32 %r20, 0x44444444; add.u32 %r20, %r20, 1;\n" COMMIT WAIT, HAZARD_REGISTER_IN_FLIGHT,
       128, 0, false, "add writes"},
  };
  EXPECT_HAZARDS(tests);
}

// wgmma.fence is for accumulators and the registers of A. nvcc computes metadata behind the fence, from what stood
// before it.
Test(matrix_sparse, metadata_needs_no_fence) {
  static const HazardTest tests[] = {
      {PREPARE FENCE "add.u32 %r20, %r20, 0;\n" SPARSE COMMIT WAIT, HAZARD_KIND_COUNT, 128, 0, false, NULL},
      {PREPARE FENCE "add.f32 %f0, %f0, %f1;\n" SPARSE COMMIT WAIT, HAZARD_WGMMA_FENCE, 128, 0, false,
       "2 of its registers"},
  };
  EXPECT_HAZARDS(tests);
}

// A column of B has 64 bytes where A is sparse: its shared memory is checked to the end.
Test(matrix_sparse, descriptors_are_checked) {
  static const HazardTest tests[] = {
      {PREPARE "or.b64 %rd5, %rd3, 0x4000000000000000; and.b64 %rd5, %rd5, 0xffffffffffffffc0;\n"
               "or.b64 %rd5, %rd5, 0x4000000000;\n" FENCE SPARSE COMMIT WAIT,
       HAZARD_KIND_COUNT, 128, 0, false, NULL},
      {PREPARE "or.b64 %rd5, %rd3, 0xc000001000000000;\n" FENCE SPARSE COMMIT WAIT, HAZARD_DESCRIPTOR, 128, 0, true,
       "the next 64 bytes reach over its end"},
      {PREPARE "or.b64 %rd5, %rd3, 0x1000000000;\n" FENCE SPARSE COMMIT WAIT, HAZARD_DESCRIPTOR, 128, 0, true,
       "share memory"},
      // The fourth group along K lies behind the shared memory.
      {PREPARE "or.b64 %rd5, %rd3, 0x1001000000;\n" FENCE SPARSE COMMIT WAIT, HAZARD_OUT_OF_BOUNDS, 128, 0, true,
       "shared memory"},
      // It is written by the last thread, with no barrier after the fence; what lies behind it does not matter.
      {PREPARE
       "bar.sync 0; setp.eq.u32 %p2, %r0, 127; @%p2 st.shared.b32 [%r1+4480], 1; fence.proxy.async;\n" FENCE SPARSE
           COMMIT WAIT,
       HAZARD_SHARED_RACE, 128, 0, false, NULL},
      {PREPARE
       "bar.sync 0; setp.eq.u32 %p2, %r0, 127; @%p2 st.shared.b32 [%r1+4608], 1; fence.proxy.async;\n" FENCE SPARSE
           COMMIT WAIT,
       HAZARD_KIND_COUNT, 128, 0, false, NULL},
  };
  EXPECT_HAZARDS(tests);
}

Test(matrix_sparse, other_forms_are_refused) {
  static const RefusedTest tests[] = {
      {"wgmma.mma_async.sync.aligned.m64n24k32.f16.s8.s8 {%r0}, %rd0, %rd1, %p0", "no product with these types"},
      {"wgmma.mma_async.sync.aligned.m64n40k32.s32.s8.s8 {%r0}, %rd0, %rd1, %p0", "above 32 of 16"},
      {"wgmma.mma_async.sync.aligned.m64n8k16.f32.e4m3.e4m3 {%r0}, %rd0, %rd1, %p0", "m64nNk32"},
      {"wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.e4m3.e4m3 {%r0}, %rd0, %rd1, %r1, 0, %p0, 1, 1", "m64nNk64"},
      {"wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.s8 {%r0,%r1,%r2,%r3}, %rd0, %rd1, %p0, 1, 1", "operands"},
      {"wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3 {%f0,%f1,%f2,%f3}, %rd0, %rd1, %p0, 1, 1, 0, 0",
       "operands"},
      {"wgmma.mma_async.sync.aligned.m64n8k256.s32.b1.b1 {%r0,%r1,%r2,%r3}, %rd0, %rd1, %p0", ".and.popc for .b1"},
      {"wgmma.mma_async.sp.sync.aligned.m64n8k64.f32.e4m3.e4m3 {%f0,%f1,%f2,%f3}, %rd0, %rd1, %r1, 1, %p0, 1, 1",
       "selector is an immediate from 0 to 0"},
      {"wgmma.mma_async.sp.sync.aligned.m64n8k64.f32.e4m3.e4m3 {%f0,%f1,%f2,%f3}, %rd0, %rd1, %p0, 1, 1", "operands"},
  };
  RUN_REFUSED_TESTS(tests);
}
