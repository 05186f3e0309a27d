// What nvcc's host code registers before main(): fatbins, and the addresses that stand for their kernels and variables
// in host code. A fatbin's PTX is parsed when something in it is needed.
#include <stdlib.h>
#include <string.h>

#include "runtime.h"

typedef struct Fatbin {
  const void *wrapper;
  bool tried;
  CUresult status;  // of loading it
  CUmodule module;
  struct Managed *managed;
} Fatbin;

// A kernel or a variable, by the address that stands for it in host code.
typedef struct Symbol {
  const void *host;
  Fatbin *fatbin;
  char *name;
  bool is_kernel;
  CUfunction function;  // once looked up
  struct Symbol *next;
} Symbol;

// A __managed__ variable: host code reaches it through a pointer, which is written when the module is loaded.
typedef struct Managed {
  void **pointer;
  char *name;
  struct Managed *next;
} Managed;

enum { BUCKETS = 4096 };
static Symbol *registered_symbols[BUCKETS];

static unsigned bucket(const void *host) { return (unsigned)((uintptr_t)host >> 4 ^ (uintptr_t)host >> 16) % BUCKETS; }

static void register_symbol(Fatbin *fatbin, const void *host, const char *name, bool is_kernel) {
  Symbol *symbol = calloc(1, sizeof *symbol);
  if (!symbol) return;
  Symbol **head = &registered_symbols[bucket(host)];
  *symbol = (Symbol){host, fatbin, strdup(name), is_kernel, NULL, *head};
  *head = symbol;
}

static Symbol *find_symbol(const void *host, bool is_kernel) {
  for (Symbol *s = registered_symbols[bucket(host)]; s; s = s->next)
    if (s->host == host && s->is_kernel == is_kernel) return s;
  return NULL;
}

// ---- loading ----

static CUresult load_fatbin(Fatbin *fatbin) {
  if (fatbin->tried) return fatbin->status;
  fatbin->tried = true;
  fatbin->status = cuModuleLoadFatBinary(&fatbin->module, fatbin->wrapper);
  for (Managed *m = fatbin->managed; m && fatbin->status == CUDA_SUCCESS; m = m->next) {
    CUdeviceptr address;
    fatbin->status = cuModuleGetGlobal_v2(&address, NULL, fatbin->module, m->name);
    if (fatbin->status == CUDA_SUCCESS) *m->pointer = (void *)(uintptr_t)address;
  }
  return fatbin->status;
}

cudaError_t runtime_function(CUfunction *function, const void *host) {
  cudaError_t ready = runtime_ready();
  if (ready != cudaSuccess) return ready;
  Symbol *symbol = find_symbol(host, true);
  if (!symbol) {
    // Not a host function: perhaps a cudaKernel_t or cudaFunction_t, which are the driver's.
    CUmodule module;
    *function = (CUfunction)(uintptr_t)host;
    return host && cuFuncGetModule(&module, *function) == CUDA_SUCCESS ? cudaSuccess : cudaErrorInvalidDeviceFunction;
  }
  if (!symbol->function) {
    CUresult status = load_fatbin(symbol->fatbin);
    if (status == CUDA_SUCCESS) status = cuModuleGetFunction(&symbol->function, symbol->fatbin->module, symbol->name);
    if (status == CUDA_ERROR_NOT_FOUND) return cudaErrorInvalidDeviceFunction;
    if (status != CUDA_SUCCESS) return runtime_error(status);
  }
  *function = symbol->function;
  return cudaSuccess;
}

// ---- what host code calls ----

void **__cudaRegisterFatBinary(void *wrapper);
void **__cudaRegisterFatBinary(void *wrapper) {
  Fatbin *fatbin = calloc(1, sizeof *fatbin);
  if (fatbin) fatbin->wrapper = wrapper;
  return (void **)fatbin;
}

void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaRegisterFatBinaryEnd(void **handle) { (void)handle; }

// The program is ending, and later destructors may still use it.
void __cudaUnregisterFatBinary(void **handle);
void __cudaUnregisterFatBinary(void **handle) { (void)handle; }

void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name, int limit, void *tid,
                            void *bid, void *block, void *grid, int *warp);
void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name, int limit, void *tid,
                            void *bid, void *block, void *grid, int *warp) {
  (void)device, (void)limit, (void)tid, (void)bid, (void)block, (void)grid, (void)warp;
  register_symbol((Fatbin *)handle, host, name, true);
}

void __cudaRegisterVar(void **handle, char *host, char *address, const char *name, int ext, size_t size, int constant,
                       int global);
void __cudaRegisterVar(void **handle, char *host, char *address, const char *name, int ext, size_t size, int constant,
                       int global) {
  (void)address, (void)ext, (void)size, (void)constant, (void)global;
  register_symbol((Fatbin *)handle, host, name, false);
}

void __cudaRegisterHostVar(void **handle, const char *name, char *host, size_t size);
void __cudaRegisterHostVar(void **handle, const char *name, char *host, size_t size) {
  (void)size;
  register_symbol((Fatbin *)handle, host, name, false);
}

void __cudaRegisterManagedVar(void **handle, void **pointer, char *address, const char *name, int ext, size_t size,
                              int constant, int global);
void __cudaRegisterManagedVar(void **handle, void **pointer, char *address, const char *name, int ext, size_t size,
                              int constant, int global) {
  (void)address, (void)ext, (void)size, (void)constant, (void)global;
  Fatbin *fatbin = (Fatbin *)handle;
  Managed *managed = calloc(1, sizeof *managed);
  if (!managed) return;
  *managed = (Managed){pointer, strdup(name), fatbin->managed};
  fatbin->managed = managed;
  register_symbol(fatbin, pointer, name, false);
}

char __cudaInitModule(void **handle);
char __cudaInitModule(void **handle) {
  return runtime_ready() == cudaSuccess && load_fatbin((Fatbin *)handle) == CUDA_SUCCESS;
}

// ---- variables ----

static cudaError_t variable(const void *host, CUdeviceptr *address, size_t *size) {
  cudaError_t ready = runtime_ready();
  if (ready != cudaSuccess) return ready;
  Symbol *symbol = find_symbol(host, false);
  if (!symbol) return cudaErrorInvalidSymbol;
  CUresult status = load_fatbin(symbol->fatbin);
  if (status == CUDA_SUCCESS) status = cuModuleGetGlobal_v2(address, size, symbol->fatbin->module, symbol->name);
  return status == CUDA_ERROR_NOT_FOUND ? cudaErrorInvalidSymbol : runtime_error(status);
}

API(cudaGetSymbolAddress, (void **pointer, const void *host)) {
  return runtime_result(variable(host, (CUdeviceptr *)pointer, NULL));
}

API(cudaGetSymbolSize, (size_t * size, const void *host)) {
  CUdeviceptr address;
  return runtime_result(variable(host, &address, size));
}

// Whether the part lies inside the variable, and where.
static cudaError_t part_of_variable(const void *host, size_t offset, size_t count, CUdeviceptr *address) {
  size_t size = 0;
  cudaError_t status = variable(host, address, &size);
  if (status == cudaSuccess && (offset > size || count > size - offset)) {
    core_say("a copy of %zu bytes at byte %zu of a variable of %zu bytes", count, offset, size);
    status = cudaErrorInvalidValue;
  }
  *address += offset;
  return status;
}

API(cudaMemcpyToSymbolAsync, (const void *symbol, const void *from, size_t count, size_t offset,
                              enum cudaMemcpyKind kind, cudaStream_t stream)) {
  CUdeviceptr address = 0;
  (void)kind;
  cudaError_t status = part_of_variable(symbol, offset, count, &address);
  if (status != cudaSuccess) return runtime_result(status);
  return DO(cuMemcpyAsync(address, (CUdeviceptr)(uintptr_t)from, count, stream));
}

API(cudaMemcpyToSymbol, (const void *symbol, const void *from, size_t count, size_t offset, enum cudaMemcpyKind kind)) {
  return cudaMemcpyToSymbolAsync(symbol, from, count, offset, kind, NULL);
}

API(cudaMemcpyFromSymbolAsync,
    (void *to, const void *symbol, size_t count, size_t offset, enum cudaMemcpyKind kind, cudaStream_t stream)) {
  CUdeviceptr address = 0;
  (void)kind;
  cudaError_t status = part_of_variable(symbol, offset, count, &address);
  if (status != cudaSuccess) return runtime_result(status);
  return DO(cuMemcpyAsync((CUdeviceptr)(uintptr_t)to, address, count, stream));
}

API(cudaMemcpyFromSymbol, (void *to, const void *symbol, size_t count, size_t offset, enum cudaMemcpyKind kind)) {
  return cudaMemcpyFromSymbolAsync(to, symbol, count, offset, kind, NULL);
}
