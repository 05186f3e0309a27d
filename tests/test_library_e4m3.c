// hl_attention_e4m3 of libhopper_ladder.so: scales, and tensors whose elements have one byte.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "support/library.h"

TestSuite(library_e4m3, .init = load_library_with_fake_driver);

// The number of a stage with e4m3 inputs.
static const char *e4m3_stage(void) {
  for (int i = 0; i < hl.stage_count(); i++)
    if (hl.stage(i)->inputs == HL_INPUTS_E4M3) return hl.stage(i)->number;
  cr_skip_test("no stage has e4m3 inputs");
  return NULL;
}

static const HlScale unit = {.data = (const float *)0x9000};

static HlStatus run_e4m3(const char *number, const HlScale *q, const HlScale *k, const HlScale *v) {
  HlTensor tensors[] = {small_tensor(0), small_tensor(1), small_tensor(2), small_tensor(3)};
  return hl.attention_e4m3(number, &small, &tensors[0], &tensors[1], &tensors[2], &tensors[3], q, k, v, NULL);
}

// O has two bytes an element, Q, K and V of e4m3 have one.
Test(library_e4m3, inputs_must_not_overlap_the_output) {
  const char *number = e4m3_stage();
  size_t elements = 2 * 3 * 100 * 64;
  HlTensor in = small_tensor(0), behind = {.data = (char *)in.data + elements},
           before = {.data = (char *)in.data - elements};
  cr_expect_eq(hl.attention_e4m3(number, &small, &in, &in, &in, &behind, &unit, &unit, &unit, NULL), HL_OK, "%s",
               hl.error());
  EXPECT_STATUS(hl.attention_e4m3(number, &small, &in, &in, &in, &before, &unit, &unit, &unit, NULL), HL_INVALID,
                "o overlaps q");
}

Test(library_e4m3, each_function_has_its_stages) {
  EXPECT_STATUS(run_e4m3("03", &unit, &unit, &unit), HL_INVALID,
                "stage 03-cp-async: its inputs are fp16; call hl_attention");
  const char *number = e4m3_stage();
  cr_expect_eq(run_stage(number, &small, NULL), HL_INVALID);
  cr_expect(strstr(hl.error(), ": its inputs are e4m3; call hl_attention_e4m3"), "%s", hl.error());
  cr_expect_eq(driver->launches, 0);
  cr_expect_eq(run_e4m3(number, &unit, &unit, &unit), HL_OK, "%s", hl.error());
  cr_expect(driver->launches > 0);
}

Test(library_e4m3, scales_that_make_no_sense) {
  static const struct {
    HlScale scale;
    const char *words;
  } cases[] = {
      {{NULL, 0}, "a null pointer"},
      {{(const float *)0x9002, 0}, "the address 0x9002 is not aligned to 4 bytes"},
      {{(const float *)0x9000, 2}, "per_head 2: 0 and 1 are allowed"},
  };
  static const char *const names[] = {"q_scale", "k_scale", "v_scale"};
  const char *number = e4m3_stage();
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    for (int wrong = 0; wrong < 3; wrong++) {
      const HlScale *scales[] = {&unit, &unit, &unit};
      char words[200];
      scales[wrong] = &cases[i].scale;
      snprintf(words, sizeof words, "%s: %s", names[wrong], cases[i].words);
      EXPECT_STATUS(run_e4m3(number, scales[0], scales[1], scales[2]), HL_INVALID, words);
    }
  const HlScale per_head = {(const float *)0x9000, 1};
  EXPECT_STATUS(run_e4m3(number, &unit, NULL, &unit), HL_INVALID, "k_scale: a null pointer");
  EXPECT_STATUS(run_e4m3(number, &unit, &unit, &per_head), HL_INVALID,
                "v_scale: per_head 1, but that of q_scale is 0; all three must be the same");
  cr_expect_eq(driver->launches, 0);
  cr_expect_eq(run_e4m3(number, &per_head, &per_head, &per_head), HL_OK, "%s", hl.error());
}
