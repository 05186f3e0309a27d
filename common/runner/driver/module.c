// Modules and libraries: PTX text, alone or in a fatbin. A library is a module, and a kernel is a function.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../fatbin.h"
#include "driver.h"

static CUmodule modules;

// ---- loading ----

bool texts_add(Texts *texts, char *text) {
  EmulatorText *items = text ? realloc(texts->items, ((size_t)texts->count + 1) * sizeof *items) : NULL;
  if (!items) {
    free(text);
    return false;
  }
  texts->items = items;
  texts->items[texts->count++] = (EmulatorText){text, strlen(text)};
  return true;
}

void texts_free(Texts *texts) {
  for (int i = 0; i < texts->count; i++) free((char *)texts->items[i].ptx);
  free(texts->items);
  *texts = (Texts){0};
}

// The parts of a program built with -rdc=true. NVIDIA's device runtime, which is one of them, is machine code and left
// out.
static bool add_parts(Texts *texts, const void *const *parts, const char **why) {
  for (; parts && *parts; parts++)
    if (fatbin_has_ptx(*parts) && !texts_add(texts, fatbin_ptx(*parts, why))) return false;
  return true;
}

// PTX that the linker has made, and any other.
static bool add_text(Texts *texts, const char *text) {
  for (const char *end; (end = strstr(text, TEXT_BORDER)) != NULL; text = end + strlen(TEXT_BORDER))
    if (!texts_add(texts, strndup(text, (size_t)(end - text)))) return false;
  return texts_add(texts, strdup(text));
}

CUresult texts_of(const void *image, Texts *texts) {
  const char *why = NULL;
  if (fatbin_is_elf(image)) {
    core_say_once("the program loads a cubin, which is machine code: the emulator runs PTX (nvcc -ptx, or -fatbin with "
                  "-gencode arch=compute_90a,code=compute_90a)");
    core.refused = true;
    return CUDA_ERROR_NO_BINARY_FOR_GPU;
  }
  bool is_fatbin = fatbin_is(image);
  bool done = is_fatbin ? add_parts(texts, fatbin_parts(image), &why) : add_text(texts, image);
  if (done && is_fatbin && texts->count == 0) done = texts_add(texts, fatbin_ptx(image, &why));
  if (done) return CUDA_SUCCESS;
  texts_free(texts);
  core_say_once("%s; build it with nvcc -gencode arch=compute_90a,code=compute_90a", why ? why : "out of memory");
  core.incomplete = true;
  return CUDA_ERROR_NO_BINARY_FOR_GPU;
}

// Where the path goes on behind the folder at its beginning; NULL when it has another one. nvcc writes a byte that is
// not ASCII as \\303.
static char *path_behind(char *path, const char *folder) {
  for (; *folder; folder++) {
    unsigned byte = (unsigned char)*path;
    bool is_octal = *path == '\\' && sscanf(path + 1, "%3o", &byte) == 1;
    if (byte != (unsigned char)*folder) return NULL;
    path += is_octal ? 4 : 1;
  }
  return path;
}

// Removes the working directory from the paths of `.file 1 "/home/.../my.cu"`, so that reports name files as the user
// does.
static void shorten_paths(char *text) {
  char folder[4096];
  if (!getcwd(folder, sizeof folder - 1)) return;
  strcat(folder, "/");
  for (char *at = strstr(text, ".file"); at; at = strstr(at + 1, ".file")) {
    char *path = at + strcspn(at, "\"\n"), *rest = *path == '"' ? path_behind(path + 1, folder) : NULL;
    if (rest) memmove(path + 1, rest, strlen(rest) + 1);
  }
}

static void add_kernels(CUmodule module) {
  const char *name;
  Function **end = &module->functions;
  for (int i = 0; (name = emulator_kernel_name(module->loaded, i)) != NULL; i++) {
    Function *function = calloc(1, sizeof *function);
    if (!function) return;
    function->module = module;
    function->name = strdup(name);
    function->parameter_count = emulator_parameter_count(module->loaded, name);
    function->carveout = -1;
    *end = function;
    end = &function->next;
  }
}

// The lock is held.
static CUresult load_image(CUmodule *result, const void *image) {
  Texts texts = {0};
  EmulatorError error = {0};
  if (!result || !image) return CUDA_ERROR_INVALID_VALUE;
  CUresult status = texts_of(image, &texts);
  if (status != CUDA_SUCCESS) return status;
  add_grid_barrier(&texts);
  CUmodule module = calloc(1, sizeof *module);
  for (int i = 0; i < texts.count; i++) {
    shorten_paths((char *)texts.items[i].ptx);
    texts.items[i].length = strlen(texts.items[i].ptx);
  }
  if (module) module->loaded = emulator_link(core.emulator, texts.items, texts.count, &error);
  const char *parts = texts.count > 1 ? " (that of all its files, one after another)" : "";
  texts_free(&texts);
  if (!module || !module->loaded) {
    core_say("the program's PTX, line %d%s: %s", error.line, parts, error.message);
    core.incomplete = true;
    free(module);
    return CUDA_ERROR_INVALID_PTX;
  }
  add_kernels(module);
  module->next = modules;
  modules = module;
  *result = module;
  core.refused = false;
  return CUDA_SUCCESS;
}

char *module_read_file(const char *path, size_t *size) {
  FILE *file = path ? fopen(path, "rb") : NULL;
  if (!file) return NULL;
  fseek(file, 0, SEEK_END);
  long length = ftell(file);
  rewind(file);
  char *bytes = length >= 0 ? calloc((size_t)length + 16, 1) : NULL;
  if (bytes) *size = fread(bytes, 1, (size_t)length, file);
  fclose(file);
  return bytes;
}

static CUresult load_file(CUmodule *result, const char *path) {
  size_t size = 0;
  char *bytes = module_read_file(path, &size);
  CUresult status = bytes ? load_image(result, bytes) : CUDA_ERROR_FILE_NOT_FOUND;
  free(bytes);
  return status;
}

// A handle that the program has unloaded, or that is none, is found here.
static bool is_module(CUmodule module) {
  for (CUmodule m = modules; m; m = m->next)
    if (m == module) return true;
  return false;
}

static CUresult unload(CUmodule module) {
  if (!is_module(module)) return CUDA_ERROR_INVALID_HANDLE;
  CUmodule *link = &modules;
  while (*link != module) link = &(*link)->next;
  *link = module->next;
  // The module itself stays: a graph may have its functions still.
  emulator_unload(module->loaded);
  return CUDA_SUCCESS;
}

API(cuModuleLoadData, (CUmodule * module, const void *image)) {
  ENTER();
  return load_image(module, image);
}

API(cuModuleLoadDataEx, (CUmodule * module, const void *image, unsigned count, CUjit_option *options, void **values)) {
  ENTER();
  (void)count, (void)options, (void)values;
  return load_image(module, image);
}

API(cuModuleLoadFatBinary, (CUmodule * module, const void *image)) {
  ENTER();
  return load_image(module, image);
}

API(cuModuleLoad, (CUmodule * module, const char *path)) {
  ENTER();
  return load_file(module, path);
}

API(cuModuleUnload, (CUmodule module)) {
  ENTER();
  return unload(module);
}

API(cuModuleGetLoadingMode, (CUmoduleLoadingMode * mode)) {
  *mode = CU_MODULE_LAZY_LOADING;
  return CUDA_SUCCESS;
}

// ---- what is in a module ----

static CUresult get_function(Function **result, CUmodule module, const char *name) {
  if (!is_module(module)) return CUDA_ERROR_INVALID_HANDLE;
  if (!result || !name) return CUDA_ERROR_INVALID_VALUE;
  for (Function *f = module->functions; f; f = f->next)
    if (!strcmp(f->name, name)) {
      *result = f;
      return CUDA_SUCCESS;
    }
  return CUDA_ERROR_NOT_FOUND;
}

static CUresult get_global(CUdeviceptr *address, size_t *size, CUmodule module, const char *name) {
  uint64_t at;
  if (!is_module(module)) return CUDA_ERROR_INVALID_HANDLE;
  if (!name || !emulator_symbol(module->loaded, name, &at, size)) return CUDA_ERROR_NOT_FOUND;
  if (address) *address = at;
  return CUDA_SUCCESS;
}

static unsigned count_functions(CUmodule module) {
  unsigned count = 0;
  for (Function *f = module->functions; f; f = f->next) count++;
  return count;
}

static void list_functions(void **functions, unsigned count, CUmodule module) {
  Function *f = module->functions;
  for (unsigned i = 0; i < count && f; i++, f = f->next) functions[i] = f;
}

API(cuModuleGetFunction, (CUfunction * function, CUmodule module, const char *name)) {
  ENTER();
  return get_function((Function **)function, module, name);
}

API(cuModuleGetGlobal_v2, (CUdeviceptr * address, size_t *size, CUmodule module, const char *name)) {
  ENTER();
  return get_global(address, size, module, name);
}

API(cuModuleGetFunctionCount, (unsigned *count, CUmodule module)) {
  ENTER();
  *count = count_functions(module);
  return CUDA_SUCCESS;
}

API(cuModuleEnumerateFunctions, (CUfunction * functions, unsigned count, CUmodule module)) {
  ENTER();
  list_functions((void **)functions, count, module);
  return CUDA_SUCCESS;
}

// ---- libraries, whose handles belong to no context ----

#define MODULE(library) ((CUmodule)(void *)(library))

static CUresult enter_library(void) { return core.initialised ? core.sticky : CUDA_ERROR_NOT_INITIALIZED; }
#define ENTER_LIBRARY()                                                                                                \
  LOCK();                                                                                                              \
  CUresult entered = enter_library();                                                                                  \
  (void)locked;                                                                                                        \
  if (entered != CUDA_SUCCESS) return entered

API(cuLibraryLoadData, (CUlibrary * library, const void *image, CUjit_option *jit, void **jit_values,
                        unsigned jit_count, CUlibraryOption *options, void **values, unsigned count)) {
  ENTER_LIBRARY();
  (void)jit, (void)jit_values, (void)jit_count, (void)options, (void)values, (void)count;
  return load_image((CUmodule *)library, image);
}

API(cuLibraryLoadFromFile, (CUlibrary * library, const char *path, CUjit_option *jit, void **jit_values,
                            unsigned jit_count, CUlibraryOption *options, void **values, unsigned count)) {
  ENTER_LIBRARY();
  (void)jit, (void)jit_values, (void)jit_count, (void)options, (void)values, (void)count;
  return load_file((CUmodule *)library, path);
}

API(cuLibraryUnload, (CUlibrary library)) {
  ENTER_LIBRARY();
  return unload(MODULE(library));
}

API(cuLibraryGetKernel, (CUkernel * kernel, CUlibrary library, const char *name)) {
  ENTER_LIBRARY();
  return get_function((Function **)kernel, MODULE(library), name);
}

API(cuLibraryGetKernelCount, (unsigned *count, CUlibrary library)) {
  ENTER_LIBRARY();
  *count = count_functions(MODULE(library));
  return CUDA_SUCCESS;
}

API(cuLibraryEnumerateKernels, (CUkernel * kernels, unsigned count, CUlibrary library)) {
  ENTER_LIBRARY();
  list_functions((void **)kernels, count, MODULE(library));
  return CUDA_SUCCESS;
}

API(cuLibraryGetModule, (CUmodule * module, CUlibrary library)) {
  ENTER_LIBRARY();
  *module = MODULE(library);
  return CUDA_SUCCESS;
}

API(cuLibraryGetGlobal, (CUdeviceptr * address, size_t *size, CUlibrary library, const char *name)) {
  ENTER_LIBRARY();
  return get_global(address, size, MODULE(library), name);
}

API(cuLibraryGetManaged, (CUdeviceptr * address, size_t *size, CUlibrary library, const char *name)) {
  ENTER_LIBRARY();
  return get_global(address, size, MODULE(library), name);
}

API(cuKernelGetFunction, (CUfunction * function, CUkernel kernel)) {
  *function = (CUfunction)(void *)kernel;
  return CUDA_SUCCESS;
}

API(cuKernelGetLibrary, (CUlibrary * library, CUkernel kernel)) {
  *library = (CUlibrary)(void *)((Function *)(void *)kernel)->module;
  return CUDA_SUCCESS;
}

// ---- what is known of a function ----

#define FUNCTION(handle) ((Function *)(void *)(handle))

// A kernel's code is decoded only when it is needed: a program may have a thousand kernels and use a few.
const EmulatorKernel *function_info(Function *function) {
  if (!function->info_known) emulator_kernel(function->module->loaded, function->name, &function->info);
  function->info_known = true;
  return &function->info;
}

// The runtime asks it of any address that may be a function.
API(cuFuncGetModule, (CUmodule * module, CUfunction function)) {
  ENTER();
  for (CUmodule m = modules; m; m = m->next)
    for (const Function *f = m->functions; f; f = f->next)
      if (f == FUNCTION(function)) {
        *module = m;
        return CUDA_SUCCESS;
      }
  return CUDA_ERROR_INVALID_HANDLE;
}

API(cuFuncGetName, (const char **name, CUfunction function)) {
  *name = FUNCTION(function)->name;
  return CUDA_SUCCESS;
}

API(cuKernelGetName, (const char **name, CUkernel kernel)) {
  *name = FUNCTION(kernel)->name;
  return CUDA_SUCCESS;
}

API(cuFuncGetParamInfo, (CUfunction handle, size_t index, size_t *offset, size_t *size)) {
  ENTER();
  const Function *function = FUNCTION(handle);
  if (index >= (size_t)function->parameter_count) return CUDA_ERROR_INVALID_VALUE;
  *offset = emulator_parameter_offset(function->module->loaded, function->name, (int)index);
  if (size) *size = emulator_parameter_size(function->module->loaded, function->name, (int)index);
  return CUDA_SUCCESS;
}

API(cuKernelGetParamInfo, (CUkernel kernel, size_t index, size_t *offset, size_t *size)) {
  return cuFuncGetParamInfo((CUfunction)(void *)kernel, index, offset, size);
}

API(cuFuncIsLoaded, (CUfunctionLoadingState * state, CUfunction function)) {
  (void)function;
  *state = CU_FUNCTION_LOADING_STATE_LOADED;
  return CUDA_SUCCESS;
}

API(cuFuncLoad, (CUfunction function)) {
  (void)function;
  return CUDA_SUCCESS;
}

// The most threads that a block may have: what __launch_bounds__ says, or 1024.
static int most_threads(const EmulatorKernel *info) {
  const unsigned *bounds = info->required_threads[0] ? info->required_threads : info->max_threads;
  unsigned threads = bounds[0] ? bounds[0] : 1024;
  for (int axis = 1; axis < 3; axis++) threads *= bounds[axis] ? bounds[axis] : 1;
  return threads < 1024 ? (int)threads : 1024;
}

// ptxas has not run, so the number of registers is not known. This is the number that its bounds allow, and 32 without
// any.
static int registers(const EmulatorKernel *info) {
  unsigned bound = info->max_registers;
  if (!bound && info->min_blocks) bound = 65536 / ((unsigned)most_threads(info) * info->min_blocks) / 8 * 8;
  return bound == 0 ? 32 : bound > 255 ? 255 : (int)bound;
}

API(cuFuncGetAttribute, (int *value, CUfunction_attribute attribute, CUfunction handle)) {
  ENTER();
  Function *function = FUNCTION(handle);
  if (!value || !function) return CUDA_ERROR_INVALID_VALUE;
  const EmulatorKernel *info = function_info(function);
  switch (attribute) {
  case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = most_threads(info); break;
  case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: *value = (int)info->static_shared; break;
  case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES: *value = (int)info->constants; break;
  case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES: *value = (int)info->local; break;
  case CU_FUNC_ATTRIBUTE_NUM_REGS: *value = registers(info); break;
  case CU_FUNC_ATTRIBUTE_PTX_VERSION:
  case CU_FUNC_ATTRIBUTE_BINARY_VERSION: *value = 90; break;
  case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA: *value = 0; break;
  case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
    *value = function->max_dynamic_shared ? (int)function->max_dynamic_shared : 48 * 1024 - (int)info->static_shared;
    break;
  case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: *value = function->carveout; break;
  case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET: *value = 0; break;
  case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
  case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
  case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH: {
    int axis = (int)attribute - CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH;
    *value = (int)(function->cluster[axis] ? function->cluster[axis] : info->required_cluster[axis]);
    break;
  }
  case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED: *value = function->large_clusters; break;
  case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE: *value = 0; break;
  default: return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

API(cuFuncSetAttribute, (CUfunction handle, CUfunction_attribute attribute, int value)) {
  ENTER();
  Function *function = FUNCTION(handle);
  switch (attribute) {
  case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
    if (value < 0 || (size_t)value + function_info(function)->static_shared > MAX_SHARED_BLOCK)
      return CUDA_ERROR_INVALID_VALUE;
    function->max_dynamic_shared = (unsigned)value;
    break;
  case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: function->carveout = value; break;
  case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED: function->large_clusters = value; break;
  case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
  case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
  case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
    function->cluster[(int)attribute - CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH] = (unsigned)value;
    break;
  case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE: break;
  default: return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

API(cuKernelGetAttribute, (int *value, CUfunction_attribute attribute, CUkernel kernel, CUdevice device)) {
  (void)device;
  return cuFuncGetAttribute(value, attribute, (CUfunction)(void *)kernel);
}

API(cuKernelSetAttribute, (CUfunction_attribute attribute, int value, CUkernel kernel, CUdevice device)) {
  (void)device;
  return cuFuncSetAttribute((CUfunction)(void *)kernel, attribute, value);
}

API(cuFuncSetCacheConfig, (CUfunction function, CUfunc_cache config)) {
  ENTER();
  (void)function, (void)config;
  return CUDA_SUCCESS;
}

API(cuKernelSetCacheConfig, (CUkernel kernel, CUfunc_cache config, CUdevice device)) {
  (void)device;
  return cuFuncSetCacheConfig((CUfunction)(void *)kernel, config);
}

// For cuLaunchGrid, which is missing. PyCUDA sets the shape, and then launches as everyone does.
API(cuFuncSetBlockShape, (CUfunction function, int x, int y, int z)) {
  ENTER();
  return !function || x < 1 || y < 1 || z < 1 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

API(cuFuncSetSharedMemConfig, (CUfunction function, CUsharedconfig config)) {
  ENTER();
  (void)function, (void)config;
  return CUDA_SUCCESS;
}
