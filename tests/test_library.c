// libhopper_ladder.so: what it refuses, and, with a driver that only takes notes, what it asks of a CUDA program's
// context and streams. test_library_strides.c has the tensors that are not contiguous, test_library_e4m3.c,
// test_library_backward.c and test_library_decode.c the calls for other inputs, the other pass and decode,
// test_gpu_library.c what needs a GPU.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/harness.h"
#include "support/library.h"
#include "support/program.h"
#include "support/sanitized.h"
#include "support/scratch.h"

TestSuite(library, .init = load_library_with_fake_driver);

// ---- the stages it has ----

// Whether a stage's stage.c has a line with this field and value, as a regular expression.
static bool has_field(const char *folder, const char *field) {
  char command[300];
  snprintf(command, sizeof command, "grep -q '%s' '%s/stages/%s/stage.c'", field, root_path(), folder);
  return system(command) == 0;
}

// A check looks at no pointers and queues nothing.
static void expect_checked_decode(const HlStage *stage) {
  HlDecode call = small_decode(stage->number);
  call.q.data = call.k.data = call.v.data = call.o.data = NULL;
  call.k_scale.data = call.v_scale.data = NULL;
  call.flags = HL_CHECK;
  cr_expect_eq(hl.attention_decode(&call), HL_OK, "%s", hl.error());
  cr_expect_eq(driver->launches, 0);
}

static void expect_checked(const HlStage *stage) {
  HlCall call = small_call(stage->number);
  for (int i = 0; i < BACKWARD_TENSORS; i++) tensor_of(&call, i)->data = NULL;
  call.type = stage->type;
  call.flags = HL_CHECK;
  cr_expect_eq((stage->backward ? hl.attention_backward : hl.attention)(&call), HL_OK, "%s", hl.error());
  cr_expect_eq(driver->launches, 0);
}

// Every stage whose folder has a launch or a decode is there, under its folder's name, in order.
Test(library, has_every_attention_stage) {
  char command[300], folder[100];
  snprintf(command, sizeof command, "cd '%s' && LC_ALL=C; grep -El '[.](launch|decode) =' stages/*/stage.c",
           root_path());
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
    HlType type = has_field(folder, "[.]inputs = INPUTS_E4M3,")          ? HL_E4M3
                  : has_field(folder, "[.]inputs = INPUTS_E4M3_SCORES,") ? HL_E4M3_SCORES
                  : has_field(folder, "[.]decode =")                     ? HL_BF16
                                                                         : HL_F16;
    cr_expect_eq(found->type, type, "%s", folder);
    cr_expect_eq(found->backward, has_field(folder, "[.]backward = true"), "%s", folder);
    cr_expect_eq(found->lse, has_field(folder, "[.]lse = true"), "%s", folder);
    cr_expect_eq(found->strided, has_field(folder, "[.]strided = true"), "%s", folder);
    cr_expect_eq(found->decode, has_field(folder, "[.]decode ="), "%s", folder);
    cr_expect_eq(found->ragged, has_field(folder, "[.]ragged = true"), "%s", folder);
    cr_expect_eq(found->head_dim == 128, has_field(folder, "[.]head_dim = 128"), "%s", folder);
    cr_expect_eq(found->queries, has_field(folder, "[.]queries = 8") ? 8 : found->decode, "%s", folder);
    found->decode ? expect_checked_decode(found) : expect_checked(found);
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

// It holds what a GPU needs, and no more: no line tables, no PTX.
Test(library, is_small) {
  if (SANITIZED) cr_skip_test("sanitizers make it larger");
  char command[300];
  snprintf(command, sizeof command, "test $(wc -c <'%s/libhopper_ladder.so') -lt 8000000", root_path());
  cr_expect_eq(system(command), 0);
}

// ---- what it refuses ----

Test(library, stages_that_are_not_there) {
  static const char *const numbers[] = {"77", "3", "03x", ""};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    char words[100];
    snprintf(words, sizeof words, "stage %s: this library has no such stage; it has 00, 00b, ", numbers[i]);
    cr_expect_eq(run_stage(numbers[i], NULL), HL_INVALID);
    cr_expect(strstr(hl.error(), words) == hl.error(), "%s", hl.error());
  }
  EXPECT_STATUS(hl.attention(NULL), HL_INVALID, "call: a null pointer");
}

// Without a number: the newest stage that does what the call asks for.
Test(library, no_stage_means_the_newest) {
  HlCall call = small_call(NULL), number = small_call("10");
  cr_expect_eq(hl.attention(&call), HL_OK, "%s", hl.error());
  call.lse = small_tensor(8).data;
  cr_expect_eq(hl.attention(&call), HL_OK, "%s", hl.error());
  cr_expect_eq(hl.attention(&number), HL_OK, "%s", hl.error());
  cr_expect_eq(driver->loaded, 1, "all three are stage 10");
  call.type = HL_E4M3;
  EXPECT_STATUS(hl.attention(&call), HL_UNSUPPORTED,
                "no stage of this library does that: forward pass, type 1, with lse");
}

Test(library, sizes_that_make_no_sense) {
  static const struct {
    int32_t batch, heads, seqlen, head_dim, causal;
    const char *words;
  } cases[] = {
      {0, 1, 1, 64, 0, "batch 0: 1 to 65536 are allowed"},
      {65537, 1, 1, 64, 0, "batch 65537: 1 to 65536 are allowed"},
      {1, -2, 1, 64, 0, "heads -2: 1 to 65536 are allowed"},
      {1, 1, 0, 64, 0, "seqlen 0: 1 to 1048576 are allowed"},
      {1, 1, 1048577, 64, 0, "seqlen 1048577: 1 to 1048576 are allowed"},
      {1, 1, 1, 96, 0, "head_dim 96: 64 and 128 are allowed"},
      {1, 1, 1, 128, 2, "causal 2: 0 and 1 are allowed"},
      {65536, 65536, 1, 64, 0, "batch * heads * seqlen is 4294967296: at most 2147483647 is allowed"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    HlCall call = small_call("03");
    call.batch = cases[i].batch, call.heads = cases[i].heads, call.seqlen = cases[i].seqlen;
    call.head_dim = cases[i].head_dim, call.causal = cases[i].causal;
    EXPECT_STATUS(hl.attention(&call), HL_INVALID, cases[i].words);
    call.flags = HL_CHECK;
    EXPECT_STATUS(hl.attention(&call), HL_INVALID, cases[i].words);
  }
}

Test(library, options_that_make_no_sense) {
  HlCall call = small_call("03");
  call.flags = 8 | HL_CHECK;
  EXPECT_STATUS(hl.attention(&call), HL_INVALID, "flags 0xa: HL_DETERMINISTIC and HL_CHECK are allowed");
  static const struct {
    float scale;
    const char *words;
  } cases[] = {
      {-1, "scale -1: a positive number is allowed, or 0 for 1 / sqrt(head_dim)"},
      {INFINITY, "scale inf: a positive number is allowed, or 0 for 1 / sqrt(head_dim)"},
      {-NAN, NULL},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    call = small_call("03");
    call.scale = cases[i].scale;
    cr_expect_eq(hl.attention(&call), HL_INVALID);
    if (cases[i].words) cr_expect_str_eq(hl.error(), cases[i].words);
  }
  call = small_call("03");
  call.type = (HlType)3;
  EXPECT_STATUS(hl.attention(&call), HL_INVALID, "type 3: HL_F16, HL_E4M3 and HL_E4M3_SCORES are allowed");
  call = small_call("03");
  call.reserved[7] = 1;
  EXPECT_STATUS(hl.attention(&call), HL_INVALID,
                "reserved[7] 1: only 0 is allowed; is the library older than its header?");
  cr_expect_eq(driver->launches, 0);
}

Test(library, tensors_that_make_no_sense) {
  for (int i = 0; i < FORWARD_TENSORS; i++) {
    char words[200];
    HlCall call = small_call("03");
    tensor_of(&call, i)->data = NULL;
    snprintf(words, sizeof words, "%s: a null pointer", tensor_names[i]);
    EXPECT_STATUS(hl.attention(&call), HL_INVALID, words);
    tensor_of(&call, i)->data = (void *)0x8008;
    snprintf(words, sizeof words, "%s: the address 0x8008 is not aligned to 16 bytes", tensor_names[i]);
    EXPECT_STATUS(hl.attention(&call), HL_INVALID, words);
  }
  cr_expect_eq(driver->launches, 0);
}

Test(library, output_must_not_overlap) {
  HlCall call = small_call("03");
  call.o = call.v;
  EXPECT_STATUS(hl.attention(&call), HL_INVALID, "o overlaps v");
  call.o.data = (char *)call.v.data + 2 * 3 * 100 * 64 * 2 - 16;
  EXPECT_STATUS(hl.attention(&call), HL_INVALID, "o overlaps v");
  call.o.data = (char *)call.o.data + 16;
  cr_expect_eq(hl.attention(&call), HL_OK, "%s", hl.error());
  call.k = call.v = call.q;
  cr_expect_eq(hl.attention(&call), HL_OK, "inputs may be one: %s", hl.error());
}

// ---- in whose context and stream it works ----

Test(library, wants_a_hopper_gpu_and_a_context) {
  driver->context = 0;
  EXPECT_STATUS(run_stage("03", NULL), HL_INVALID, "no CUDA context is current on this thread");
  driver->context = 1;
  driver->capability = 8;
  EXPECT_STATUS(run_stage("03", NULL), HL_ABSENT,
                "the current context is on a Fake GPU, which does not have compute capability 9.0");
  driver->capability = 9;
  cr_expect_eq(run_stage("03", NULL), HL_OK, "%s", hl.error());
}

Test(library, queues_on_the_stream_it_is_given) {
  void *const streams[] = {NULL, (void *)0x5, (void *)0x6};
  static const char *const numbers[] = {"00", "01", "02"};
  for (int i = 0; i < 3; i++) cr_expect_eq(run_stage(numbers[i], streams[i]), HL_OK, "%s", hl.error());
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
    cr_expect_eq(run_stage("02", NULL), HL_OK, "%s", hl.error());
    cr_expect_eq(driver->launch[i].taken, (uintptr_t)small_tensor(i).data, "parameter %d", i);
  }
  driver->parameter = 5;
  driver->size = sizeof(float);
  cr_expect_eq(run_stage("02", NULL), HL_OK, "%s", hl.error());
  HlCall call = small_call("02");
  call.scale = 0.3f;
  cr_expect_eq(hl.attention(&call), HL_OK, "%s", hl.error());
  for (int i = 0; i < 2; i++) {
    float scale;
    memcpy(&scale, &driver->launch[4 + i].taken, sizeof scale);
    cr_expect_eq(scale, i ? 0.3f : 0.125f, "1 / sqrt(64) when there is none, not %g", scale);
  }
}

Test(library, loads_a_stage_once_in_each_context) {
  for (int i = 0; i < 3; i++) run_stage("03", NULL);
  cr_expect_eq(driver->loaded, 1);
  run_stage("02", NULL);
  cr_expect_eq(driver->loaded, 2);
  driver->context = 2;
  run_stage("03", NULL);
  run_stage("03", NULL);
  cr_expect_eq(driver->loaded, 3);
  driver->context = 1;
  run_stage("03", NULL);
  cr_expect_eq(driver->loaded, 3);
  cr_expect_eq(driver->unloaded, 0);
}

// A driver that takes no cubin, as hopper-run's: the PTX is looked for beside the library.
Test(library, says_what_is_missing_beside_it, .init = scratch_enter, .fini = scratch_leave) {
  char path[300];
  load_library_with_fake_driver();
  cr_assert_eq(scratch_run("cp \"$ROOT/libhopper_ladder.so\" . && pwd"), 0);
  snprintf(path, sizeof path, "%.*s/libhopper_ladder.so", (int)strcspn(scratch_output, "\n"), scratch_output);
  *(void **)&hl.attention = find_symbol(path, "hl_attention");
  *(void **)&hl.error = find_symbol(path, "hl_error");
  driver->fails = "cuModuleLoadData";
  driver->result = 209;  // CUDA_ERROR_NO_BINARY_FOR_GPU
  EXPECT_STATUS(
      run_stage("03", NULL), HL_ABSENT,
      "this driver runs PTX, as hopper-run's does: libhopper_ladder_ptx.so must be beside libhopper_ladder.so");
}

Test(library, keeps_a_workspace_for_each_stream) {
  HlCall larger = small_call("00");
  larger.seqlen = 200;
  larger.stream = (void *)0x5;
  void *first = (void *)0x5, *second = (void *)0x6;
  run_stage("00", first);
  run_stage("00", first);
  run_stage("01", first);
  cr_expect_eq(driver->allocated, 1, "stages share a stream's workspace");
  cr_expect_eq(driver->largest, 4 * 2 * 3 * 100 * 100, "fp32 scores of six heads");
  run_stage("00", second);
  cr_expect_eq(driver->allocated, 2);
  hl.attention(&larger);
  cr_expect_eq(driver->allocated, 3);
  cr_expect_eq(driver->freed, 1, "the smaller one");
  cr_expect_eq(driver->largest, 4 * 2 * 3 * 200 * 200);
  run_stage("00", first);
  run_stage("03", (void *)0x7);
  cr_expect_eq(driver->allocated, 3, "stage 03 needs none");
}

// Stages 09 and 10 count their causal tiles. Launches of two streams may run at the same time: each stream has its own
// counter, set to 0 in that stream before it is first used, and apart from what other stages leave in the workspace.
Test(library, keeps_a_counter_for_each_stream) {
  void *const streams[] = {(void *)0x5, (void *)0x6, (void *)0x5, (void *)0x6};
  run_stage("00", streams[0]);
  driver->launches = 0;
  driver->offset = 4 * sizeof(TensorMap);  // where the kernels' first parameter has the counter's address
  for (int i = 0; i < 4; i++) cr_expect_eq(run_stage(i < 2 ? "09" : "10", streams[i]), HL_OK, "%s", hl.error());
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
  EXPECT_STATUS(run_stage("09", NULL), HL_FAILED, "cuMemsetD8Async: CUDA_ERROR_MADE_UP, made up");
  cr_expect_eq(driver->launches, 0);
  driver->fails = NULL;
  cr_expect_eq(run_stage("09", NULL), HL_OK, "%s", hl.error());
  cr_expect_eq(driver->fills, 1);
  cr_expect_eq(driver->launches, 1);
  cr_expect_eq(driver->allocated, 1);
}

Test(library, release_frees_what_is_in_the_context) {
  run_stage("00", NULL);
  driver->context = 2;
  run_stage("03", NULL);
  run_stage("00", NULL);
  cr_expect_eq(hl.release(), HL_OK);
  cr_expect_eq(driver->unloaded, 2, "stages 03 and 00 in context 2");
  cr_expect_eq(driver->freed, 1);
  cr_expect_eq(hl.release(), HL_OK, "nothing is left");
  cr_expect_eq(driver->unloaded, 2);
  cr_expect_eq(run_stage("00", NULL), HL_OK, "%s", hl.error());
  cr_expect_eq(driver->loaded, 4);
  driver->context = 1;
  run_stage("00", NULL);
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
    EXPECT_STATUS(run_stage("00", NULL), cases[i].status, cases[i].words);
    driver->fails = NULL;
    cr_expect_eq(run_stage("00", NULL), HL_OK, "%s", hl.error());
    hl.release();
  }
}

// Memory that was not to be had is asked for again.
Test(library, asks_again_for_a_workspace) {
  driver->fails = "cuMemAlloc_v2";
  driver->result = 2;
  cr_expect_eq(run_stage("00", NULL), HL_OUT_OF_MEMORY);
  cr_expect_eq(run_stage("00", NULL), HL_OUT_OF_MEMORY);
  cr_expect_eq(driver->launches, 0, "without its workspace");
  driver->fails = NULL;
  cr_expect_eq(run_stage("00", NULL), HL_OK, "%s", hl.error());
  cr_expect_eq(driver->allocated, 1);
}
