// The emulator against the golden vectors, which were recorded on an H200: golden/README.md says what they hold.
//
// Tensor-core arithmetic: every result of every recorded instruction bit for bit. Scalar instructions, run as PTX:
// exact ones bit for bit, approximate ones within the bounds that stand in `tolerances`.
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "emulator/emulator.h"
#include "emulator/tensor/tensor_core.h"
#include "golden/scalars.h"
#include "golden/vectors.h"
#include "harness/half.h"

TestSuite(golden, .timeout = 120);

// ---- files ----

typedef struct File {
  char path[4096];
  uint8_t *bytes;
  size_t size, used;
} File;

static File open_file(const char *name) {
  File file = {.used = 0};
  const char *root = getenv("HL_ROOT");
  snprintf(file.path, sizeof file.path, "%s/tests/golden/%s", root ? root : ".", name);
  FILE *stream = fopen(file.path, "rb");
  cr_assert(stream, "%s: cannot be read; HL_ROOT must be the repository's root", file.path);
  cr_assert(!fseek(stream, 0, SEEK_END));
  file.size = (size_t)ftell(stream);
  rewind(stream);
  file.bytes = malloc(file.size + 1);
  cr_assert(file.bytes && fread(file.bytes, 1, file.size, stream) == file.size, "%s: cannot be read", file.path);
  fclose(stream);
  return file;
}

static const void *take(File *file, size_t size) {
  cr_assert(size <= file->size - file->used, "%s: ends too early, after %zu bytes", file->path, file->size);
  file->used += size;
  return file->bytes + file->used - size;
}

static void close_file(File *file) {
  cr_assert_eq(file->used, file->size, "%s: %zu bytes too many", file->path, file->size - file->used);
  free(file->bytes);
}

// ---- tensor cores ----

enum { TILES = 512, MAX_REPORTS = 5 };

static uint64_t inputs_hash(const GoldenTile *tiles) {
  return fnv1a(FNV1A_START, tiles, TILES * sizeof *tiles);
}

static void make_tiles(const GoldenRecord *record, GoldenTile *tiles) {
  for (int t = 0; t < TILES; t++) golden_tile(record->format, record->accumulator, (int)record->depth, t, &tiles[t]);
  cr_assert_eq(inputs_hash(tiles), record->input_hash, "%s: other inputs than it was recorded with", record->name);
}

static uint16_t half_from_result(float value) { return isnan(value) ? 0x7fff : half_from_double(value); }

// Columns n .. n + columns of rows m .. m + rows, as one instruction does them. d is the tile's row-major bits.
static void compute_piece(const GoldenRecord *record, const GoldenTile *tile, int m, int n, int rows, int columns,
                          uint32_t *d) {
  static TensorA a;
  static TensorB b;
  TensorFormat format = record->format == GOLDEN_F16 ? TENSOR_F16 : TENSOR_BF16;
  int depth = (int)record->depth;
  bool accumulate = !(record->flags & GOLDEN_NO_C);
  tensor_decode_a(&a, format, rows, depth, tile->a[m], GOLDEN_K, 1, record->flags & GOLDEN_NEGATE_A);
  tensor_decode_b(&b, format, columns, depth, tile->b[n], 1, GOLDEN_K, record->flags & GOLDEN_NEGATE_B);
  float wide[GOLDEN_M][GOLDEN_N];
  uint16_t narrow[GOLDEN_M][GOLDEN_N];
  for (int i = 0; i < rows; i++)
    for (int j = 0; j < columns; j++) {
      uint32_t c = tile->c[m + i][n + j];
      narrow[i][j] = (uint16_t)c;
      memcpy(&wide[i][j], &c, sizeof c);
      if (record->accumulator == GOLDEN_F16) wide[i][j] = half_to_float((Half)c);
    }
  bool all_f16 = record->accumulator == GOLDEN_F16 && record->result == GOLDEN_F16;
  if (all_f16)
    tensor_step_f16(&a, &b, narrow[0], GOLDEN_N, accumulate);
  else
    tensor_step_f32(&a, &b, wide[0], GOLDEN_N, accumulate);
  for (int i = 0; i < rows; i++)
    for (int j = 0; j < columns; j++) {
      uint32_t *result = &d[(m + i) * GOLDEN_N + n + j];
      memcpy(result, &wide[i][j], sizeof *result);
      if (record->result == GOLDEN_F16) *result = all_f16 ? narrow[i][j] : half_from_result(wide[i][j]);
    }
}

// A tile in pieces of the instruction's shape, which its name says: "mma.m16n8k16.f32.f16.f16.f32".
static void compute_tile(const GoldenRecord *record, const GoldenTile *tile, uint32_t *d) {
  int rows = 0, columns = 0, depth = 0;
  int found = sscanf(strchr(record->name, '.'), ".m%dn%dk%d", &rows, &columns, &depth);
  cr_assert(found == 3 && depth == (int)record->depth && rows && columns, "%s: no shape in the name", record->name);
  for (int m = 0; m < GOLDEN_M; m += rows)
    for (int n = 0; n < GOLDEN_N; n += columns) compute_piece(record, tile, m, n, rows, columns, d);
}

static uint64_t results_hash(const GoldenRecord *record, const uint32_t *d) {
  uint16_t narrow[GOLDEN_RESULTS];
  if (record->result == GOLDEN_F32) return fnv1a(FNV1A_START, d, GOLDEN_RESULTS * sizeof *d);
  for (int i = 0; i < GOLDEN_RESULTS; i++) narrow[i] = (uint16_t)d[i];
  return fnv1a(FNV1A_START, narrow, sizeof narrow);
}

static uint32_t recorded_result(const GoldenRecord *record, const uint8_t *results, int i) {
  uint32_t result = 0;  // little-endian, as the file
  memcpy(&result, results + (size_t)i * record->element_size, record->element_size);
  return result;
}

// The first results of a tile that differ, of those that are recorded in full.
static void report_tile(const GoldenRecord *record, int t, const GoldenTile *tile, const uint8_t *results,
                        const uint32_t *d) {
  int reports = 0;
  for (int i = 0; i < GOLDEN_RESULTS && reports < MAX_REPORTS; i++) {
    int m = i / GOLDEN_N, n = i % GOLDEN_N;
    uint32_t want = recorded_result(record, results, i);
    reports += d[i] != want;
    cr_expect_eq(d[i], want, "%s: tile %d (kind %d), row %d column %d, C %08x: got %08x, the H200 gave %08x",
                 record->name, t, t % KIND_COUNT, m, n, tile->c[m][n], d[i], want);
  }
}

static void check_record(File *file, const GoldenRecord *record, const GoldenTile *tiles) {
  const uint64_t *hashes = take(file, TILES * sizeof *hashes);
  size_t tile_size = GOLDEN_RESULTS * record->element_size;
  const uint8_t *results = take(file, record->full * tile_size);
  int wrong = 0;
  for (int t = 0; t < TILES; t++) {
    uint32_t d[GOLDEN_RESULTS];
    uint64_t hash;
    memcpy(&hash, &hashes[t], sizeof hash);
    compute_tile(record, &tiles[t], d);
    if (results_hash(record, d) == hash) continue;
    if (!wrong++ && t < (int)record->full) report_tile(record, t, &tiles[t], results + (size_t)t * tile_size, d);
  }
  cr_expect_eq(wrong, 0, "%s: %d of %d tiles differ", record->name, wrong, TILES);
}

// All records of a file; `count` says how many there must be. Records with the same inputs follow each other.
static void check_tensor_file(const char *name, int count) {
  File file = open_file(name);
  GoldenTile *tiles = malloc(TILES * sizeof *tiles);
  cr_assert(tiles);
  uint64_t tiles_hash = 0;
  for (int i = 0; i < count; i++) {
    GoldenRecord record;
    memcpy(&record, take(&file, sizeof record), sizeof record);
    cr_assert(!memcmp(record.magic, "HLGOLD1", 8) && record.tiles == TILES && record.full <= TILES &&
                  record.element_size == (record.result == GOLDEN_F32 ? 4 : 2),
              "%s: record %d is damaged", file.path, i);
    if (record.input_hash != tiles_hash) make_tiles(&record, tiles);
    tiles_hash = record.input_hash;
    check_record(&file, &record, tiles);
  }
  free(tiles);
  close_file(&file);
}

Test(golden, f16_into_f32) { check_tensor_file("f32.f16.bin", 12); }
Test(golden, f16_into_f16) { check_tensor_file("f16.f16.bin", 12); }
Test(golden, bf16_into_f32) { check_tensor_file("f32.bf16.bin", 11); }

// Every N of wgmma, 8 to 256: a result does not depend on the columns beside it.
Test(golden, columns_are_independent) {
  static TensorA a;
  static TensorB b;
  static GoldenTile tiles[4];
  static uint16_t columns[TENSOR_MAX_LINES][GOLDEN_K];
  static float whole[GOLDEN_M][TENSOR_MAX_LINES], part[GOLDEN_M][TENSOR_MAX_LINES];
  for (int t = 0; t < 4; t++) {
    golden_tile(GOLDEN_F16, GOLDEN_F32, GOLDEN_K, KIND_WIDE + t, &tiles[t]);
    memcpy(columns[t * GOLDEN_N], tiles[t].b, sizeof tiles[t].b);
  }
  tensor_decode_a(&a, TENSOR_F16, GOLDEN_M, GOLDEN_K, tiles[0].a[0], GOLDEN_K, 1, false);
  tensor_decode_b(&b, TENSOR_F16, TENSOR_MAX_LINES, GOLDEN_K, columns[0], 1, GOLDEN_K, false);
  tensor_step_f32(&a, &b, whole[0], TENSOR_MAX_LINES, false);
  for (int n = 8; n < TENSOR_MAX_LINES; n += 8) {
    memset(part, 0xff, sizeof part);
    tensor_decode_b(&b, TENSOR_F16, n, GOLDEN_K, columns[TENSOR_MAX_LINES - n], 1, GOLDEN_K, false);
    tensor_step_f32(&a, &b, part[0], TENSOR_MAX_LINES, false);
    for (int m = 0; m < GOLDEN_M; m++) {
      size_t size = (size_t)n * sizeof(float);
      cr_assert(!memcmp(part[m], whole[m] + TENSOR_MAX_LINES - n, size), "N = %d: row %d differs", n, m);
      for (int i = n; i < TENSOR_MAX_LINES; i++) cr_assert(isnan(part[m][i]), "N = %d: column %d written", n, i);
    }
  }
}

// ---- scalar instructions ----

enum { BLOCK = 128, TEXT_SIZE = 2048, MAX_OPERANDS = 3 };

typedef struct Scalar {
  const char *signature, *name;
} Scalar;

#define ENTRY(signature, name) {#signature, name},
static const Scalar scalars[] = {SCALARS(ENTRY)};
enum { SCALAR_COUNT = sizeof scalars / sizeof *scalars };

static const char *register_type(char letter) {
  switch (letter) {
  case 'F': return "f32";
  case 'H': return "b16";
  case 'L': return "b64";
  default: return "b32";
  }
}

// A thread reads its operands, 4 bytes each, executes the instruction, and stores 8 bytes.
static size_t make_kernel(const Scalar *scalar, char text[TEXT_SIZE]) {
  int operands = (int)strlen(scalar->signature) - 1, used = 0;
  used += snprintf(text + used, TEXT_SIZE - (size_t)used,
                   ".version 9.0\n.target sm_90a\n.address_size 64\n"
                   ".visible .entry test(.param .u64 in, .param .u64 out) {\n"
                   ".reg .b32 %%i, %%n;\n.reg .b64 %%in, %%out, %%w;\n.reg .%s %%d;\n"
                   "mov.u32 %%i, %%tid.x;\nmov.u32 %%n, %%ctaid.x;\nmad.lo.u32 %%n, %%n, %d, %%i;\n"
                   "ld.param.u64 %%in, [in];\nmul.wide.u32 %%w, %%n, %d;\nadd.u64 %%in, %%in, %%w;\n"
                   "ld.param.u64 %%out, [out];\nmul.wide.u32 %%w, %%n, 8;\nadd.u64 %%out, %%out, %%w;\n",
                   register_type(scalar->signature[0]), BLOCK, 4 * MAX_OPERANDS);
  for (int j = 0; j < operands; j++) {
    const char *type = register_type(scalar->signature[1 + j]);
    used += snprintf(text + used, TEXT_SIZE - (size_t)used, ".reg .%s %%s%d;\nld.global.%s %%s%d, [%%in+%d];\n", type,
                     j, type, j, 4 * j);
  }
  used += snprintf(text + used, TEXT_SIZE - (size_t)used, "%s %%d", scalar->name);
  for (int j = 0; j < operands; j++) used += snprintf(text + used, TEXT_SIZE - (size_t)used, ", %%s%d", j);
  used += snprintf(text + used, TEXT_SIZE - (size_t)used, ";\nst.global.%s [%%out], %%d;\nret;\n}\n",
                   register_type(scalar->signature[0]));
  cr_assert(used < TEXT_SIZE);
  return (size_t)used;
}

typedef struct Operands {
  uint32_t bits[MAX_OPERANDS];
} Operands;

// results[i] is the instruction's on inputs[i], the register's bits. count is a multiple of BLOCK.
static void run_scalar(const Scalar *scalar, const Operands *inputs, int count, uint64_t *results) {
  char text[TEXT_SIZE];
  size_t length = make_kernel(scalar, text);
  EmulatorError error = {0};
  Emulator *emulator = emulator_open(&(EmulatorOptions){.hazards = true, .threads = 1});
  cr_assert(emulator);
  EmulatorModule *module = emulator_load(emulator, text, length, &error);
  cr_assert(module, "%s: line %d: %s\n%s", scalar->name, error.line, error.message, text);
  size_t in_size = (size_t)count * sizeof *inputs, out_size = (size_t)count * sizeof *results;
  uint64_t in = emulator_alloc(emulator, in_size), out = emulator_alloc(emulator, out_size);
  emulator_write(emulator, in, inputs, in_size);
  emulator_fill(emulator, out, 0, out_size);
  const void *const arguments[] = {&in, &out};
  EmulatorLaunch launch = {.kernel = "test",
                           .grid = {(unsigned)count / BLOCK, 1, 1},
                           .block = {BLOCK, 1, 1},
                           .arguments = arguments,
                           .argument_count = 2};
  EmulatorStatus status = emulator_launch(emulator, module, &launch, &error);
  cr_assert_eq(status, EMULATOR_OK, "%s: %s", scalar->name, error.message);
  emulator_read(emulator, results, out, out_size);
  emulator_close(emulator);
}

// ---- how far an approximate function may be off ----

// Units in the last place, or, if that is more, an absolute error. The emulator computes these functions in double and
// rounds once, so these are the hardware's own errors. They come from a sweep of all 2^32 inputs on the H200 (special
// functions of one f32; lg2's absolute one is also PTX ISA 9.7.3's for 0.5 < x < 2), from all 65536 inputs (16-bit
// forms), or from PTX ISA 9.7.3 (div). sin and cos, of an angle reduced as the hardware does it, are off by up to
// 2^-21.5 in these vectors, however large the angle; PTX ISA gives 2^-20.5 for small ones.
typedef struct Tolerance {
  const char *prefix;
  int64_t ulps;
  double absolute;
} Tolerance;

static const Tolerance tolerances[] = {
    {"ex2.approx.f32", 2, 0},    {"ex2.approx.ftz.f32", 2, 0},  {"lg2.approx.", 2, 0x1p-22},
    {"rcp.approx.", 1, 0},       {"sqrt.approx.", 1, 0},        {"rsqrt.approx.", 2, 0},
    {"sin.approx.", 0, 0x1p-21}, {"cos.approx.", 0, 0x1p-21},   {"tanh.approx.f32", 134, 0},
    {"div.approx.", 2, 0},       {"div.full.", 2, 0},           {"ex2.approx.f16", 1, 0},
    {"tanh.approx.f16", 1, 0},   {"ex2.approx.ftz.bf16", 1, 0}, {"tanh.approx.bf16", 1, 0},
};

static Tolerance find_tolerance(const char *name) {
  for (size_t i = 0; i < sizeof tolerances / sizeof *tolerances; i++)
    if (!strncmp(name, tolerances[i].prefix, strlen(tolerances[i].prefix))) return tolerances[i];
  return (Tolerance){name, 0, 0};
}

// The number that some bits are in a format: F32, F16 or BF16.
static double value_of(GoldenFormat format, uint32_t bits) {
  float value;
  if (format == GOLDEN_F16) return half_to_float((Half)bits);
  if (format == GOLDEN_BF16) bits <<= 16;
  memcpy(&value, &bits, sizeof value);
  return value;
}

// Bits in the order of their values, so that neighbours differ by one.
static int64_t ordered(GoldenFormat format, uint32_t bits) {
  uint32_t sign = format == GOLDEN_F32 ? 0x80000000u : 0x8000u;
  return bits & sign ? -(int64_t)(bits & (sign - 1)) : (int64_t)bits;
}

// Infinities and NaNs must be equal; zeros of an approximate function may differ in sign.
static bool close_enough(Tolerance tolerance, GoldenFormat format, uint32_t got, uint32_t want) {
  if (got == want) return true;
  double got_value = value_of(format, got), want_value = value_of(format, want);
  if (!isfinite(got_value) || !isfinite(want_value) || (!tolerance.ulps && !tolerance.absolute)) return false;
  int64_t distance = ordered(format, got) - ordered(format, want);
  return llabs(distance) <= tolerance.ulps || fabs(got_value - want_value) <= tolerance.absolute;
}

static bool result_is_right(const Scalar *scalar, Tolerance tolerance, uint64_t got, uint64_t want) {
  if (!tolerance.ulps && !tolerance.absolute) return got == want;
  if (scalar->signature[0] == 'F') return close_enough(tolerance, GOLDEN_F32, (uint32_t)got, (uint32_t)want);
  GoldenFormat format = strstr(scalar->name, "bf16") ? GOLDEN_BF16 : GOLDEN_F16;
  bool low = close_enough(tolerance, format, got & 0xffff, want & 0xffff);
  return low && close_enough(tolerance, format, got >> 16 & 0xffff, want >> 16 & 0xffff);
}

static void check_scalar(File *file, const Scalar *scalar) {
  ScalarRecord record;
  memcpy(&record, take(file, sizeof record), sizeof record);
  int count = scalar_is_exhaustive(scalar->signature, scalar->name) ? 65536 : SCALAR_INPUTS;
  cr_assert(!memcmp(record.magic, "HLSCAL1", 8) && !strncmp(record.name, scalar->name, sizeof record.name) &&
                !strncmp(record.signature, scalar->signature, sizeof record.signature) &&
                record.inputs == (uint32_t)count && (int)record.result_size == scalar_result_size(scalar->signature),
            "%s: no record of %s where it should be", file->path, scalar->name);
  const uint8_t *recorded = take(file, (size_t)count * record.result_size);

  int operands = (int)strlen(scalar->signature) - 1, wrong = 0;
  Operands *inputs = calloc((size_t)count, sizeof *inputs);
  uint64_t *results = malloc((size_t)count * sizeof *results), hash = FNV1A_START;
  cr_assert(inputs && results);
  for (int j = 0; j < operands; j++)
    for (int i = 0; i < count; i++) {
      inputs[i].bits[j] = scalar_input(scalar->signature, scalar->name, i, j);
      hash = fnv1a(hash, &inputs[i].bits[j], sizeof inputs[i].bits[j]);
    }
  for (int i = 0; i < (MAX_OPERANDS - operands) * count; i++) hash = fnv1a(hash, &(uint32_t){0}, 4);
  cr_assert_eq(hash, record.input_hash, "%s: other inputs than it was recorded with", scalar->name);

  run_scalar(scalar, inputs, count, results);
  for (int i = 0; i < count; i++) {
    uint64_t want = 0;  // little-endian, as the file
    memcpy(&want, recorded + (size_t)i * record.result_size, record.result_size);
    bool right = result_is_right(scalar, find_tolerance(scalar->name), results[i], want);
    if (right || wrong++ >= MAX_REPORTS) continue;
    const uint32_t *in = inputs[i].bits;
    cr_expect(right, "%s of %08x %08x %08x: got %llx, the H200 gave %llx", scalar->name, in[0], in[1], in[2],
              (unsigned long long)results[i], (unsigned long long)want);
  }
  cr_expect_eq(wrong, 0, "%s: %d of %d results are wrong", scalar->name, wrong, count);
  free(inputs);
  free(results);
}

static int find_scalar(const char *name) {
  int i = 0;
  while (i < SCALAR_COUNT && strcmp(scalars[i].name, name)) i++;
  return i;
}

// The file holds the instructions of SCALARS from one up to another.
static void check_scalar_file(const char *name, int first, int end) {
  File file = open_file(name);
  cr_assert(first < end && end <= SCALAR_COUNT);
  for (int i = first; i < end; i++) check_scalar(&file, &scalars[i]);
  close_file(&file);
}

Test(golden, special_functions) { check_scalar_file("special.bin", 0, find_scalar("cvt.rn.f16.f32")); }

Test(golden, conversions) { check_scalar_file("convert.bin", find_scalar("cvt.rn.f16.f32"), find_scalar("add.f32")); }

Test(golden, arithmetic) { check_scalar_file("arithmetic.bin", find_scalar("add.f32"), SCALAR_COUNT); }
