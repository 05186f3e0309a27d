// Compiles a kernel to PTX with the NVRTC of any CUDA release, the compiler inside nvcc as a library:
//
//   nvrtc libnvrtc.so.12 KERNEL.cu KERNEL.ptx OPTION...
//
// Options are NVRTC's own. A warning fails as an error does, as in the build. The exit code is 0, 1 when the kernel did
// not compile, or 2 when a file or the library could not be used.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// What is used of nvrtc.h, which only a toolkit has. Every function returns NVRTC_SUCCESS or an error's number.
typedef struct _nvrtcProgram *nvrtcProgram;
enum { NVRTC_SUCCESS = 0, NVRTC_ERROR_COMPILATION = 6 };

typedef struct Nvrtc {
  const char *(*get_error_string)(int result);
  int (*create_program)(nvrtcProgram *program, const char *source, const char *name, int headers,
                        const char *const *header_sources, const char *const *header_names);
  int (*compile_program)(nvrtcProgram program, int options, const char *const *option);
  int (*get_log_size)(nvrtcProgram program, size_t *size);
  int (*get_log)(nvrtcProgram program, char *log);
  int (*get_ptx_size)(nvrtcProgram program, size_t *size);
  int (*get_ptx)(nvrtcProgram program, char *ptx);
} Nvrtc;

static Nvrtc nvrtc;

static _Noreturn void fail(const char *what, const char *why) {
  fprintf(stderr, "nvrtc: %s: %s\n", what, why);
  exit(2);
}

// Ends the program unless NVRTC's function succeeded.
static void check(int result, const char *what) {
  if (result != NVRTC_SUCCESS) fail(what, nvrtc.get_error_string(result));
}

// Stores the address of a library's function in *function. (ISO C has no cast from an object's address to a
// function's.)
static void find(void *library, const char *name, void *function) {
  void *address = dlsym(library, name);
  if (!address) fail(name, "the library has no such function");
  memcpy(function, &address, sizeof address);
}

static void load(const char *path) {
  void *library = dlopen(path, RTLD_NOW);
  if (!library) fail("cannot load the library", dlerror());
  find(library, "nvrtcGetErrorString", &nvrtc.get_error_string);
  find(library, "nvrtcCreateProgram", &nvrtc.create_program);
  find(library, "nvrtcCompileProgram", &nvrtc.compile_program);
  find(library, "nvrtcGetProgramLogSize", &nvrtc.get_log_size);
  find(library, "nvrtcGetProgramLog", &nvrtc.get_log);
  find(library, "nvrtcGetPTXSize", &nvrtc.get_ptx_size);
  find(library, "nvrtcGetPTX", &nvrtc.get_ptx);
}

// A file's text. The caller frees it.
static char *read_text(const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file || fseek(file, 0, SEEK_END)) fail(path, "cannot be read");
  long size = ftell(file);
  char *text = size < 0 ? NULL : calloc((size_t)size + 1, 1);
  rewind(file);
  if (!text || fread(text, 1, (size_t)size, file) != (size_t)size) fail(path, "cannot be read");
  fclose(file);
  return text;
}

static void write_text(const char *path, const char *text) {
  FILE *file = fopen(path, "wb");
  if (!file || fputs(text, file) < 0 || fclose(file)) fail(path, "cannot be written");
}

// What a compilation said, or its PTX. The caller frees it.
static char *get_text(nvrtcProgram program, int (*get_size)(nvrtcProgram, size_t *), int (*get)(nvrtcProgram, char *),
                      const char *what) {
  size_t size;
  check(get_size(program, &size), what);
  char *text = calloc(size + 1, 1);
  if (!text) fail(what, "out of memory");
  check(get(program, text), what);
  return text;
}

int main(int argc, char **argv) {
  if (argc < 4) fail("usage", "nvrtc libnvrtc.so.12 KERNEL.cu KERNEL.ptx OPTION...");
  const char *kernel = argv[2], *ptx_path = argv[3];
  load(argv[1]);

  nvrtcProgram program;
  char *source = read_text(kernel);
  check(nvrtc.create_program(&program, source, kernel, 0, NULL, NULL), kernel);
  int result = nvrtc.compile_program(program, argc - 4, (const char *const *)argv + 4);
  if (result != NVRTC_ERROR_COMPILATION) check(result, kernel);
  char *log = get_text(program, nvrtc.get_log_size, nvrtc.get_log, "its log");
  fputs(log, stderr);
  int silent = !log[strspn(log, " \n")];
  free(log);
  if (result || !silent) return 1;

  char *ptx = get_text(program, nvrtc.get_ptx_size, nvrtc.get_ptx, "its PTX");
  write_text(ptx_path, ptx);
  free(ptx);
  free(source);
  return 0;
}
