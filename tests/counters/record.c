// Launches every case of cases.h once, in order, on the GPU; record.sh runs it under Nsight Compute.
//
//   record --list           prints the cases' names and kernels, one a line; needs no GPU
//   record patterns.cubin   launches them
#include <cuda_runtime.h>
#include <stdlib.h>
#include <string.h>

#include "cases.h"

static void check(cudaError_t error, const char *what) {
  if (error == cudaSuccess) return;
  fprintf(stderr, "record: %s: %s\n", what, cudaGetErrorString(error));
  exit(1);
}

static void launch(cudaLibrary_t library, CounterCase *c, void *memory) {
  cudaKernel_t kernel;
  void *arguments[] = {&c->offsets, &memory};
  check(cudaLibraryGetKernel(&kernel, library, c->kernel), c->kernel);
  check(cudaMemset(memory, 0, MEMORY_BYTES), "cudaMemset");
  check(cudaLaunchKernel((const void *)kernel, (dim3){c->blocks, 1, 1}, (dim3){c->threads, 1, 1}, arguments,
                         SHARED_BYTES, 0),
        c->name);
  check(cudaDeviceSynchronize(), c->name);
}

int main(int argc, char **argv) {
  if (argc != 2) return fprintf(stderr, "usage: record --list | record patterns.cubin\n"), 2;
  bool list = !strcmp(argv[1], "--list");
  cudaLibrary_t library;
  void *memory = NULL;
  if (!list) {
    check(cudaLibraryLoadFromFile(&library, argv[1], NULL, NULL, 0, NULL, NULL, 0), argv[1]);
    check(cudaMalloc(&memory, MEMORY_BYTES), "cudaMalloc");
  }
  static CounterCase c;
  for (int i = 0; counter_case(i, &c); i++) {
    if (list)
      printf("%s,%s\n", c.name, c.kernel);
    else
      launch(library, &c, memory);
  }
  return 0;
}
