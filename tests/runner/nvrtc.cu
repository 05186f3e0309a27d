// A kernel that is compiled while the program runs, for a GPU and not for PTX, as the samples of NVRTC do.
#include <cuda.h>
#include <nvrtc.h>

#include <cstdlib>

#include "check.h"

static const char source[] = "extern \"C\" __global__ void twice(int *values) { values[threadIdx.x] *= 2; }\n";

int main() {
  nvrtcProgram program;
  const char *options[] = {"--gpu-architecture=sm_90a"};
  size_t size = 0;
  EXPECT(nvrtcCreateProgram(&program, source, "twice.cu", 0, nullptr, nullptr) == NVRTC_SUCCESS);
  EXPECT(nvrtcCompileProgram(program, 1, options) == NVRTC_SUCCESS);
  EXPECT(nvrtcGetCUBINSize(program, &size) == NVRTC_SUCCESS);
  char *cubin = (char *)malloc(size);
  EXPECT(nvrtcGetCUBIN(program, cubin) == NVRTC_SUCCESS);

  int *values;
  CHECK(cudaMallocManaged(&values, 32 * sizeof *values));
  for (int i = 0; i < 32; i++) values[i] = i;
  CUmodule module;
  CUfunction function;
  EXPECT(cuModuleLoadData(&module, cubin) == CUDA_SUCCESS);
  EXPECT(cuModuleGetFunction(&function, module, "twice") == CUDA_SUCCESS);
  void *arguments[] = {&values};
  EXPECT(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, nullptr, arguments, nullptr) == CUDA_SUCCESS);
  CHECK(cudaDeviceSynchronize());
  EXPECT(values[31] == 62);
  puts("right");
}
