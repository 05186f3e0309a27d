// hl_attention_backward of libhopper_ladder.so: eight tensors and the log-sum-exp.
#include <criterion/criterion.h>
#include <stdio.h>

#include "support/library.h"

TestSuite(library_backward, .init = load_library_with_fake_driver);

static const float *const lse = (const float *)0x900000000ull;

static HlCall backward_call(const char *number) {
  HlCall call = small_call(number);
  call.lse = (float *)lse;
  call.stream = (void *)0x5;
  return call;
}

static HlStatus run_backward(const char *number, uint32_t flags) {
  HlCall call = backward_call(number);
  call.flags = flags;
  return hl.attention_backward(&call);
}

// Stage 12: the sums of dO O, then a pass that streams K and V, and one that streams Q and dO.
Test(library_backward, launches_the_kernels_of_a_backward_stage) {
  driver->offset = 3 * sizeof(int) + sizeof(float) + 2 * sizeof(uint64_t);
  cr_expect_eq(run_backward("12", 0), HL_OK, "%s", hl.error());
  static const char *const kernels[] = {"backward_terms_64", "backward_queries_64_causal", "backward_keys_64_causal"};
  cr_assert_eq(driver->launches, 3);
  for (int i = 0; i < 3; i++) {
    cr_expect_str_eq(driver->launch[i].kernel, kernels[i]);
    cr_expect_eq(driver->launch[i].stream, (void *)0x5);
  }
  cr_expect_eq(driver->launch[0].taken, (uintptr_t)lse);
  cr_expect_eq(driver->allocated, 1);
  cr_expect_eq(driver->largest, 2 * 4 * 2 * 3 * 128, "two floats a query, whole tiles");
}

// From stage 12b on: zeros for the sums and all counters, then three kernels. Only a fixed order gives the kernels the
// address of the turns, the second number of their last parameter.
static void needs_turns(const char *number) {
  driver->parameter = 2;
  driver->offset = sizeof(uint64_t);
  cr_expect_eq(run_backward(number, 0), HL_OK, "%s", hl.error());
  static const char *const kernels[] = {"backward_terms_64", "backward_64_causal", "finish_queries_64"};
  cr_assert_eq(driver->launches, 3);
  for (int i = 0; i < 3; i++) cr_expect_str_eq(driver->launch[i].kernel, kernels[i]);
  size_t floats = 4 * 2 * 3 * 128, sums = floats * 64;
  size_t workspace = 2 * floats + sums + sums / 8192 * 8 + sizeof(uint32_t);
  cr_expect_eq(driver->largest, workspace);
  cr_assert_eq(driver->fills, 1);
  cr_expect(driver->fill[0].byte == 0 && driver->fill[0].size == workspace - 2 * floats &&
            driver->fill[0].stream == (void *)0x5);
  for (int i = 1; i < 3; i++) cr_expect_eq(driver->launch[i].taken, 0);
  cr_expect_eq(run_backward(number, HL_DETERMINISTIC), HL_OK, "%s", hl.error());
  cr_assert_eq(driver->launches, 6);
  for (int i = 4; i < 6; i++) cr_expect_eq(driver->launch[i].taken, driver->fill[0].address + sums);
}

Test(library_backward, a_fixed_order_needs_turns) { needs_turns("12b"); }

Test(library_backward, a_fixed_order_of_a_query_warpgroup_needs_turns) { needs_turns("12c"); }

Test(library_backward, a_fixed_order_of_late_dk_needs_turns) { needs_turns("12d"); }

Test(library_backward, a_fixed_order_of_a_lean_loop_needs_turns) { needs_turns("12e"); }

Test(library_backward, each_function_is_for_its_own_pass) {
  EXPECT_STATUS(run_stage("12", NULL), HL_INVALID,
                "stage 12-backward: it is for the backward pass; call hl_attention_backward");
  EXPECT_STATUS(run_backward("03", 0), HL_INVALID, "stage 03-cp-async: it is for the forward pass; call hl_attention");
  cr_expect_eq(driver->launches, 0);
}

Test(library_backward, no_stage_means_the_newest) {
  cr_expect_eq(run_backward(NULL, 0), HL_OK, "%s", hl.error());
  cr_expect_eq(run_backward("12e", 0), HL_OK, "%s", hl.error());
  cr_expect_eq(driver->loaded, 1);
}

Test(library_backward, gradients_that_make_no_sense) {
  for (int i = 0; i < BACKWARD_TENSORS; i++) {
    char words[100];
    HlCall call = backward_call("12");
    tensor_of(&call, i)->data = NULL;
    snprintf(words, sizeof words, "%s: a null pointer", tensor_names[i]);
    EXPECT_STATUS(hl.attention_backward(&call), HL_INVALID, words);
  }
  HlCall call = backward_call("12");
  call.lse = NULL;
  EXPECT_STATUS(hl.attention_backward(&call), HL_INVALID, "lse: a null pointer");
  call.lse = (float *)0x1002;
  EXPECT_STATUS(hl.attention_backward(&call), HL_INVALID, "lse: the address 0x1002 is not aligned to 4 bytes");
  cr_expect_eq(driver->launches, 0);
}

// Each gradient in the place of each tensor before it, and of the last bytes of lse. Inputs may be one.
Test(library_backward, gradients_must_not_overlap) {
  char words[100];
  for (int i = 5; i < BACKWARD_TENSORS; i++) {
    HlCall call;
    for (int j = 0; j < i; j++) {
      call = backward_call("12");
      *tensor_of(&call, i) = *tensor_of(&call, j);
      snprintf(words, sizeof words, "%s overlaps %s", tensor_names[i], tensor_names[j]);
      EXPECT_STATUS(hl.attention_backward(&call), HL_INVALID, words);
    }
    call = backward_call("12");
    tensor_of(&call, i)->data = (void *)(lse + 2 * 3 * 100 - 4);
    snprintf(words, sizeof words, "%s overlaps lse", tensor_names[i]);
    EXPECT_STATUS(hl.attention_backward(&call), HL_INVALID, words);
  }
  HlCall call = backward_call("12");
  call.d_q.data = (void *)(lse + 2 * 3 * 100);
  call.k = call.v = call.o = call.d_o = call.q;
  cr_expect_eq(hl.attention_backward(&call), HL_OK, "%s", hl.error());
}
