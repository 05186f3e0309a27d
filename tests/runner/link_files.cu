// The driver's linker takes the device code of objects and libraries: link_files FILE.o FILE.a
#include <cuda.h>

#include "check.h"

static const char ptx[] = ".version 8.0\n.target sm_90a\n.address_size 64\n"
                          ".extern .func (.param .b32 r) _Z10add_hiddeni(.param .b32 a);\n"
                          ".extern .func (.param .b32 r) _Z16from_the_libraryi(.param .b32 a);\n"
                          ".visible .entry both(.param .u64 out) {\n"
                          "  .reg .b32 %r<2>; .reg .b64 %rd; .param .b32 a; .param .b32 r;\n"
                          "  st.param.b32 [a], 1; call (r), _Z10add_hiddeni, (a); ld.param.b32 %r0, [r];\n"
                          "  st.param.b32 [a], %r0; call (r), _Z16from_the_libraryi, (a); ld.param.b32 %r1, [r];\n"
                          "  ld.param.u64 %rd, [out]; st.global.u32 [%rd], %r1; ret;\n"
                          "}\n";

#define DRIVER(call) EXPECT((call) == CUDA_SUCCESS)

int main(int, char **argv) {
  CUlinkState linker;
  CUmodule module;
  CUfunction function;
  void *image;
  size_t size;
  int *out;
  CHECK(cudaMallocManaged(&out, sizeof *out));
  DRIVER(cuLinkCreate(0, nullptr, nullptr, &linker));
  DRIVER(cuLinkAddData(linker, CU_JIT_INPUT_PTX, (void *)ptx, sizeof ptx, "both", 0, nullptr, nullptr));
  EXPECT(cuLinkAddFile(linker, CU_JIT_INPUT_LIBRARY, "no.a", 0, nullptr, nullptr) == CUDA_ERROR_FILE_NOT_FOUND);
  DRIVER(cuLinkAddFile(linker, CU_JIT_INPUT_OBJECT, argv[1], 0, nullptr, nullptr));
  DRIVER(cuLinkAddFile(linker, CU_JIT_INPUT_LIBRARY, argv[2], 0, nullptr, nullptr));
  DRIVER(cuLinkComplete(linker, &image, &size));
  DRIVER(cuModuleLoadData(&module, image));
  DRIVER(cuLinkDestroy(linker));
  DRIVER(cuModuleGetFunction(&function, module, "both"));
  void *arguments[] = {&out};
  DRIVER(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr));
  CHECK(cudaDeviceSynchronize());
  EXPECT(*out == 1002);
  printf("right\n");
  return 0;
}
