// libhopper_ladder.so: tensors that are not contiguous. test_gpu_library.c shows that what they hold is right.
#include <stdio.h>
#include <string.h>

#include "support/library.h"

TestSuite(library_strides, .init = load_library_with_fake_driver);

// The small call's sizes.
enum { BATCH = 2, HEADS = 3, SEQLEN = 100, HEAD_DIM = 64, ROW = HEADS * HEAD_DIM };

static void lay_out(HlTensor *tensor, int64_t batch, int64_t head, int64_t row) {
  *tensor = (HlTensor){tensor->data, batch, head, row};
}

static HlCall rows_first(const char *number) {
  HlCall call = small_call(number);
  for (int i = 0; i < BACKWARD_TENSORS; i++) lay_out(tensor_of(&call, i), SEQLEN * ROW, HEAD_DIM, ROW);
  return call;
}

// Slices of one [batch][seqlen][3][heads][head_dim], from its element `first` on.
static void fuse(HlTensor *const slices[3], HlTensor whole, int64_t first) {
  for (int i = 0; i < 3; i++)
    *slices[i] = (HlTensor){(char *)whole.data + 2 * (first + i * ROW), 3 * SEQLEN * ROW, HEAD_DIM, 3 * ROW};
}

Test(library_strides, reach_the_tensor_map) {
  HlCall call = rows_first("10");
  call.batch = 1;
  cr_expect_eq(hl.attention(&call), HL_OK, "%s", hl.error());
  const FakeTensorMap *map = &driver->map;  // the last one: O's
  cr_expect_eq(map->address, (uintptr_t)call.o.data);
  cr_expect(map->stride[0] == 2 * ROW && map->stride[1] == 2 * HEAD_DIM, "%d and %d", (int)map->stride[0],
            (int)map->stride[1]);
  cr_expect(map->size[0] == HEAD_DIM && map->size[1] == SEQLEN && map->size[2] == HEADS);
  cr_expect_eq(driver->launches, 1);
}

// Heads of different batches follow each other here, though rows and heads have gaps.
Test(library_strides, batches_share_a_launch_where_they_can) {
  HlCall call = small_call("10");
  for (int i = 0; i < FORWARD_TENSORS; i++) lay_out(tensor_of(&call, i), HEADS * 10000, 10000, 80);
  cr_expect_eq(hl.attention(&call), HL_OK, "%s", hl.error());
  cr_expect_eq(driver->launches, 1);
  cr_expect_eq(driver->map.size[2], BATCH * HEADS);
}

// Otherwise each has a launch, with its part of every tensor. Stage 12's kernels take O and lse by address.
Test(library_strides, batches_have_a_launch_each) {
  HlCall call = rows_first("12");
  float *const lse = small_tensor(8).data;
  call.lse = lse;
  driver->offset = 2 * sizeof(int) + 2 * sizeof(float);
  cr_expect_eq(hl.attention_backward(&call), HL_OK, "%s", hl.error());
  cr_assert_eq(driver->launches, 2 * 3);
  cr_expect_eq(driver->launch[0].taken, (uintptr_t)call.o.data);
  cr_expect_eq(driver->launch[3].taken, (uintptr_t)call.o.data + 2 * SEQLEN * ROW);
  cr_expect_eq(driver->map.address, (uintptr_t)call.d_v.data + 2 * SEQLEN * ROW, "the last map: dV's");
  cr_expect_eq(driver->largest, 2 * 4 * HEADS * 128, "a workspace for one batch");
  driver->offset += 2 * sizeof(uint64_t);
  cr_expect_eq(hl.attention_backward(&call), HL_OK, "%s", hl.error());
  for (int batch = 0; batch < BATCH; batch++)
    cr_expect_eq(driver->launch[6 + 3 * batch].taken, (uintptr_t)(lse + batch * HEADS * SEQLEN));
}

Test(library_strides, slices_of_one_tensor_do_not_overlap) {
  HlCall call = rows_first("12e");
  HlTensor *const inputs[] = {&call.q, &call.k, &call.v}, *const gradients[] = {&call.d_q, &call.d_k, &call.d_v};
  call.lse = small_tensor(8).data;
  fuse(inputs, call.q, 0);
  fuse(gradients, call.d_q, 0);
  cr_expect_eq(hl.attention_backward(&call), HL_OK, "%s", hl.error());
  call.d_k.data = (char *)call.d_k.data - 16;
  EXPECT_STATUS(hl.attention_backward(&call), HL_INVALID, "d_k overlaps d_q");
  fuse(gradients, call.d_q, 0);
  call.d_v.data = (char *)call.d_q.data + 2 * 3 * ROW * 5;  // five rows on
  EXPECT_STATUS(hl.attention_backward(&call), HL_INVALID, "d_v overlaps d_q");
  call.d_v.data = (char *)call.d_q.data + 2 * 3 * ROW * SEQLEN;  // a batch on
  EXPECT_STATUS(hl.attention_backward(&call), HL_INVALID, "d_v overlaps d_q");
  call.batch = 1;
  cr_expect_eq(hl.attention_backward(&call), HL_OK, "%s", hl.error());
  call.d_v.data = (char *)call.d_q.data + 2 * 3 * ROW * 50;
  EXPECT_STATUS(hl.attention_backward(&call), HL_INVALID, "d_v overlaps d_q");
  call.batch = BATCH;
  fuse(gradients, call.q, 3 * SEQLEN * ROW * BATCH);  // right behind Q, K and V
  cr_expect_eq(hl.attention_backward(&call), HL_OK, "%s", hl.error());
  fuse(gradients, call.q, 3 * SEQLEN * ROW * BATCH - 8);
  EXPECT_STATUS(hl.attention_backward(&call), HL_INVALID, "d_q overlaps v");
}

// The stride of a dimension with one element has no meaning.
Test(library_strides, of_one_element_are_not_looked_at) {
  HlCall call = small_call("03");
  call.heads = 1;
  for (int i = 0; i < FORWARD_TENSORS; i++) lay_out(tensor_of(&call, i), SEQLEN * HEAD_DIM, 7, HEAD_DIM);
  cr_expect_eq(hl.attention(&call), HL_OK, "%s", hl.error());
  call.batch = call.seqlen = 1;
  for (int i = 0; i < FORWARD_TENSORS; i++) lay_out(tensor_of(&call, i), -1, 7, INT64_MAX);
  cr_expect_eq(hl.attention(&call), HL_OK, "%s", hl.error());
  cr_expect_eq(driver->launches, 2);
}

// Q, K, V and O in turn.
static void expect_refused(const char *number, HlTensor wrong, HlStatus status, const char *words) {
  for (int i = 0; i < FORWARD_TENSORS; i++) {
    HlCall call = small_call(number);
    char expected[300];
    wrong.data = tensor_of(&call, i)->data;
    *tensor_of(&call, i) = wrong;
    snprintf(expected, sizeof expected, "%s: strides %s", tensor_names[i], words);
    EXPECT_STATUS(hl.attention(&call), status, expected);
    call.flags = HL_CHECK;
    EXPECT_STATUS(hl.attention(&call), status, expected);
  }
  cr_expect_eq(driver->launches, 0);
}

Test(library_strides, that_make_no_sense) {
  expect_refused("10", (HlTensor){NULL, 19200, 6400, 60}, HL_INVALID,
                 "19200, 6400, 60 (batch, head, row); multiples of 8 from 8 to 2^38 are allowed");
  expect_refused("10", (HlTensor){NULL, 19200, 0, 64}, HL_INVALID,
                 "19200, 0, 64 (batch, head, row); multiples of 8 from 8 to 2^38 are allowed");
  expect_refused("10", (HlTensor){NULL, -19200, 6400, 64}, HL_INVALID,
                 "-19200, 6400, 64 (batch, head, row); multiples of 8 from 8 to 2^38 are allowed");
  expect_refused("10", (HlTensor){NULL, INT64_MAX - 7, 6400, 64}, HL_INVALID,
                 "9223372036854775800, 6400, 64 (batch, head, row); multiples of 8 from 8 to 2^38 are allowed");
}

Test(library_strides, that_a_stage_cannot_follow) {
  expect_refused("03", (HlTensor){NULL, 19200, 64, 192}, HL_UNSUPPORTED,
                 "19200, 64, 192 (batch, head, row); stage 03-cp-async wants contiguous tensors: 19200, 6400, 64");
}

// Inputs may share rows, as of heads that are one.
Test(library_strides, rows_that_are_written_do_not_overlap) {
  HlCall call = rows_first("10");
  call.k.head = 8;
  cr_expect_eq(hl.attention(&call), HL_OK, "%s", hl.error());
  call.o.head = 56;
  EXPECT_STATUS(hl.attention(&call), HL_INVALID,
                "o: strides 19200, 56, 192 (batch, head, row); rows that are written may not overlap");
  call.o = (HlTensor){call.o.data, 19192, 64, 192};
  EXPECT_STATUS(hl.attention(&call), HL_INVALID,
                "o: strides 19192, 64, 192 (batch, head, row); rows that are written may not overlap");
}

Test(library_strides_emulated, are_right, .timeout = 600) {
  expect_right_on_emulator("gpu_library/every_layout_is_right");
}
