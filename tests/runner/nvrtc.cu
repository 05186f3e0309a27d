// A kernel that is compiled while the program runs, for a GPU and not for PTX, as the samples of NVRTC do; by the NVRTC
// that the program is linked with, and by one that it opens, as Python's libraries do.
#include <cuda.h>
#include <dlfcn.h>
#include <nvrtc.h>

#include <cstdlib>
#include <cstring>

#include "check.h"

static const char source[] = "extern \"C\" __global__ void twice(int *values) { values[threadIdx.x] *= 2; }\n";

struct Nvrtc {
  decltype(nvrtcCreateProgram) *create;
  decltype(nvrtcCompileProgram) *compile;
  decltype(nvrtcGetCUBINSize) *size;
  decltype(nvrtcGetCUBIN) *cubin;
};

static void run(const Nvrtc &nvrtc) {
  nvrtcProgram program;
  const char *options[] = {"--gpu-architecture=sm_90a"};
  size_t size = 0;
  EXPECT(nvrtc.create(&program, source, "twice.cu", 0, nullptr, nullptr) == NVRTC_SUCCESS);
  EXPECT(nvrtc.compile(program, 1, options) == NVRTC_SUCCESS);
  EXPECT(nvrtc.size(program, &size) == NVRTC_SUCCESS);
  char *cubin = (char *)malloc(size);
  EXPECT(nvrtc.cubin(program, cubin) == NVRTC_SUCCESS);
  EXPECT(strstr(cubin, "twice.cu\"") && strstr(cubin, ".loc"));  // lines, which the options have not asked for

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
}

int main() {
  run({nvrtcCreateProgram, nvrtcCompileProgram, nvrtcGetCUBINSize, nvrtcGetCUBIN});
  Dl_info linked;
  EXPECT(dladdr((void *)nvrtcVersion, &linked));
  void *opened = dlopen(linked.dli_fname, RTLD_NOW | RTLD_LOCAL);
  EXPECT(opened);
#define FUNCTION(name) (decltype(name) *)dlsym(opened, #name)
  run({FUNCTION(nvrtcCreateProgram), FUNCTION(nvrtcCompileProgram), FUNCTION(nvrtcGetCUBINSize),
       FUNCTION(nvrtcGetCUBIN)});
  EXPECT(!dlsym(opened, "nvrtcGetNothing"));
  // What is next depends on who asks: for the program that is the stand-in, and for the stand-in libc.
  EXPECT(dlsym(RTLD_NEXT, "dlsym") == dlsym(RTLD_DEFAULT, "dlsym"));
  puts("right");
}
