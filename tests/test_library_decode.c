// hl_attention_decode of libhopper_ladder.so: what it refuses, which stage it takes, and, with a driver that only takes
// notes, what it asks of a stream that is captured. test_gpu_library_decode.c shows that what it computes is right.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "support/library.h"

TestSuite(library_decode, .init = load_library_with_fake_driver);

static const int32_t *const lengths = (const int32_t *)0x900000000ull, *const table = (const int32_t *)0xa00000000ull;

static HlDecode paged_decode(const char *number) {
  HlDecode call = small_decode(number);
  call.lengths = lengths;
  call.page = 16, call.pages = 20;
  call.block_table = table;
  return call;
}

// ---- what it refuses ----

Test(library_decode, wants_a_stage_for_decode) {
  HlDecode call = small_decode("10");
  EXPECT_STATUS(hl.attention_decode(NULL), HL_INVALID, "call: a null pointer");
  EXPECT_STATUS(hl.attention_decode(&call), HL_INVALID, "stage 10-stale-max: it is not for decode; call hl_attention");
  call.stage = "12";
  EXPECT_STATUS(hl.attention_decode(&call), HL_INVALID,
                "stage 12-backward: it is not for decode; call hl_attention_backward");
  EXPECT_STATUS(run_stage("13d", NULL), HL_INVALID, "stage 13d-ragged: it is for decode; call hl_attention_decode");
  call.stage = "13x";
  cr_expect_eq(hl.attention_decode(&call), HL_INVALID);
  cr_expect(strstr(hl.error(), "stage 13x: this library has no such stage; it has 00, ") == hl.error() &&
                strstr(hl.error(), ", 13, 13b, 13c, 13d, 13e, 13f, 13g"),
            "%s", hl.error());
  cr_expect_eq(driver->launches, 0);
}

Test(library_decode, sizes_that_make_no_sense) {
  static const struct {
    int32_t batch, heads, kv_heads, keys, head_dim, queries;
    const char *words;
  } cases[] = {
      {0, 8, 2, 9, 64, 1, "batch 0: 1 to 65535 are allowed"},
      {65536, 8, 2, 9, 64, 1, "batch 65536: 1 to 65535 are allowed"},
      {1, 8, 0, 9, 64, 1, "kv_heads 0: 1 to 65535 are allowed"},
      {1, 0, 2, 9, 64, 1, "heads 0: multiples of kv_heads, 2, up to 16 times are allowed"},
      {1, -2, 2, 9, 64, 1, "heads -2: multiples of kv_heads, 2, up to 16 times are allowed"},
      {1, 9, 2, 9, 64, 1, "heads 9: multiples of kv_heads, 2, up to 16 times are allowed"},
      {1, 34, 2, 9, 64, 1, "heads 34: multiples of kv_heads, 2, up to 16 times are allowed"},
      {65535, 65535, 65535, 9, 64, 1, "batch * heads is 4294836225: at most 2147483647 is allowed"},
      {1, 8, 2, 0, 64, 1, "keys 0: 1 to 1048576 are allowed"},
      {1, 8, 2, 1048577, 64, 1, "keys 1048577: 1 to 1048576 are allowed"},
      {1, 8, 2, 9, 96, 1, "head_dim 96: 64 and 128 are allowed"},
      {1, 8, 2, 9, 64, -1, "queries -1: 1 to 8 are allowed, or 0 for 1"},
      {1, 8, 2, 9, 64, 9, "queries 9: 1 to 8 are allowed, or 0 for 1"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    HlDecode call = small_decode(NULL);
    call.batch = cases[i].batch, call.heads = cases[i].heads, call.kv_heads = cases[i].kv_heads;
    call.keys = cases[i].keys, call.head_dim = cases[i].head_dim, call.queries = cases[i].queries;
    EXPECT_STATUS(hl.attention_decode(&call), HL_INVALID, cases[i].words);
    call.flags = HL_CHECK;
    EXPECT_STATUS(hl.attention_decode(&call), HL_INVALID, cases[i].words);
  }
  cr_expect_eq(driver->launches, 0);
}

Test(library_decode, pages_that_make_no_sense) {
  static const struct {
    int32_t page, pages, table_row;
    bool table;
    const char *words;
  } cases[] = {
      {8, 20, 0, true, "page 8: powers of two from 16 to 1048576 are allowed, or 0 for no pages"},
      {48, 20, 0, true, "page 48: powers of two from 16 to 1048576 are allowed, or 0 for no pages"},
      {-16, 20, 0, true, "page -16: powers of two from 16 to 1048576 are allowed, or 0 for no pages"},
      {16, 0, 0, true, "pages 0: 1 to 16777216 are allowed"},
      {16, 20, 6, true, "table_row 6: 100 keys lie in 7 pages; as many or more are allowed, or 0"},
      {16, 20, -1, true, "table_row -1: 100 keys lie in 7 pages; as many or more are allowed, or 0"},
      {16, 20, 0, false, "block_table: a null pointer"},
      {0, 0, 0, true, "block_table: a cache without pages, page 0, has none"},
      {0, 20, 0, false, "pages 20: a cache without pages, page 0, has 0"},
      {0, 0, 7, false, "table_row 7: a cache without pages, page 0, has 0"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    HlDecode call = small_decode(NULL);
    call.page = cases[i].page, call.pages = cases[i].pages, call.table_row = cases[i].table_row;
    call.block_table = cases[i].table ? table : NULL;
    EXPECT_STATUS(hl.attention_decode(&call), HL_INVALID, cases[i].words);
  }
  HlDecode call = paged_decode(NULL);
  call.table_row = 7;
  cr_expect_eq(hl.attention_decode(&call), HL_OK, "%s", hl.error());
}

Test(library_decode, types_and_options_that_make_no_sense) {
  HlDecode call = small_decode(NULL);
  call.type = HL_F16;
  EXPECT_STATUS(hl.attention_decode(&call), HL_INVALID, "type HL_F16: HL_BF16 and HL_E4M3 are allowed");
  call.type = HL_E4M3_SCORES;
  EXPECT_STATUS(hl.attention_decode(&call), HL_INVALID, "type HL_E4M3_SCORES: HL_BF16 and HL_E4M3 are allowed");
  call.type = (HlType)4;
  EXPECT_STATUS(hl.attention_decode(&call), HL_INVALID, "type 4: HL_BF16 and HL_E4M3 are allowed");
  call = small_decode("13d");
  call.type = HL_E4M3;
  EXPECT_STATUS(hl.attention_decode(&call), HL_INVALID, "type HL_E4M3: stage 13d-ragged reads HL_BF16");
  call = small_decode("13e");
  call.type = HL_BF16;
  EXPECT_STATUS(hl.attention_decode(&call), HL_INVALID, "type HL_BF16: stage 13e-fp8-kv reads HL_E4M3");
  call = small_decode(NULL);
  call.flags = 4;
  EXPECT_STATUS(hl.attention_decode(&call), HL_INVALID, "flags 0x4: HL_DETERMINISTIC and HL_CHECK are allowed");
  call = small_decode(NULL);
  call.scale = -INFINITY;
  EXPECT_STATUS(hl.attention_decode(&call), HL_INVALID,
                "scale -inf: a positive number is allowed, or 0 for 1 / sqrt(head_dim)");
  call = small_decode(NULL);
  call.reserved[3] = 7;
  EXPECT_STATUS(hl.attention_decode(&call), HL_INVALID,
                "reserved[3] 7: only 0 is allowed; is the library older than its header?");
  cr_expect_eq(driver->launches, 0);
}

Test(library_decode, what_a_stage_cannot_do) {
  HlDecode call = paged_decode("13c");
  EXPECT_STATUS(hl.attention_decode(&call), HL_UNSUPPORTED, "page: stage 13c-cluster reads a cache without pages");
  call = small_decode("13b");
  call.lengths = lengths;
  EXPECT_STATUS(hl.attention_decode(&call), HL_UNSUPPORTED,
                "lengths: stage 13b-split-kv wants all sequences to have `keys` keys");
  call = small_decode("13d");
  call.queries = 2;
  EXPECT_STATUS(hl.attention_decode(&call), HL_UNSUPPORTED, "queries 2: stage 13d-ragged answers one query a sequence");
  call = small_decode("13e");
  call.stage = NULL, call.queries = 2;
  EXPECT_STATUS(hl.attention_decode(&call), HL_UNSUPPORTED, "queries 2: stage 13e-fp8-kv answers one query a sequence");
  call = small_decode("22");
  call.head_dim = 64;
  EXPECT_STATUS(hl.attention_decode(&call), HL_UNSUPPORTED, "head_dim 64: stage 22-paged-cluster does 128 alone");
  call = small_decode("13");
  call.q.batch = 1024, call.q.head = call.q.row = 64;
  EXPECT_STATUS(hl.attention_decode(&call), HL_UNSUPPORTED,
                "q: strides 1024, 64, 64 (batch, head, row); stage 13-decode wants contiguous tensors: 512, 64, 64");
  call = small_decode("13");
  call.k.batch = 12800, call.k.head = 64, call.k.row = 128;
  cr_expect_eq(hl.attention_decode(&call), HL_OK, "a cache with strides: %s", hl.error());
  cr_expect_eq(driver->launches, 1);
}

Test(library_decode, tensors_that_make_no_sense) {
  static const char *const names[] = {"q", "k", "v", "o"};
  for (int i = 0; i < FORWARD_TENSORS; i++) {
    char words[200];
    HlDecode call = small_decode(NULL);
    HlTensor *const tensors[] = {&call.q, &call.k, &call.v, &call.o};
    tensors[i]->data = NULL;
    snprintf(words, sizeof words, "%s: a null pointer", names[i]);
    EXPECT_STATUS(hl.attention_decode(&call), HL_INVALID, words);
    tensors[i]->data = (void *)0x8008;
    snprintf(words, sizeof words, "%s: the address 0x8008 is not aligned to 16 bytes", names[i]);
    EXPECT_STATUS(hl.attention_decode(&call), HL_INVALID, words);
    *tensors[i] = (HlTensor){small_tensor(i).data, 8192, 4, 64};
    snprintf(words, sizeof words,
             "%s: strides 8192, 4, 64 (batch, head, row); multiples of 8 from 8 to 2^38 are allowed", names[i]);
    EXPECT_STATUS(hl.attention_decode(&call), HL_INVALID, words);
  }
  HlDecode call = small_decode(NULL);
  call.lengths = (const int32_t *)0x1002;
  EXPECT_STATUS(hl.attention_decode(&call), HL_INVALID, "lengths: the address 0x1002 is not aligned to 4 bytes");
  cr_expect_eq(driver->launches, 0);
}

// O is 2 * 8 * 64 elements of two bytes.
Test(library_decode, output_must_not_overlap) {
  HlDecode call = paged_decode(NULL);
  char *o = call.o.data;
  call.q.data = o + 2048 - 16;
  EXPECT_STATUS(hl.attention_decode(&call), HL_INVALID, "o overlaps q");
  call.q.data = o + 2048;
  cr_expect_eq(hl.attention_decode(&call), HL_OK, "%s", hl.error());
  call.v.data = o - 20 * 2 * 16 * 64 * 2 + 16;  // the whole pool
  EXPECT_STATUS(hl.attention_decode(&call), HL_INVALID, "o overlaps v");
  call.v.data = o - 20 * 2 * 16 * 64 * 2;
  cr_expect_eq(hl.attention_decode(&call), HL_OK, "%s", hl.error());
  call.lengths = (const int32_t *)o;
  EXPECT_STATUS(hl.attention_decode(&call), HL_INVALID, "o overlaps lengths");
  call.lengths = lengths;
  call.block_table = (const int32_t *)(o - 2 * 7 * 4 + 4);
  EXPECT_STATUS(hl.attention_decode(&call), HL_INVALID, "o overlaps block_table");
  call = small_decode("13e");
  call.v_scale.data = (const float *)call.o.data;
  EXPECT_STATUS(hl.attention_decode(&call), HL_INVALID, "o overlaps v_scale");
}

Test(library_decode, scales_that_make_no_sense) {
  HlDecode call = small_decode("13e");
  call.v_scale.data = NULL;
  EXPECT_STATUS(hl.attention_decode(&call), HL_INVALID, "v_scale: a null pointer");
  call = small_decode("13e");
  call.v_scale.per_head = 1;
  EXPECT_STATUS(hl.attention_decode(&call), HL_INVALID,
                "v_scale: per_head 1, but that of k_scale is 0; both must be the same");
  call.k_scale.per_head = 2;
  EXPECT_STATUS(hl.attention_decode(&call), HL_INVALID, "k_scale: per_head 2: 0 and 1 are allowed");
  call = small_decode("13d");
  call.k_scale.data = (const float *)lengths;
  EXPECT_STATUS(hl.attention_decode(&call), HL_INVALID, "k_scale: type HL_BF16 has no scales; is the type HL_E4M3?");
  cr_expect_eq(driver->launches, 0);
}

Test(library_decode, lse_that_makes_no_sense) {
  HlDecode call = small_decode("13d");
  call.lse = (float *)lengths;
  EXPECT_STATUS(hl.attention_decode(&call), HL_UNSUPPORTED, "lse: stage 13d-ragged does not write the log-sum-exp");
  call = small_decode("13f");
  call.lse = (float *)0x1002;
  EXPECT_STATUS(hl.attention_decode(&call), HL_INVALID, "lse: the address 0x1002 is not aligned to 4 bytes");
  call.lse = (float *)call.k.data;
  EXPECT_STATUS(hl.attention_decode(&call), HL_INVALID, "k overlaps lse");
  call.lse = (float *)call.o.data - 2 * 8 + 1;
  EXPECT_STATUS(hl.attention_decode(&call), HL_INVALID, "o overlaps lse");
  call.lse -= 1;
  cr_expect_eq(hl.attention_decode(&call), HL_OK, "%s", hl.error());
  cr_expect_eq(driver->launches, 2);
}

// Only when it is asked for do the kernels run that write it. `parameter`: which of the first kernel's is its address.
static void expect_kernels_with_lse(HlDecode call, int parameter) {
  int first = driver->launches;
  call.lse = (float *)lengths;
  driver->parameter = parameter;
  cr_expect_eq(hl.attention_decode(&call), HL_OK, "%s", hl.error());
  cr_expect_str_eq(driver->launch[first].kernel, "decode_64_8_lse");
  cr_expect_str_eq(driver->launch[first + 1].kernel, "combine_64_lse");
  cr_expect_eq(driver->launch[first].taken, (uintptr_t)lengths);
  call.lse = NULL;
  cr_expect_eq(hl.attention_decode(&call), HL_OK, "%s", hl.error());
  cr_expect_str_eq(driver->launch[first + 2].kernel, "decode_64_8");
}

Test(library_decode, lse_has_kernels_of_its_own) {
  expect_kernels_with_lse(small_decode("13f"), 3);
  HlDecode call = small_decode("13e");
  call.stage = NULL;
  expect_kernels_with_lse(call, 4);
}

// Stage 22's launch for up to a tile of 16 keys for each of 8 x 8 warps, and up to 8 query heads of a key head.
Test(library_decode, few_keys_have_a_kernel_of_their_own) {
  static const struct {
    int32_t heads, kv_heads, keys;
    const char *kernel;
  } cases[] = {
      {32, 8, 1024, "few"},           {64, 8, 1, "decode_128_8"},  // a single tile: nothing to share out
      {72, 8, 1024, "decode_128_16"}, {32, 8, 1025, "decode_128_8"}, {512, 64, 1024, "decode_128_8"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    HlDecode call = small_decode("22");
    int first = driver->launches;
    call.batch = 1, call.heads = cases[i].heads, call.kv_heads = cases[i].kv_heads, call.keys = cases[i].keys;
    cr_expect_eq(hl.attention_decode(&call), HL_OK, "%s", hl.error());
    cr_expect_str_eq(driver->launch[first].kernel, cases[i].kernel, "case %zu", i);
  }
}

// ---- which stage answers ----

// The call without a number runs the stage with this one: nothing more is loaded for it.
static void expect_stage(HlDecode call, const char *number) {
  int loaded = driver->loaded;
  call.stage = NULL;
  cr_expect_eq(hl.attention_decode(&call), HL_OK, "%s", hl.error());
  cr_expect_eq(driver->loaded, loaded + 1, "it ran a stage before: not %s?", number);
  call.stage = number;
  cr_expect_eq(hl.attention_decode(&call), HL_OK, "%s", hl.error());
  cr_expect_eq(driver->loaded, loaded + 1, "it is not stage %s", number);
  hl.release();
}

Test(library_decode, no_stage_means_the_fastest) {
  HlDecode call = small_decode(NULL);
  expect_stage(call, "13c");
  call.q.batch = 512, call.q.head = call.q.row = 64;
  expect_stage(call, "13c");  // these are the strides of a contiguous Q
  call.batch = 1, call.q = small_tensor(0), call.keys = 3 << 15, call.kv_heads = call.heads = 4;
  expect_stage(call, "13c");  // 96 MiB
  call.keys = 1 << 17;
  expect_stage(call, "13b");  // 128 MiB
  call.keys = 1 << 14, call.kv_heads = call.heads = 3;
  expect_stage(call, "13c");  // 4 MiB for each key head
  call.keys = 1 << 15;
  expect_stage(call, "13b");  // too many for clusters of so few
  call.keys = 64, call.kv_heads = call.heads = 127;
  expect_stage(call, "13c");
  call.kv_heads = call.heads = 128;
  expect_stage(call, "13");  // enough for all SMs without a split
  call.kv_heads = call.heads = 256, call.keys = 1 << 14;
  call.v.data = (char *)call.v.data + ((size_t)1 << 30), call.o.data = (char *)call.o.data + ((size_t)2 << 30);
  expect_stage(call, "13c");  // 1 GiB: clusters of neighbours
  call.keys -= 1;
  expect_stage(call, "13");
  call = small_decode(NULL);
  call.keys = 1024, call.head_dim = 128;
  expect_stage(call, "22");  // a short answer
  call.keys = 1025;
  expect_stage(call, "13c");
  call = small_decode(NULL);
  call.lengths = lengths;
  expect_stage(call, "13g");
  expect_stage(paged_decode(NULL), "13g");
  call.head_dim = 128;
  expect_stage(call, "22");
  call = paged_decode(NULL);
  call.head_dim = 128;
  expect_stage(call, "22");
  call.o.batch = 2048, call.o.head = 256, call.o.row = 256;
  expect_stage(call, "13g");  // stage 22 wants a contiguous O
  call = small_decode(NULL);
  call.o.batch = 1024, call.o.head = 128, call.o.row = 128;
  expect_stage(call, "13g");
  call = paged_decode(NULL);
  call.queries = 2;
  expect_stage(call, "13g");
  call = small_decode(NULL);
  call.lse = (float *)lengths;
  expect_stage(call, "13g");
  expect_stage(small_decode("13e"), "13e");
}

// Stage 13's parameters: the maps, then where Q and O lie, three numbers, and the scale, times log2(e).
Test(library_decode, hands_tensors_and_the_scale_to_the_kernel) {
  HlDecode call = small_decode("13");
  driver->parameter = 1;
  call.stream = (void *)0x5;
  cr_expect_eq(hl.attention_decode(&call), HL_OK, "%s", hl.error());
  driver->offset = 8;
  cr_expect_eq(hl.attention_decode(&call), HL_OK, "%s", hl.error());
  driver->offset = 28, driver->size = sizeof(float);
  cr_expect_eq(hl.attention_decode(&call), HL_OK, "%s", hl.error());
  call.scale = 0.5f;
  cr_expect_eq(hl.attention_decode(&call), HL_OK, "%s", hl.error());
  cr_expect_eq(driver->launch[0].taken, (uintptr_t)call.q.data);
  cr_expect_eq(driver->launch[1].taken, (uintptr_t)call.o.data);
  for (int i = 0; i < 2; i++) {
    float scale;
    memcpy(&scale, &driver->launch[2 + i].taken, sizeof scale);
    cr_expect_float_eq(scale, 1.44269504 * (i ? 0.5 : 0.125), 1e-6, "1 / sqrt(64) when there is none");
  }
  cr_expect_eq(driver->launch[0].stream, (void *)0x5);
  cr_expect_eq(driver->map.address, (uintptr_t)call.v.data);
}

// A pool of pages has another map than a cache of sequences.
Test(library_decode, pages_reach_the_tensor_map) {
  HlDecode call = paged_decode("13d");
  call.k = (HlTensor){call.k.data, 16 * 2 * 2 * 64, 64, 2 * 2 * 64};  // pages of [16][K and V][kv_heads][head_dim]
  call.v = (HlTensor){(char *)call.k.data + 2 * 2 * 64, call.k.batch, call.k.head, call.k.row};
  cr_expect_eq(hl.attention_decode(&call), HL_OK, "%s", hl.error());
  const FakeTensorMap *map = &driver->map;
  cr_expect_eq(map->address, (uintptr_t)call.v.data);
  cr_expect(map->size[1] == 16 && map->size[3] == 2 && map->size[4] == 20, "%d rows, %d heads, %d pages",
            (int)map->size[1], (int)map->size[3], (int)map->size[4]);
  cr_expect(map->stride[0] == 2 * 256 && map->stride[2] == 2 * 64 && map->stride[3] == 2 * 4096);
}

// A grid has at most 65,535 blocks along y and z.
Test(library_decode, large_shapes_have_a_grid) {
  for (int i = 0; i < hl.stage_count(); i++) {
    const HlStage *stage = hl.stage(i);
    if (!stage->decode) continue;
    HlDecode call = small_decode(stage->number);
    call.k.data = (void *)(1ull << 44), call.v.data = (void *)(2ull << 44), call.o.data = (void *)(3ull << 44);
    call.batch = 65535, call.heads = 32, call.kv_heads = 2, call.keys = 1;
    cr_expect_eq(hl.attention_decode(&call), HL_OK, "%s", hl.error());
    call.batch = 1, call.heads = call.kv_heads = 65535;
    cr_expect_eq(hl.attention_decode(&call), HL_OK, "%s", hl.error());
    call.heads = call.kv_heads = 1, call.keys = 1 << 20;
    cr_expect_eq(hl.attention_decode(&call), HL_OK, "%s", hl.error());
    const unsigned *grid = driver->largest_grid;
    cr_expect(grid[0] <= INT32_MAX && grid[1] <= 65535 && grid[2] <= 65535, "%s: a grid of %u x %u x %u", stage->name,
              grid[0], grid[1], grid[2]);
  }
}

// ---- workspaces, and streams that are captured for a CUDA graph ----

Test(library_decode, has_a_workspace_for_each_stream) {
  HlDecode call = paged_decode("13d");
  void *const streams[] = {(void *)0x5, (void *)0x6, (void *)0x5};
  for (int i = 0; i < 3; i++) {
    call.stream = streams[i];
    cr_expect_eq(hl.attention_decode(&call), HL_OK, "%s", hl.error());
  }
  cr_expect_eq(driver->allocated, 2);
  call = small_decode("13c");
  call.stream = (void *)0x7;
  cr_expect_eq(hl.attention_decode(&call), HL_OK, "%s", hl.error());
  cr_expect_eq(driver->allocated, 2, "13c needs none");
}

// In a capture nothing is loaded or allocated: what must be there first is said, and then it is.
Test(library_decode, is_captured_after_it_has_run_once) {
  HlDecode call = paged_decode("13d");
  call.stream = (void *)0x5;
  driver->capturing = call.stream;
  EXPECT_STATUS(hl.attention_decode(&call), HL_INVALID,
                "the stream is captured, and this call has to load its kernels first; make the same call on it once "
                "before the capture");
  cr_expect_eq(driver->loaded, 0);
  call.stream = (void *)0x6;
  cr_expect_eq(hl.attention_decode(&call), HL_OK, "another stream is not captured: %s", hl.error());
  call.stream = (void *)0x5;
  EXPECT_STATUS(
      hl.attention_decode(&call), HL_INVALID,
      "the stream is captured, and this call has to allocate a workspace first; make the same call on it once "
      "before the capture");
  cr_expect_eq(driver->allocated, 1);
  driver->capturing = NULL;
  cr_expect_eq(hl.attention_decode(&call), HL_OK, "%s", hl.error());
  driver->capturing = call.stream;
  driver->launches = 0;
  cr_expect_eq(hl.attention_decode(&call), HL_OK, "%s", hl.error());
  cr_expect_eq(driver->launches, 2);
  cr_expect_eq(driver->allocated, 2);
  cr_expect_eq(driver->loaded, 1);
}

// The counter of stage 09 is the same.
Test(library_decode, attention_is_captured_the_same_way) {
  HlCall call = small_call("09");
  driver->capturing = call.stream = (void *)0x5;
  cr_expect_eq(hl.attention(&call), HL_INVALID);
  driver->capturing = NULL;
  run_stage("09", (void *)0x6);
  run_stage("00", call.stream);
  driver->capturing = call.stream;
  EXPECT_STATUS(hl.attention(&call), HL_INVALID,
                "the stream is captured, and this call has to allocate a counter first; make the same call on it once "
                "before the capture");
}

// A stream that is captured does not tell its id, so it is known by its handle: not so the default stream of a thread,
// which has the handle of all.
Test(library_decode, default_stream_of_a_thread_is_not_captured) {
  HlDecode call = paged_decode("13d");
  call.stream = (void *)0x2;
  cr_expect_eq(hl.attention_decode(&call), HL_OK, "%s", hl.error());
  driver->capturing = call.stream;
  cr_expect_eq(hl.attention_decode(&call), HL_INVALID);
  cr_expect_eq(driver->launches, 2);
}

// A graph has the address of the workspace, so a larger one does not take its place before hl_release.
Test(library_decode, a_captured_workspace_stays) {
  HlDecode call = paged_decode("13d"), larger = call;
  call.stream = larger.stream = (void *)0x5;
  larger.keys = 10000;
  larger.pages = 2000;
  cr_expect_eq(hl.attention_decode(&call), HL_OK, "%s", hl.error());
  driver->capturing = call.stream;
  cr_expect_eq(hl.attention_decode(&call), HL_OK, "%s", hl.error());
  driver->capturing = NULL;
  cr_expect_eq(hl.attention_decode(&larger), HL_OK, "%s", hl.error());
  cr_expect_eq(driver->allocated, 2);
  cr_expect_eq(driver->freed, 0, "the graph's workspace is gone");
  larger.keys = 100000, larger.pages = 20000, larger.batch = 9;
  cr_expect_eq(hl.attention_decode(&larger), HL_OK, "%s", hl.error());
  cr_expect_eq(driver->freed, 1, "nothing was captured with the second one");
  hl.release();
  cr_expect_eq(driver->freed, driver->allocated);
}

Test(library_decode_emulated, is_right, .timeout = 600) {
  expect_right_on_emulator("gpu_library_decode/every_stage_is_right");
}

Test(library_decode_emulated, every_cache_is_right, .timeout = 600) {
  expect_right_on_emulator("gpu_library_decode/every_cache_is_right");
}

Test(library_decode_emulated, log_sum_exps_are_right, .timeout = 600) {
  expect_right_on_emulator("gpu_library_decode/every_log_sum_exp_is_right");
}

Test(library_decode_emulated, graphs_are_right, .timeout = 600) {
  expect_right_on_emulator("gpu_library_decode/a_graph_is_right_for_every_length");
}
