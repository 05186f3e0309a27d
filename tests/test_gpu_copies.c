// Asynchronous copies on the GPU and on the emulator: where every byte of a box goes, and which
// tensor maps are accepted.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/copies.h"
#include "support/agreement.h"

static CopyInput input;
static uint8_t before[COPY_DATA];  // what outputs hold before stores

// Numbers that are finite in every 16-bit and 32-bit format, with many exponents, and subnormals.
static void make_numbers(uint8_t *bytes, size_t size, uint64_t seed) {
  for (size_t i = 0; i < size; i += 2) {
    uint32_t bits = random_bits(&seed);
    uint16_t number = (uint16_t)((bits & 0x83ff) | ((bits >> 16) % 26 + 2) << 10);
    if (bits % 37 == 0) number &= 0x807f;
    memcpy(bytes + i, &number, 2);
  }
}

// ---- boxes ----

typedef struct Boxes {
  const char *name;
  TensorMapSpec spec;
} Boxes;

static int element_size(TensorType type) {
  return type == TENSOR_MAP_U8 ? 1 : type == TENSOR_MAP_U32 || type == TENSOR_MAP_F32 ? 4 : 2;
}

// Fills in what is left out: rows one after another, each a multiple of 16 bytes.
static TensorMapSpec complete(const TensorMapSpec *spec) {
  TensorMapSpec result = *spec;
  uint64_t pitch = (spec->size[0] * (uint64_t)element_size(spec->type) + 15) / 16 * 16;
  for (int d = 1; d < spec->rank; d++) {
    if (!result.stride[d]) result.stride[d] = pitch;
    pitch = result.stride[d] * spec->size[d];
  }
  cr_assert_leq(pitch, COPY_DATA, "the tensor has %llu bytes", (unsigned long long)pitch);
  return result;
}

static uint32_t box_bytes(const TensorMapSpec *spec) {
  uint32_t bytes = (uint32_t)element_size(spec->type);
  for (int d = 0; d < spec->rank; d++) {
    uint32_t stride = d && spec->element_stride[d] ? spec->element_stride[d] : 1;
    bytes *= (spec->box[d] + stride - 1) / stride;
  }
  return bytes;
}

static void box_name(char *name, size_t size, const char *what, const TensorMapSpec *spec, const int *start) {
  static const char *const types[] = {"u8", "u16", "u32", "f16", "bf16", "f32"};
  int used = snprintf(name, size, "%s, %dd %s, swizzle %d%s, box", what, spec->rank, types[spec->type],
                      spec->swizzle ? 16 << spec->swizzle : 0, spec->fill_nan ? ", NaN" : "");
  for (int d = 0; d < spec->rank; d++) used += snprintf(name + used, size - (size_t)used, " %u", spec->box[d]);
  used += snprintf(name + used, size - (size_t)used, " at");
  for (int d = 0; d < spec->rank; d++) used += snprintf(name + used, size - (size_t)used, " %d", start[d]);
}

// Which boxes a test runs. An H200 refuses stores with a negative coordinate: notes/tma.md.
typedef enum BoxKind { LOADS, STORES } BoxKind;

static bool is_kind(BoxKind kind, int rank, const int *start) {
  bool outside = false;
  for (int d = 0; d < rank; d++) outside |= start[d] < 0;
  return kind == LOADS || !outside;
}

// Logs what is launched next, so that a run that ends there names it.
static void log_launch(const char *name) {
  const char *path = getenv("HL_AGREEMENT_LOG");
  FILE *log = path ? fopen(path, "a") : NULL;
  if (!log) return;
  fprintf(log, "launch   %s\n", name);
  fclose(log);
}

// Runs a box if it is of the kind.
static void run_box(const char *what, const char *kernel, const TensorMapSpec *incomplete, const int *start,
                    BoxKind kind) {
  char name[200];
  bool stores = kind != LOADS;
  if (!is_kind(kind, incomplete->rank, start)) return;
  TensorMapSpec spec = complete(incomplete);
  memcpy(input.coordinates, start, sizeof input.coordinates);
  input.bytes = box_bytes(&spec);
  spec.address = stores ? 0 : offsetof(CopyInput, data);
  box_name(name, sizeof name, what, &spec, start);
  Trial trial = {.module = "copies",
                 .kernel = kernel,
                 .threads = COPY_THREADS,
                 .shared = COPY_SHARED,
                 .in = &input,
                 .in_size = sizeof input,
                 .out = stores ? before : NULL,
                 .out_size = stores ? sizeof before : sizeof(CopyResult),
                 .map = &spec,
                 .map_of_out = stores};
  log_launch(name);
  agreement_compare(&trial, stores ? "tensor store" : "tensor load", name, element_size(spec.type));
}

// Innermost coordinates are multiples of 16 bytes; this many elements.
static int step_of(const TensorMapSpec *spec) { return 16 / element_size(spec->type); }
// The last coordinate that is in the tensor.
static int last_start(const TensorMapSpec *spec, int d) {
  int step = d ? 1 : step_of(spec);
  return ((int)spec->size[d] - 1) / step * step;
}

// The box with one coordinate over each end of that dimension, just outside it, and further out.
static void run_ends(const char *what, const char *kernel, const TensorMapSpec *spec, int *start, int d, BoxKind kind) {
  int inside = start[d], step = d ? 1 : step_of(spec), last = last_start(spec, d), width = (int)spec->box[d];
  const int ends[] = {-step, last, last - step, last + step, last + 3 * step, -width, -width - 2 * step};
  for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
    start[d] = ends[i];
    run_box(what, kernel, spec, start, kind);
  }
  start[d] = inside;
}

// The box inside the tensor, over each of its sides, and beside it.
static void run_places(const char *what, const TensorMapSpec *spec, BoxKind kind) {
  char kernel[32];
  snprintf(kernel, sizeof kernel, "tensor_%s_%dd", kind == LOADS ? "load" : "store", spec->rank);
  int start[TENSOR_MAX_RANK] = {0};
  run_box(what, kernel, spec, start, kind);
  for (int d = 0; d < spec->rank; d++) start[d] = d ? 1 + d % 2 : step_of(spec);
  run_box(what, kernel, spec, start, kind);
  for (int d = 0; d < spec->rank; d++) run_ends(what, kernel, spec, start, d, kind);
  for (int d = 1; d < spec->rank; d++) start[d] = -1;
  run_box(what, kernel, spec, start, kind);
  start[0] = -step_of(spec);
  run_box(what, kernel, spec, start, kind);
  for (int d = 0; d < spec->rank; d++) start[d] = last_start(spec, d);
  run_box(what, kernel, spec, start, kind);
}

#define SIZES                                                                                                          \
  { 75, 7, 4, 3, 3 }
#define BOX(width)                                                                                                     \
  { width, 8, 3, 2, 2 }

static void run_ranks_and_swizzles(BoxKind kind) {
  agreement_begin();
  make_numbers(input.data, sizeof input.data, 1);
  make_numbers(before, sizeof before, 2);
  for (int rank = 1; rank <= TENSOR_MAX_RANK; rank++)
    for (int swizzle = TENSOR_SWIZZLE_NONE; swizzle <= TENSOR_SWIZZLE_128B; swizzle++) {
      TensorMapSpec spec = {.type = TENSOR_MAP_F16,
                            .rank = rank,
                            .size = SIZES,
                            .box = BOX(swizzle ? 8u << swizzle : 24),
                            .swizzle = (TensorSwizzle)swizzle};
      run_places("whole rows", &spec, kind);
    }
  agreement_end();
}

Test(gpu_agreement, tensor_loads) { run_ranks_and_swizzles(LOADS); }
Test(gpu_agreement, tensor_stores) { run_ranks_and_swizzles(STORES); }

// Boxes that begin anywhere in the swizzle's pattern: its bits are those of the address, not of the row.
Test(gpu_agreement, tensor_swizzles_by_address) {
  char what[40];
  agreement_begin();
  make_numbers(input.data, sizeof input.data, 11);
  make_numbers(before, sizeof before, 12);
  for (int swizzle = TENSOR_SWIZZLE_NONE; swizzle <= TENSOR_SWIZZLE_128B; swizzle++)
    for (input.offset = 128; input.offset <= 1024; input.offset += 128) {
      TensorMapSpec spec = {.type = TENSOR_MAP_F16,
                            .rank = 2,
                            .size = {75, 20},
                            .box = {swizzle ? 8u << swizzle : 24, 20},
                            .swizzle = (TensorSwizzle)swizzle};
      const int start[TENSOR_MAX_RANK] = {step_of(&spec), 1};
      snprintf(what, sizeof what, "%u bytes into the tile", input.offset);
      run_box(what, "tensor_load_2d", &spec, start, LOADS);
      run_box(what, "tensor_store_2d", &spec, start, STORES);
    }
  agreement_end();
}

static const Boxes special[] = {
    {"narrow rows", {.type = TENSOR_MAP_F16, .rank = 2, .size = SIZES, .box = BOX(8), .swizzle = TENSOR_SWIZZLE_32B}},
    {"narrow rows", {.type = TENSOR_MAP_F16, .rank = 2, .size = SIZES, .box = BOX(8), .swizzle = TENSOR_SWIZZLE_64B}},
    {"narrow rows", {.type = TENSOR_MAP_F16, .rank = 3, .size = SIZES, .box = BOX(24), .swizzle = TENSOR_SWIZZLE_64B}},
    {"narrow rows", {.type = TENSOR_MAP_F16, .rank = 3, .size = SIZES, .box = BOX(40), .swizzle = TENSOR_SWIZZLE_128B}},
    {"narrow rows", {.type = TENSOR_MAP_F16, .rank = 2, .size = SIZES, .box = BOX(8), .swizzle = TENSOR_SWIZZLE_128B}},
    {"many rows",
     {.type = TENSOR_MAP_F16, .rank = 2, .size = {64, 100}, .box = {64, 100}, .swizzle = TENSOR_SWIZZLE_128B}},
    {"bytes", {.type = TENSOR_MAP_U8, .rank = 2, .size = SIZES, .box = BOX(48)}},
    {"bytes", {.type = TENSOR_MAP_U8, .rank = 2, .size = SIZES, .box = BOX(64), .swizzle = TENSOR_SWIZZLE_64B}},
    {"words", {.type = TENSOR_MAP_U32, .rank = 3, .size = SIZES, .box = BOX(32), .swizzle = TENSOR_SWIZZLE_128B}},
    {"padded strides",
     {.type = TENSOR_MAP_F16,
      .rank = 3,
      .size = SIZES,
      .stride = {0, 176, 2000},
      .box = BOX(32),
      .swizzle = TENSOR_SWIZZLE_64B}},
    {"overlapping rows", {.type = TENSOR_MAP_F16, .rank = 2, .size = SIZES, .stride = {0, 48}, .box = BOX(32)}},
    {"element stride 2",
     {.type = TENSOR_MAP_F16, .rank = 2, .size = {75, 40}, .box = {24, 16}, .element_stride = {1, 2}}},
    {"element stride 3",
     {.type = TENSOR_MAP_F16,
      .rank = 2,
      .size = {75, 40},
      .box = {32, 16},
      .element_stride = {1, 3},
      .swizzle = TENSOR_SWIZZLE_64B}},
    {"element strides",
     {.type = TENSOR_MAP_F32, .rank = 3, .size = {75, 12, 9}, .box = {8, 9, 8}, .element_stride = {1, 4, 3}}},
    {"element stride 2 of rows",
     {.type = TENSOR_MAP_F16, .rank = 2, .size = {75, 40}, .box = {32, 8}, .element_stride = {2, 1}}},
};

Test(gpu_agreement, tensor_loads_of_special_boxes) {
  agreement_begin();
  make_numbers(input.data, sizeof input.data, 3);
  for (size_t i = 0; i < sizeof special / sizeof *special; i++) run_places(special[i].name, &special[i].spec, LOADS);
  for (TensorType type = TENSOR_MAP_F16; type <= TENSOR_MAP_F32; type++) {
    TensorMapSpec spec = {.type = type, .rank = 2, .size = SIZES, .box = BOX(16), .fill_nan = true};
    run_places("fill", &spec, LOADS);
    spec.swizzle = TENSOR_SWIZZLE_128B;
    run_places("fill", &spec, LOADS);
  }
  agreement_end();
}

Test(gpu_agreement, tensor_stores_of_special_boxes) {
  agreement_begin();
  make_numbers(input.data, sizeof input.data, 4);
  make_numbers(before, sizeof before, 5);
  for (size_t i = 0; i < sizeof special / sizeof *special; i++)
    if (strcmp(special[i].name, "overlapping rows")) run_places(special[i].name, &special[i].spec, STORES);
  agreement_end();
}

Test(gpu_agreement, tensor_reductions) {
  static const struct {
    TensorType type;
    const char *operation;
  } reductions[] = {{TENSOR_MAP_U32, "add"},  {TENSOR_MAP_U32, "min"},  {TENSOR_MAP_U32, "max"},
                    {TENSOR_MAP_U32, "inc"},  {TENSOR_MAP_U32, "dec"},  {TENSOR_MAP_U32, "and"},
                    {TENSOR_MAP_U32, "or"},   {TENSOR_MAP_U32, "xor"},  {TENSOR_MAP_F16, "add"},
                    {TENSOR_MAP_F16, "min"},  {TENSOR_MAP_F16, "max"},  {TENSOR_MAP_BF16, "add"},
                    {TENSOR_MAP_BF16, "min"}, {TENSOR_MAP_BF16, "max"}, {TENSOR_MAP_F32, "add"}};
  char kernel[32];
  agreement_begin();
  make_numbers(input.data, sizeof input.data, 6);
  make_numbers(before, sizeof before, 7);
  for (size_t i = 0; i < sizeof reductions / sizeof *reductions; i++) {
    TensorMapSpec spec = {.type = reductions[i].type, .rank = 2, .size = SIZES, .box = BOX(16)};
    snprintf(kernel, sizeof kernel, "tensor_reduce_%s", reductions[i].operation);
    run_box(reductions[i].operation, kernel, &spec, (const int[TENSOR_MAX_RANK]){step_of(&spec), 2}, STORES);
    spec.swizzle = TENSOR_SWIZZLE_128B;
    run_box(reductions[i].operation, kernel, &spec, (const int[TENSOR_MAX_RANK]){last_start(&spec, 0), 3}, STORES);
  }
  agreement_end();
}

// ---- bulk copies, cp.async, mbarriers, clusters ----

static void run_copy(const char *kernel, uint32_t bytes, bool stores, int width) {
  char name[100];
  input.bytes = bytes;
  snprintf(name, sizeof name, "%s, %u bytes", kernel, bytes);
  log_launch(name);
  agreement_compare(&(Trial){.module = "copies",
                             .kernel = kernel,
                             .threads = COPY_THREADS,
                             .shared = COPY_SHARED,
                             .in = &input,
                             .in_size = sizeof input,
                             .out = stores ? before : NULL,
                             .out_size = stores ? sizeof before : sizeof(CopyResult)},
                    "copy", name, width);
}

static void run_shared_copy(int target, uint32_t bytes) {
  static const char *const targets[COPY_TARGETS] = {"its own tile", "its own tile through mapa", "the other block"};
  char name[100];
  input.coordinates[0] = target;
  input.bytes = bytes;
  snprintf(name, sizeof name, "shared to shared, to %s, %u bytes", targets[target], bytes);
  log_launch(name);
  agreement_compare(&(Trial){.module = "copies",
                             .kernel = "bulk_shared",
                             .blocks = 2,
                             .cluster = 2,
                             .threads = COPY_THREADS,
                             .shared = COPY_SHARED,
                             .in = &input,
                             .in_size = sizeof input,
                             .out_size = 2 * sizeof(CopyResult)},
                    "copy", name, 4);
}

#define NAME(name, operation) "bulk_reduce_" #name,
static const char *const bulk_reductions[] = {BULK_REDUCTIONS(NAME)};

Test(gpu_agreement, bulk_copies) {
  static const uint32_t sizes[] = {16, 48, 1024, 16000};
  agreement_begin();
  make_numbers(input.data, sizeof input.data, 8);
  make_numbers(before, sizeof before, 9);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    run_copy("bulk_load", sizes[i], false, 4);
    run_copy("bulk_store", sizes[i], true, 4);
    for (int target = 0; target < COPY_TARGETS; target++) run_shared_copy(target, sizes[i]);
  }
  for (size_t i = 0; i < sizeof bulk_reductions / sizeof *bulk_reductions; i++)
    run_copy(bulk_reductions[i], 4096, true, 4);
  run_copy("cp_async", 0, false, 4);
  agreement_end();
}

Test(gpu_agreement, mbarriers_and_clusters) {
  agreement_begin();
  make_numbers(input.data, sizeof input.data, 10);
  agreement_compare(&(Trial){.module = "copies",
                             .kernel = "mbarriers",
                             .threads = 1,
                             .shared = COPY_SHARED,
                             .in = &input,
                             .in_size = sizeof input,
                             .out_size = 32 * 4},
                    "mbarrier", "results of test_wait and pending_count in mbarriers()", 4);
  agreement_compare(&(Trial){.module = "copies",
                             .kernel = "cluster_exchange",
                             .blocks = 2,
                             .cluster = 2,
                             .threads = COPY_THREADS,
                             .shared = COPY_SHARED,
                             .in = &input,
                             .in_size = sizeof input,
                             .out_size = 2 * 4 * COPY_THREADS * 4},
                    "cluster", "exchange between two blocks", 4);
  TensorMapSpec spec = {
      .type = TENSOR_MAP_F16, .rank = 2, .size = SIZES, .box = BOX(64), .swizzle = TENSOR_SWIZZLE_128B};
  spec = complete(&spec);
  spec.address = offsetof(CopyInput, data);
  input.bytes = box_bytes(&spec);
  memcpy(input.coordinates, (const int[TENSOR_MAX_RANK]){24, 3}, sizeof input.coordinates);
  agreement_compare(&(Trial){.module = "copies",
                             .kernel = "tensor_multicast",
                             .blocks = 2,
                             .cluster = 2,
                             .threads = COPY_THREADS,
                             .shared = COPY_SHARED,
                             .in = &input,
                             .in_size = sizeof input,
                             .out_size = 2 * sizeof(CopyResult),
                             .map = &spec},
                    "cluster", "multicast of a box", 4);
  agreement_end();
}

// ---- tensor maps that are accepted or not ----

// A good map but for one or two fields.
typedef struct MapCase {
  const char *name;
  struct {
    size_t offset, size;
    uint64_t value;
  } change[2];
} MapCase;

#define CHANGE(field, value)                                                                                           \
  { offsetof(TensorMapSpec, field), sizeof((TensorMapSpec *)0)->field, value }
static const TensorMapSpec good = {
    .type = TENSOR_MAP_F16, .rank = 3, .size = {64, 8, 4}, .stride = {0, 128, 1024}, .box = {32, 4, 2}};
static const MapCase maps[] = {
    {"good", {{0, 0, 0}}},
    {"address not a multiple of 16", {CHANGE(address, 8)}},
    {"address a multiple of 16 alone", {CHANGE(address, 16)}},
    {"size 0", {CHANGE(size[1], 0)}},
    {"size 2^32", {CHANGE(size[2], 1ull << 32)}},
    {"size 2^32 + 1", {CHANGE(size[2], (1ull << 32) + 1)}},
    {"stride 0", {CHANGE(stride[1], 0)}},
    {"stride not a multiple of 16", {CHANGE(stride[1], 136)}},
    {"stride less than a row", {CHANGE(stride[1], 64)}},
    {"stride less than the dimension below", {CHANGE(stride[2], 256)}},
    {"stride 2^40 - 16", {CHANGE(stride[2], (1ull << 40) - 16)}},
    {"stride 2^40", {CHANGE(stride[2], 1ull << 40)}},
    {"box 0", {CHANGE(box[1], 0)}},
    {"box 256", {CHANGE(box[1], 256)}},
    {"box 257", {CHANGE(box[1], 257)}},
    {"box larger than the tensor", {CHANGE(box[0], 128)}},
    {"box row not a multiple of 16 bytes", {CHANGE(box[0], 12)}},
    {"element stride 8", {CHANGE(element_stride[1], 8)}},
    {"element stride 9", {CHANGE(element_stride[1], 9)}},
    {"element stride 9 of rows", {CHANGE(element_stride[0], 9)}},
    {"element stride 2 of rows", {CHANGE(element_stride[0], 2)}},
    {"32B, row of 32 bytes", {CHANGE(box[0], 16), CHANGE(swizzle, TENSOR_SWIZZLE_32B)}},
    {"32B, row of 64 bytes", {CHANGE(swizzle, TENSOR_SWIZZLE_32B)}},
    {"64B, row of 128 bytes", {CHANGE(box[0], 64), CHANGE(swizzle, TENSOR_SWIZZLE_64B)}},
    {"128B, row of 128 bytes", {CHANGE(box[0], 64), CHANGE(swizzle, TENSOR_SWIZZLE_128B)}},
    {"128B, row of 144 bytes", {CHANGE(box[0], 72), CHANGE(swizzle, TENSOR_SWIZZLE_128B)}},
    {"128B, row of 16 bytes", {CHANGE(box[0], 8), CHANGE(swizzle, TENSOR_SWIZZLE_128B)}},
    {"NaN of f16", {CHANGE(fill_nan, true)}},
    {"NaN of integers", {CHANGE(type, TENSOR_MAP_U16), CHANGE(fill_nan, true)}},
    {"one dimension", {CHANGE(rank, 1)}},
};

Test(gpu_agreement, tensor_maps) {
  agreement_begin();
  for (size_t i = 0; i < sizeof maps / sizeof *maps; i++) {
    TensorMapSpec spec = good;
    for (int j = 0; j < 2; j++)  // little-endian: a field's first bytes are its low ones
      memcpy((uint8_t *)&spec + maps[i].change[j].offset, &maps[i].change[j].value, maps[i].change[j].size);
    agreement_map(maps[i].name, &spec);
  }
  agreement_end();
}
