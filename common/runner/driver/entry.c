// Looking functions up by name, as the runtime and C++ programs do for cuTensorMapEncodeTiled.
#define _GNU_SOURCE  // dladdr
#include <dlfcn.h>
#include <string.h>

#include "driver.h"

// The functions whose meaning changed, by the version from which a name means another function: cudaTypedefs.h has
// them. For the rest the newest is the one that every CUDA 12 and 13 means.
static const struct {
  const char *name;
  int version;  // of CUDA, 1000 * major + 10 * minor
  const char *function;
} changed[] = {
    {"cuCtxCreate", 3020, "cuCtxCreate_v2"},
    {"cuCtxCreate", 11040, "cuCtxCreate_v3"},
    {"cuCtxCreate", 12050, "cuCtxCreate_v4"},
    {"cuCtxGetDevice", 2000, "cuCtxGetDevice"},
    {"cuCtxGetDevice", 13000, "cuCtxGetDevice_v2"},
    {"cuCtxSynchronize", 2000, "cuCtxSynchronize"},
    {"cuCtxSynchronize", 13000, "cuCtxSynchronize_v2"},
    {"cuMemAdvise", 8000, "cuMemAdvise"},
    {"cuMemAdvise", 12020, "cuMemAdvise_v2"},
    {"cuMemPrefetchAsync", 8000, "cuMemPrefetchAsync"},
    {"cuMemPrefetchAsync", 12020, "cuMemPrefetchAsync_v2"},
    {"cuStreamGetCaptureInfo", 10010, "cuStreamGetCaptureInfo"},
    {"cuStreamGetCaptureInfo", 11030, "cuStreamGetCaptureInfo_v2"},
    {"cuStreamGetCaptureInfo", 12030, "cuStreamGetCaptureInfo_v3"},
    {"cuStreamUpdateCaptureDependencies", 11030, "cuStreamUpdateCaptureDependencies"},
    {"cuStreamUpdateCaptureDependencies", 12030, "cuStreamUpdateCaptureDependencies_v2"},
    {"cuGraphAddNode", 12020, "cuGraphAddNode"},
    {"cuGraphAddNode", 12030, "cuGraphAddNode_v2"},
    {"cuGraphAddDependencies", 10000, "cuGraphAddDependencies"},
    {"cuGraphAddDependencies", 12030, "cuGraphAddDependencies_v2"},
    {"cuGraphRemoveDependencies", 10000, "cuGraphRemoveDependencies"},
    {"cuGraphRemoveDependencies", 12030, "cuGraphRemoveDependencies_v2"},
    {"cuGraphGetEdges", 10000, "cuGraphGetEdges"},
    {"cuGraphGetEdges", 12030, "cuGraphGetEdges_v2"},
    {"cuGraphNodeGetDependencies", 10000, "cuGraphNodeGetDependencies"},
    {"cuGraphNodeGetDependencies", 12030, "cuGraphNodeGetDependencies_v2"},
    {"cuGraphNodeGetDependentNodes", 10000, "cuGraphNodeGetDependentNodes"},
    {"cuGraphNodeGetDependentNodes", 12030, "cuGraphNodeGetDependentNodes_v2"},
    {"cuGraphInstantiate", 10000, "cuGraphInstantiateWithFlags"},
    {"cuGetProcAddress", 11030, "cuGetProcAddress"},
    {"cuGetProcAddress", 12000, "cuGetProcAddress_v2"},
};

// This library, which the program may have opened without its names being global.
static void *self(void) {
  static void *handle;
  Dl_info info;
  if (!handle && dladdr((void *)&core, &info)) handle = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  return handle;
}

static void *find_version(const char *name, int version) {
  const char *function = NULL;
  for (size_t i = 0; i < sizeof changed / sizeof *changed; i++)
    if (!strcmp(changed[i].name, name) && changed[i].version <= version) function = changed[i].function;
  if (function) return dlsym(self(), function);
  char newest[128];
  snprintf(newest, sizeof newest, "%s_v2", name);
  void *found = dlsym(self(), newest);
  return found ? found : dlsym(self(), name);
}

CUresult cuGetProcAddress_v2(const char *name, void **function, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *result) {
  (void)flags;
  if (!name || !function) return CUDA_ERROR_INVALID_VALUE;
  *function = strncmp(name, "cu", 2) ? NULL : find_version(name, version);
  if (result) *result = *function ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  return *function || result ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult cuGetProcAddress(const char *name, void **function, int version, cuuint64_t flags) {
  return cuGetProcAddress_v2(name, function, version, flags, NULL);
}

// Tables of functions that no header declares. NVIDIA's own runtime, linked statically into a program or a library,
// needs them. So a program or library that asks for one cannot run here.
API(cuGetExportTable, (const void **result, const CUuuid *id)) {
  Dl_info caller;
  (void)id;
  *result = NULL;
  const char *name = dladdr(__builtin_return_address(0), &caller) ? caller.dli_fname : "the program";
  const char *slash = strrchr(name, '/');
  name = slash ? slash + 1 : name;
  // NVIDIA's compilers ask for the GPU at hand, and do without.
  if (!strncmp(name, "libnvrtc", 8) || !strncmp(name, "libnvJitLink", 12)) return CUDA_ERROR_NOT_SUPPORTED;
  if (strstr(name, ".so"))
    core_say_once("%s needs a GPU: it has kernels of its own, in machine code, and the emulator runs only PTX", name);
  else
    core_say_once("%s is linked with the static CUDA runtime: build it with nvcc -cudart shared", name);
  return CUDA_ERROR_NOT_SUPPORTED;
}
