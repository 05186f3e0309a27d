// Records the matrix instructions of matrix_forms.h on an H200: the hashes of their results, and for the second
// directory all results, to find a model with. A process of its own does the work, so that after a kernel that fails
// another process can go on with the next form.
#include "matrix_inputs.h"
#include "record.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define NAME(name) name,
static const char *const names[] = {MATRIX_FORMS(NAME)};

// The kernel, compiled by ptxas when there is one on the path, else by the driver.
static cudaKernel_t compile(const MatrixForm *form, cudaLibrary_t *library) {
  static MatrixText text;
  static char log[8192];
  matrix_kernel(form, &text);
  FILE *file = open_file(".", "matrix.ptx", "w");
  write_bytes(file, text.text, (size_t)text.used);
  close_file(file);
  if (!getenv("MATRIX_JIT") && !system("ptxas -arch=sm_90a matrix.ptx -o matrix.cubin")) {
    CHECK(cudaLibraryLoadFromFile(library, "matrix.cubin", nullptr, nullptr, 0, nullptr, nullptr, 0));
  } else {
    cudaJitOption options[] = {cudaJitErrorLogBuffer, cudaJitErrorLogBufferSizeBytes};
    void *values[] = {log, (void *)(uintptr_t)sizeof log};
    cudaError_t error = cudaLibraryLoadData(library, text.text, options, values, 2, nullptr, nullptr, 0);
    if (error != cudaSuccess) fprintf(stderr, "%s: %s\n%s\n", form->text, log, text.text);
    CHECK(error);
  }
  cudaKernel_t kernel;
  CHECK(cudaLibraryGetKernel(&kernel, *library, "matrix"));
  return kernel;
}

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
  cudaLibrary_t library;
  cudaKernel_t kernel = compile(form, &library);
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

static void record_form(const char *name, const char *golden, const char *explore_directory) {
  MatrixForm form = matrix_form(name);
  int count = matrix_tile_count(&form);
  std::vector<uint8_t> inputs = make_inputs(&form, count), results = execute(&form, inputs, count);
  MatrixRecord record = {};
  memcpy(record.magic, "HLMATR1", 8);
  snprintf(record.name, sizeof record.name, "%s", name);
  record.input_hash = golden_fnv(golden_fnv_start, inputs.data(), inputs.size());
  for (int kind = 0; kind < MATRIX_KINDS; kind++) record.hashes[kind] = golden_fnv_start;
  for (int t = 0; t < count; t++) {
    uint64_t *hash = &record.hashes[t % MATRIX_KINDS];
    *hash = golden_fnv(*hash, results.data() + (size_t)t * form.block_out, (size_t)form.block_out);
  }
  FILE *file = open_file(golden, "matrices.bin", "ab"), *explore = open_file(explore_directory, "matrices.full", "ab");
  write_bytes(file, &record, sizeof record);
  write_bytes(explore, &record, sizeof record);
  write_bytes(explore, results.data(), results.size());
  close_file(file);
  close_file(explore);
  printf("%s: %d tiles\n", name, count);
  fflush(stdout);
}

void record_matrices(const char *golden, const char *explore_directory) {
  enum { COUNT = sizeof names / sizeof *names };
  close_file(open_file(golden, "matrices.bin", "wb"));
  close_file(open_file(explore_directory, "matrices.full", "wb"));
  volatile int *next = (volatile int *)mmap(nullptr, sizeof *next, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  while (*next < COUNT) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
      for (; *next < COUNT; *next = *next + 1) record_form(names[*next], golden, explore_directory);
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (*next < COUNT) printf("FAILED: %s\n", names[*next]), *next = *next + 1;
  }
}
