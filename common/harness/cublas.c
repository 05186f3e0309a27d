#include "cublas.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// cublas_api.h and library_types.h.
enum { CUBLAS_OP_N = 0, CUBLAS_OP_T = 1, CUBLAS_COMPUTE_32F = 68, CUBLAS_GEMM_DEFAULT = -1 };
enum { CUDA_R_32F = 0, CUDA_R_16F = 2 };

typedef int Create(void **handle);
typedef int Destroy(void *handle);
typedef const char *StatusString(int status);
typedef int GemmStridedBatched(void *handle, int transpose_a, int transpose_b, int m, int n, int k, const void *alpha,
                               const void *a, int a_type, int a_pitch, long long a_distance, const void *b, int b_type,
                               int b_pitch, long long b_distance, const void *beta, void *c, int c_type, int c_pitch,
                               long long c_distance, int count, int compute_type, int algorithm);

typedef int GemmOne(void *handle, int transpose_a, int transpose_b, int m, int n, int k, const void *alpha,
                    const void *a, int a_type, int a_pitch, const void *b, int b_type, int b_pitch, const void *beta,
                    void *c, int c_type, int c_pitch, int compute_type, int algorithm);

struct Cublas {
  void *library, *handle;
  Destroy *destroy;
  StatusString *status_string;
  GemmStridedBatched *multiply;
  GemmOne *multiply_one;
};

// ---- loading ----

// The library of CUDA 13 or 12: where the dynamic linker looks, or in the toolkit's folder.
static void *load_library(void) {
  static const char *const names[] = {"libcublas.so.13", "libcublas.so.12"};
  const char *toolkit = getenv("CUDA_HOME") ? getenv("CUDA_HOME") : "/usr/local/cuda";
  char path[1000];
  void *library = NULL;
  for (int i = 0; i < 4 && !library; i++) {
    snprintf(path, sizeof path, "%s/lib64/%s", toolkit, names[i / 2]);
    library = dlopen(i % 2 ? path : names[i / 2], RTLD_NOW);
  }
  return library;
}

static bool load_functions(Cublas *cublas, Create **create) {
  *(void **)create = dlsym(cublas->library, "cublasCreate_v2");
  *(void **)&cublas->destroy = dlsym(cublas->library, "cublasDestroy_v2");
  *(void **)&cublas->status_string = dlsym(cublas->library, "cublasGetStatusString");
  *(void **)&cublas->multiply = dlsym(cublas->library, "cublasGemmStridedBatchedEx");
  *(void **)&cublas->multiply_one = dlsym(cublas->library, "cublasGemmEx");
  return *create && cublas->destroy && cublas->status_string && cublas->multiply && cublas->multiply_one;
}

static bool open_library(Cublas *cublas, char *error, size_t size) {
  Create *create;
  cublas->library = load_library();
  if (!cublas->library) {
    snprintf(error, size,
             "no cuBLAS: neither libcublas.so.13 nor .12 can be loaded. It comes with the CUDA toolkit (set CUDA_HOME) "
             "and with PyTorch (set LD_LIBRARY_PATH to its folder nvidia/.../lib)");
    return false;
  }
  if (!load_functions(cublas, &create)) {
    snprintf(error, size, "cuBLAS is too old: it has no %s",
             create && cublas->destroy && cublas->multiply ? "cublasGetStatusString" : "cublasGemmStridedBatchedEx");
    return false;
  }
  int status = create(&cublas->handle);
  if (!status) return true;
  snprintf(error, size, "cublasCreate: %s", cublas->status_string(status));
  return false;
}

Cublas *cublas_open(char *error, size_t size) {
  Cublas *cublas = calloc(1, sizeof *cublas);
  snprintf(error, size, "out of host memory");
  if (cublas && open_library(cublas, error, size)) return cublas;
  cublas_close(cublas);
  return NULL;
}

void cublas_close(Cublas *cublas) {
  if (!cublas) return;
  if (cublas->handle) cublas->destroy(cublas->handle);
  if (cublas->library) dlclose(cublas->library);
  free(cublas);
}

// ---- multiplying ----

static int cublas_type(const Matrices *matrices) { return matrices->fp32 ? CUDA_R_32F : CUDA_R_16F; }
static int cublas_operation(const Matrices *matrices) { return matrices->transposed ? CUBLAS_OP_T : CUBLAS_OP_N; }

const char *cublas_multiply(Cublas *cublas, int m, int n, int k, float factor, const Matrices *a, const Matrices *b,
                            const Matrices *c, int heads) {
  float zero = 0;
  if (heads == 1) {
    int status =
        cublas->multiply_one(cublas->handle, cublas_operation(a), cublas_operation(b), m, n, k, &factor, a->data,
                             cublas_type(a), a->pitch, b->data, cublas_type(b), b->pitch, &zero, (void *)c->data,
                             cublas_type(c), c->pitch, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
    return status ? cublas->status_string(status) : NULL;
  }
  int status = cublas->multiply(cublas->handle, cublas_operation(a), cublas_operation(b), m, n, k, &factor, a->data,
                                cublas_type(a), a->pitch, a->distance, b->data, cublas_type(b), b->pitch, b->distance,
                                &zero, (void *)c->data, cublas_type(c), c->pitch, c->distance, heads,
                                CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
  return status ? cublas->status_string(status) : NULL;
}
