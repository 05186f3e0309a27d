// A program that uses the driver API alone, with PTX of its own: a module by two forms of its arguments, and a library.
#include <cuda.h>

#include <string.h>

#include "expect.h"

// Contexts are still attached and detached by PyCUDA.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#if CUDA_VERSION >= 13000
#define CREATE_CONTEXT(context, device) cuCtxCreate(context, NULL, 0, device)
#else
#define CREATE_CONTEXT(context, device) cuCtxCreate(context, 0, device)
#endif

static const char ptx[] = ".version 8.0\n"
                          ".target sm_90a\n"
                          ".address_size 64\n"
                          ".global .align 4 .u32 offset = 100;\n"
                          ".entry fill(.param .u32 n, .param .u64 out) {\n"
                          "  .reg .pred %p;\n"
                          "  .reg .b32 %r<5>;\n"
                          "  .reg .b64 %rd<4>;\n"
                          "  mov.u32 %r0, %tid.x;\n"
                          "  ld.param.u32 %r1, [n];\n"
                          "  setp.ge.u32 %p, %r0, %r1;\n"
                          "  @%p bra done;\n"
                          "  ld.global.u32 %r2, [offset];\n"
                          "  add.u32 %r3, %r0, %r2;\n"
                          "  ld.param.u64 %rd0, [out];\n"
                          "  mul.wide.u32 %rd1, %r0, 4;\n"
                          "  add.u64 %rd2, %rd0, %rd1;\n"
                          "  st.global.u32 [%rd2], %r3;\n"
                          "done:\n"
                          "  ret;\n"
                          "}\n";

#define CHECK(call)                                                                                                    \
  do {                                                                                                                 \
    CUresult status = (call);                                                                                          \
    const char *name = "?";                                                                                            \
    if (status != CUDA_SUCCESS) {                                                                                      \
      cuGetErrorName(status, &name);                                                                                   \
      printf("line %d: %s\n", __LINE__, name);                                                                         \
      exit(10);                                                                                                        \
    }                                                                                                                  \
  } while (0)

// Two texts that need each other, and what a third one has already. Each has a variable `own`.
static const char caller[] = ".version 8.0\n.target sm_90a\n.address_size 64\n"
                             ".extern .global .align 4 .u32 base;\n"
                             ".extern .func (.param .b32 r) plus_own(.param .b32 a);\n"
                             ".global .align 4 .u32 own = 5;\n"
                             ".visible .entry sum(.param .u64 out) {\n"
                             "  .reg .b32 %r<4>; .reg .b64 %rd; .param .b32 a; .param .b32 r;\n"
                             "  ld.global.u32 %r0, [base]; ld.global.u32 %r1, [own]; add.u32 %r0, %r0, %r1;\n"
                             "  st.param.b32 [a], %r0; call (r), plus_own, (a); ld.param.b32 %r2, [r];\n"
                             "  ld.param.u64 %rd, [out]; st.global.u32 [%rd], %r2; ret;\n"
                             "}\n";
static const char callee[] = ".version 7.8\n.target sm_90\n.address_size 64\n"
                             ".global .align 4 .u32 own = 100;\n"
                             ".visible .global .align 4 .u32 base = 1000;\n"
                             ".visible .func (.param .b32 r) plus_own(.param .b32 a) {\n"
                             "  .reg .b32 %r<3>;\n"
                             "  ld.param.b32 %r0, [a]; ld.global.u32 %r1, [own]; add.u32 %r0, %r0, %r1;\n"
                             "  st.param.b32 [r], %r0; ret;\n"
                             "}\n";
static const char again[] = ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .global .u32 base;\n";

static CUlinkState linker_of(const char *const texts[], int count) {
  CUlinkState linker;
  EXPECT(cuLinkCreate(0, NULL, NULL, &linker) == CUDA_SUCCESS);
  for (int i = 0; i < count; i++)
    EXPECT(cuLinkAddData(linker, CU_JIT_INPUT_PTX, (void *)texts[i], strlen(texts[i]), "", 0, NULL, NULL) ==
           CUDA_SUCCESS);
  return linker;
}

// A variable that no text defines, and one that two define.
static int link_wrongly(void) {
  const char *const texts[] = {caller, callee, again};
  void *image;
  for (int count = 1; count <= 3; count += 2) {
    CUlinkState linker = linker_of(texts, count);
    EXPECT(cuLinkComplete(linker, &image, NULL) == CUDA_ERROR_INVALID_PTX);
    CHECK(cuLinkDestroy(linker));
  }
  return 0;
}

// A context counts its uses: what detaches it for the last time destroys it. Another context becomes current then.
static int use_contexts(CUdevice device, CUcontext primary) {
  CUcontext own, same, current;
  CHECK(CREATE_CONTEXT(&own, device));
  CHECK(cuCtxAttach(&same, 0));
  EXPECT(same == own && cuCtxAttach(&same, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuCtxDetach(own));
  CHECK(cuCtxGetCurrent(&current));
  EXPECT(current == own);
  CHECK(cuCtxDetach(own));
  CHECK(cuCtxGetCurrent(&current));
  EXPECT(current == primary);
  EXPECT(cuCtxDetach(primary) == CUDA_ERROR_INVALID_CONTEXT);
  return 0;
}

// With an argument: gives up when its cubin cannot be loaded, as some programs do; or links what cannot be linked.
int main(int argc, char **argv) {
  CUdevice device;
  CUcontext context;
  CUmodule module;
  CUfunction function;
  CUlibrary library;
  CUkernel kernel;
  CUdeviceptr out, offset;
  size_t size;
  unsigned n = 40, values[64];
  EXPECT(cuMemAlloc(&out, 4) == CUDA_ERROR_NOT_INITIALIZED);
  CHECK(cuInit(0));
  CHECK(cuDeviceGet(&device, 0));
  EXPECT(cuMemAlloc(&out, 4) == CUDA_ERROR_INVALID_CONTEXT);
  CHECK(cuDevicePrimaryCtxRetain(&context, device));
  CHECK(cuCtxSetCurrent(context));
  use_contexts(device, context);
  CHECK(cuMemAlloc(&out, sizeof values));
  CHECK(cuMemsetD32(out, 7, 64));

  EXPECT(cuModuleLoadData(&module, "\177ELF") == CUDA_ERROR_NO_BINARY_FOR_GPU);
  if (argc > 1) return strcmp(argv[1], "wrong-links") ? 0 : link_wrongly();
  CHECK(cuModuleLoadData(&module, ptx));
  EXPECT(cuModuleGetFunction(&function, module, "no such kernel") == CUDA_ERROR_NOT_FOUND);
  CHECK(cuModuleGetFunction(&function, module, "fill"));
  void *arguments[] = {&n, &out};
  CHECK(cuLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, NULL, arguments, NULL));
  CHECK(cuMemcpyDtoH(values, out, sizeof values));
  for (unsigned i = 0; i < 64; i++) EXPECT(values[i] == (i < 40 ? 100 + i : 7));

  // All parameters in one buffer, each aligned as PTX declares it.
  struct {
    unsigned n;
    CUdeviceptr out;
  } buffer = {50, out};
  size_t bytes = sizeof buffer;
  void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
  unsigned other = 200;
  CHECK(cuModuleGetGlobal(&offset, &size, module, "offset"));
  EXPECT(size == 4);
  CHECK(cuMemcpyHtoD(offset, &other, 4));
  CHECK(cuLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, NULL, NULL, extra));
  CHECK(cuCtxSynchronize());
  CHECK(cuMemcpyDtoH(values, out, sizeof values));
  for (unsigned i = 0; i < 64; i++) EXPECT(values[i] == (i < 50 ? 200 + i : 7));
  CHECK(cuModuleUnload(module));

  CHECK(cuLibraryLoadData(&library, ptx, NULL, NULL, 0, NULL, NULL, 0));
  CHECK(cuLibraryGetKernel(&kernel, library, "fill"));
  n = 64;
  CHECK(cuLaunchKernel((CUfunction)kernel, 1, 1, 1, 64, 1, 1, 0, NULL, arguments, NULL));
  CHECK(cuMemcpyDtoH(values, out, sizeof values));
  EXPECT(values[63] == 163);

  // The linker compiles one text of PTX, whose size says where it ends.
  void *image;
  const char *const one[] = {ptx};
  CUlinkState linker = linker_of(one, 1);
  CHECK(cuLinkComplete(linker, &image, &size));
  CHECK(cuModuleLoadData(&module, image));
  CHECK(cuLinkDestroy(linker));
  n = 1;
  CHECK(cuMemsetD32(out, 7, 64));
  CHECK(cuModuleGetFunction(&function, module, "fill"));
  CHECK(cuLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, NULL, arguments, NULL));
  CHECK(cuMemcpyDtoH(values, out, sizeof values));
  EXPECT(values[0] == 100 && values[1] == 7);

  // Several texts become one module; a private variable stays its text's own.
  const char *const texts[] = {caller, callee};
  linker = linker_of(texts, 2);
  CHECK(cuLinkComplete(linker, &image, &size));
  CHECK(cuModuleLoadData(&module, image));
  CHECK(cuLinkDestroy(linker));
  CHECK(cuModuleGetFunction(&function, module, "sum"));
  void *sum_arguments[] = {&out};
  CHECK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, sum_arguments, NULL));
  CHECK(cuMemcpyDtoH(values, out, sizeof values));
  EXPECT(values[0] == 1105);
  CHECK(cuModuleGetGlobal(&offset, &size, module, "base"));
  printf("right\n");
  return 0;
}
