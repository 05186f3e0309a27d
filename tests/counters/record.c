// Launches every case of cases.h once, in order, on the GPU; record.sh runs it under Nsight Compute.
//
//   record --list           prints the cases' names and kernels, one a line; needs no GPU
//   record patterns.cubin   launches them
#include <cuda.h>
#include <cuda_runtime.h>
#include <stdlib.h>
#include <string.h>

#include "cases.h"

static void check(cudaError_t error, const char *what) {
  if (error == cudaSuccess) return;
  fprintf(stderr, "record: %s: %s\n", what, cudaGetErrorString(error));
  exit(1);
}

typedef CUresult EncodeTiled(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *,
                             const cuuint64_t *, const cuuint32_t *, const cuuint32_t *, CUtensorMapInterleave,
                             CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

// The driver's own encoder, found at run time: nothing is linked with the driver.
static EncodeTiled *find_encoder(void) {
  void *found = NULL;
  enum cudaDriverEntryPointQueryResult result;
  check(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &result),
        "cuTensorMapEncodeTiled");
  return (EncodeTiled *)found;
}

static CUtensorMap tensor_map(const CounterCase *c, void *memory) {
  const CaseTensor *t = &c->tensor;
  CUtensorMap map;
  cuuint64_t size[] = {(cuuint64_t)t->width, (cuuint64_t)t->height}, stride[] = {(cuuint64_t)t->pitch};
  cuuint32_t box[] = {(cuuint32_t)t->box_width, (cuuint32_t)t->box_height}, one[] = {1, 1};
  CUtensorMapDataType type = t->element_bytes == 2 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
  CUtensorMapSwizzle swizzle = t->swizzle == 128  ? CU_TENSOR_MAP_SWIZZLE_128B
                               : t->swizzle == 64 ? CU_TENSOR_MAP_SWIZZLE_64B
                               : t->swizzle == 32 ? CU_TENSOR_MAP_SWIZZLE_32B
                                                  : CU_TENSOR_MAP_SWIZZLE_NONE;
  CUresult result = find_encoder()(&map, type, 2, memory, size, stride, box, one, CU_TENSOR_MAP_INTERLEAVE_NONE,
                                   swizzle, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result == CUDA_SUCCESS) return map;
  fprintf(stderr, "record: %s: cuTensorMapEncodeTiled says %d\n", c->name, (int)result);
  exit(1);
}

static void launch(cudaLibrary_t library, CounterCase *c, void *memory) {
  cudaKernel_t kernel;
  CUtensorMap map = {0};
  void *arguments[] = {&c->offsets, &memory, &map};  // of which a kernel takes the third or not
  if (c->tensor.width) map = tensor_map(c, memory);
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
