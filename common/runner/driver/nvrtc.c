// NVRTC compiles at run time, and needs no GPU. A program that compiles for sm_90 asks it for a cubin, which is machine
// code. It gets the PTX, which cuModuleLoadData accepts as well. And every kernel is compiled with -lineinfo, so that a
// report has the line in the program's text.
//
// A program is linked with NVRTC, or it opens NVRTC and asks dlsym for the functions, as Python's libraries do.
#define _GNU_SOURCE  // RTLD_NEXT, dlvsym
#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { NVRTC_ERROR_OUT_OF_MEMORY = 1, NVRTC_ERROR_INTERNAL_ERROR = 11 };
typedef struct _nvrtcProgram *nvrtcProgram;
typedef int Compile(nvrtcProgram program, int count, const char *const *options);
typedef void *Dlsym(void *restrict library, const char *restrict name);

#define EXPORTED __attribute__((visibility("default")))
EXPORTED int nvrtcGetCUBINSize(nvrtcProgram program, size_t *size);
EXPORTED int nvrtcGetCUBIN(nvrtcProgram program, char *cubin);
EXPORTED Compile nvrtcCompileProgram;

// ---- a program that is linked with NVRTC ----

int nvrtcGetCUBINSize(nvrtcProgram program, size_t *size) {
  int (*ptx_size)(nvrtcProgram, size_t *) = (int (*)(nvrtcProgram, size_t *))dlsym(RTLD_NEXT, "nvrtcGetPTXSize");
  return ptx_size ? ptx_size(program, size) : NVRTC_ERROR_INTERNAL_ERROR;
}

int nvrtcGetCUBIN(nvrtcProgram program, char *cubin) {
  int (*ptx)(nvrtcProgram, char *) = (int (*)(nvrtcProgram, char *))dlsym(RTLD_NEXT, "nvrtcGetPTX");
  return ptx ? ptx(program, cubin) : NVRTC_ERROR_INTERNAL_ERROR;
}

// Whether the program has decided itself. Code for a debugger (-G) has lines in any case.
static bool decides_about_lines(int count, const char *const *options) {
  static const char *const names[] = {"-lineinfo", "--generate-line-info", "-G", "--device-debug"};
  for (int i = 0; i < count; i++)
    for (int n = 0; n < 4; n++)
      if (!strcmp(options[i], names[n])) return true;
  return false;
}

static int compile_with_lines(Compile *compile, nvrtcProgram program, int count, const char *const *options) {
  if (!compile) return NVRTC_ERROR_INTERNAL_ERROR;
  if (count < 0 || decides_about_lines(count, options)) return compile(program, count, options);
  const char **more = malloc(((size_t)count + 1) * sizeof *more);
  if (!more) return NVRTC_ERROR_OUT_OF_MEMORY;
  for (int i = 0; i < count; i++) more[i] = options[i];
  more[count] = "-lineinfo";
  int status = compile(program, count + 1, more);
  free(more);
  return status;
}

int nvrtcCompileProgram(nvrtcProgram program, int count, const char *const *options) {
  return compile_with_lines((Compile *)dlsym(RTLD_NEXT, "nvrtcCompileProgram"), program, count, options);
}

// ---- a program that opens NVRTC ----

// PyTorch and cuda.bindings each bring an NVRTC of their own, and a program may use several.
enum { MOST_OPENED = 4 };
static Compile *opened[MOST_OPENED];

#define COMPILE_BY(i)                                                                                                  \
  static int compile_by_##i(nvrtcProgram program, int count, const char *const *options) {                             \
    return compile_with_lines(opened[i], program, count, options);                                                     \
  }
COMPILE_BY(0)
COMPILE_BY(1)
COMPILE_BY(2)
COMPILE_BY(3)

// The function that compiles by a certain NVRTC's own.
static void *compile_by(void *real) {
  static Compile *const functions[MOST_OPENED] = {compile_by_0, compile_by_1, compile_by_2, compile_by_3};
  for (int i = 0; i < MOST_OPENED; i++) {
    if (!opened[i]) opened[i] = (Compile *)real;
    if (opened[i] == (Compile *)real) return (void *)functions[i];
  }
  return real;  // without lines
}

static Dlsym *real_dlsym(void) {
  // As old as dlsym is on x86-64 and on Arm, and since it is a part of libc.
  static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"};
  static Dlsym *function;
  for (int i = 0; !function && i < 3; i++) function = (Dlsym *)dlvsym(RTLD_NEXT, "dlsym", versions[i]);
  return function;
}

// What RTLD_NEXT means depends on who calls: so dlsym must jump to the real one, and not call it. gcc does so by itself
// when it optimises.
#if defined(__clang__) || __GNUC__ >= 15
#define JUMP __attribute__((musttail))
#else
#define JUMP
#endif

EXPORTED void *dlsym(void *restrict library, const char *restrict name) {
  bool by_handle = library != RTLD_DEFAULT && library != RTLD_NEXT;
  if (by_handle && !strcmp(name, "nvrtcGetCUBIN")) name = "nvrtcGetPTX";
  if (by_handle && !strcmp(name, "nvrtcGetCUBINSize")) name = "nvrtcGetPTXSize";
  if (by_handle && !strcmp(name, "nvrtcCompileProgram")) {
    void *real = real_dlsym()(library, name);
    // A handle of the whole program finds the stand-in itself.
    return real && real != (void *)nvrtcCompileProgram ? compile_by(real) : real;
  }
  JUMP return real_dlsym()(library, name);
}
