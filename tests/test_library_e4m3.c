// Calls of libhopper_ladder.so with e4m3 inputs: scales, and tensors whose elements have one byte.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "support/library.h"

TestSuite(library_e4m3, .init = load_library_with_fake_driver);

// The number of a stage with e4m3 inputs.
static const char *e4m3_stage(void) {
  for (int i = 0; i < hl.stage_count(); i++)
    if (hl.stage(i)->type == HL_E4M3) return hl.stage(i)->number;
  cr_skip_test("no stage has e4m3 inputs");
  return NULL;
}

static const HlScale unit = {.data = (const float *)0x9000};

static HlCall e4m3_call(void) {
  HlCall call = small_call(e4m3_stage());
  call.type = HL_E4M3;
  call.q_scale = call.k_scale = call.v_scale = unit;
  return call;
}

// O has two bytes an element, Q, K and V of e4m3 have one.
Test(library_e4m3, inputs_must_not_overlap_the_output) {
  size_t elements = 2 * 3 * 100 * 64;
  HlCall call = e4m3_call();
  call.k = call.v = call.q;
  call.o.data = (char *)call.q.data + elements;
  cr_expect_eq(hl.attention(&call), HL_OK, "%s", hl.error());
  call.o.data = (char *)call.q.data - elements;
  EXPECT_STATUS(hl.attention(&call), HL_INVALID, "o overlaps q");
}

Test(library_e4m3, each_stage_has_its_type) {
  HlCall call = e4m3_call();
  char words[100];
  cr_expect_eq(hl.attention(&call), HL_OK, "%s", hl.error());
  cr_expect(driver->launches > 0);
  driver->launches = 0;
  call.type = HL_F16;
  cr_expect_eq(hl.attention(&call), HL_INVALID);
  snprintf(words, sizeof words, "type HL_F16: stage %s-", call.stage);
  cr_expect(strstr(hl.error(), words) == hl.error() && strstr(hl.error(), " reads HL_E4M3"), "%s", hl.error());
  call.type = HL_E4M3;
  call.stage = "03";
  EXPECT_STATUS(hl.attention(&call), HL_INVALID, "type HL_E4M3: stage 03-cp-async reads HL_F16");
  call.type = HL_F16;
  EXPECT_STATUS(hl.attention(&call), HL_INVALID, "q_scale: type HL_F16 has no scales; is the type HL_E4M3?");
  cr_expect_eq(driver->launches, 0);
}

Test(library_e4m3, no_stage_means_the_newest) {
  HlCall call = e4m3_call();
  call.stage = NULL;
  cr_expect_eq(hl.attention(&call), HL_OK, "%s", hl.error());
  call.stage = "11d";
  cr_expect_eq(hl.attention(&call), HL_OK, "%s", hl.error());
  cr_expect_eq(driver->loaded, 1);
}

// Q and K have one byte an element, V has two; and V has no scale.
Test(library_e4m3, scores_alone) {
  size_t elements = 2 * 3 * 100 * 64;
  HlCall call = small_call("10b");
  call.type = HL_E4M3_SCORES;
  call.q_scale = call.k_scale = unit;
  call.k = call.q;
  call.v.data = (char *)call.q.data + elements;
  call.o.data = (char *)call.v.data + 2 * elements;
  cr_expect_eq(hl.attention(&call), HL_OK, "%s", hl.error());
  call.o.data = (char *)call.v.data + elements;
  EXPECT_STATUS(hl.attention(&call), HL_INVALID, "o overlaps v");
  call.v_scale = unit;
  EXPECT_STATUS(hl.attention(&call), HL_INVALID,
                "v_scale: type HL_E4M3_SCORES has no scale of V; is the type HL_E4M3?");
  call.type = HL_E4M3;
  EXPECT_STATUS(hl.attention(&call), HL_INVALID, "type HL_E4M3: stage 10b-fp8-scores reads HL_E4M3_SCORES");
}

static const char *const names[] = {"q_scale", "k_scale", "v_scale"};

static void expect_refused(int index, HlScale scale, const char *words) {
  HlCall call = e4m3_call();
  HlScale *const scales[] = {&call.q_scale, &call.k_scale, &call.v_scale};
  char expected[200];
  *scales[index] = scale;
  snprintf(expected, sizeof expected, "%s: %s", names[index], words);
  EXPECT_STATUS(hl.attention(&call), HL_INVALID, expected);
}

Test(library_e4m3, scales_that_make_no_sense) {
  for (int i = 0; i < 3; i++) {
    expect_refused(i, (HlScale){NULL, 0}, "a null pointer");
    expect_refused(i, (HlScale){(const float *)0x9002, 0}, "the address 0x9002 is not aligned to 4 bytes");
    expect_refused(i, (HlScale){(const float *)0x9000, 2}, "per_head 2: 0 and 1 are allowed");
  }
  expect_refused(2, (HlScale){(const float *)0x9000, 1},
                 "per_head 1, but that of q_scale is 0; all three must be the same");
  cr_expect_eq(driver->launches, 0);
  HlCall call = e4m3_call();
  call.q_scale.per_head = call.k_scale.per_head = call.v_scale.per_head = 1;
  cr_expect_eq(hl.attention(&call), HL_OK, "%s", hl.error());
}
