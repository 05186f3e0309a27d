// Records the golden vectors on an H200: what the tensor cores and the special functions really compute.
//
//   make record-golden     runs   ./record tests/golden EXPLORE_DIRECTORY
//   ./record DIRECTORY     records DIRECTORY/tensor_copies.txt alone
//   ./record --carry DIRECTORY           records DIRECTORY/carry.bin alone
//   ./record --contraction DIRECTORY     records DIRECTORY/contraction.bin alone
//
// The first directory receives the vectors that the tests use (*.bin, below 1 MB each); the second more of the same, to
// find a model with: explore.bin, matrices.full, ulp.txt and ulp.bin (errors of the special functions over all 2^32
// inputs), and summary.txt (where tensor_core.c and the hardware differ).
#include "record.h"

#include <cstdlib>
#include <cstring>

void check_cuda(cudaError_t error, const char *what, const char *file, int line) {
  if (error == cudaSuccess) return;
  fprintf(stderr, "%s:%d: %s: %s\n", file, line, what, cudaGetErrorString(error));
  exit(3);
}

FILE *open_file(const char *directory, const char *name, const char *mode) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", directory, name);
  FILE *file = fopen(path, mode);
  if (file) return file;
  fprintf(stderr, "record: cannot write %s: the directory must exist\n", path);
  exit(2);
}

void write_bytes(FILE *file, const void *data, size_t size) {
  if (fwrite(data, 1, size, file) == size) return;
  perror("record: cannot write");
  exit(1);
}

void close_file(FILE *file) {
  if (!fclose(file)) return;
  perror("record: cannot write");
  exit(1);
}

cudaKernel_t compile_kernel(const char *text, const char *name, cudaLibrary_t *library) {
  static char log[8192];
  cudaJitOption options[] = {cudaJitErrorLogBuffer, cudaJitErrorLogBufferSizeBytes};
  void *values[] = {log, (void *)(uintptr_t)sizeof log};
  cudaError_t error = cudaLibraryLoadData(library, text, options, values, 2, nullptr, nullptr, 0);
  if (error != cudaSuccess) fprintf(stderr, "%s\n%s\n", log, text);
  CHECK(error);
  cudaKernel_t kernel;
  CHECK(cudaLibraryGetKernel(&kernel, *library, name));
  return kernel;
}

int main(int argc, char **argv) {
  if (argc == 3 && !strcmp(argv[1], "--carry")) return record_carry(argv[2]), 0;
  if (argc == 3 && !strcmp(argv[1], "--contraction")) return record_contraction(argv[2]), 0;
  if ((argc != 2 && argc != 3) || argv[1][0] == '-') {
    fprintf(stderr, "usage: record GOLDEN_DIRECTORY [EXPLORE_DIRECTORY], record --carry|--contraction GOLDEN_DIRECTORY\n");
    return 2;
  }
  record_tensors(argv[1]);
  if (argc == 2) return 0;
  cudaDeviceProp properties;
  CHECK(cudaGetDeviceProperties(&properties, 0));
  int driver = 0;
  CHECK(cudaDriverGetVersion(&driver));
  printf("%s, compute capability %d.%d, driver for CUDA %d\n", properties.name, properties.major, properties.minor,
         driver);
  record_tensor_cores(argv[1], argv[2]);
  record_matrices(argv[1], argv[2]);
  record_scalars(argv[1]);
  record_video(argv[1]);
  record_carry(argv[1]);
  record_contraction(argv[1]);
  record_ulps(argv[2]);
  printf("done\n");
  return 0;
}
