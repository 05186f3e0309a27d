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
  __typeof__(&hl_attention) attention;
  __typeof__(&hl_attention_backward) attention_backward;
  __typeof__(&hl_attention_decode) attention_decode;
  __typeof__(&hl_release) release;
} LibraryFunctions;

extern LibraryFunctions hl;
extern FakeDriver *driver;  // NULL after load_library

// What a suite does before each test. The fake driver has one context, on a Hopper GPU.
void load_library(void);
void load_library_with_fake_driver(void);

// A symbol of a shared library; fails the test when there is none.
void *find_symbol(const char *path, const char *name);

// A call of the stage for a small shape, with tensors 0 to 7, which lie far apart, and no lse.
HlCall small_call(const char *number);
HlTensor small_tensor(int index);
// hl_attention of that call, on a stream.
HlStatus run_stage(const char *number, void *stream);

// A test of a suite for the GPU, "gpu_library/every_stage_is_right", in a process of its own, with the emulator in the
// place of the GPU: it passes, without a finding.
void expect_right_on_emulator(const char *test);

// The same for decode: two sequences of 100 keys, four query heads for each of two key heads, no pages; tensors 0 to 3,
// and scales where the stage has an e4m3 cache. number NULL: that of any stage.
HlDecode small_decode(const char *number);

// The tensors of a call: Q, K, V, O, dO, dQ, dK, dV.
enum { FORWARD_TENSORS = 4, BACKWARD_TENSORS = 8 };
extern const char *const tensor_names[BACKWARD_TENSORS];
HlTensor *tensor_of(HlCall *call, int index);

// The status of a call, and the words of the error that it leaves.
#define EXPECT_STATUS(call, status, words)                                                                             \
  do {                                                                                                                 \
    cr_expect_eq(call, status, "%s", hl.error());                                                                      \
    cr_expect_str_eq(hl.error(), words);                                                                               \
  } while (0)
