// NVRTC compiles at run time, and needs no GPU. A program that compiles for sm_90 asks it for a cubin, which is machine
// code. It gets the PTX, which cuModuleLoadData accepts as well.
#define _GNU_SOURCE  // RTLD_NEXT
#include <dlfcn.h>
#include <stddef.h>

enum { NVRTC_ERROR_INTERNAL_ERROR = 11 };
typedef struct _nvrtcProgram *nvrtcProgram;

#define EXPORTED __attribute__((visibility("default")))
EXPORTED int nvrtcGetCUBINSize(nvrtcProgram program, size_t *size);
EXPORTED int nvrtcGetCUBIN(nvrtcProgram program, char *cubin);

int nvrtcGetCUBINSize(nvrtcProgram program, size_t *size) {
  int (*ptx_size)(nvrtcProgram, size_t *) = (int (*)(nvrtcProgram, size_t *))dlsym(RTLD_NEXT, "nvrtcGetPTXSize");
  return ptx_size ? ptx_size(program, size) : NVRTC_ERROR_INTERNAL_ERROR;
}

int nvrtcGetCUBIN(nvrtcProgram program, char *cubin) {
  int (*ptx)(nvrtcProgram, char *) = (int (*)(nvrtcProgram, char *))dlsym(RTLD_NEXT, "nvrtcGetPTX");
  return ptx ? ptx(program, cubin) : NVRTC_ERROR_INTERNAL_ERROR;
}
