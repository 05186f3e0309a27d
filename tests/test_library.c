// libhopper_ladder.so: what it refuses, and, with a driver that only takes notes, what it asks of a CUDA program's
// context and streams. test_library_e4m3.c and test_library_backward.c have the calls for other inputs and the other
// pass, test_gpu_library.c has what needs a GPU.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/harness.h"
#include "support/library.h"
#include "support/program.h"

TestSuite(library, .init = load_library_with_fake_driver);

// ---- the stages it has ----

// Whether a stage's stage.c has a line with this field and value, as a regular expression.
static bool has_field(const char *folder, const char *field) {
  char command[300];
  snprintf(command, sizeof command, "grep -q '%s' '%s/stages/%s/stage.c'", field, root_path(), folder);
  return system(command) == 0;
}

// Every stage whose folder has a launch is there, under its folder's name, in order.
Test(library, has_every_attention_stage) {
  char command[300], folder[100];
  snprintf(command, sizeof command, "cd '%s' && LC_ALL=C; grep -l '[.]launch =' stages/*/stage.c", root_path());
  FILE *pipe = popen(command, "r");
  cr_assert(pipe);
  int count = 0;
  for (; fscanf(pipe, " stages/%99[^/]/stage.c", folder) == 1; count++) {
    const HlStage *found = hl.stage(count);
    cr_assert(found, "%s is not there", folder);
    cr_expect_str_eq(found->name, folder);
    cr_expect_eq(strlen(found->number), strcspn(folder, "-"), "%s is called %s", folder, found->number);
    cr_expect(!strncmp(found->number, folder, strlen(found->number)), "%s is called %s", folder, found->number);
    cr_expect(strlen(found->title) > 10);
    HlInputs inputs = has_field(folder, "[.]inputs = INPUTS_E4M3") ? HL_INPUTS_E4M3 : HL_INPUTS_F16;
    cr_expect_eq(found->inputs, inputs, "%s", folder);
    cr_expect_eq(found->backward, has_field(folder, "[.]backward = true"), "%s", folder);
    cr_expect_eq(found->lse, has_field(folder, "[.]lse = true"), "%s", folder);
    cr_expect_eq(hl.supports(found->number, &small), HL_OK);
  }
  pclose(pipe);
  cr_expect(count >= 4);
  cr_expect_eq(hl.stage_count(), count);
  cr_expect_null(hl.stage(count));
  cr_expect_null(hl.stage(-1));
}

// The header is all there is to know: each function that it declares is exported, and nothing else.
Test(library, exports_what_its_header_declares) {
  char command[1000];
  snprintf(
      command, sizeof command,
      "cd '%s' && declared=$(sed -n 's/^HL_API.* [*]*\\(hl_[a-z0-9_]*\\)(.*/\\1/p' common/library/hopper_ladder.h | "
      "sort) && "
      "exported=$(nm -D --defined-only libhopper_ladder.so | sed 's/.* //' | sort) && "
      "[ \"$declared\" ] && [ \"$exported\" = \"$declared\" ] || { echo \"$exported\" is exported; false; }",
      root_path());
  cr_expect_eq(system(command), 0);
}

Test(library, header_is_c_and_cplusplus) {
  static const char *const compilers[] = {"cc -xc -std=c99", "c++ -xc++ -std=c++11"};
  char command[1000];
  for (int i = 0; i < 2; i++) {
    snprintf(
        command, sizeof command,
        "echo '#include \"%s/common/library/hopper_ladder.h\"' | %s -Wall -Wextra -Wpedantic -Werror -fsyntax-only -",
        root_path(), compilers[i]);
    cr_expect_eq(system(command), 0, "%s", command);
  }
}

// ---- what it refuses ----

Test(library, stages_that_are_not_there) {
  static const char *const numbers[] = {"77", "3", "03x", ""};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    char words[100];
    snprintf(words, sizeof words, "stage %s: this library has no such stage; it has 00, 01, ", numbers[i]);
    cr_expect_eq(run_stage(numbers[i], &small, NULL), HL_INVALID);
    cr_expect(strstr(hl.error(), words) == hl.error(), "%s", hl.error());
  }
  EXPECT_STATUS(hl.supports(NULL, &small), HL_INVALID, "stage: a null pointer");
}

Test(library, shapes_that_make_no_sense) {
  static const struct {
    HlShape shape;
    const char *words;
  } cases[] = {
      {{0, 1, 1, 64, 0}, "batch 0: 1 to 65536 are allowed"},
      {{65537, 1, 1, 64, 0}, "batch 65537: 1 to 65536 are allowed"},
      {{1, -2, 1, 64, 0}, "heads -2: 1 to 65536 are allowed"},
      {{1, 1, 0, 64, 0}, "seqlen 0: 1 to 1048576 are allowed"},
      {{1, 1, 1048577, 64, 0}, "seqlen 1048577: 1 to 1048576 are allowed"},
      {{1, 1, 1, 96, 0}, "head_dim 96: 64 and 128 are allowed"},
      {{1, 1, 1, 128, 2}, "causal 2: 0 and 1 are allowed"},
      {{65536, 65536, 1, 64, 0}, "batch * heads * seqlen is 4294967296: at most 2147483647 is allowed"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    EXPECT_STATUS(hl.supports("03", &cases[i].shape), HL_INVALID, cases[i].words);
    EXPECT_STATUS(run_stage("03", &cases[i].shape, NULL), HL_INVALID, cases[i].words);
  }
  EXPECT_STATUS(hl.supports("03", NULL), HL_INVALID, "shape: a null pointer");
}

// Q, K, V and O in turn get what is wrong; the others are right.
static void expect_refused(HlTensor wrong, HlStatus status, const char *words) {
  static const char *const names[] = {"q", "k", "v", "o"};
  for (int i = 0; i < 4; i++) {
    HlTensor tensors[4] = {small_tensor(0), small_tensor(1), small_tensor(2), small_tensor(3)};
    char expected[300];
    tensors[i] = wrong;
    snprintf(expected, sizeof expected, "%s: %s", names[i], words);
    EXPECT_STATUS(hl.attention("03", &small, &tensors[0], &tensors[1], &tensors[2], &tensors[3], NULL), status,
                  expected);
  }
}

Test(library, tensors_that_make_no_sense) {
  expect_refused((HlTensor){.data = NULL}, HL_INVALID, "a null pointer");
  expect_refused((HlTensor){.data = (void *)0x8008}, HL_INVALID, "the address 0x8008 is not aligned to 16 bytes");
  HlTensor q = small_tensor(0);
  EXPECT_STATUS(hl.attention("03", &small, &q, &q, NULL, &q, NULL), HL_INVALID, "v: a null pointer");
  cr_expect_eq(driver->launches, 0);
}

Test(library, strides_must_be_contiguous) {
  HlTensor sequence_first = {(void *)0x8000, {19200, 64, 192, 1}};  // [batch][seqlen][heads][head_dim]
  expect_refused(sequence_first, HL_UNSUPPORTED,
                 "strides 19200, 64, 192, 1; only a contiguous tensor is allowed, 19200, 6400, 64, 1");
  HlTensor contiguous = {(void *)0x8000, {19200, 6400, 64, 1}}, o = small_tensor(3);
  cr_expect_eq(hl.attention("03", &small, &contiguous, &contiguous, &contiguous, &o, NULL), HL_OK, "%s", hl.error());
  // With one head, whatever its stride.
  HlShape one_head = {2, 1, 100, 64, 0};
  HlTensor same = {(void *)0x8000, {6400, 64, 64, 1}};
  cr_expect_eq(hl.attention("03", &one_head, &same, &same, &same, &o, NULL), HL_OK, "%s", hl.error());
}

Test(library, output_must_not_overlap) {
  HlTensor q = small_tensor(0), k = small_tensor(1), v = small_tensor(2),
           last = {.data = (char *)v.data + 2 * 3 * 100 * 64 * 2 - 16};
  EXPECT_STATUS(hl.attention("03", &small, &q, &k, &v, &v, NULL), HL_INVALID, "o overlaps v");
  EXPECT_STATUS(hl.attention("03", &small, &q, &k, &v, &last, NULL), HL_INVALID, "o overlaps v");
  last.data = (char *)last.data + 16;
  cr_expect_eq(hl.attention("03", &small, &q, &k, &v, &last, NULL), HL_OK, "%s", hl.error());
  cr_expect_eq(hl.attention("03", &small, &q, &q, &q, &last, NULL), HL_OK, "inputs may be one: %s", hl.error());
}

// ---- in whose context and stream it works ----

Test(library, wants_a_hopper_gpu_and_a_context) {
  driver->context = 0;
  EXPECT_STATUS(run_stage("03", &small, NULL), HL_INVALID, "no CUDA context is current on this thread");
  driver->context = 1;
  driver->capability = 8;
  EXPECT_STATUS(run_stage("03", &small, NULL), HL_ABSENT,
                "the current context is on a Fake GPU, which does not have compute capability 9.0");
  driver->capability = 9;
  cr_expect_eq(run_stage("03", &small, NULL), HL_OK, "%s", hl.error());
}

Test(library, queues_on_the_stream_it_is_given) {
  void *const streams[] = {NULL, (void *)0x5, (void *)0x6};
  static const char *const numbers[] = {"00", "01", "02"};
  for (int i = 0; i < 3; i++) cr_expect_eq(run_stage(numbers[i], &small, streams[i]), HL_OK, "%s", hl.error());
  cr_assert_eq(driver->launches, 3 + 3 + 1, "stages 00 and 01 have three kernels, 02 has one");
  for (int i = 0; i < driver->launches; i++)
    cr_expect_eq(driver->launch[i].stream, streams[i / 3], "%s", driver->launch[i].kernel);
  cr_expect_str_eq(driver->launch[6].kernel, "attention_64");
  cr_expect_eq(driver->launch[6].taken, (uintptr_t)small_tensor(0).data);
  cr_expect_eq(driver->context, 1, "the context stays current");
}

// Stage 02's parameters: Q, K, V, O, the sequence length, the scale.
Test(library, hands_each_tensor_and_the_scale_to_the_kernel) {
  for (int i = 0; i < 4; i++) {
    driver->parameter = i;
    cr_expect_eq(run_stage("02", &small, NULL), HL_OK, "%s", hl.error());
    cr_expect_eq(driver->launch[i].taken, (uintptr_t)small_tensor(i).data, "parameter %d", i);
  }
  driver->parameter = 5;
  driver->size = sizeof(float);
  cr_expect_eq(run_stage("02", &small, NULL), HL_OK, "%s", hl.error());
  float scale;
  memcpy(&scale, &driver->launch[4].taken, sizeof scale);
  cr_expect_eq(scale, 0.125f, "1 / sqrt(64), not %g", scale);
}

Test(library, loads_a_stage_once_in_each_context) {
  for (int i = 0; i < 3; i++) run_stage("03", &small, NULL);
  cr_expect_eq(driver->loaded, 1);
  run_stage("02", &small, NULL);
  cr_expect_eq(driver->loaded, 2);
  driver->context = 2;
  run_stage("03", &small, NULL);
  run_stage("03", &small, NULL);
  cr_expect_eq(driver->loaded, 3);
  driver->context = 1;
  run_stage("03", &small, NULL);
  cr_expect_eq(driver->loaded, 3);
  cr_expect_eq(driver->unloaded, 0);
}

Test(library, keeps_a_workspace_for_each_stream) {
  HlShape larger = small;
  larger.seqlen = 200;
  void *first = (void *)0x5, *second = (void *)0x6;
  run_stage("00", &small, first);
  run_stage("00", &small, first);
  run_stage("01", &small, first);
  cr_expect_eq(driver->allocated, 1, "stages share a stream's workspace");
  cr_expect_eq(driver->largest, 4 * 2 * 3 * 100 * 100, "fp32 scores of six heads");
  run_stage("00", &small, second);
  cr_expect_eq(driver->allocated, 2);
  run_stage("00", &larger, first);
  cr_expect_eq(driver->allocated, 3);
  cr_expect_eq(driver->freed, 1, "the smaller one");
  cr_expect_eq(driver->largest, 4 * 2 * 3 * 200 * 200);
  run_stage("00", &small, first);
  run_stage("03", &small, (void *)0x7);
  cr_expect_eq(driver->allocated, 3, "stage 03 needs none");
}

// Stages 09 and 10 count their causal tiles. Launches of two streams may run at the same time: each stream has its own
// counter, set to 0 in that stream before it is first used, and apart from what other stages leave in the workspace.
Test(library, keeps_a_counter_for_each_stream) {
  void *const streams[] = {(void *)0x5, (void *)0x6, (void *)0x5, (void *)0x6};
  run_stage("00", &small, streams[0]);
  driver->launches = 0;
  driver->offset = 4 * sizeof(TensorMap);  // where the kernels' first parameter has the counter's address
  for (int i = 0; i < 4; i++) cr_expect_eq(run_stage(i < 2 ? "09" : "10", &small, streams[i]), HL_OK, "%s", hl.error());
  cr_expect_eq(driver->allocated, 3, "a workspace and two counters");
  cr_assert_eq(driver->fills, 2);
  for (int i = 0; i < 2; i++) {
    const FakeFill *fill = &driver->fill[i];
    cr_expect(fill->stream == streams[i] && fill->byte == 0 && fill->size == 4);
    cr_expect_eq(driver->launch[i].taken, fill->address, "stage 09");
    cr_expect_eq(driver->launch[i + 2].taken, fill->address, "stage 10 shares it");
  }
  cr_expect_neq(driver->fill[0].address, driver->fill[1].address);
  hl.release();
  cr_expect_eq(driver->freed, 3);
}

// Memory that was not set to 0 is no counter.
Test(library, sets_a_counter_to_0_after_a_failure) {
  driver->fails = "cuMemsetD8Async";
  driver->result = 999;
  EXPECT_STATUS(run_stage("09", &small, NULL), HL_FAILED, "cuMemsetD8Async: CUDA_ERROR_MADE_UP, made up");
  cr_expect_eq(driver->launches, 0);
  driver->fails = NULL;
  cr_expect_eq(run_stage("09", &small, NULL), HL_OK, "%s", hl.error());
  cr_expect_eq(driver->fills, 1);
  cr_expect_eq(driver->launches, 1);
  cr_expect_eq(driver->allocated, 1);
}

Test(library, release_frees_what_is_in_the_context) {
  run_stage("00", &small, NULL);
  driver->context = 2;
  run_stage("03", &small, NULL);
  run_stage("00", &small, NULL);
  cr_expect_eq(hl.release(), HL_OK);
  cr_expect_eq(driver->unloaded, 2, "stages 03 and 00 in context 2");
  cr_expect_eq(driver->freed, 1);
  cr_expect_eq(hl.release(), HL_OK, "nothing is left");
  cr_expect_eq(driver->unloaded, 2);
  cr_expect_eq(run_stage("00", &small, NULL), HL_OK, "%s", hl.error());
  cr_expect_eq(driver->loaded, 4);
  driver->context = 1;
  run_stage("00", &small, NULL);
  cr_expect_eq(driver->loaded, 4, "context 1 kept its own");
}

// A call that fails says so once; the next one begins anew.
Test(library, goes_on_after_a_failure) {
  static const struct {
    const char *function;
    int result;
    HlStatus status;
    const char *words;
  } cases[] = {
      {"cuModuleLoadData", 999, HL_FAILED, "cuModuleLoadData: CUDA_ERROR_MADE_UP, made up"},
      {"cuLaunchKernelEx", 999, HL_FAILED, "scores_64: CUDA_ERROR_MADE_UP, made up"},
      {"cuMemAlloc_v2", 2, HL_OUT_OF_MEMORY, "the GPU has no room for 240000 bytes: 1000 of 1000 are free"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    driver->fails = cases[i].function;
    driver->result = cases[i].result;
    EXPECT_STATUS(run_stage("00", &small, NULL), cases[i].status, cases[i].words);
    driver->fails = NULL;
    cr_expect_eq(run_stage("00", &small, NULL), HL_OK, "%s", hl.error());
    hl.release();
  }
}

// Memory that was not to be had is asked for again.
Test(library, asks_again_for_a_workspace) {
  driver->fails = "cuMemAlloc_v2";
  driver->result = 2;
  cr_expect_eq(run_stage("00", &small, NULL), HL_OUT_OF_MEMORY);
  cr_expect_eq(run_stage("00", &small, NULL), HL_OUT_OF_MEMORY);
  cr_expect_eq(driver->launches, 0, "without its workspace");
  driver->fails = NULL;
  cr_expect_eq(run_stage("00", &small, NULL), HL_OK, "%s", hl.error());
  cr_expect_eq(driver->allocated, 1);
}
