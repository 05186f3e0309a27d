// nvJitLink links at run time, and needs no GPU. numba and cuda.core ask it for a cubin. They get PTX, which
// cuModuleLoadData accepts in its place: what they add is handed on, one text after another, and NVVM's code ("LTO-IR")
// goes to the user's nvJitLink, which compiles it to PTX.
#define _GNU_SOURCE  // dl_iterate_phdr
#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

#include "../fatbin.h"
#include "driver.h"

// nvJitLinkResult and nvJitLinkInputType.
enum { DONE = 0, ERROR_INVALID_INPUT = 3, ERROR_INTERNAL = 6, ERROR_UNRECOGNIZED_INPUT = 8 };
enum { INPUT_CUBIN = 1, INPUT_PTX, INPUT_LTOIR, INPUT_FATBIN, INPUT_OBJECT, INPUT_LIBRARY, INPUT_ANY = 10 };

typedef struct nvJitLink {
  void *real;  // the handle of the user's nvJitLink, when there is NVVM's code to compile
  Texts texts;
  char *image;  // the result, after nvJitLinkComplete
} nvJitLink;

// ---- the user's nvJitLink ----

// NVIDIA's wheels for Python lie in one folder, .../nvidia/, and a program that links has loaded one of them, NVVM or
// NVRTC.
static int look_beside(struct dl_phdr_info *library, size_t size, void *found) {
  static const char *const names[] = {"cu13/lib/libnvJitLink.so.13", "nvjitlink/lib/libnvJitLink.so.12"};
  const char *at = strstr(library->dlpi_name, "/nvidia/");
  (void)size;
  for (int i = 0; at && !*(void **)found && i < 2; i++) {
    char path[4200];
    snprintf(path, sizeof path, "%.*s/nvidia/%s", (int)(at - library->dlpi_name), library->dlpi_name, names[i]);
    *(void **)found = dlopen(path, RTLD_LAZY);
  }
  return *(void **)found != NULL;
}

static void *real_library(void) {
  static const char *const names[] = {"libnvJitLink.so.13", "libnvJitLink.so.12", "libnvJitLink.so"};
  static void *library;
  const char *nvcc = getenv("HOPPER_RUN_NVCC");
  if (!library) dl_iterate_phdr(look_beside, &library);
  for (int i = 0; !library && i < 3; i++) library = dlopen(names[i], RTLD_LAZY);
  for (int i = 0; !library && nvcc && i < 3; i++) {
    char path[4200];
    snprintf(path, sizeof path, "%.*s/../lib64/%s", (int)(strlen(nvcc) - strlen("/nvcc")), nvcc, names[i]);
    library = dlopen(path, RTLD_LAZY);
  }
  if (!library) core_say_once("the program links NVVM's code, which needs NVIDIA's libnvJitLink: it is not found");
  return library;
}

static void *real_function(const char *name) {
  void *library = real_library();
  return library ? dlsym(library, name) : NULL;
}

// Calls a function of it.
#define REAL(name, parameters, ...)                                                                                    \
  ({                                                                                                                   \
    int(*real_one) parameters = (int(*) parameters)real_function(name);                                                \
    real_one ? real_one(__VA_ARGS__) : ERROR_INTERNAL;                                                                 \
  })

// ---- nvJitLink's functions ----

#define EXPORTED(name, parameters)                                                                                     \
  __attribute__((visibility("default"))) int name parameters;                                                          \
  int name parameters

EXPORTED(nvJitLinkVersion, (unsigned *major, unsigned *minor)) {
  *major = 13;
  *minor = 0;
  return DONE;
}

static bool has_option(const char *option, uint32_t count, const char **options) {
  for (uint32_t i = 0; i < count; i++)
    if (!strcmp(options[i], option)) return true;
  return false;
}

EXPORTED(nvJitLinkCreate, (nvJitLink * *result, uint32_t count, const char **options)) {
  nvJitLink *linker = result ? calloc(1, sizeof *linker) : NULL;
  if (!linker) return ERROR_INTERNAL;
  *result = linker;
  if (!has_option("-lto", count, options)) return DONE;
  const char **more = malloc((count + 1) * sizeof *more);
  if (!more) return ERROR_INTERNAL;
  for (uint32_t i = 0; i < count; i++) more[i] = options[i];
  more[count] = "-ptx";
  bool twice = has_option("-ptx", count, options);
  int status = REAL("nvJitLinkCreate", (void **, uint32_t, const char **), &linker->real, count + !twice, more);
  free(more);
  return status;
}

EXPORTED(nvJitLinkDestroy, (nvJitLink * *handle)) {
  nvJitLink *linker = handle ? *handle : NULL;
  if (!linker) return ERROR_INVALID_INPUT;
  if (linker->real) REAL("nvJitLinkDestroy", (void **), &linker->real);
  texts_free(&linker->texts);
  free(linker->image);
  free(linker);
  *handle = NULL;
  return DONE;
}

// bytes end with zeros behind the size.
static int add(nvJitLink *linker, int type, const char *bytes, size_t size, const char *name) {
  LOCK();
  (void)locked;
  CUresult status = CUDA_SUCCESS;
  if (type == INPUT_ANY)
    type = fatbin_is(bytes)                                       ? INPUT_FATBIN
           : fatbin_is_elf(bytes) || !memcmp(bytes, "!<arch>", 7) ? INPUT_OBJECT
                                                                  : INPUT_PTX;
  switch (type) {
  case INPUT_CUBIN:  // what an earlier link has made
  case INPUT_PTX:
  case INPUT_FATBIN: status = texts_of(bytes, &linker->texts); break;
  case INPUT_OBJECT:
  case INPUT_LIBRARY: status = texts_of_object(bytes, size, name, &linker->texts); break;
  default: return ERROR_UNRECOGNIZED_INPUT;
  }
  return status == CUDA_SUCCESS ? DONE : ERROR_INVALID_INPUT;
}

// What the user's nvJitLink gets: it makes PTX of NVVM's code alone, and refuses everything else.
static bool is_for_real(const nvJitLink *linker, int type, const char *name) {
  if (!linker->real || type == INPUT_CUBIN || type == INPUT_PTX) return false;
  return type != INPUT_LIBRARY || !name || !strstr(name, "cudadevrt");
}

EXPORTED(nvJitLinkAddData, (nvJitLink * linker, int type, const void *data, size_t size, const char *name)) {
  if (!linker || !data) return ERROR_INVALID_INPUT;
  if (is_for_real(linker, type, name))
    return REAL("nvJitLinkAddData", (void *, int, const void *, size_t, const char *), linker->real, type, data, size,
                name);
  char *bytes = calloc(size + 16, 1);
  if (!bytes) return ERROR_INTERNAL;
  memcpy(bytes, data, size);
  int status = add(linker, type, bytes, size, name ? name : "an input of nvJitLink");
  free(bytes);
  return status;
}

EXPORTED(nvJitLinkAddFile, (nvJitLink * linker, int type, const char *path)) {
  size_t size = 0;
  if (!linker || !path) return ERROR_INVALID_INPUT;
  if (is_for_real(linker, type, path))
    return REAL("nvJitLinkAddFile", (void *, int, const char *), linker->real, type, path);
  char *bytes = module_read_file(path, &size);
  int status = bytes ? add(linker, type, bytes, size, path) : ERROR_INVALID_INPUT;
  free(bytes);
  return status;
}

// Takes over the PTX that the user's nvJitLink has made.
static int take_compiled(nvJitLink *linker) {
  size_t size = 0;
  int status = REAL("nvJitLinkComplete", (void *), linker->real);
  if (status == DONE) status = REAL("nvJitLinkGetLinkedPtxSize", (void *, size_t *), linker->real, &size);
  char *ptx = status == DONE ? calloc(size + 1, 1) : NULL;
  if (!ptx) return status == DONE ? ERROR_INTERNAL : status;
  status = REAL("nvJitLinkGetLinkedPtx", (void *, char *), linker->real, ptx);
  if (status == DONE && texts_add(&linker->texts, ptx)) return DONE;
  return status == DONE ? ERROR_INTERNAL : status;
}

EXPORTED(nvJitLinkComplete, (nvJitLink * linker)) {
  if (!linker || linker->image) return ERROR_INVALID_INPUT;
  int status = linker->real ? take_compiled(linker) : DONE;
  if (status != DONE) return status;
  linker->image = linker->texts.count ? texts_join(&linker->texts) : NULL;
  return linker->image ? DONE : ERROR_INVALID_INPUT;
}

static int image_size(const nvJitLink *linker, size_t *size) {
  if (!linker || !linker->image) return ERROR_INVALID_INPUT;
  *size = strlen(linker->image) + 1;
  return DONE;
}

static int copy_image(const nvJitLink *linker, void *out) {
  if (!linker || !linker->image) return ERROR_INVALID_INPUT;
  strcpy(out, linker->image);
  return DONE;
}

EXPORTED(nvJitLinkGetLinkedCubinSize, (nvJitLink * linker, size_t *size)) { return image_size(linker, size); }
EXPORTED(nvJitLinkGetLinkedCubin, (nvJitLink * linker, void *cubin)) { return copy_image(linker, cubin); }
EXPORTED(nvJitLinkGetLinkedPtxSize, (nvJitLink * linker, size_t *size)) { return image_size(linker, size); }
EXPORTED(nvJitLinkGetLinkedPtx, (nvJitLink * linker, char *ptx)) { return copy_image(linker, ptx); }

// The logs are those of the user's nvJitLink, and empty without it.
static int log_size(const nvJitLink *linker, const char *function, size_t *size) {
  *size = 0;
  return linker && linker->real ? REAL(function, (void *, size_t *), linker->real, size) : DONE;
}

static int copy_log(const nvJitLink *linker, const char *function, char *log) {
  return linker && linker->real ? REAL(function, (void *, char *), linker->real, log) : DONE;
}

EXPORTED(nvJitLinkGetErrorLogSize, (nvJitLink * linker, size_t *size)) {
  return log_size(linker, "nvJitLinkGetErrorLogSize", size);
}
EXPORTED(nvJitLinkGetErrorLog, (nvJitLink * linker, char *log)) {
  return copy_log(linker, "nvJitLinkGetErrorLog", log);
}
EXPORTED(nvJitLinkGetInfoLogSize, (nvJitLink * linker, size_t *size)) {
  return log_size(linker, "nvJitLinkGetInfoLogSize", size);
}
EXPORTED(nvJitLinkGetInfoLog, (nvJitLink * linker, char *log)) { return copy_log(linker, "nvJitLinkGetInfoLog", log); }
