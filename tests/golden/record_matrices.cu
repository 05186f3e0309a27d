// Records the matrix instructions of matrix_forms.h on an H200: hashes of their results, and for the second directory
// all results, to find a model with. test_matrix_golden.c then says what differs from the emulator.
#include "matrix_inputs.h"
#include "record.h"

#define NAME(name) name,
static const char *const names[] = {MATRIX_FORMS(NAME)};

static std::vector<uint8_t> make_inputs(const MatrixForm *form, int count) {
  static MatrixTile tile;
  std::vector<uint8_t> bytes((size_t)count * form->block_in);
  for (int t = 0; t < count; t++) {
    matrix_tile(form, t, &tile);
    matrix_lay_out(form, &tile, bytes.data() + (size_t)t * form->block_in);
  }
  return bytes;
}

static std::vector<uint8_t> execute(const MatrixForm *form, const std::vector<uint8_t> &inputs, int count) {
  static MatrixText text;
  cudaLibrary_t library;
  matrix_kernel(form, &text);
  cudaKernel_t kernel = compile_kernel(text.text, "matrix", &library);
  std::vector<uint8_t> results((size_t)count * form->block_out);
  uint8_t *in = upload(inputs), *out = upload(results);
  void *arguments[] = {&in, &out};
  CHECK(cudaLaunchKernel((const void *)kernel, dim3(count), dim3(form->threads), arguments, 0, nullptr));
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpy(results.data(), out, results.size(), cudaMemcpyDeviceToHost));
  CHECK(cudaFree(in));
  CHECK(cudaFree(out));
  CHECK(cudaLibraryUnload(library));
  return results;
}

static void record_form(const char *name, FILE *golden, FILE *explore) {
  MatrixForm form = matrix_form(name);
  int count = matrix_tile_count(&form);
  std::vector<uint8_t> inputs = make_inputs(&form, count), results = execute(&form, inputs, count);
  MatrixRecord record = {};
  memcpy(record.magic, "HLMATR1", 8);
  snprintf(record.name, sizeof record.name, "%s", name);
  record.input_hash = fnv1a(FNV1A_START, inputs.data(), inputs.size());
  for (int kind = 0; kind < MATRIX_KINDS; kind++) record.hashes[kind] = FNV1A_START;
  for (int t = 0; t < count; t++) {
    uint64_t *hash = &record.hashes[t % MATRIX_KINDS];
    *hash = fnv1a(*hash, results.data() + (size_t)t * form.block_out, (size_t)form.block_out);
  }
  write_bytes(golden, &record, sizeof record);
  write_bytes(explore, &record, sizeof record);
  write_bytes(explore, results.data(), results.size());
  printf("%s: %d tiles\n", name, count);
}

void record_matrices(const char *golden_directory, const char *explore_directory) {
  FILE *golden = open_file(golden_directory, "matrices.bin", "wb");
  FILE *explore = open_file(explore_directory, "matrices.full", "wb");
  for (const char *name : names) record_form(name, golden, explore);
  close_file(golden);
  close_file(explore);
}
