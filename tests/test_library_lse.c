// hl_attention of libhopper_ladder.so with lse: O, and the log-sum-exp of each query.
#include "support/library.h"

TestSuite(library_lse, .init = load_library_with_fake_driver);

static const float *const lse = (const float *)0x900000000ull;

static HlStatus run_lse(const char *number, float *sums) {
  HlCall call = small_call(number);
  call.lse = sums;
  call.stream = (void *)0x5;
  return hl.attention(&call);
}

// Only when it is asked for does the kernel run that writes it.
Test(library_lse, has_kernels_of_its_own) {
  driver->parameter = 1;
  driver->offset = 6 * sizeof(int);
  cr_expect_eq(run_lse("10", (float *)lse), HL_OK, "%s", hl.error());
  cr_expect_str_eq(driver->launch[0].kernel, "attention_64_causal_lse");
  cr_expect_eq(driver->launch[0].stream, (void *)0x5);
  cr_expect_eq(driver->launch[0].taken, (uintptr_t)lse);
  cr_expect_eq(run_stage("10", NULL), HL_OK, "%s", hl.error());
  cr_expect_str_eq(driver->launch[1].kernel, "attention_64_causal");
}

Test(library_lse, that_makes_no_sense) {
  EXPECT_STATUS(run_lse("09b", (float *)lse), HL_UNSUPPORTED, "lse: stage 09b-diagonal does not write the log-sum-exp");
  EXPECT_STATUS(run_lse("12", (float *)lse), HL_INVALID,
                "stage 12-backward: it is for the backward pass; call hl_attention_backward");
  EXPECT_STATUS(run_lse("10", (float *)0x1002), HL_INVALID, "lse: the address 0x1002 is not aligned to 4 bytes");
  EXPECT_STATUS(run_lse("10", small_tensor(1).data), HL_INVALID, "k overlaps lse");
  EXPECT_STATUS(run_lse("10", (float *)small_tensor(3).data - 4), HL_INVALID, "o overlaps lse");
  cr_expect_eq(driver->launches, 0);
}

Test(library_lse_emulated, is_right, .timeout = 300) {
  expect_right_on_emulator("gpu_library/every_log_sum_exp_is_right");
}
