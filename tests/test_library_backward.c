// hl_attention_backward of libhopper_ladder.so: eight tensors and the log-sum-exp.
#include <criterion/criterion.h>
#include <stdio.h>

#include "support/library.h"

TestSuite(library_backward, .init = load_library_with_fake_driver);

static const char *const backward_names[BACKWARD_TENSORS] = {"q", "k", "v", "o", "d_o", "d_q", "d_k", "d_v"};
static const float *const lse = (const float *)0x900000000ull;

static HlStatus run_backward(const char *number, const HlTensor t[BACKWARD_TENSORS], const float *sums) {
  return hl.attention_backward(number, &small, &t[0], &t[1], &t[2], &t[3], &t[4], sums, &t[5], &t[6], &t[7],
                               (void *)0x5);
}

static void fill_tensors(HlTensor tensors[BACKWARD_TENSORS]) {
  for (int i = 0; i < BACKWARD_TENSORS; i++) tensors[i] = small_tensor(i);
}

// Stage 12: the sums of dO O, then a pass that streams K and V, and one that streams Q and dO.
Test(library_backward, launches_the_kernels_of_a_backward_stage) {
  HlTensor tensors[BACKWARD_TENSORS];
  fill_tensors(tensors);
  driver->offset = 3 * sizeof(int) + sizeof(float) + 2 * sizeof(uint64_t);
  cr_expect_eq(run_backward("12", tensors, lse), HL_OK, "%s", hl.error());
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

static HlStatus run_deterministic(const char *number, const HlTensor t[BACKWARD_TENSORS]) {
  return hl.attention_backward_deterministic(number, &small, &t[0], &t[1], &t[2], &t[3], &t[4], lse, &t[5], &t[6],
                                             &t[7], (void *)0x5);
}

// From stage 12b on: zeros for the sums and all counters, then three kernels. Only a fixed order gives the kernels the
// address of the turns, the second number of their last parameter.
static void needs_turns(const char *number) {
  HlTensor tensors[BACKWARD_TENSORS];
  fill_tensors(tensors);
  driver->parameter = 2;
  driver->offset = sizeof(uint64_t);
  cr_expect_eq(run_backward(number, tensors, lse), HL_OK, "%s", hl.error());
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
  cr_expect_eq(run_deterministic(number, tensors), HL_OK, "%s", hl.error());
  cr_assert_eq(driver->launches, 6);
  for (int i = 4; i < 6; i++) cr_expect_eq(driver->launch[i].taken, driver->fill[0].address + sums);
}

Test(library_backward, a_fixed_order_needs_turns) { needs_turns("12b"); }

Test(library_backward, a_fixed_order_of_a_query_warpgroup_needs_turns) { needs_turns("12c"); }

Test(library_backward, a_fixed_order_of_late_dk_needs_turns) { needs_turns("12d"); }

Test(library_backward, a_fixed_order_of_a_lean_loop_needs_turns) { needs_turns("12e"); }

Test(library_backward, each_function_is_for_its_own_pass) {
  HlTensor tensors[BACKWARD_TENSORS];
  fill_tensors(tensors);
  EXPECT_STATUS(run_stage("12", &small, NULL), HL_INVALID,
                "stage 12-backward: it is for the backward pass; call hl_attention_backward");
  EXPECT_STATUS(run_backward("03", tensors, lse), HL_INVALID,
                "stage 03-cp-async: its inputs are fp16; call hl_attention");
  cr_expect_eq(driver->launches, 0);
}

Test(library_backward, gradients_that_make_no_sense) {
  HlTensor tensors[BACKWARD_TENSORS];
  for (int i = 0; i < BACKWARD_TENSORS; i++) {
    char words[100];
    fill_tensors(tensors);
    tensors[i].data = NULL;
    snprintf(words, sizeof words, "%s: a null pointer", backward_names[i]);
    EXPECT_STATUS(run_backward("12", tensors, lse), HL_INVALID, words);
  }
  fill_tensors(tensors);
  EXPECT_STATUS(run_backward("12", tensors, NULL), HL_INVALID, "lse: a null pointer");
  EXPECT_STATUS(run_backward("12", tensors, (const float *)0x1002), HL_INVALID,
                "lse: the address 0x1002 is not aligned to 4 bytes");
  cr_expect_eq(driver->launches, 0);
}

// Each gradient in the place of each tensor before it, and of the last bytes of lse. Inputs may be one.
Test(library_backward, gradients_must_not_overlap) {
  HlTensor tensors[BACKWARD_TENSORS];
  char words[100];
  for (int i = 5; i < BACKWARD_TENSORS; i++) {
    for (int j = 0; j < i; j++) {
      fill_tensors(tensors);
      tensors[i] = tensors[j];
      snprintf(words, sizeof words, "%s overlaps %s", backward_names[i], backward_names[j]);
      EXPECT_STATUS(run_backward("12", tensors, lse), HL_INVALID, words);
    }
    fill_tensors(tensors);
    tensors[i].data = (void *)(lse + 2 * 3 * 100 - 4);
    snprintf(words, sizeof words, "%s overlaps lse", backward_names[i]);
    EXPECT_STATUS(run_backward("12", tensors, lse), HL_INVALID, words);
  }
  fill_tensors(tensors);
  tensors[5].data = (void *)(lse + 2 * 3 * 100);
  tensors[1] = tensors[2] = tensors[3] = tensors[4] = tensors[0];
  cr_expect_eq(run_backward("12", tensors, lse), HL_OK, "%s", hl.error());
}
