// The matrix instructions beyond fp16 and bf16 on the emulator, bit for bit as an H200 executed them: the kernels of
// golden/matrix_forms.h on the inputs of golden/matrix_inputs.h, and the hashes of what the H200 gave. Layouts of
// registers, metadata and shared memory are compared as well as arithmetic.
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "emulator/emulator.h"
#include "emulator/warp/rounded.h"
#include "golden/matrix_inputs.h"

TestSuite(matrix_golden, .timeout = 120);

#define NAME(name) name,
static const char *const names[] = {MATRIX_FORMS(NAME)};
enum { FORMS = sizeof names / sizeof *names };

// The records, in the order of the forms.
static MatrixRecord *read_records(void) {
  char path[4096];
  const char *root = getenv("HL_ROOT");
  snprintf(path, sizeof path, "%s/tests/golden/matrices.bin", root ? root : ".");
  FILE *file = fopen(path, "rb");
  MatrixRecord *records = calloc(FORMS + 1, sizeof *records);
  cr_assert(file && records, "%s: cannot be read; HL_ROOT must be the repository's root", path);
  cr_assert_eq(fread(records, sizeof *records, FORMS + 1, file), FORMS, "%s: not as many records as forms", path);
  fclose(file);
  return records;
}

static uint8_t *make_inputs(const MatrixForm *form, int count) {
  static MatrixTile tile;
  uint8_t *bytes = malloc((size_t)count * (size_t)form->block_in);
  cr_assert(bytes);
  for (int t = 0; t < count; t++) {
    matrix_tile(form, t, &tile);
    matrix_lay_out(form, &tile, bytes + (size_t)t * (size_t)form->block_in);
  }
  return bytes;
}

// What the kernel makes of `count` tiles. The hazard checks are on: the kernels have none.
static uint8_t *execute(const MatrixForm *form, const char *name, const uint8_t *inputs, int count) {
  static MatrixText text;
  EmulatorError error = {0};
  matrix_kernel(form, &text);
  Emulator *emulator = emulator_open(&(EmulatorOptions){.hazards = true, .threads = 1});
  EmulatorModule *module = emulator_load(emulator, text.text, (size_t)text.used, &error);
  cr_assert(module, "%s: line %d: %s", name, error.line, error.message);
  size_t in_size = (size_t)count * (size_t)form->block_in, out_size = (size_t)count * (size_t)form->block_out;
  uint64_t in = emulator_alloc(emulator, in_size), out = emulator_alloc(emulator, out_size);
  emulator_write(emulator, in, inputs, in_size);
  EmulatorLaunch launch = {.kernel = "matrix",
                           .grid = {(unsigned)count, 1, 1},
                           .block = {(unsigned)form->threads, 1, 1},
                           .arguments = (const void *const[]){&in, &out},
                           .argument_count = 2};
  cr_assert_eq(emulator_launch(emulator, module, &launch, &error), EMULATOR_OK, "%s: %s", name, error.message);
  int hazards;
  const Hazard *list = emulator_hazards(emulator, &hazards);
  cr_expect_eq(hazards, 0, "%s: %s", name, hazards ? hazard_name(list[0].kind) : "");
  uint64_t operations = 2ull * (uint64_t)(form->m * form->n * form->k * count);
  cr_expect_eq(emulator_counters(emulator).value[COUNTER_TENSOR_FLOPS], operations, "%s", name);
  uint8_t *results = malloc(out_size);
  cr_assert(results);
  emulator_read(emulator, results, out, out_size);
  emulator_close(emulator);
  return results;
}

static void check_form(const char *name, const MatrixRecord *record) {
  MatrixForm form = matrix_form(name);
  int count = matrix_tile_count(&form);
  uint8_t *inputs = make_inputs(&form, count);
  cr_assert(!strcmp(record->name, name) && !memcmp(record->magic, "HLMATR1", 8), "%s: no record of it", name);
  cr_assert_eq(fnv1a(FNV1A_START, inputs, (size_t)count * (size_t)form.block_in), record->input_hash,
               "%s: other inputs than it was recorded with", name);
  uint8_t *results = execute(&form, name, inputs, count);
  for (int kind = 0; kind < MATRIX_KINDS; kind++) {
    uint64_t hash = FNV1A_START;
    for (int t = kind; t < count; t += MATRIX_KINDS)
      hash = fnv1a(hash, results + (size_t)t * (size_t)form.block_out, (size_t)form.block_out);
    cr_expect_eq(hash, record->hashes[kind], "%s: results of kind %d are not those of the H200", name, kind);
  }
  free(inputs);
  free(results);
}

// The forms that begin with `start`; there must be `count`.
static void check_forms(const char *start, int count) {
  MatrixRecord *records = read_records();
  int found = 0;
  for (int i = 0; i < FORMS; i++) {
    if (strncmp(names[i], start, strlen(start))) continue;
    check_form(names[i], &records[i]);
    found++;
  }
  cr_expect_eq(found, count, "%s: %d forms", start, found);
  free(records);
}

Test(matrix_golden, mma_of_small_shapes) { check_forms("mma.sync.aligned.m8n8", 16); }
Test(matrix_golden, mma_of_small_shapes_rounded_by_software) {
  round_by_software();
  check_forms("mma.sync.aligned.m8n8", 16);
}
Test(matrix_golden, mma) { check_forms("mma.sync.aligned.m16n8", 54); }
Test(matrix_golden, sparse_mma) { check_forms("mma.sp", 36); }
Test(matrix_golden, wgmma) { check_forms("wgmma.mma_async.sync", 41); }
Test(matrix_golden, sparse_wgmma) { check_forms("wgmma.mma_async.sp", 37); }
Test(matrix_golden, wmma) { check_forms("wmma", 14); }
