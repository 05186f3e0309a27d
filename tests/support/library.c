#include "library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "program.h"

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
  *(void **)&hl.supports = find(library, "hl_supports");
  *(void **)&hl.attention = find(library, "hl_attention");
  *(void **)&hl.attention_lse = find(library, "hl_attention_lse");
  *(void **)&hl.attention_e4m3 = find(library, "hl_attention_e4m3");
  *(void **)&hl.attention_backward = find(library, "hl_attention_backward");
  *(void **)&hl.attention_backward_deterministic = find(library, "hl_attention_backward_deterministic");
  *(void **)&hl.release = find(library, "hl_release");
}

void load_library_with_fake_driver(void) {
  driver = find_symbol(getenv("FAKE_DRIVER"), "fake_driver");
  *driver = (FakeDriver){.context = 1, .capability = 9};
  load_library();
}

const HlShape small = {.batch = 2, .heads = 3, .seqlen = 100, .head_dim = 64, .causal = 1};

HlTensor small_tensor(int index) { return (HlTensor){.data = (void *)(0x10000000ull * (unsigned)(index + 1))}; }

HlStatus run_stage(const char *number, const HlShape *shape, void *stream) {
  HlTensor q = small_tensor(0), k = small_tensor(1), v = small_tensor(2), o = small_tensor(3);
  return hl.attention(number, shape, &q, &k, &v, &o, stream);
}
