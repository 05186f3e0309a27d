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
#include "support/tensor_box.h"

TestSuite(tensor_copy, .timeout = 120);

// ---- a model ----

typedef void Visit(const Box *box, uint64_t offset, bool inside, int place, void *context);

// Visits a box's elements: where each is in the tensor, in bytes, or that it is outside; and in the tile. stores: a row
// of the tensor ends where its last 16 bytes do.
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
  char text[BOX_TEXT];
  write_load(text, box->spec.rank);
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
  char text[BOX_TEXT];
  write_store(text, box->spec.rank);
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
    char text[BOX_TEXT];
    write_reduction(text, 2, reduction->operation);
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
  char load[BOX_TEXT], store[BOX_TEXT];
  write_load(load, 2);
  write_store(store, 2);
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
  char load[BOX_TEXT], store[BOX_TEXT];
  write_load(load, 2);
  write_store(store, 2);
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
  char text[BOX_TEXT];
  write_load(text, 2);
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
  cr_assert(count == 1 && hazards[0].kind == HAZARD_OUT_OF_BOUNDS);
  cr_expect(strstr(hazards[0].advice, "The tensor map describes elements that are not in this memory"), "%s",
            hazards[0].advice);
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
      {SPEC(F16, 2, .address = 16, .size = {64, 4}, .stride = {0, 128}, .box = {8, 1}, .interleave = 16), "3 to 5"},
      {SPEC(F16, 3, .address = 16, .size = {64, 4, 4}, .stride = {0, 1024, 4096}, .box = {4, 1, 1}, .interleave = 16),
       "multiple of 16"},
      {SPEC(F16, 3, .address = 16, .size = {64, 4, 4}, .stride = {0, 2048, 8192}, .box = {8, 1, 1}, .interleave = 32),
       "slices of 32 bytes"},
      {SPEC(F16, 3, .address = 32, .size = {64, 4, 4}, .stride = {0, 2064, 8256}, .box = {8, 1, 1}, .interleave = 32),
       "multiple of 32"},
      {SPEC(F16, 3, .address = 32, .size = {64, 4, 4}, .stride = {0, 2048, 8192}, .box = {8, 1, 1}, .interleave = 8),
       "no slices of 8"},
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
