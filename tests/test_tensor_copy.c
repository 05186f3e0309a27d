// Tensor copies on the emulator: boxes of every dimension in both directions, against a model that goes element by
// element.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/harness/half.h"
#include "support/ptx_files.h"
#include "support/run_kernel.h"
#include "support/run_ptx.h"

TestSuite(tensor_copy, .timeout = 120);

#define END "ret;\n}\n"
enum { TILE_BYTES = 16384, THREADS = 128 };

// ---- a model ----

typedef struct Box {
  EmulatorTensorSpec spec;
  int start[EMULATOR_TENSOR_RANK];
} Box;

static int element_bytes(EmulatorTensorType type) {
  switch (type) {
  case EMULATOR_TENSOR_U8: return 1;
  case EMULATOR_TENSOR_U16:
  case EMULATOR_TENSOR_F16:
  case EMULATOR_TENSOR_BF16: return 2;
  case EMULATOR_TENSOR_U64:
  case EMULATOR_TENSOR_S64:
  case EMULATOR_TENSOR_F64: return 8;
  default: return 4;
  }
}

static int box_count(const EmulatorTensorSpec *spec, int d) {
  int stride = d && spec->element_stride[d] ? (int)spec->element_stride[d] : 1;
  return ((int)spec->box[d] + stride - 1) / stride;
}

// Where element (column, row) of a box lies, written with rows and units as the drawings in the CUDA programming guide
// show them: the tile begins at a multiple of 1024.
static int place_in_tile(const EmulatorTensorSpec *spec, int row, int byte) {
  int unit = byte / 16, in_unit = byte % 16, width = box_count(spec, 0) * element_bytes(spec->type);
  switch (spec->swizzle) {
  case EMULATOR_SWIZZLE_128B: return row * 128 + (unit ^ row % 8) * 16 + in_unit;
  case EMULATOR_SWIZZLE_64B: return row * 64 + (unit ^ row / 2 % 4) * 16 + in_unit;
  case EMULATOR_SWIZZLE_32B: return row * 32 + (unit ^ row / 4 % 2) * 16 + in_unit;
  default: return row * width + byte;
  }
}

typedef void Visit(const Box *box, uint64_t offset, bool inside, int place, void *context);

// Visits a box's elements: where each is in the tensor, in bytes, or that it is outside; and in the tile. stores: a row of
// the tensor ends where its last 16 bytes do.
static void for_each_element(const Box *box, bool stores, Visit *visit, void *context) {
  const EmulatorTensorSpec *spec = &box->spec;
  int index[EMULATOR_TENSOR_RANK] = {0}, size = element_bytes(spec->type);
  for (int row = 0;;) {
    uint64_t offset = 0;
    bool inside = true;
    for (int d = 0; d < spec->rank; d++) {
      int64_t at = box->start[d] + (int64_t)index[d] * (d && spec->element_stride[d] ? spec->element_stride[d] : 1);
      int64_t end = (int64_t)spec->size[d];
      while (stores && d == 0 && end * size % 16) end++;
      inside = inside && at >= 0 && at < end;
      offset += (uint64_t)at * (d ? spec->stride[d] : (uint64_t)size);
    }
    visit(box, offset, inside, place_in_tile(spec, row, index[0] * size), context);
    int d = 0;
    while (d < spec->rank && ++index[d] == box_count(spec, d)) index[d++] = 0;
    row += d > 0;
    if (d == spec->rank) return;
  }
}

static uint32_t box_bytes(const EmulatorTensorSpec *spec) {
  uint32_t bytes = (uint32_t)element_bytes(spec->type);
  if (spec->pixels) return bytes * spec->box[0] * spec->pixels;
  for (int d = 0; d < spec->rank; d++) bytes *= (uint32_t)box_count(spec, d);
  return bytes;
}

// ---- kernels ----

static const char *const coordinate_lists[] = {
    "", "{%x0}", "{%x0, %x1}", "{%x0, %x1, %x2}", "{%x0, %x1, %x2, %x3}", "{%x0, %x1, %x2, %x3, %x4}"};

#define BOX_PROLOGUE                                                                                                   \
  PTX_HEADER ".visible .entry test(.param .align 64 .b8 map[128], .param .u64 data, .param .u32 bytes, .param .align " \
             "4 .b8 x[20]) {\n"                                                                                        \
             ".reg .b64 %%m, %%d, %%s; .reg .b32 %%t, %%a, %%v, %%n, %%x0, %%x1, %%x2, %%x3, %%x4, %%i; .reg .pred "   \
             "%%p, %%q;\n"                                                                                             \
             ".shared .align 1024 .b8 tile[16384]; .shared .align 8 .b64 bar;\n"                                       \
             "mov.b64 %%m, map; cvta.param.u64 %%m, %%m; ld.param.u64 %%d, [data]; ld.param.u32 %%n, [bytes];\n"       \
             "ld.param.u32 %%x0, [x]; ld.param.u32 %%x1, [x+4]; ld.param.u32 %%x2, [x+8]; ld.param.u32 %%x3, [x+12]; " \
             "ld.param.u32 %%x4, [x+16];\n"                                                                            \
             "mov.u32 %%t, %%tid.x; setp.eq.u32 %%p, %%t, 0; shl.b32 %%i, %%t, 2;\n"

// The tile is zeroed, a box loaded, and the whole tile stored to `data`.
#define LOAD_BEGIN                                                                                                     \
  BOX_PROLOGUE                                                                                                         \
  "mov.u32 %%v, 0;\nZERO: mov.u32 %%a, tile; add.u32 %%a, %%a, %%i; st.shared.u32 [%%a], %%v; add.u32 %%i, %%i, 512; " \
  "setp.lt.u32 %%q, %%i, 16384; @%%q bra ZERO;\n"                                                                      \
  "fence.proxy.async.shared::cta;\n"                                                                                   \
  "@%%p mbarrier.init.shared::cta.b64 [bar], 1; @%%p fence.mbarrier_init.release.cluster;\nbar.sync 0;\n"              \
  "@%%p mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], %%n;\n"                                                    \
  "@%%p cp.async.bulk.tensor.%dd.shared::cluster.global"
#define LOAD_END                                                                                                       \
  "WAIT: mbarrier.try_wait.parity.shared::cta.b64 %%q, [bar], 0;\n@!%%q bra WAIT;\n"                                   \
  "shl.b32 %%i, %%t, 2;\nOUT: mov.u32 %%a, tile; add.u32 %%a, %%a, %%i; ld.shared.u32 %%v, [%%a];\n"                   \
  "cvt.u64.u32 %%s, %%i; add.u64 %%s, %%s, %%d; st.global.u32 [%%s], %%v; add.u32 %%i, %%i, 512; setp.lt.u32 %%q, "    \
  "%%i, 16384; @%%q bra OUT;\n" END
static const char load_format[] = LOAD_BEGIN ".tile.mbarrier::complete_tx::bytes [tile], [%%m, %s], [bar];\n" LOAD_END;
static const char im2col_format[] =
    LOAD_BEGIN ".im2col.mbarrier::complete_tx::bytes [tile], [%%m, %s], [bar], {%s};\n" LOAD_END;

// The tile is loaded from `data`, and a box of it stored, or reduced, through the map.
static const char store_format[] =
    BOX_PROLOGUE "IN: mov.u32 %%a, tile; add.u32 %%a, %%a, %%i; cvt.u64.u32 %%s, %%i; add.u64 %%s, %%s, %%d; "
                 "ld.global.u32 %%v, [%%s];\n"
                 "st.shared.u32 [%%a], %%v; add.u32 %%i, %%i, 512; setp.lt.u32 %%q, %%i, 16384; @%%q bra IN;\n"
                 "fence.proxy.async.shared::cta;\nbar.sync 0;\n"
                 "@!%%p bra DONE;\n"
                 "cp%s.async.bulk.tensor.%dd.global.shared::cta%s.tile.bulk_group [%%m, %s], [tile];\n"
                 "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\nDONE: " END;

// Runs a box's copy. tensor: as it was and is afterwards; tile: that which was loaded, or is to be stored.
static void run_box(const Box *box, const char *text, uint64_t schedule, void *tensor, size_t size, void *tile) {
  Machine machine = machine_open(text, schedule);
  uint64_t global = machine_upload(&machine, tensor, size), data = machine_upload(&machine, tile, TILE_BYTES);
  EmulatorTensorSpec spec = box->spec;
  spec.address += global;
  Map map = make_map(&spec);
  uint32_t bytes = box_bytes(&spec);
  const void *arguments[] = {&map, &data, &bytes, box->start};
  cr_expect_eq(machine_launch(&machine, (Shape){1, THREADS, 0}, arguments, 4), EMULATOR_OK);
  expect_clean(&machine);
  machine_download(&machine, tile, data, TILE_BYTES);
  machine_download(&machine, tensor, global, size);
  machine_close(&machine);
}

static void fill_random(void *bytes, size_t size, uint32_t seed) {
  uint8_t *to = bytes;
  for (size_t i = 0; i < size; i++) {
    seed = seed * 1664525u + 1013904223u;
    to[i] = (uint8_t)(seed >> 24);
  }
}

// ---- loads ----

typedef struct Expected {
  const uint8_t *tensor;
  uint8_t tile[TILE_BYTES];
} Expected;

static uint64_t fill_of(const EmulatorTensorSpec *spec) {
  return spec->fill_nan ? 0x7ff77ff77ff77ff7 : 0;  // as many bytes of it as an element has
}

static void expect_element(const Box *box, uint64_t offset, bool inside, int place, void *context) {
  Expected *expected = context;
  uint64_t fill = fill_of(&box->spec);
  int size = element_bytes(box->spec.type);
  memcpy(expected->tile + place, inside ? expected->tensor + box->spec.address + offset : (const uint8_t *)&fill,
         (size_t)size);
}

static void check_load(const Box *box, const char *name, int schedules) {
  static uint8_t tensor[1 << 16], tile[TILE_BYTES];
  static Expected expected;
  char text[sizeof load_format + 100];
  snprintf(text, sizeof text, load_format, box->spec.rank, coordinate_lists[box->spec.rank]);
  fill_random(tensor, sizeof tensor, 1);
  memset(&expected, 0, sizeof expected);
  expected.tensor = tensor;
  for_each_element(box, false, expect_element, &expected);
  for (int schedule = 0; schedule < schedules; schedule++) {
    memset(tile, 0, sizeof tile);
    run_box(box, text, (uint64_t)schedule, tensor, sizeof tensor, tile);
    int wrong = 0;
    while (wrong < TILE_BYTES && tile[wrong] == expected.tile[wrong]) wrong++;
    cr_expect_eq(wrong, TILE_BYTES, "%s, schedule %d: byte %d of the tile is wrong", name, schedule, wrong);
  }
}

#define SPEC(T, R, ...)                                                                                                \
  { .type = EMULATOR_TENSOR_##T, .rank = R, __VA_ARGS__ }

static const struct {
  const char *name;
  Box box;
} boxes[] = {
    {"1d", {SPEC(U32, 1, .size = {1000}, .box = {256}), {100}}},
    {"1d, tail", {SPEC(F16, 1, .size = {1001}, .box = {64}), {984}}},
    {"1d, before the start", {SPEC(U8, 1, .size = {1000}, .box = {64}), {-32}}},
    {"1d, one element", {SPEC(U8, 1, .size = {1}, .box = {16}), {0}}},
    {"2d", {SPEC(F16, 2, .size = {64, 64}, .stride = {0, 128}, .box = {64, 32}), {0, 16}}},
    {"2d, pitch", {SPEC(U32, 2, .address = 16, .size = {37, 20}, .stride = {0, 160}, .box = {16, 8}), {24, 16}}},
    {"2d, 16 bytes in", {SPEC(F32, 2, .size = {37, 19}, .stride = {0, 160}, .box = {32, 8}), {4, 8}}},
    {"2d, 16 bytes before", {SPEC(F32, 2, .size = {37, 19}, .stride = {0, 160}, .box = {32, 8}), {-4, 15}}},
    {"2d, both tails", {SPEC(F32, 2, .size = {37, 19}, .stride = {0, 160}, .box = {32, 8}), {8, 15}}},
    {"2d, the last element", {SPEC(F32, 2, .size = {37, 19}, .stride = {0, 160}, .box = {32, 8}), {36, 18}}},
    {"2d, just behind", {SPEC(F32, 2, .size = {37, 19}, .stride = {0, 160}, .box = {32, 8}), {40, 3}}},
    {"2d, just before", {SPEC(F32, 2, .size = {37, 19}, .stride = {0, 160}, .box = {32, 8}), {-32, 3}}},
    {"2d, wholly outside", {SPEC(F32, 2, .size = {37, 19}, .stride = {0, 160}, .box = {32, 8}), {64, 3}}},
    {"2d, before the first row", {SPEC(F32, 2, .size = {37, 19}, .stride = {0, 160}, .box = {32, 8}), {4, -3}}},
    {"2d, far outside", {SPEC(F32, 2, .size = {37, 19}, .stride = {0, 160}, .box = {32, 8}), {0, -2000000000}}},
    {"2d, strides of FlashAttention", {SPEC(F16, 2, .size = {64, 40}, .stride = {0, 1024}, .box = {64, 16}), {0, 32}}},
    {"2d, f64", {SPEC(F64, 2, .size = {15, 9}, .stride = {0, 128}, .box = {8, 4}), {10, 7}}},
    {"2d, bf16 NaN", {SPEC(BF16, 2, .size = {60, 9}, .stride = {0, 128}, .box = {32, 8}, .fill_nan = true), {40, 5}}},
    {"2d, f32 NaN", {SPEC(F32, 2, .size = {30, 9}, .stride = {0, 128}, .box = {32, 8}, .fill_nan = true), {4, -3}}},
    {"2d, f64 NaN", {SPEC(F64, 2, .size = {15, 9}, .stride = {0, 128}, .box = {8, 4}, .fill_nan = true), {10, 7}}},
    {"2d, element strides",
     {SPEC(U16, 2, .size = {32, 40}, .stride = {0, 64}, .box = {16, 9}, .element_stride = {1, 2}), {8, 5}}},
    {"2d, the widest element stride",
     {SPEC(U16, 2, .size = {32, 40}, .stride = {0, 64}, .box = {16, 33}, .element_stride = {1, 8}), {8, 3}}},
    {"2d, an ignored stride",
     {SPEC(U16, 2, .size = {32, 40}, .stride = {0, 64}, .box = {16, 9}, .element_stride = {4, 1}), {8, 5}}},
    {"3d", {SPEC(F16, 3, .size = {64, 12, 5}, .stride = {0, 128, 1536}, .box = {32, 4, 3}), {32, 10, 3}}},
    {"3d, crossed strides",
     {SPEC(F16, 3, .size = {64, 20, 4}, .stride = {0, 512, 128}, .box = {64, 8, 2}), {0, 16, 1}}},
    {"3d, element strides",
     {SPEC(U32, 3, .size = {16, 12, 9}, .stride = {0, 64, 768}, .box = {8, 5, 8}, .element_stride = {1, 2, 3}),
      {4, 5, 3}}},
    {"4d", {SPEC(U16, 4, .size = {16, 7, 5, 3}, .stride = {0, 32, 224, 1120}, .box = {8, 4, 3, 2}), {8, -1, 3, 1}}},
    {"5d",
     {SPEC(U32, 5, .size = {8, 5, 4, 3, 3}, .stride = {0, 32, 160, 640, 1920}, .box = {4, 3, 3, 2, 2}),
      {4, 3, -1, 2, 1}}},
    {"128B",
     {SPEC(F16, 2, .size = {64, 100}, .stride = {0, 128}, .box = {64, 64}, .swizzle = EMULATOR_SWIZZLE_128B), {0, 8}}},
    {"128B, tails",
     {SPEC(F16, 2, .size = {59, 75}, .stride = {0, 128}, .box = {64, 64}, .swizzle = EMULATOR_SWIZZLE_128B), {0, 30}}},
    {"128B, u8",
     {SPEC(U8, 2, .size = {130, 75}, .stride = {0, 144}, .box = {128, 17}, .swizzle = EMULATOR_SWIZZLE_128B),
      {-16, 60}}},
    {"128B, u8, tail",
     {SPEC(U8, 2, .size = {130, 75}, .stride = {0, 144}, .box = {128, 17}, .swizzle = EMULATOR_SWIZZLE_128B),
      {16, 60}}},
    {"128B, 3d",
     {SPEC(F32, 3, .size = {40, 12, 6}, .stride = {0, 160, 1920}, .box = {32, 5, 3}, .swizzle = EMULATOR_SWIZZLE_128B),
      {12, 9, 2}}},
    {"64B",
     {SPEC(F16, 2, .size = {64, 100}, .stride = {0, 128}, .box = {32, 33}, .swizzle = EMULATOR_SWIZZLE_64B), {16, 70}}},
    {"64B, NaN",
     {SPEC(F16, 2, .size = {50, 100}, .stride = {0, 128}, .box = {32, 16}, .swizzle = EMULATOR_SWIZZLE_64B,
           .fill_nan = true),
      {24, 7}}},
    {"32B",
     {SPEC(F32, 2, .size = {30, 100}, .stride = {0, 128}, .box = {8, 40}, .swizzle = EMULATOR_SWIZZLE_32B), {16, 50}}},
    {"32B, tails",
     {SPEC(U32, 2, .size = {30, 100}, .stride = {0, 128}, .box = {8, 21}, .swizzle = EMULATOR_SWIZZLE_32B), {24, 90}}},
};
enum { BOXES = sizeof boxes / sizeof boxes[0] };

Test(tensor_copy, loads) {
  for (int i = 0; i < BOXES; i++) check_load(&boxes[i].box, boxes[i].name, i % 8 ? 2 : SCHEDULES);
}

// ---- stores: of the boxes that do not begin before a row ----

typedef struct Stored {
  uint8_t *tensor;
  const uint8_t *tile;
} Stored;

static void store_element(const Box *box, uint64_t offset, bool inside, int place, void *context) {
  Stored *stored = context;
  if (inside)
    memcpy(stored->tensor + box->spec.address + offset, stored->tile + place, (size_t)element_bytes(box->spec.type));
}

static void check_store(const Box *box, const char *name, int schedules) {
  static uint8_t tensor[1 << 16], expected[1 << 16], tile[TILE_BYTES];
  char text[sizeof store_format + 100];
  snprintf(text, sizeof text, store_format, "", box->spec.rank, "", coordinate_lists[box->spec.rank]);
  fill_random(tile, sizeof tile, 2);
  for (int schedule = 0; schedule < schedules; schedule++) {
    fill_random(tensor, sizeof tensor, 3);
    memcpy(expected, tensor, sizeof expected);
    for_each_element(box, true, store_element, &(Stored){expected, tile});
    run_box(box, text, (uint64_t)schedule, tensor, sizeof tensor, tile);
    cr_expect_arr_eq(tensor, expected, sizeof tensor, "%s, schedule %d", name, schedule);
  }
}

// Stores may not begin before the tensor along any dimension.
static bool begins_inside(const Box *box) {
  for (int d = 0; d < box->spec.rank; d++)
    if (box->start[d] < 0) return false;
  return true;
}

Test(tensor_copy, stores) {
  for (int i = 0; i < BOXES; i++)
    if (begins_inside(&boxes[i].box)) check_store(&boxes[i].box, boxes[i].name, i % 8 ? 2 : SCHEDULES);
}

// ---- im2col mode: what a convolution as a matrix product wants of its input ----

// A filter of `taps` taps along each dimension, the same along all: of its input, in channels-last order.
typedef struct Filter {
  int taps, pad, stride, dilation;
} Filter;

typedef struct Image {
  EmulatorTensorSpec spec;  // .f16
  const uint8_t *bytes;
  Filter filter;
} Image;

// How many places the filter has along dimension d.
static int places(const Image *image, int d) {
  const Filter *f = &image->filter;
  return ((int)image->spec.size[d] + 2 * f->pad - f->dilation * (f->taps - 1) - 1) / f->stride + 1;
}

// Splits the number of one of the filter's places, of all images, into where tap 0 is: W, H, D, N.
static void place_of(const Image *image, int number, int at[EMULATOR_TENSOR_RANK]) {
  int images = image->spec.rank - 1;
  for (int d = 1; d < images; d++) {
    at[d] = number % places(image, d) * image->filter.stride - image->filter.pad;
    number /= places(image, d);
  }
  at[images] = number;
}

// The bits of channel c of what the tap sees there, 0 outside.
static uint16_t seen(const Image *image, int number, int c, const int tap[3]) {
  int at[EMULATOR_TENSOR_RANK], images = image->spec.rank - 1;
  uint16_t bits;
  place_of(image, number, at);
  uint64_t offset = 2 * (uint64_t)c;
  for (int d = 1; d <= images; d++) {
    int index = at[d] + (d < images ? tap[d - 1] * image->filter.dilation : 0);
    if (index < 0 || index >= (int)image->spec.size[d]) return 0;
    offset += (uint64_t)index * image->spec.stride[d];
  }
  memcpy(&bits, image->bytes + offset, sizeof bits);
  return c < (int)image->spec.size[0] ? bits : 0;
}

// Loads the pixels from place `number` on that one tap sees, channels from c on, and compares.
static void check_tap(const Image *image, int number, int c, const int tap[3]) {
  static uint8_t tensor[1 << 15], tile[TILE_BYTES];
  const EmulatorTensorSpec *spec = &image->spec;
  char text[sizeof im2col_format + 200], offsets[40] = "";
  Box box = {.spec = *spec};
  place_of(image, number, box.start);
  box.start[0] = c;
  for (int d = 0; d < spec->rank - 2; d++)
    sprintf(offsets + strlen(offsets), "%s%d", d ? ", " : "", tap[d] * image->filter.dilation);
  snprintf(text, sizeof text, im2col_format, spec->rank, coordinate_lists[spec->rank], offsets);
  memcpy(tensor, image->bytes, sizeof tensor);
  memset(tile, 0xff, sizeof tile);
  run_box(&box, text, (uint64_t)number, tensor, sizeof tensor, tile);
  for (int p = 0; p < (int)spec->pixels; p++)
    for (int i = 0; i < (int)spec->box[0]; i++) {
      uint16_t bits, expected = seen(image, number + p, c + i, tap);
      memcpy(&bits, tile + place_in_tile(spec, p, 2 * i), sizeof bits);
      cr_assert_eq(bits, expected, "%d dimensions, place %d + %d, channel %d + %d, offsets %s: %04x instead of %04x",
                   spec->rank, number, p, c, i, offsets, bits, expected);
    }
}

// A tensor of `channels` channels and images of these sizes, in a box that fits the filter.
static Image make_image(int rank, const int sizes[4], uint32_t channels, Filter filter, EmulatorTensorSwizzle swizzle) {
  static uint8_t bytes[1 << 15];
  Image image = {.bytes = bytes, .filter = filter};
  EmulatorTensorSpec *spec = &image.spec;
  fill_random(bytes, sizeof bytes, 3);
  *spec = (EmulatorTensorSpec){
      .type = EMULATOR_TENSOR_F16, .rank = rank, .size = {channels}, .box = {16}, .pixels = 37, .swizzle = swizzle};
  for (int d = 1; d < rank; d++) {
    spec->size[d] = (uint64_t)sizes[d - 1];
    spec->stride[d] = d == 1 ? 64 : spec->stride[d - 1] * spec->size[d - 1];
    spec->element_stride[d] = d < rank - 1 ? (uint32_t)filter.stride : 1;
    if (d == rank - 1) break;
    spec->lower[d - 1] = -filter.pad;
    spec->upper[d - 1] = filter.pad - filter.dilation * (filter.taps - 1);
  }
  return image;
}

static const struct {
  int rank, sizes[4];
  Filter filter;
} images[] = {
    {3, {31, 5}, {3, 1, 1, 1}},      {3, {29, 5}, {5, 2, 3, 1}},      {4, {9, 7, 3}, {3, 1, 1, 1}},
    {4, {9, 7, 3}, {3, 0, 2, 1}},    {4, {8, 9, 3}, {3, 2, 1, 2}},    {4, {7, 5, 4}, {1, 0, 1, 1}},
    {5, {6, 5, 4, 2}, {3, 1, 1, 1}}, {5, {6, 5, 4, 2}, {2, 1, 2, 1}},
};

Test(tensor_copy, im2col_sees_what_a_convolution_does) {
  for (size_t i = 0; i < sizeof images / sizeof *images; i++) {
    Image image = make_image(images[i].rank, images[i].sizes, 27, images[i].filter, EMULATOR_SWIZZLE_32B);
    int last = images[i].filter.taps - 1;
    const int taps[][3] = {{0, 0, 0}, {last, 0, last}, {0, last, 0}, {last, last, last}};
    for (int t = 0; t < 4; t++)
      for (int number = 0; number < 40; number += 13) check_tap(&image, number, number % 2 * 16, taps[t]);
  }
}

// In the first image of 4 x 4 pixels the box ends one pixel before the right and the lower edge, and begins one before the
// others: rows of four from -1 to 2. The second image follows.
Test(tensor_copy, im2col_goes_on_in_the_next_image) {
  Image image = make_image(4, (const int[4]){4, 4, 2}, 16, (Filter){3, 1, 1, 1}, EMULATOR_SWIZZLE_NONE);
  int at[EMULATOR_TENSOR_RANK];
  cr_assert(places(&image, 1) == 4 && image.spec.upper[0] == -1 && image.spec.lower[0] == -1);
  place_of(&image, 17, at);
  cr_expect(at[1] == 0 && at[2] == -1 && at[3] == 1);
  check_tap(&image, 10, 0, (const int[]){0, 0, 0});
}

static EmulatorStatus run_mistake(const Image *image, const int start[4], uint32_t more_bytes, HazardKind *kind) {
  static const uint8_t tile[TILE_BYTES];
  char text[sizeof im2col_format + 200];
  snprintf(text, sizeof text, im2col_format, 4, coordinate_lists[4], "0, 0");
  Machine machine = machine_open(text, 0);
  EmulatorTensorSpec spec = image->spec;
  spec.address = machine_upload(&machine, image->bytes, 1 << 15);
  uint64_t data = machine_upload(&machine, tile, sizeof tile);
  Map map = make_map(&spec);
  uint32_t bytes = box_bytes(&spec) + more_bytes;
  int count;
  EmulatorStatus status =
      machine_launch(&machine, (Shape){1, THREADS, 0}, (const void *[]){&map, &data, &bytes, start}, 4);
  const Hazard *hazards = emulator_hazards(machine.emulator, &count);
  *kind = count ? hazards[0].kind : HAZARD_KIND_COUNT;
  machine_close(&machine);
  return status;
}

Test(tensor_copy, im2col_mistakes_are_reported) {
  HazardKind kind;
  Image image = make_image(4, (const int[4]){9, 7, 3}, 27, (Filter){3, 1, 1, 1}, EMULATOR_SWIZZLE_NONE);
  const int start[2][5] = {{0, 0, 0, 0}, {4, 0, 0, 0}};
  cr_expect(run_mistake(&image, start[0], 0, &kind) == EMULATOR_OK && kind == HAZARD_KIND_COUNT);
  cr_expect(run_mistake(&image, start[1], 0, &kind) == EMULATOR_FAULT && kind == HAZARD_MISALIGNED);
  cr_expect(run_mistake(&image, start[0], 16, &kind) == EMULATOR_FAULT && kind == HAZARD_EXPECT_TX);
  image.spec.pixels = 0;  // a map of tile mode
  for (int d = 1; d < 4; d++) image.spec.box[d] = 1;
  cr_expect(run_mistake(&image, start[0], 0, &kind) == EMULATOR_FAULT && kind == HAZARD_TENSOR_MAP);
}

// ---- reductions ----

typedef uint64_t Reduce(uint64_t a, uint64_t b);
static uint64_t half_from_float(float value) { return half_from_double(value); }
static uint64_t add_u(uint64_t a, uint64_t b) { return a + b; }
static uint64_t min_u32(uint64_t a, uint64_t b) { return (uint32_t)a < (uint32_t)b ? a : b; }
static uint64_t max_s32(uint64_t a, uint64_t b) { return (int32_t)a > (int32_t)b ? a : b; }
static uint64_t min_s64(uint64_t a, uint64_t b) { return (int64_t)a < (int64_t)b ? a : b; }
static uint64_t and_u(uint64_t a, uint64_t b) { return a & b; }
static uint64_t or_u(uint64_t a, uint64_t b) { return a | b; }
static uint64_t xor_u(uint64_t a, uint64_t b) { return a ^ b; }
static uint64_t add_f32(uint64_t a, uint64_t b) { return float_bits(float_of(a) + float_of(b)); }
static uint64_t add_f16(uint64_t a, uint64_t b) {
  return half_from_float(half_to_float((uint16_t)a) + half_to_float((uint16_t)b));
}
static uint64_t min_f16(uint64_t a, uint64_t b) {
  return half_to_float((uint16_t)a) < half_to_float((uint16_t)b) ? a : b;
}

typedef struct Reduction {
  const char *operation;
  EmulatorTensorType type;
  Reduce *reduce;
} Reduction;

typedef struct Reduced {
  uint8_t *tensor;
  const uint8_t *tile;
  Reduce *reduce;
} Reduced;

static void reduce_element(const Box *box, uint64_t offset, bool inside, int place, void *context) {
  Reduced *reduced = context;
  size_t size = (size_t)element_bytes(box->spec.type);
  uint64_t a = 0, b = 0;
  if (!inside) return;
  memcpy(&a, reduced->tensor + offset, size);
  memcpy(&b, reduced->tile + place, size);
  a = reduced->reduce(a, b);
  memcpy(reduced->tensor + offset, &a, size);
}

// Numbers whose sums are neither NaN nor infinite in any format: bit patterns of values around one.
static void fill_numbers(uint8_t *bytes, size_t size, EmulatorTensorType type, uint32_t seed) {
  fill_random(bytes, size, seed);
  size_t step = (size_t)element_bytes(type);
  bool is_float = type == EMULATOR_TENSOR_F16 || type == EMULATOR_TENSOR_F32;
  for (size_t i = step - 1; is_float && i < size; i += step) bytes[i] = (uint8_t)(0x3c | (bytes[i] & 0x83));
}

Test(tensor_copy, reductions) {
  static const Reduction reductions[] = {
      {"add", EMULATOR_TENSOR_U32, add_u},   {"add", EMULATOR_TENSOR_U64, add_u},
      {"min", EMULATOR_TENSOR_U32, min_u32}, {"max", EMULATOR_TENSOR_S32, max_s32},
      {"min", EMULATOR_TENSOR_S64, min_s64}, {"and", EMULATOR_TENSOR_U32, and_u},
      {"or", EMULATOR_TENSOR_U32, or_u},     {"xor", EMULATOR_TENSOR_U64, xor_u},
      {"add", EMULATOR_TENSOR_F32, add_f32}, {"add", EMULATOR_TENSOR_F16, add_f16},
      {"min", EMULATOR_TENSOR_F16, min_f16},
  };
  static uint8_t tensor[1 << 14], expected[1 << 14], tile[TILE_BYTES];
  for (size_t i = 0; i < sizeof reductions / sizeof reductions[0]; i++) {
    const Reduction *reduction = &reductions[i];
    uint32_t width = 64 / (uint32_t)element_bytes(reduction->type);
    Box box = {{.type = reduction->type,
                .rank = 2,
                .size = {width + 1, 20},
                .stride = {0, 128},
                .box = {width, 8},
                .swizzle = EMULATOR_SWIZZLE_64B},
               {(int)width / 4, 14}};
    char text[sizeof store_format + 100], operation[16];
    snprintf(operation, sizeof operation, ".%s", reduction->operation);
    snprintf(text, sizeof text, store_format, ".reduce", 2, operation, coordinate_lists[2]);
    fill_numbers(tile, sizeof tile, reduction->type, 5);
    for (uint64_t schedule = 0; schedule < 3; schedule++) {
      fill_numbers(tensor, sizeof tensor, reduction->type, 6);
      memcpy(expected, tensor, sizeof expected);
      for_each_element(&box, true, reduce_element, &(Reduced){expected, tile, reduction->reduce});
      run_box(&box, text, schedule, tensor, sizeof tensor, tile);
      cr_expect_arr_eq(tensor, expected, sizeof tensor, "%s of type %d, schedule %d", reduction->operation,
                       (int)reduction->type, (int)schedule);
    }
  }
}

// ---- coordinates: notes/tma.md has what an H200 did with them ----

static EmulatorStatus run_coordinate(const char *text, EmulatorTensorSwizzle swizzle, int column, int row,
                                     HazardKind *kind) {
  static const uint8_t zeros[16 * 512];
  static const uint8_t tile[TILE_BYTES];
  Machine machine = machine_open(text, 0);
  uint64_t tensor = machine_upload(&machine, zeros, sizeof zeros), data = machine_upload(&machine, tile, sizeof tile);
  EmulatorTensorSpec spec = SPEC(F16, 2, .address = tensor, .size = {256, 16}, .stride = {0, 512},
                                 .box = {swizzle ? 8u << swizzle : 64, 8}, .swizzle = swizzle);
  Map map = make_map(&spec);
  uint32_t bytes = box_bytes(&spec);
  int start[EMULATOR_TENSOR_RANK] = {column, row}, count;
  const void *arguments[] = {&map, &data, &bytes, start};
  EmulatorStatus status = machine_launch(&machine, (Shape){1, THREADS, 0}, arguments, 4);
  const Hazard *hazards = emulator_hazards(machine.emulator, &count);
  *kind = count ? hazards[0].kind : HAZARD_KIND_COUNT;
  machine_close(&machine);
  return status;
}

Test(tensor_copy, innermost_coordinates) {
  static const int coordinates[] = {0, 8, 16, 56, 72, -8, -200, 1, 2, 3, 4, 7, 9, -1, -4, -30, 252, 253, 300};
  char load[sizeof load_format + 100], store[sizeof store_format + 100];
  snprintf(load, sizeof load, load_format, 2, coordinate_lists[2]);
  snprintf(store, sizeof store, store_format, "", 2, "", coordinate_lists[2]);
  for (int stores = 0; stores < 2; stores++)
    for (int swizzle = EMULATOR_SWIZZLE_NONE; swizzle <= EMULATOR_SWIZZLE_128B; swizzle++)
      for (size_t i = 0; i < sizeof coordinates / sizeof *coordinates; i++) {
        int at = coordinates[i];
        HazardKind kind, expected = at % 8             ? HAZARD_MISALIGNED
                                    : stores && at < 0 ? HAZARD_OUT_OF_BOUNDS
                                                       : HAZARD_KIND_COUNT;
        EmulatorStatus status = run_coordinate(stores ? store : load, (EmulatorTensorSwizzle)swizzle, at, 0, &kind);
        cr_expect_eq(kind, expected, "%s at %d, swizzle %d: kind %d", stores ? "store" : "load", at, swizzle,
                     (int)kind);
        cr_expect_eq(status, expected == HAZARD_KIND_COUNT ? EMULATOR_OK : EMULATOR_FAULT);
      }
}

// A load may begin before the first row, a store may not.
Test(tensor_copy, outer_coordinates) {
  char load[sizeof load_format + 100], store[sizeof store_format + 100];
  snprintf(load, sizeof load, load_format, 2, coordinate_lists[2]);
  snprintf(store, sizeof store, store_format, "", 2, "", coordinate_lists[2]);
  for (int row = -9; row <= 17; row++) {
    HazardKind kind;
    cr_expect_eq(run_coordinate(load, EMULATOR_SWIZZLE_NONE, 0, row, &kind), EMULATOR_OK, "a load at row %d", row);
    cr_expect_eq(run_coordinate(store, EMULATOR_SWIZZLE_NONE, 0, row, &kind), row < 0 ? EMULATOR_FAULT : EMULATOR_OK);
    cr_expect_eq(kind, row < 0 ? HAZARD_OUT_OF_BOUNDS : HAZARD_KIND_COUNT, "a store at row %d: kind %d", row,
                 (int)kind);
  }
}

// ---- a whole pipeline, compiled by nvcc: tests/ptx/cuda/pipeline.cu ----

enum {
  PIPELINE_BLOCKS = 4,
  PIPELINE_TILES = 8,
  TILE = 32,
  PIPELINE_ROWS = PIPELINE_BLOCKS * TILE - 5,
  PIPELINE_COLUMNS = PIPELINE_TILES * TILE - 9
};

static Map pipeline_map(uint64_t address, int rows, int columns, int pitch, uint32_t box_rows) {
  return make_map(&(EmulatorTensorSpec){.type = EMULATOR_TENSOR_F32,
                                        .rank = 2,
                                        .address = address,
                                        .size = {(uint64_t)columns, (uint64_t)rows},
                                        .stride = {0, 4 * (uint64_t)pitch},
                                        .box = {TILE, box_rows},
                                        .swizzle = EMULATOR_SWIZZLE_128B});
}

// The sum of a row and column, in the order that the kernel adds.
static float pipeline_sum(const float *a, const float *w, int pitch, int row, int column) {
  float sum = 0;
  for (int k = column; k < PIPELINE_COLUMNS; k += TILE) sum = fmaf(a[row * pitch + k], w[row % TILE * pitch + k], sum);
  return sum;
}

Test(tensor_copy, pipeline_of_a_cluster) {
  if (!getenv("PTX_DIR")) cr_skip_test("PTX_DIR is not set");
  char path[600];
  snprintf(path, sizeof path, "%s/pipeline.ptx", getenv("PTX_DIR"));
  Text ptx = read_text(path);
  enum { PITCH = PIPELINE_TILES * TILE };
  static float a[PIPELINE_ROWS * PITCH], w[TILE * PITCH], out[PIPELINE_ROWS * TILE];
  for (int i = 0; i < PIPELINE_ROWS * PITCH; i++) a[i] = (float)(i * 7919 % 201 - 100) / 16;
  for (int i = 0; i < TILE * PITCH; i++) w[i] = (float)(i * 104729 % 101 - 50) / 8;
  for (uint64_t schedule = 0; schedule < SCHEDULES; schedule++) {
    Machine machine = machine_open(ptx.bytes, schedule);
    uint64_t a_address = machine_upload(&machine, a, sizeof a), w_address = machine_upload(&machine, w, sizeof w);
    uint64_t out_address = machine_upload(&machine, NULL, sizeof out);
    Map a_map = pipeline_map(a_address, PIPELINE_ROWS, PIPELINE_COLUMNS, PITCH, TILE),
        w_map = pipeline_map(w_address, TILE, PIPELINE_COLUMNS, PITCH, TILE / 2);
    Map out_map = pipeline_map(out_address, PIPELINE_ROWS, TILE, TILE, TILE);
    int tiles = PIPELINE_TILES;
    const void *arguments[] = {&a_map, &w_map, &out_map, &tiles};
    EmulatorLaunch launch = {.kernel = "pipeline",
                             .grid = {PIPELINE_BLOCKS, 1, 1},
                             .block = {160, 1, 1},
                             .dynamic_shared = 3 * 8192 + 4096 + 48 + 976,
                             .arguments = arguments,
                             .argument_count = 4};
    EmulatorError error = {0};
    cr_expect_eq(emulator_launch(machine.emulator, machine.module, &launch, &error), EMULATOR_OK, "%s", error.message);
    expect_clean(&machine);
    machine_download(&machine, out, out_address, sizeof out);
    int wrong = 0;
    for (int i = 0; i < PIPELINE_ROWS * TILE; i++) wrong += !(out[i] == pipeline_sum(a, w, PITCH, i / TILE, i % TILE));
    cr_expect_eq(wrong, 0, "schedule %d: %d results are wrong", (int)schedule, wrong);
    machine_close(&machine);
  }
  free(ptx.bytes);
}

// ---- hazards: tests/pairs/tensor_copy.pairs ----

Test(tensor_copy, pairs) { run_pairs("tensor_copy"); }

// A tensor that is larger than the memory behind it.
Test(tensor_copy, tensor_beyond_its_memory) {
  char text[sizeof load_format + 100];
  snprintf(text, sizeof text, load_format, 2, coordinate_lists[2]);
  Machine machine = machine_open(text, 0);
  uint8_t zeros[4096] = {0};
  uint64_t in = machine_upload(&machine, zeros, sizeof zeros), out = machine_upload(&machine, NULL, TILE_BYTES);
  Map map = make_map(&(EmulatorTensorSpec){
      .type = EMULATOR_TENSOR_U32, .rank = 2, .address = in, .size = {32, 33}, .stride = {0, 128}, .box = {32, 4}});
  uint32_t bytes = 512;
  int start[5] = {0, 30};
  const void *arguments[] = {&map, &out, &bytes, start};
  cr_expect_eq(machine_launch(&machine, (Shape){1, THREADS, 0}, arguments, 4), EMULATOR_FAULT);
  int count;
  const Hazard *hazards = emulator_hazards(machine.emulator, &count);
  cr_expect(count == 1 && hazards[0].kind == HAZARD_OUT_OF_BOUNDS);
  machine_close(&machine);
}

// ---- the encoder ----

Test(tensor_copy, the_encoder_refuses) {
  static const struct {
    EmulatorTensorSpec spec;
    const char *reason;
  } tests[] = {
      {SPEC(F16, 0, .address = 16), "1 to 5"},
      {SPEC(F16, 6, .address = 16), "1 to 5"},
      {SPEC(F16, 1, .address = 0, .size = {64}, .box = {64}), "address"},
      {SPEC(F16, 1, .address = 8, .size = {64}, .box = {64}), "address"},
      {SPEC(F16, 1, .address = 16, .size = {0}, .box = {64}), "1 to 2^32"},
      {SPEC(F16, 1, .address = 16, .size = {(1ull << 32) + 1}, .box = {64}), "1 to 2^32"},
      {SPEC(F16, 1, .address = 16, .size = {64}, .box = {0}), "1 to 256"},
      {SPEC(F16, 1, .address = 16, .size = {64}, .box = {257}), "1 to 256"},
      {SPEC(F16, 1, .address = 16, .size = {64}, .box = {4}), "multiple of 16"},
      {SPEC(F16, 2, .address = 16, .size = {64, 4}, .stride = {0, 136}, .box = {64, 4}), "multiple of 16"},
      {SPEC(F16, 2, .address = 16, .size = {64, 4}, .stride = {0, 1ull << 40}, .box = {64, 4}), "2^40"},
      {SPEC(F16, 2, .address = 16, .size = {64, 4}, .stride = {0, 128}, .box = {64, 4}, .element_stride = {1, 9}),
       "1 to 8"},
      {SPEC(F16, 2, .address = 16, .size = {128, 4}, .stride = {0, 256}, .box = {128, 4},
            .swizzle = EMULATOR_SWIZZLE_128B),
       "at most 128"},
      {SPEC(F16, 2, .address = 16, .size = {128, 4}, .stride = {0, 256}, .box = {64, 4},
            .swizzle = EMULATOR_SWIZZLE_64B),
       "at most 64"},
      {SPEC(F16, 2, .address = 16, .size = {128, 4}, .stride = {0, 256}, .box = {32, 4},
            .swizzle = EMULATOR_SWIZZLE_32B),
       "at most 32"},
      {SPEC(F16, 2, .address = 16, .size = {128, 4}, .stride = {0, 256}, .box = {32, 4},
            .swizzle = (EmulatorTensorSwizzle)4),
       "swizzle 4"},
      {SPEC(U16, 1, .address = 16, .size = {64}, .box = {64}, .fill_nan = true), "NaN"},
      {SPEC(F16, 2, .address = 16, .size = {64, 4}, .stride = {0, 128}, .box = {64}, .pixels = 8), "3 to 5"},
      {SPEC(F16, 3, .address = 16, .size = {64, 4, 4}, .stride = {0, 128, 512}, .box = {64}, .pixels = 1025),
       "1 to 1024"},
      {SPEC(F16, 3, .address = 16, .size = {64, 4, 4}, .stride = {0, 128, 512}, .box = {64}, .pixels = 8,
            .upper = {1 << 15}),
       "-32768 to 32767"},
      {SPEC(F16, 3, .address = 16, .size = {64, 4, 4}, .stride = {0, 128, 512}, .box = {64}, .pixels = 8, .lower = {4}),
       "is empty"},
      {{.type = (EmulatorTensorType)77, .rank = 1, .address = 16, .size = {64}, .box = {64}}, "type 77"},
  };
  for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++) {
    Map map;
    EmulatorError error = {0};
    cr_expect(!emulator_tensor_map(&tests[i].spec, map.bytes, &error), "test %d should be refused for %s", (int)i,
              tests[i].reason);
    cr_expect(strstr(error.message, tests[i].reason), "\"%s\" does not say \"%s\"", error.message, tests[i].reason);
  }
}

Test(tensor_copy, refused) {
  static const RefusedTest tests[] = {
      {"cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r0], [%rd0, {%r1}], [%r2]",
       "coordinates"},
      {"cp.async.bulk.tensor.2d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%r0], [%rd0, {%r1, %r2}], "
       "[%r2]",
       "im2col mode needs 3 to 5 dimensions"},
      {"cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%r0], [%rd0, {%r1, %r2, "
       "%r3}], [%r2], {1, 2}",
       "needs 1 im2col offset in braces"},
      {"cp.async.bulk.tensor.3d.shared::cluster.global.im2col_no_offs.mbarrier::complete_tx::bytes [%r0], [%rd0, {%r1, "
       "%r2, %r3}], [%r2]",
       ".im2col_no_offs is for stores"},
      {"cp.async.bulk.tensor.3d.global.shared::cta.im2col.bulk_group [%rd0, {%r1, %r2, %r3}], [%r2], {0}",
       ".im2col is for loads"},
      {"cp.async.bulk.tensor.shared::cluster.global.mbarrier::complete_tx::bytes [%r0], [%rd0, {%r1}], [%r2]",
       "number of dimensions"},
      {"cp.async.bulk.tensor.2d.shared::cluster.global.tile [%r0], [%rd0, {%r1, %r2}], [%r2]", "completes on"},
      {"cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r0], [%rd0], [%r2]",
       "[map, {coordinates}]"},
      {"cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.cta_group::2 [%r0], [%rd0, {%r1, "
       "%r2}], [%r2]",
       "unknown modifier"},
      {"cp.async.bulk.tensor.1d.global.shared::cta.add.bulk_group [%rd0, {%r1}], [%r2]", "reduction"},
      {"cp.reduce.async.bulk.tensor.1d.global.shared::cta.bulk_group [%rd0, {%r1}], [%r2]", "reduction"},
  };
  RUN_REFUSED_TESTS(tests);
}
