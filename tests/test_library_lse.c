// hl_attention_lse of libhopper_ladder.so: O, and the log-sum-exp of each query.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/library.h"
#include "support/program.h"
#include "support/sanitized.h"

TestSuite(library_lse, .init = load_library_with_fake_driver);

static const float *const lse = (const float *)0x900000000ull;

static HlStatus run_lse(const char *number, float *sums) {
  HlTensor q = small_tensor(0), k = small_tensor(1), v = small_tensor(2), o = small_tensor(3);
  return hl.attention_lse(number, &small, &q, &k, &v, &o, sums, (void *)0x5);
}

// Only when it is asked for does the kernel run that writes it.
Test(library_lse, has_kernels_of_its_own) {
  driver->parameter = 1;
  driver->offset = 6 * sizeof(int);
  cr_expect_eq(run_lse("10", (float *)lse), HL_OK, "%s", hl.error());
  cr_expect_str_eq(driver->launch[0].kernel, "attention_64_causal_lse");
  cr_expect_eq(driver->launch[0].stream, (void *)0x5);
  cr_expect_eq(driver->launch[0].taken, (uintptr_t)lse);
  cr_expect_eq(run_stage("10", &small, NULL), HL_OK, "%s", hl.error());
  cr_expect_str_eq(driver->launch[1].kernel, "attention_64_causal");
}

Test(library_lse, that_makes_no_sense) {
  EXPECT_STATUS(run_lse("09b", (float *)lse), HL_UNSUPPORTED, "stage 09b-diagonal: it does not write the log-sum-exp");
  EXPECT_STATUS(run_lse("12", (float *)lse), HL_INVALID,
                "stage 12-backward: it is for the backward pass; call hl_attention_backward");
  EXPECT_STATUS(run_lse("10", NULL), HL_INVALID, "lse: a null pointer");
  EXPECT_STATUS(run_lse("10", (float *)0x1002), HL_INVALID, "lse: the address 0x1002 is not aligned to 4 bytes");
  EXPECT_STATUS(run_lse("10", small_tensor(1).data), HL_INVALID, "k overlaps lse");
  EXPECT_STATUS(run_lse("10", (float *)small_tensor(3).data - 4), HL_INVALID, "o overlaps lse");
  cr_expect_eq(driver->launches, 0);
}

// The test of the GPU in a process of its own, with the emulator in the place of the GPU.
Test(library_lse_emulated, is_right, .timeout = 300) {
  if (SANITIZED) cr_skip_test("what is preloaded into a program cannot have a sanitizer");
  char tests[1000] = "";
  cr_assert_gt(readlink("/proc/self/exe", tests, sizeof tests - 1), 0);
  setenv("HL_GPU", "1", 1);
  unsetenv("BXFI_MAP");  // of Criterion: it makes a process one that runs a single test
  const char *const arguments[] = {tests, "--filter=gpu_library/every_log_sum_exp*", NULL};
  Output *output = run_program("hopper-run", arguments);
  cr_expect_eq(output->code, 0, "%s%s", output->out, output->err);
  cr_expect(strstr(output->err, "Tested: 1 | Passing: 1") && strstr(output->err, "no findings"), "%s%s", output->out,
            output->err);
  free(output);
}
