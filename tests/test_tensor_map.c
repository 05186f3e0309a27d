// Kernels that make tensor maps of others, by tensormap.replace and tensormap.cp_fenceproxy.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "support/run_kernel.h"
#include "support/run_ptx.h"

TestSuite(tensor_map, .timeout = 60);

enum { WORDS = 1024, TILE = 256 };

// A warp copies the map of its parameter to shared memory, changes it there as `changes` says, and copies it to `made`.
// Then it loads the box at (%x, %y) with that map and writes the tile to `out`.
static const char kernel[] = PTX_HEADER
    ".visible .entry test(.param .align 64 .b8 map[128], .param .u64 in, .param .u64 out, .param .u64 made) {\n"
    ".reg .b64 %%m, %%i, %%o, %%n, %%d; .reg .b32 %%t, %%v, %%a, %%x, %%y; .reg .pred %%p, %%q;\n"
    ".shared .align 128 .b8 copy[128]; .shared .align 1024 .b8 tile[1024]; .shared .align 8 .b64 bar;\n"
    "mov.u32 %%t, %%tid.x; setp.eq.u32 %%p, %%t, 0; shl.b32 %%a, %%t, 2; cvt.u64.u32 %%d, %%a;\n"
    "mov.u64 %%m, map; add.u64 %%m, %%m, %%d; cvta.param.u64 %%m, %%m; ld.u32 %%v, [%%m];\n"
    "mov.u32 %%y, copy; add.u32 %%y, %%y, %%a; st.shared.u32 [%%y], %%v;\n"
    "ld.param.u64 %%i, [in]; ld.param.u64 %%o, [out]; ld.param.u64 %%n, [made]; bar.warp.sync -1;\n"
    "@!%%p bra CHANGED;\n%s\nCHANGED: bar.warp.sync -1;\n"
    "%s\n"
    "mov.u32 %%x, 0; mov.u32 %%y, 1;\n"
    "@%%p mbarrier.init.shared.b64 [bar], 1; @%%p fence.mbarrier_init.release.cluster; bar.warp.sync -1;\n"
    "@%%p mbarrier.arrive.expect_tx.shared.b64 _, [bar], %d;\n%s\n"
    "@%%p cp.async.bulk.tensor.%dd.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%%n, {%s}], [bar];\n"
    "WAIT: mbarrier.try_wait.parity.shared.b64 %%q, [bar], 0; @!%%q bra WAIT;\n"
    "LOOP: mov.u32 %%y, tile; shl.b32 %%x, %%t, 2; add.u32 %%y, %%y, %%x; ld.shared.u32 %%v, [%%y];\n"
    "cvt.u64.u32 %%d, %%x; add.u64 %%d, %%d, %%o; st.global.u32 [%%d], %%v;\n"
    "add.u32 %%t, %%t, 32; setp.lt.u32 %%q, %%t, %d; @%%q bra LOOP;\nret;\n}\n";

static const char copied[] =
    "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%n], [copy], 128;";
static const char acquired[] = "fence.proxy.tensormap::generic.acquire.gpu [%n], 128;";

typedef struct Change {
  const char *changes;
  int rank, box;  // of the new map; words of its box
} Change;

static uint32_t in[2 * WORDS], out[TILE];

static Machine run_change(const Change *change, const char *copy, const char *fence) {
  static char text[6000];
  snprintf(text, sizeof text, kernel, change->changes, copy, 4 * change->box, fence, change->rank,
           change->rank == 1 ? "%x" : "%x, %y", change->box);
  Machine machine = machine_open(text, 0);
  for (uint32_t i = 0; i < 2 * WORDS; i++) in[i] = i;
  uint64_t from = machine_upload(&machine, in, sizeof in), to = machine_upload(&machine, NULL, sizeof out);
  uint64_t made = machine_upload(&machine, NULL, 128);
  const Map map = make_map(&(EmulatorTensorSpec){
      .type = EMULATOR_TENSOR_U32, .rank = 2, .address = from, .size = {32, 32}, .stride = {0, 128}, .box = {32, 4}});
  emulator_fill(machine.emulator, to, 0, sizeof out);
  machine_launch(&machine, (Shape){1, 32, 0}, (const void *[]){&map, &from, &to, &made}, 4);
  machine_download(&machine, out, to, sizeof out);
  return machine;
}

static void expect_tile(const Change *change, uint32_t (*expected)(uint32_t word)) {
  Machine machine = run_change(change, copied, acquired);
  expect_clean(&machine);
  for (uint32_t i = 0; i < (uint32_t)change->box; i++)
    cr_expect_eq(out[i], expected(i), "word %u is %u after %s", i, out[i], change->changes);
  machine_close(&machine);
}

#define REPLACE "tensormap.replace.tile."

// The box at column 0, row 1.
static uint32_t row_1(uint32_t word) { return 32 + word; }
static uint32_t row_9(uint32_t word) { return 288 + word; }
static uint32_t second_half(uint32_t word) { return 1056 + word; }
static uint32_t rows_of_64(uint32_t word) { return 64 + word / 32 * 64 + word % 32; }
static uint32_t every_other_row(uint32_t word) { return 32 + word / 32 * 64 + word % 32; }
static uint32_t narrow_tensor(uint32_t word) { return word % 32 < 30 ? 32 + word : 0; }
static uint32_t one_row(uint32_t word) { return word; }
static uint32_t eight_columns(uint32_t word) { return 32 + word / 8 * 32 + word % 8; }
// A unit of 16 bytes is in place unit ^ row of its row.
static uint32_t swizzled(uint32_t word) { return 32 + word / 32 * 32 + ((word / 4 % 8) ^ (word / 32)) * 4 + word % 4; }

Test(tensor_map, a_field_of_a_map_is_replaced) {
  static const struct {
    Change change;
    uint32_t (*expected)(uint32_t word);
  } cases[] = {
      {{"", 2, 128}, row_1},
      {{"add.u64 %d, %i, 1024; " REPLACE "global_address.shared::cta.b1024.b64 [copy], %d;", 2, 128}, row_9},
      {{"add.u64 %d, %i, 4096; " REPLACE "global_address.shared::cta.b1024.b64 [copy], %d;", 2, 128}, second_half},
      {{REPLACE "global_stride.shared::cta.b1024.b64 [copy], 0, 256;", 2, 128}, rows_of_64},
      {{REPLACE "element_stride.shared::cta.b1024.b32 [copy], 1, 2;", 2, 64}, every_other_row},
      {{REPLACE "global_dim.shared::cta.b1024.b32 [copy], 0, 30;", 2, 128}, narrow_tensor},
      {{REPLACE "rank.shared::cta.b1024.b32 [copy], 0;", 1, 32}, one_row},
      {{REPLACE "box_dim.shared::cta.b1024.b32 [copy], 0, 8;", 2, 32}, eight_columns},
      {{REPLACE "swizzle_mode.shared::cta.b1024.b32 [copy], 3;", 2, 128}, swizzled},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) expect_tile(&cases[i].change, cases[i].expected);
}

// .u16 elements need a box of as many bytes, and columns that count 16 bits; NaN is filled in where floats are.
static uint32_t same_bytes(uint32_t word) { return 32 + word / 16 * 32 + word % 16; }
static uint32_t rounded(uint32_t word) { return (32 + word) & ~0x1fffu; }
static uint32_t nan_outside(uint32_t word) { return word % 32 < 30 ? 32 + word : 0x7ff77ff7; }

Test(tensor_map, types_and_fill_are_replaced) {
  expect_tile(&(Change){REPLACE "elemtype.shared::cta.b1024.b32 [copy], 1;", 2, 64}, same_bytes);
  expect_tile(&(Change){REPLACE "elemtype.shared::cta.b1024.b32 [copy], 11;", 2, 128}, rounded);
  expect_tile(&(Change){REPLACE "elemtype.shared::cta.b1024.b32 [copy], 7;\n" REPLACE
                                "fill_mode.shared::cta.b1024.b32 [copy], 1;\n" REPLACE
                                "global_dim.shared::cta.b1024.b32 [copy], 0, 30;",
                        2, 128},
              nan_outside);
}

// As Triton makes them: of zeros, with all fields replaced.
#define ZEROS_16(at) "st.shared.v4.u32 [copy+" at "], {%x, %x, %x, %x};\n"
#define ZEROS                                                                                                          \
  "mov.u32 %x, 0;\n" ZEROS_16("0") ZEROS_16("16") ZEROS_16("32") ZEROS_16("48") ZEROS_16("64") ZEROS_16("80")          \
      ZEROS_16("96") ZEROS_16("112")
#define FIELDS_BUT_RANK                                                                                                \
  REPLACE "global_address.shared::cta.b1024.b64 [copy], %i;\n" REPLACE                                                 \
          "box_dim.shared::cta.b1024.b32 [copy], 0, 32;\n" REPLACE                                                     \
          "box_dim.shared::cta.b1024.b32 [copy], 1, 4;\n" REPLACE                                                      \
          "global_dim.shared::cta.b1024.b32 [copy], 0, 32;\n" REPLACE                                                  \
          "global_dim.shared::cta.b1024.b32 [copy], 1, 32;\n" REPLACE                                                  \
          "global_stride.shared::cta.b1024.b64 [copy], 0, 128;\n" REPLACE                                              \
          "element_stride.shared::cta.b1024.b32 [copy], 0, 1;\n" REPLACE                                               \
          "element_stride.shared::cta.b1024.b32 [copy], 1, 1;\n" REPLACE                                               \
          "elemtype.shared::cta.b1024.b32 [copy], 2;\n" REPLACE                                                        \
          "interleave_layout.shared::cta.b1024.b32 [copy], 0;\n" REPLACE                                               \
          "swizzle_mode.shared::cta.b1024.b32 [copy], 0;\n" REPLACE "fill_mode.shared::cta.b1024.b32 [copy], 0;\n"

Test(tensor_map, a_map_is_made_of_zeros) {
  expect_tile(&(Change){ZEROS FIELDS_BUT_RANK REPLACE "rank.shared::cta.b1024.b32 [copy], 1;", 2, 128}, row_1);
}

static bool reports(Machine *machine, HazardKind kind) {
  int count;
  const Hazard *hazards = emulator_hazards(machine->emulator, &count);
  for (int i = 0; i < count; i++)
    if (hazards[i].kind == kind) return true;
  return false;
}

static void expect_report(const char *changes, const char *copy, HazardKind kind) {
  Machine machine = run_change(&(Change){changes, 2, 128}, copy, acquired);
  cr_expect(reports(&machine, kind), "no %s after %s", hazard_name(kind), changes);
  machine_close(&machine);
}

Test(tensor_map, mistakes_are_reported) {
  expect_report(REPLACE "global_stride.shared::cta.b1024.b64 [copy], 0, 24;", copied, HAZARD_TENSOR_MAP);
  expect_report(REPLACE "box_dim.shared::cta.b1024.b32 [copy], 1, 300;", copied, HAZARD_TENSOR_MAP);
  expect_report(ZEROS, copied, HAZARD_TENSOR_MAP);
  expect_report(ZEROS FIELDS_BUT_RANK, copied, HAZARD_TENSOR_MAP);
  expect_report("st.shared.u32 [copy], 0; " REPLACE "rank.shared::cta.b1024.b32 [copy], 1;", copied, HAZARD_TENSOR_MAP);
  // Copied by ordinary stores, and not released to the tensor copies' proxy.
  static const char stores[] = "mov.u32 %y, copy; add.u32 %y, %y, %a; ld.shared.u32 %v, [%y]; cvt.u64.u32 %d, %a;\n"
                               "add.u64 %d, %d, %n; st.global.u32 [%d], %v; bar.warp.sync -1;";
  Machine machine = run_change(&(Change){"", 2, 128}, stores, "");
  cr_expect(reports(&machine, HAZARD_PROXY_FENCE));
  machine_close(&machine);
}

Test(tensor_map, refused) {
  const RefusedTest tests[] = {
      {REPLACE "elemtype.global.b1024.b32 [%rd1], 13", "no tensor map with 13"},
      {REPLACE "interleave_layout.global.b1024.b32 [%rd1], 3", "no tensor map with 3"},
      {REPLACE "elemtype.global.b1024.b32 [%rd1], %r1", "must be a constant"},
      {REPLACE "global_stride.global.b1024.b64 [%rd1], 4, %rd2", "from 0 to 3"},
      {REPLACE "global_dim.global.b1024.b64 [%rd1], 0, %rd2", "this field is .b32"},
      {REPLACE "swizzle_atomicity.global.b1024.b32 [%rd1], 0", "unknown modifier"},
  };
  RUN_REFUSED_TESTS(tests);
}

// CUTLASS clears bit 21 of the second word in the map of a tensor of less than 128 KB, against a mistake of NVIDIA's
// driver. So the bit means nothing here, whatever the address.
Test(tensor_map, the_bit_that_cutlass_clears_is_none) {
  const Map map = make_map(&(EmulatorTensorSpec){.type = EMULATOR_TENSOR_U32,
                                                 .rank = 2,
                                                 .address = 0x7ffffffff0,
                                                 .size = {32, 32},
                                                 .stride = {0, 128},
                                                 .box = {32, 4}});
  uint64_t words[2];
  memcpy(words, &map, sizeof words);
  cr_expect_eq(words[1] >> 21 & 1, 0);
}
