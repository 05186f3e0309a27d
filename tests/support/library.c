#include "library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "program.h"
#include "sanitized.h"

LibraryFunctions hl;
FakeDriver *driver;

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

void *find_symbol(const char *path, const char *name) { return find(load(path), name); }

void load_library(void) {
  char path[1000];
  snprintf(path, sizeof path, "%s/libhopper_ladder.so", root_path());
  void *library = load(path);
  *(void **)&hl.error = find(library, "hl_error");
  *(void **)&hl.stage_count = find(library, "hl_stage_count");
  *(void **)&hl.stage = find(library, "hl_stage");
  *(void **)&hl.attention = find(library, "hl_attention");
  *(void **)&hl.attention_backward = find(library, "hl_attention_backward");
  *(void **)&hl.attention_decode = find(library, "hl_attention_decode");
  *(void **)&hl.release = find(library, "hl_release");
}

void load_library_with_fake_driver(void) {
  driver = find_symbol(getenv("FAKE_DRIVER"), "fake_driver");
  *driver = (FakeDriver){.context = 1, .capability = 9};
  load_library();
}

HlTensor small_tensor(int index) { return (HlTensor){.data = (void *)(0x10000000ull * (unsigned)(index + 1))}; }

const char *const tensor_names[BACKWARD_TENSORS] = {"q", "k", "v", "o", "d_o", "d_q", "d_k", "d_v"};

HlTensor *tensor_of(HlCall *call, int index) {
  HlTensor *const tensors[] = {&call->q, &call->k, &call->v, &call->o, &call->d_o, &call->d_q, &call->d_k, &call->d_v};
  return tensors[index];
}

HlCall small_call(const char *number) {
  HlCall call = {.stage = number, .batch = 2, .heads = 3, .seqlen = 100, .head_dim = 64, .causal = 1};
  for (int i = 0; i < BACKWARD_TENSORS; i++) *tensor_of(&call, i) = small_tensor(i);
  return call;
}

HlDecode small_decode(const char *number) {
  HlDecode call = {.stage = number, .batch = 2, .heads = 8, .kv_heads = 2, .keys = 100, .head_dim = 64};
  if (number && !strcmp(number, "22")) call.head_dim = 128;
  call.type = number && !strcmp(number, "13e") ? HL_E4M3 : HL_BF16;
  HlTensor *const tensors[] = {&call.q, &call.k, &call.v, &call.o};
  for (int i = 0; i < FORWARD_TENSORS; i++) *tensors[i] = small_tensor(i);
  if (call.type == HL_E4M3) call.k_scale.data = call.v_scale.data = small_tensor(4).data;
  return call;
}

HlStatus run_stage(const char *number, void *stream) {
  HlCall call = small_call(number);
  call.stream = stream;
  return hl.attention(&call);
}

void expect_right_on_emulator(const char *test) {
  if (SANITIZED) cr_skip_test("what is preloaded into a program cannot have a sanitizer");
  char tests[1000] = "", filter[100];
  cr_assert_gt(readlink("/proc/self/exe", tests, sizeof tests - 1), 0);
  snprintf(filter, sizeof filter, "--filter=%s", test);
  setenv("HL_GPU", "1", 1);
  unsetenv("BXFI_MAP");  // of Criterion: it makes a process one that runs a single test
  const char *const arguments[] = {tests, filter, NULL};
  Output *output = run_program("hopper-run", arguments);
  cr_expect_eq(output->code, 0, "%s%s", output->out, output->err);
  cr_expect(strstr(output->err, "Tested: 1 | Passing: 1") && strstr(output->err, "no findings"), "%s%s", output->out,
            output->err);
  free(output);
}
