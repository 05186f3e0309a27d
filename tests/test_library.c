// libhopper_ladder.so: what it refuses, and, with a driver that only takes notes, what it asks of a CUDA program's
// context and streams. The suite gpu_library runs its stages on a GPU (make test-gpu).
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/fake_driver.h"
#include "harness/harness.h"
#include "library/hopper_ladder.h"
#include "support/exact_forward.h"
#include "support/program.h"

// The library's functions, as the dynamic linker finds them.
static __typeof__(&hl_error) error;
static __typeof__(&hl_stage_count) stage_count;
static __typeof__(&hl_stage) stage_at;
static __typeof__(&hl_supports) supports;
static __typeof__(&hl_attention) attention;
static __typeof__(&hl_attention_e4m3) attention_e4m3;
static __typeof__(&hl_attention_backward) attention_backward, attention_backward_deterministic;
static __typeof__(&hl_release) release_context;

static void *load(const char *path) {
  void *library = dlopen(path, RTLD_NOW);
  cr_assert(library, "%s", dlerror());
  return library;
}

static void *find(void *library, const char *name) {
  void *symbol = dlsym(library, name);
  cr_assert(symbol, "%s", dlerror());
  return symbol;
}

static void load_library(void) {
  char path[1000];
  snprintf(path, sizeof path, "%s/libhopper_ladder.so", root_path());
  void *library = load(path);
  *(void **)&error = find(library, "hl_error");
  *(void **)&stage_count = find(library, "hl_stage_count");
  *(void **)&stage_at = find(library, "hl_stage");
  *(void **)&supports = find(library, "hl_supports");
  *(void **)&attention = find(library, "hl_attention");
  *(void **)&attention_e4m3 = find(library, "hl_attention_e4m3");
  *(void **)&attention_backward = find(library, "hl_attention_backward");
  *(void **)&attention_backward_deterministic = find(library, "hl_attention_backward_deterministic");
  *(void **)&release_context = find(library, "hl_release");
}

static FakeDriver *driver;

static void load_with_fake_driver(void) {
  driver = find(load(getenv("FAKE_DRIVER")), "fake_driver");
  *driver = (FakeDriver){.context = 1, .capability = 9};
  load_library();
}

TestSuite(library, .init = load_with_fake_driver);
TestSuite(gpu_library, .init = load_library, .timeout = 300);

static const HlShape small = {.batch = 2, .heads = 3, .seqlen = 100, .head_dim = 64, .causal = 1};

// Tensors of the small shape, far apart.
static HlTensor tensor(int index) { return (HlTensor){.data = (void *)(0x10000000ull * (unsigned)(index + 1))}; }

static HlStatus run(const char *number, const HlShape *shape, void *stream) {
  HlTensor q = tensor(0), k = tensor(1), v = tensor(2), o = tensor(3);
  return attention(number, shape, &q, &k, &v, &o, stream);
}

#define EXPECT(call, status, words)                                                                                    \
  do {                                                                                                                 \
    cr_expect_eq(call, status, "%s", error());                                                                         \
    cr_expect_str_eq(error(), words);                                                                                  \
  } while (0)

// The number of a stage with e4m3 inputs.
static const char *e4m3_stage(void) {
  for (int i = 0; i < stage_count(); i++)
    if (stage_at(i)->inputs == HL_INPUTS_E4M3) return stage_at(i)->number;
  cr_skip_test("no stage has e4m3 inputs");
  return NULL;
}

static const HlScale unit = {.data = (const float *)0x9000};

static HlStatus run_e4m3(const char *number, const HlScale *q, const HlScale *k, const HlScale *v) {
  HlTensor tensors[] = {tensor(0), tensor(1), tensor(2), tensor(3)};
  return attention_e4m3(number, &small, &tensors[0], &tensors[1], &tensors[2], &tensors[3], q, k, v, NULL);
}

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
    const HlStage *found = stage_at(count);
    cr_assert(found, "%s is not there", folder);
    cr_expect_str_eq(found->name, folder);
    cr_expect_eq(strlen(found->number), strcspn(folder, "-"), "%s is called %s", folder, found->number);
    cr_expect(!strncmp(found->number, folder, strlen(found->number)), "%s is called %s", folder, found->number);
    cr_expect(strlen(found->title) > 10);
    HlInputs inputs = has_field(folder, "[.]inputs = INPUTS_E4M3") ? HL_INPUTS_E4M3 : HL_INPUTS_F16;
    cr_expect_eq(found->inputs, inputs, "%s", folder);
    cr_expect_eq(found->backward, has_field(folder, "[.]backward = true"), "%s", folder);
    cr_expect_eq(supports(found->number, &small), HL_OK);
  }
  pclose(pipe);
  cr_expect(count >= 4);
  cr_expect_eq(stage_count(), count);
  cr_expect_null(stage_at(count));
  cr_expect_null(stage_at(-1));
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
    cr_expect_eq(run(numbers[i], &small, NULL), HL_INVALID);
    cr_expect(strstr(error(), words) == error(), "%s", error());
  }
  EXPECT(supports(NULL, &small), HL_INVALID, "stage: a null pointer");
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
    EXPECT(supports("03", &cases[i].shape), HL_INVALID, cases[i].words);
    EXPECT(run("03", &cases[i].shape, NULL), HL_INVALID, cases[i].words);
  }
  EXPECT(supports("03", NULL), HL_INVALID, "shape: a null pointer");
}

// Q, K, V and O in turn get what is wrong; the others are right.
static void expect_refused(HlTensor wrong, HlStatus status, const char *words) {
  static const char *const names[] = {"q", "k", "v", "o"};
  for (int i = 0; i < 4; i++) {
    HlTensor tensors[4] = {tensor(0), tensor(1), tensor(2), tensor(3)};
    char expected[300];
    tensors[i] = wrong;
    snprintf(expected, sizeof expected, "%s: %s", names[i], words);
    EXPECT(attention("03", &small, &tensors[0], &tensors[1], &tensors[2], &tensors[3], NULL), status, expected);
  }
}

Test(library, tensors_that_make_no_sense) {
  expect_refused((HlTensor){.data = NULL}, HL_INVALID, "a null pointer");
  expect_refused((HlTensor){.data = (void *)0x8008}, HL_INVALID, "the address 0x8008 is not aligned to 16 bytes");
  HlTensor q = tensor(0);
  EXPECT(attention("03", &small, &q, &q, NULL, &q, NULL), HL_INVALID, "v: a null pointer");
  cr_expect_eq(driver->launches, 0);
}

Test(library, strides_must_be_contiguous) {
  HlTensor sequence_first = {(void *)0x8000, {19200, 64, 192, 1}};  // [batch][seqlen][heads][head_dim]
  expect_refused(sequence_first, HL_UNSUPPORTED,
                 "strides 19200, 64, 192, 1; only a contiguous tensor is allowed, 19200, 6400, 64, 1");
  HlTensor contiguous = {(void *)0x8000, {19200, 6400, 64, 1}}, o = tensor(3);
  cr_expect_eq(attention("03", &small, &contiguous, &contiguous, &contiguous, &o, NULL), HL_OK, "%s", error());
  // With one head, whatever its stride.
  HlShape one_head = {2, 1, 100, 64, 0};
  HlTensor same = {(void *)0x8000, {6400, 64, 64, 1}};
  cr_expect_eq(attention("03", &one_head, &same, &same, &same, &o, NULL), HL_OK, "%s", error());
}

Test(library, output_must_not_overlap) {
  HlTensor q = tensor(0), k = tensor(1), v = tensor(2), last = {.data = (char *)v.data + 2 * 3 * 100 * 64 * 2 - 16};
  EXPECT(attention("03", &small, &q, &k, &v, &v, NULL), HL_INVALID, "o overlaps v");
  EXPECT(attention("03", &small, &q, &k, &v, &last, NULL), HL_INVALID, "o overlaps v");
  last.data = (char *)last.data + 16;
  cr_expect_eq(attention("03", &small, &q, &k, &v, &last, NULL), HL_OK, "%s", error());
  cr_expect_eq(attention("03", &small, &q, &q, &q, &last, NULL), HL_OK, "inputs may be one: %s", error());
}

// O has two bytes an element, Q, K and V of e4m3 have one.
Test(library, e4m3_inputs_must_not_overlap_the_output) {
  const char *number = e4m3_stage();
  size_t elements = 2 * 3 * 100 * 64;
  HlTensor in = tensor(0), behind = {.data = (char *)in.data + elements}, before = {.data = (char *)in.data - elements};
  cr_expect_eq(attention_e4m3(number, &small, &in, &in, &in, &behind, &unit, &unit, &unit, NULL), HL_OK, "%s", error());
  EXPECT(attention_e4m3(number, &small, &in, &in, &in, &before, &unit, &unit, &unit, NULL), HL_INVALID, "o overlaps q");
}

Test(library, each_function_has_its_stages) {
  EXPECT(run_e4m3("03", &unit, &unit, &unit), HL_INVALID, "stage 03-cp-async: its inputs are fp16; call hl_attention");
  const char *number = e4m3_stage();
  cr_expect_eq(run(number, &small, NULL), HL_INVALID);
  cr_expect(strstr(error(), ": its inputs are e4m3; call hl_attention_e4m3"), "%s", error());
  cr_expect_eq(driver->launches, 0);
  cr_expect_eq(run_e4m3(number, &unit, &unit, &unit), HL_OK, "%s", error());
  cr_expect(driver->launches > 0);
}

Test(library, scales_that_make_no_sense) {
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
      EXPECT(run_e4m3(number, scales[0], scales[1], scales[2]), HL_INVALID, words);
    }
  const HlScale per_head = {(const float *)0x9000, 1};
  EXPECT(run_e4m3(number, &unit, NULL, &unit), HL_INVALID, "k_scale: a null pointer");
  EXPECT(run_e4m3(number, &unit, &unit, &per_head), HL_INVALID,
         "v_scale: per_head 1, but that of q_scale is 0; all three must be the same");
  cr_expect_eq(driver->launches, 0);
  cr_expect_eq(run_e4m3(number, &per_head, &per_head, &per_head), HL_OK, "%s", error());
}

// ---- the backward pass ----

enum { BACKWARD_TENSORS = 8 };
static const char *const backward_names[BACKWARD_TENSORS] = {"q", "k", "v", "o", "d_o", "d_q", "d_k", "d_v"};
static const float *const lse = (const float *)0x900000000ull;

static HlStatus run_backward(const char *number, const HlTensor t[BACKWARD_TENSORS], const float *sums) {
  return attention_backward(number, &small, &t[0], &t[1], &t[2], &t[3], &t[4], sums, &t[5], &t[6], &t[7], (void *)0x5);
}

static void fill_tensors(HlTensor tensors[BACKWARD_TENSORS]) {
  for (int i = 0; i < BACKWARD_TENSORS; i++) tensors[i] = tensor(i);
}

// Stage 12: the sums of dO O, then a pass that streams K and V, and one that streams Q and dO.
Test(library, launches_the_kernels_of_a_backward_stage) {
  HlTensor tensors[BACKWARD_TENSORS];
  fill_tensors(tensors);
  driver->offset = 3 * sizeof(int) + sizeof(float) + 2 * sizeof(uint64_t);
  cr_expect_eq(run_backward("12", tensors, lse), HL_OK, "%s", error());
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
  return attention_backward_deterministic(number, &small, &t[0], &t[1], &t[2], &t[3], &t[4], lse, &t[5], &t[6], &t[7],
                                          (void *)0x5);
}

// Stage 12b: zeros for the sums and all counters, then three kernels. Only a fixed order gives the kernels the address of the
// turns, the second number of their last parameter.
Test(library, a_fixed_order_needs_turns) {
  HlTensor tensors[BACKWARD_TENSORS];
  fill_tensors(tensors);
  driver->parameter = 2;
  driver->offset = sizeof(uint64_t);
  cr_expect_eq(run_backward("12b", tensors, lse), HL_OK, "%s", error());
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
  cr_expect_eq(run_deterministic("12b", tensors), HL_OK, "%s", error());
  cr_assert_eq(driver->launches, 6);
  for (int i = 4; i < 6; i++) cr_expect_eq(driver->launch[i].taken, driver->fill[0].address + sums);
}

Test(library, each_function_is_for_its_own_pass) {
  HlTensor tensors[BACKWARD_TENSORS];
  fill_tensors(tensors);
  EXPECT(run("12", &small, NULL), HL_INVALID,
         "stage 12-backward: it is for the backward pass; call hl_attention_backward");
  EXPECT(run_backward("03", tensors, lse), HL_INVALID, "stage 03-cp-async: its inputs are fp16; call hl_attention");
  cr_expect_eq(driver->launches, 0);
}

Test(library, gradients_that_make_no_sense) {
  HlTensor tensors[BACKWARD_TENSORS];
  for (int i = 0; i < BACKWARD_TENSORS; i++) {
    char words[100];
    fill_tensors(tensors);
    tensors[i].data = NULL;
    snprintf(words, sizeof words, "%s: a null pointer", backward_names[i]);
    EXPECT(run_backward("12", tensors, lse), HL_INVALID, words);
  }
  fill_tensors(tensors);
  EXPECT(run_backward("12", tensors, NULL), HL_INVALID, "lse: a null pointer");
  EXPECT(run_backward("12", tensors, (const float *)0x1002), HL_INVALID,
         "lse: the address 0x1002 is not aligned to 4 bytes");
  cr_expect_eq(driver->launches, 0);
}

// Each gradient in the place of each tensor before it, and of the last bytes of lse. Inputs may be one.
Test(library, gradients_must_not_overlap) {
  HlTensor tensors[BACKWARD_TENSORS];
  char words[100];
  for (int i = 5; i < BACKWARD_TENSORS; i++) {
    for (int j = 0; j < i; j++) {
      fill_tensors(tensors);
      tensors[i] = tensors[j];
      snprintf(words, sizeof words, "%s overlaps %s", backward_names[i], backward_names[j]);
      EXPECT(run_backward("12", tensors, lse), HL_INVALID, words);
    }
    fill_tensors(tensors);
    tensors[i].data = (void *)(lse + 2 * 3 * 100 - 4);
    snprintf(words, sizeof words, "%s overlaps lse", backward_names[i]);
    EXPECT(run_backward("12", tensors, lse), HL_INVALID, words);
  }
  fill_tensors(tensors);
  tensors[5].data = (void *)(lse + 2 * 3 * 100);
  tensors[1] = tensors[2] = tensors[3] = tensors[4] = tensors[0];
  cr_expect_eq(run_backward("12", tensors, lse), HL_OK, "%s", error());
}

// ---- in whose context and stream it works ----

Test(library, wants_a_hopper_gpu_and_a_context) {
  driver->context = 0;
  EXPECT(run("03", &small, NULL), HL_INVALID, "no CUDA context is current on this thread");
  driver->context = 1;
  driver->capability = 8;
  EXPECT(run("03", &small, NULL), HL_ABSENT,
         "the current context is on a Fake GPU, which does not have compute capability 9.0");
  driver->capability = 9;
  cr_expect_eq(run("03", &small, NULL), HL_OK, "%s", error());
}

Test(library, queues_on_the_stream_it_is_given) {
  void *const streams[] = {NULL, (void *)0x5, (void *)0x6};
  static const char *const numbers[] = {"00", "01", "02"};
  for (int i = 0; i < 3; i++) cr_expect_eq(run(numbers[i], &small, streams[i]), HL_OK, "%s", error());
  cr_assert_eq(driver->launches, 3 + 3 + 1, "stages 00 and 01 have three kernels, 02 has one");
  for (int i = 0; i < driver->launches; i++)
    cr_expect_eq(driver->launch[i].stream, streams[i / 3], "%s", driver->launch[i].kernel);
  cr_expect_str_eq(driver->launch[6].kernel, "attention_64");
  cr_expect_eq(driver->launch[6].taken, (uintptr_t)tensor(0).data);
  cr_expect_eq(driver->context, 1, "the context stays current");
}

// Stage 02's parameters: Q, K, V, O, the sequence length, the scale.
Test(library, hands_each_tensor_and_the_scale_to_the_kernel) {
  for (int i = 0; i < 4; i++) {
    driver->parameter = i;
    cr_expect_eq(run("02", &small, NULL), HL_OK, "%s", error());
    cr_expect_eq(driver->launch[i].taken, (uintptr_t)tensor(i).data, "parameter %d", i);
  }
  driver->parameter = 5;
  driver->size = sizeof(float);
  cr_expect_eq(run("02", &small, NULL), HL_OK, "%s", error());
  float scale;
  memcpy(&scale, &driver->launch[4].taken, sizeof scale);
  cr_expect_eq(scale, 0.125f, "1 / sqrt(64), not %g", scale);
}

Test(library, loads_a_stage_once_in_each_context) {
  for (int i = 0; i < 3; i++) run("03", &small, NULL);
  cr_expect_eq(driver->loaded, 1);
  run("02", &small, NULL);
  cr_expect_eq(driver->loaded, 2);
  driver->context = 2;
  run("03", &small, NULL);
  run("03", &small, NULL);
  cr_expect_eq(driver->loaded, 3);
  driver->context = 1;
  run("03", &small, NULL);
  cr_expect_eq(driver->loaded, 3);
  cr_expect_eq(driver->unloaded, 0);
}

Test(library, keeps_a_workspace_for_each_stream) {
  HlShape larger = small;
  larger.seqlen = 200;
  void *first = (void *)0x5, *second = (void *)0x6;
  run("00", &small, first);
  run("00", &small, first);
  run("01", &small, first);
  cr_expect_eq(driver->allocated, 1, "stages share a stream's workspace");
  cr_expect_eq(driver->largest, 4 * 2 * 3 * 100 * 100, "fp32 scores of six heads");
  run("00", &small, second);
  cr_expect_eq(driver->allocated, 2);
  run("00", &larger, first);
  cr_expect_eq(driver->allocated, 3);
  cr_expect_eq(driver->freed, 1, "the smaller one");
  cr_expect_eq(driver->largest, 4 * 2 * 3 * 200 * 200);
  run("00", &small, first);
  run("03", &small, (void *)0x7);
  cr_expect_eq(driver->allocated, 3, "stage 03 needs none");
}

// Stages 09 and 10 count their causal tiles. Launches of two streams may run at the same time: each stream has its own
// counter, set to 0 in that stream before it is first used, and apart from what other stages leave in the workspace.
Test(library, keeps_a_counter_for_each_stream) {
  void *const streams[] = {(void *)0x5, (void *)0x6, (void *)0x5, (void *)0x6};
  run("00", &small, streams[0]);
  driver->launches = 0;
  driver->offset = 4 * sizeof(TensorMap);  // where the kernels' first parameter has the counter's address
  for (int i = 0; i < 4; i++) cr_expect_eq(run(i < 2 ? "09" : "10", &small, streams[i]), HL_OK, "%s", error());
  cr_expect_eq(driver->allocated, 3, "a workspace and two counters");
  cr_assert_eq(driver->fills, 2);
  for (int i = 0; i < 2; i++) {
    const FakeFill *fill = &driver->fill[i];
    cr_expect(fill->stream == streams[i] && fill->byte == 0 && fill->size == 4);
    cr_expect_eq(driver->launch[i].taken, fill->address, "stage 09");
    cr_expect_eq(driver->launch[i + 2].taken, fill->address, "stage 10 shares it");
  }
  cr_expect_neq(driver->fill[0].address, driver->fill[1].address);
  release_context();
  cr_expect_eq(driver->freed, 3);
}

// Memory that was not set to 0 is no counter.
Test(library, sets_a_counter_to_0_after_a_failure) {
  driver->fails = "cuMemsetD8Async";
  driver->result = 999;
  EXPECT(run("09", &small, NULL), HL_FAILED, "cuMemsetD8Async: CUDA_ERROR_MADE_UP, made up");
  cr_expect_eq(driver->launches, 0);
  driver->fails = NULL;
  cr_expect_eq(run("09", &small, NULL), HL_OK, "%s", error());
  cr_expect_eq(driver->fills, 1);
  cr_expect_eq(driver->launches, 1);
  cr_expect_eq(driver->allocated, 1);
}

Test(library, release_frees_what_is_in_the_context) {
  run("00", &small, NULL);
  driver->context = 2;
  run("03", &small, NULL);
  run("00", &small, NULL);
  cr_expect_eq(release_context(), HL_OK);
  cr_expect_eq(driver->unloaded, 2, "stages 03 and 00 in context 2");
  cr_expect_eq(driver->freed, 1);
  cr_expect_eq(release_context(), HL_OK, "nothing is left");
  cr_expect_eq(driver->unloaded, 2);
  cr_expect_eq(run("00", &small, NULL), HL_OK, "%s", error());
  cr_expect_eq(driver->loaded, 4);
  driver->context = 1;
  run("00", &small, NULL);
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
    EXPECT(run("00", &small, NULL), cases[i].status, cases[i].words);
    driver->fails = NULL;
    cr_expect_eq(run("00", &small, NULL), HL_OK, "%s", error());
    release_context();
  }
}

// Memory that was not to be had is asked for again.
Test(library, asks_again_for_a_workspace) {
  driver->fails = "cuMemAlloc_v2";
  driver->result = 2;
  cr_expect_eq(run("00", &small, NULL), HL_OUT_OF_MEMORY);
  cr_expect_eq(run("00", &small, NULL), HL_OUT_OF_MEMORY);
  cr_expect_eq(driver->launches, 0, "without its workspace");
  driver->fails = NULL;
  cr_expect_eq(run("00", &small, NULL), HL_OK, "%s", error());
  cr_expect_eq(driver->allocated, 1);
}

// ---- on a GPU ----

static void *upload(Device *device, const void *values, size_t size) {
  DeviceAddress address = device_alloc(device, size);
  device_upload(device, address, values, size);
  return (void *)(uintptr_t)address;
}

static void free_on_gpu(Device *device, const void *data) { device_free(device, (DeviceAddress)(uintptr_t)data); }

// Q, K and V on the GPU, with their scales if they are e4m3.
typedef struct Inputs {
  StageInputs type;
  HlTensor tensor[TENSORS];
  HlScale scale[TENSORS];
} Inputs;

static Inputs upload_inputs(Device *device, const Problem *problem) {
  Inputs inputs = {.type = problem->inputs};
  const Half *tensors[] = {problem->q, problem->k, problem->v};
  for (int i = 0; i < TENSORS; i++)
    if (inputs.type == INPUTS_E4M3) {
      inputs.tensor[i].data = upload(device, problem->codes[i], problem->elements);
      inputs.scale[i].data = upload(device, problem->scales[i], problem_scales(problem) * sizeof(float));
      inputs.scale[i].per_head = problem->scale_stride;
    } else {
      inputs.tensor[i].data = upload(device, tensors[i], problem->elements * sizeof(Half));
    }
  return inputs;
}

static void free_inputs(Device *device, const Inputs *inputs) {
  for (int i = 0; i < TENSORS; i++) {
    free_on_gpu(device, inputs->tensor[i].data);
    free_on_gpu(device, inputs->scale[i].data);
  }
}

static HlStatus call(const char *number, const HlShape *shape, const Inputs *in, const HlTensor *o, void *stream) {
  const HlTensor *q = &in->tensor[0], *k = &in->tensor[1], *v = &in->tensor[2];
  if (in->type == INPUTS_F16) return attention(number, shape, q, k, v, o, stream);
  return attention_e4m3(number, shape, q, k, v, o, &in->scale[0], &in->scale[1], &in->scale[2], stream);
}

static Shape own_shape(const HlShape *shape) {
  return (Shape){shape->batch, shape->heads, shape->seqlen, shape->head_dim, shape->causal};
}

// A problem with the inputs that a stage reads.
static Problem new_problem(const HlStage *stage, const HlShape *shape) {
  Problem problem;
  Shape own = own_shape(shape);
  cr_assert(problem_create(&problem, &own, INPUT_NORMAL, 1));
  bool per_head = shape->causal;
  cr_assert(stage->inputs == HL_INPUTS_F16 || problem_quantise(&problem, per_head, false, 1));
  return problem;
}

// One problem through the library, on a stream of its own, in the context of a device that this test opened.
static void run_on_gpu(Device *device, const HlStage *stage, const HlShape *shape, void *stream) {
  Problem problem = new_problem(stage, shape);
  Inputs inputs = upload_inputs(device, &problem);
  CheckResult result;
  size_t size = problem.elements * sizeof(Half);
  memset(problem.o, 0xff, size);
  HlTensor o = {.data = upload(device, problem.o, size)};
  cr_assert(device_synchronise(device));
  cr_assert_eq(call(stage->number, shape, &inputs, &o, stream), HL_OK, "%s", error());
  cr_assert(device_synchronise(device), "%s", device_error(device)->text);
  device_download(device, problem.o, (DeviceAddress)(uintptr_t)o.data, size);
  cr_assert(check_output(&problem, OUTPUT_O, 1, &result));
  cr_expect(check_is_right(&result), "stage %s, seqlen %d, head dim %d, causal %d: %llu elements are wrong",
            stage->number, shape->seqlen, shape->head_dim, shape->causal, (unsigned long long)result.wrong);
  free_inputs(device, &inputs);
  free_on_gpu(device, o.data);
  problem_free(&problem);
}

// The same for the gradients.
static void run_backward_on_gpu(Device *device, const HlStage *stage, const HlShape *shape, void *stream) {
  Problem p = new_problem(stage, shape);
  CheckResult results[OUTPUTS];
  cr_assert(problem_add_gradients(&p, INPUT_NORMAL, 1));
  exact_forward(&p);
  size_t size = p.elements * sizeof(Half);
  Half *const tensors[BACKWARD_TENSORS] = {p.q, p.k, p.v, p.o, p.d_o, p.d_q, p.d_k, p.d_v};
  HlTensor t[BACKWARD_TENSORS];
  for (int i = 5; i < BACKWARD_TENSORS; i++) memset(tensors[i], 0xff, size);
  for (int i = 0; i < BACKWARD_TENSORS; i++) t[i] = (HlTensor){.data = upload(device, tensors[i], size)};
  const float *sums = upload(device, p.lse, p.heads * shape->seqlen * sizeof(float));
  cr_assert(device_synchronise(device));
  cr_assert_eq(
      attention_backward(stage->number, shape, &t[0], &t[1], &t[2], &t[3], &t[4], sums, &t[5], &t[6], &t[7], stream),
      HL_OK, "%s", error());
  cr_assert(device_synchronise(device), "%s", device_error(device)->text);
  for (int i = 5; i < BACKWARD_TENSORS; i++)
    device_download(device, tensors[i], (DeviceAddress)(uintptr_t)t[i].data, size);
  cr_assert_eq(check_problem(&p, 1, results), OUTPUTS);
  cr_expect(check_all_right(results, OUTPUTS), "stage %s, seqlen %d, head dim %d, causal %d", stage->number,
            shape->seqlen, shape->head_dim, shape->causal);
  for (int i = 0; i < BACKWARD_TENSORS; i++) free_on_gpu(device, t[i].data);
  free_on_gpu(device, sums);
  problem_free(&p);
}

static Device *open_gpu(void) {
  if (!getenv("HL_GPU")) cr_skip_test("no GPU: make test-gpu runs this");
  DeviceError failure;
  Device *device = device_open(&(DeviceOptions){.kind = DEVICE_GPU}, &failure);
  cr_assert(device, "%s", failure.text);
  return device;
}

// A stream that does not wait for the default one.
static void *new_stream(void) {
  void *stream = NULL;
  int (*create)(void **stream, unsigned flags) = NULL;
  *(void **)&create = find(load("libcuda.so.1"), "cuStreamCreate");
  cr_assert_eq(create(&stream, 1), 0);
  return stream;
}

Test(gpu_library, every_stage_is_right) {
  Device *device = open_gpu();
  void *stream = new_stream();
  for (int i = 0; i < stage_count(); i++)
    for (int kind = 0; kind < 8; kind++) {
      HlShape shape = {2, 2, kind & 4 ? 1 : 301, kind & 1 ? 128 : 64, kind >> 1 & 1};
      (stage_at(i)->backward ? run_backward_on_gpu : run_on_gpu)(device, stage_at(i), &shape, kind % 3 ? stream : NULL);
    }
  cr_expect_eq(release_context(), HL_OK);
  device_close(device);
}

// One of two launches, in a stream of its own.
typedef struct Job {
  HlShape shape;
  void *stream;
  size_t size;
  Inputs in;
  HlTensor out;
  Half *alone, *beside;  // what it computes when it is alone, and beside the other
} Job;

static Job new_job(Device *device, const HlStage *stage, HlShape shape) {
  Problem problem = new_problem(stage, &shape);
  size_t size = problem.elements * sizeof(Half);
  Job job = {.shape = shape, .stream = new_stream(), .size = size, .in = upload_inputs(device, &problem)};
  job.out.data = upload(device, problem.o, size);
  job.alone = malloc(size);
  job.beside = malloc(size);
  cr_assert(job.alone && job.beside);
  problem_free(&problem);
  return job;
}

static void clear_output(Device *device, const Job *job) {
  cr_assert(device_fill(device, (DeviceAddress)(uintptr_t)job->out.data, 0xff, job->size));
  cr_assert(device_synchronise(device));
}

static void start(const char *number, const Job *job) {
  cr_assert_eq(call(number, &job->shape, &job->in, &job->out, job->stream), HL_OK, "%s", error());
}

static void read_output(Device *device, const Job *job, Half *to) {
  cr_assert(device_synchronise(device), "%s", device_error(device)->text);
  cr_assert(device_download(device, to, (DeviceAddress)(uintptr_t)job->out.data, job->size));
}

// A long launch that leaves most SMs free, and one with many tiles, which begins beside it and ends first: were their
// tiles counted together, the second would leave out as many as the first has blocks. Whether they do meet is the GPU's
// affair, so they are given many chances.
static void expect_right_together(Device *device, const HlStage *stage, int head_dim) {
  const char *number = stage->number;
  Job jobs[] = {
      new_job(device, stage, (HlShape){.batch = 1, .heads = 1, .seqlen = 5120, .head_dim = head_dim, .causal = 1}),
      new_job(device, stage, (HlShape){.batch = 4, .heads = 100, .seqlen = 128, .head_dim = head_dim, .causal = 1}),
  };
  for (int i = 0; i < 2; i++) {
    clear_output(device, &jobs[i]);
    start(number, &jobs[i]);
    read_output(device, &jobs[i], jobs[i].alone);
  }
  int wrong = 0;
  for (int round = 0; round < 50; round++) {
    for (int i = 0; i < 2; i++) clear_output(device, &jobs[i]);
    for (int i = 0; i < 2; i++) start(number, &jobs[i]);
    for (int i = 0; i < 2; i++) {
      read_output(device, &jobs[i], jobs[i].beside);
      wrong += memcmp(jobs[i].alone, jobs[i].beside, jobs[i].size) != 0;
    }
  }
  cr_expect_eq(wrong, 0, "stage %s, head dim %d: %d of 100 outputs are not what the launch computes alone", number,
               head_dim, wrong);
  for (int i = 0; i < 2; i++) {
    free_inputs(device, &jobs[i].in);
    free_on_gpu(device, jobs[i].out.data);
    free(jobs[i].alone);
    free(jobs[i].beside);
  }
}

Test(gpu_library, launches_in_two_streams_do_not_meet) {
  Device *device = open_gpu();
  for (int i = 0; i < stage_count(); i++)
    for (int head_dim = 64; head_dim <= 128; head_dim += 64)
      if (strcmp(stage_at(i)->number, "05") >= 0 && !stage_at(i)->backward)
        expect_right_together(device, stage_at(i), head_dim);
  cr_expect_eq(release_context(), HL_OK);
  device_close(device);
}
