// libhopper_ladder.so, loaded as a program of its users loads it: with a driver that only takes notes, or with the
// GPU's.
#pragma once

#include <criterion/criterion.h>

#include "../driver/fake_driver.h"
#include "library/hopper_ladder.h"

// The library's functions, as the dynamic linker finds them.
typedef struct LibraryFunctions {
  __typeof__(&hl_error) error;
  __typeof__(&hl_stage_count) stage_count;
  __typeof__(&hl_stage) stage;
  __typeof__(&hl_supports) supports;
  __typeof__(&hl_attention) attention;
  __typeof__(&hl_attention_lse) attention_lse;
  __typeof__(&hl_attention_e4m3) attention_e4m3;
  __typeof__(&hl_attention_backward) attention_backward, attention_backward_deterministic;
  __typeof__(&hl_release) release;
} LibraryFunctions;

extern LibraryFunctions hl;
extern FakeDriver *driver;  // NULL after load_library

// What a suite does before each test. The fake driver has one context, on a Hopper GPU.
void load_library(void);
void load_library_with_fake_driver(void);

// A symbol of a shared library; fails the test when there is none.
void *find_symbol(const char *path, const char *name);

// Tensors of the small shape, far apart.
extern const HlShape small;
HlTensor small_tensor(int index);
// hl_attention of the tensors 0 to 3.
HlStatus run_stage(const char *number, const HlShape *shape, void *stream);

// Those of hl_attention_backward: Q, K, V, O, dO, dQ, dK, dV.
enum { BACKWARD_TENSORS = 8 };

// The status of a call, and the words of the error that it leaves.
#define EXPECT_STATUS(call, status, words)                                                                             \
  do {                                                                                                                 \
    cr_expect_eq(call, status, "%s", hl.error());                                                                      \
    cr_expect_str_eq(hl.error(), words);                                                                               \
  } while (0)
