// The stand-in for libcublas.so: what programs use to compare their own kernels with. Vectors, matrix times vector,
// matrix times matrix. Every other function that the real library exports prints a line and returns "not supported".
#include <cublas_v2.h>

#include <math.h>
#include <stdlib.h>

#include "handle.h"
#include "matrix.h"

// ---- a handle and its settings ----

cublasStatus_t cublasCreate_v2(cublasHandle_t *handle) {
  *handle = calloc(1, sizeof **handle);
  return *handle ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  free(handle);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetVersion_v2(cublasHandle_t handle, int *version) {
  (void)handle;
  *version = CUBLAS_VERSION;
  return CUBLAS_STATUS_SUCCESS;
}

// Each call does its work at once, so no workspace is needed and all streams are alike.
cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void *workspace, size_t size) {
  (void)handle, (void)workspace, (void)size;
  return CUBLAS_STATUS_SUCCESS;
}

// Defines the functions that set and that get a field of the handle.
#define SETTING(set, get, type, field)                                                                                 \
  cublasStatus_t set(cublasHandle_t handle, type value) {                                                              \
    handle->field = value;                                                                                             \
    return CUBLAS_STATUS_SUCCESS;                                                                                      \
  }                                                                                                                    \
  cublasStatus_t get(cublasHandle_t handle, type *value) {                                                             \
    *value = handle->field;                                                                                            \
    return CUBLAS_STATUS_SUCCESS;                                                                                      \
  }
SETTING(cublasSetStream_v2, cublasGetStream_v2, cudaStream_t, stream)
SETTING(cublasSetPointerMode_v2, cublasGetPointerMode_v2, cublasPointerMode_t, pointers)
SETTING(cublasSetMathMode, cublasGetMathMode, cublasMath_t, math)
SETTING(cublasSetAtomicsMode, cublasGetAtomicsMode, cublasAtomicsMode_t, atomics)

// ---- copies ----

static cublasStatus_t status_of(CUresult result) {
  return result == CUDA_SUCCESS ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_MAPPING_ERROR;
}

// Rows of so many bytes, from one to the next of which there are from_pitch bytes, and to_pitch where they go.
static cublasStatus_t copy_rows(const void *from, int64_t from_pitch, void *to, int64_t to_pitch, int64_t bytes,
                                int64_t rows) {
  if (bytes <= 0 || rows <= 0) return bytes < 0 || rows < 0 ? CUBLAS_STATUS_INVALID_VALUE : CUBLAS_STATUS_SUCCESS;
  if (from_pitch < bytes || to_pitch < bytes) return CUBLAS_STATUS_INVALID_VALUE;
  return status_of(cuMemcpy2D_v2(&(CUDA_MEMCPY2D){.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
                                                  .srcDevice = (CUdeviceptr)(uintptr_t)from,
                                                  .srcPitch = (size_t)from_pitch,
                                                  .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
                                                  .dstDevice = (CUdeviceptr)(uintptr_t)to,
                                                  .dstPitch = (size_t)to_pitch,
                                                  .WidthInBytes = (size_t)bytes,
                                                  .Height = (size_t)rows}));
}

// Defines the copies of one direction, which differ in their names alone: the addresses tell where memory is.
#define COPIES(vector, matrix)                                                                                         \
  cublasStatus_t vector(int count, int element, const void *from, int from_step, void *to, int to_step) {              \
    return copy_rows(from, (int64_t)from_step * element, to, (int64_t)to_step * element, element, count);              \
  }                                                                                                                    \
  cublasStatus_t vector##Async(int count, int element, const void *from, int from_step, void *to, int to_step,         \
                               cudaStream_t stream) {                                                                  \
    (void)stream;                                                                                                      \
    return vector(count, element, from, from_step, to, to_step);                                                       \
  }                                                                                                                    \
  cublasStatus_t matrix(int rows, int columns, int element, const void *from, int from_leading, void *to,              \
                        int to_leading) {                                                                              \
    return copy_rows(from, (int64_t)from_leading * element, to, (int64_t)to_leading * element,                         \
                     (int64_t)rows * element, columns);                                                                \
  }                                                                                                                    \
  cublasStatus_t matrix##Async(int rows, int columns, int element, const void *from, int from_leading, void *to,       \
                               int to_leading, cudaStream_t stream) {                                                  \
    (void)stream;                                                                                                      \
    return matrix(rows, columns, element, from, from_leading, to, to_leading);                                         \
  }
COPIES(cublasSetVector, cublasSetMatrix)
COPIES(cublasGetVector, cublasGetMatrix)

// ---- what goes wrong ----

#define STATUS(name)                                                                                                   \
  case name: return #name
const char *cublasGetStatusName(cublasStatus_t status) {
  switch (status) {
    STATUS(CUBLAS_STATUS_SUCCESS);
    STATUS(CUBLAS_STATUS_NOT_INITIALIZED);
    STATUS(CUBLAS_STATUS_ALLOC_FAILED);
    STATUS(CUBLAS_STATUS_INVALID_VALUE);
    STATUS(CUBLAS_STATUS_ARCH_MISMATCH);
    STATUS(CUBLAS_STATUS_MAPPING_ERROR);
    STATUS(CUBLAS_STATUS_EXECUTION_FAILED);
    STATUS(CUBLAS_STATUS_INTERNAL_ERROR);
    STATUS(CUBLAS_STATUS_NOT_SUPPORTED);
    STATUS(CUBLAS_STATUS_LICENSE_ERROR);
  default: return "an unknown status of cuBLAS";
  }
}
const char *cublasGetStatusString(cublasStatus_t status) { return cublasGetStatusName(status); }

// ---- scalars ----

// The type of alpha and beta, which depends on how the product is computed.
static cudaDataType_t scalar_type(cublasComputeType_t compute) {
  switch (compute) {
  case CUBLAS_COMPUTE_16F:
  case CUBLAS_COMPUTE_16F_PEDANTIC: return CUDA_R_16F;
  case CUBLAS_COMPUTE_32I:
  case CUBLAS_COMPUTE_32I_PEDANTIC: return CUDA_R_32I;
  case CUBLAS_COMPUTE_64F:
  case CUBLAS_COMPUTE_64F_PEDANTIC: return CUDA_R_64F;
  default: return CUDA_R_32F;
  }
}

static bool load_scalar(const struct cublasContext *handle, const void *from, cudaDataType_t type, double *value) {
  return matrix_scalar(from, type, handle->pointers == CUBLAS_POINTER_MODE_DEVICE, value);
}

static bool store_scalar(const struct cublasContext *handle, void *to, cudaDataType_t type, double value) {
  uint64_t element = 0;
  matrix_encode(handle->pointers == CUBLAS_POINTER_MODE_HOST ? to : &element, type, value);
  return handle->pointers == CUBLAS_POINTER_MODE_HOST ||
         cuMemcpy((CUdeviceptr)to, (CUdeviceptr)&element, matrix_element(type)) == CUDA_SUCCESS;
}

// ---- matrix times matrix ----

static cublasStatus_t multiply(const Product *p) {
  if (!matrix_element(p->a.type) || !matrix_element(p->b.type) || !matrix_element(p->d.type))
    return (cublasStatus_t)blas_missing("cublasGemmEx with other types than f16, bf16, f32, f64, s8 and s32");
  double *values = matrix_product(p);
  bool done = values && matrix_store(&p->d, values);
  free(values);
  return done ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

static const void *nth_element(const void *address, cudaDataType_t type, long long index) {
  return (const char *)address + index * (long long)matrix_element(type);
}

cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m,
                                          int n, int k, const void *alpha, const void *a, cudaDataType a_type, int lda,
                                          long long a_stride, const void *b, cudaDataType b_type, int ldb,
                                          long long b_stride, const void *beta, void *c, cudaDataType c_type, int ldc,
                                          long long c_stride, int batch, cublasComputeType_t compute,
                                          cublasGemmAlgo_t algorithm) {
  (void)algorithm;
  bool a_transposed = op_a != CUBLAS_OP_N, b_transposed = op_b != CUBLAS_OP_N;
  if (m < 0 || n < 0 || k < 0 || batch < 0 || lda < (a_transposed ? k : m) || ldb < (b_transposed ? n : k) || ldc < m)
    return CUBLAS_STATUS_INVALID_VALUE;
  if (m == 0 || n == 0 || batch == 0) return CUBLAS_STATUS_SUCCESS;
  Product product = {
      .a = {a, a_type, a_transposed ? k : m, a_transposed ? m : k, lda, false},
      .b = {b, b_type, b_transposed ? n : k, b_transposed ? k : n, ldb, false},
      .c = {c, c_type, m, n, ldc, false},
      .a_transposed = a_transposed,
      .b_transposed = b_transposed,
  };
  cudaDataType_t type = scalar_type(compute);
  if (!load_scalar(handle, alpha, type, &product.alpha) || !load_scalar(handle, beta, type, &product.beta))
    return CUBLAS_STATUS_EXECUTION_FAILED;
  cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
  for (int i = 0; i < batch && status == CUBLAS_STATUS_SUCCESS; i++) {
    product.a.address = nth_element(a, a_type, i * a_stride);
    product.b.address = nth_element(b, b_type, i * b_stride);
    product.c.address = nth_element(c, c_type, i * c_stride);
    product.d = product.c;
    status = multiply(&product);
  }
  return status;
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n, int k,
                            const void *alpha, const void *a, cudaDataType a_type, int lda, const void *b,
                            cudaDataType b_type, int ldb, const void *beta, void *c, cudaDataType c_type, int ldc,
                            cublasComputeType_t compute, cublasGemmAlgo_t algorithm) {
  return cublasGemmStridedBatchedEx(handle, op_a, op_b, m, n, k, alpha, a, a_type, lda, 0, b, b_type, ldb, 0, beta, c,
                                    c_type, ldc, 0, 1, compute, algorithm);
}

// Matrices that pointers in device memory name.
cublasStatus_t cublasGemmBatchedEx(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n,
                                   int k, const void *alpha, const void *const a[], cudaDataType a_type, int lda,
                                   const void *const b[], cudaDataType b_type, int ldb, const void *beta,
                                   void *const c[], cudaDataType c_type, int ldc, int batch,
                                   cublasComputeType_t compute, cublasGemmAlgo_t algorithm) {
  // The same conditions: a batch of none is checked, and not computed.
  cublasStatus_t status =
      cublasGemmStridedBatchedEx(handle, op_a, op_b, m, n, k, alpha, NULL, a_type, lda, 0, NULL, b_type, ldb, 0, beta,
                                 NULL, c_type, ldc, 0, batch < 0 ? batch : 0, compute, algorithm);
  if (status != CUBLAS_STATUS_SUCCESS || m == 0 || n == 0 || batch == 0) return status;
  void **as = matrix_pointers(a, batch), **bs = matrix_pointers(b, batch), **cs = matrix_pointers(c, batch);
  if (!as || !bs || !cs) status = CUBLAS_STATUS_EXECUTION_FAILED;
  for (int i = 0; i < batch && status == CUBLAS_STATUS_SUCCESS; i++)
    status = cublasGemmEx(handle, op_a, op_b, m, n, k, alpha, as[i], a_type, lda, bs[i], b_type, ldb, beta, cs[i],
                          c_type, ldc, compute, algorithm);
  free(as);
  free(bs);
  free(cs);
  return status;
}

// Defines the functions for matrices of one type.
#define GEMM(name, T, type, compute)                                                                                   \
  cublasStatus_t cublas##name##StridedBatched(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b,   \
                                              int m, int n, int k, const T *alpha, const T *a, int lda,                \
                                              long long a_stride, const T *b, int ldb, long long b_stride,             \
                                              const T *beta, T *c, int ldc, long long c_stride, int batch) {           \
    return cublasGemmStridedBatchedEx(handle, op_a, op_b, m, n, k, alpha, a, type, lda, a_stride, b, type, ldb,        \
                                      b_stride, beta, c, type, ldc, c_stride, batch, compute, CUBLAS_GEMM_DEFAULT);    \
  }                                                                                                                    \
  cublasStatus_t cublas##name##_v2(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m,       \
                                   int n, int k, const T *alpha, const T *a, int lda, const T *b, int ldb,             \
                                   const T *beta, T *c, int ldc) {                                                     \
    return cublas##name##StridedBatched(handle, op_a, op_b, m, n, k, alpha, a, lda, 0, b, ldb, 0, beta, c, ldc, 0, 1); \
  }                                                                                                                    \
  cublasStatus_t cublas##name##Batched(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m,   \
                                       int n, int k, const T *alpha, const T *const a[], int lda, const T *const b[],  \
                                       int ldb, const T *beta, T *const c[], int ldc, int batch) {                     \
    return cublasGemmBatchedEx(handle, op_a, op_b, m, n, k, alpha, (const void *const *)a, type, lda,                  \
                               (const void *const *)b, type, ldb, beta, (void *const *)c, type, ldc, batch, compute,   \
                               CUBLAS_GEMM_DEFAULT);                                                                   \
  }
GEMM(Sgemm, float, CUDA_R_32F, CUBLAS_COMPUTE_32F)
GEMM(Dgemm, double, CUDA_R_64F, CUBLAS_COMPUTE_64F)

// ---- matrix times vector, and vectors: matrices of one row, with the vector's step from column to column ----

static Matrix vector(const void *address, cudaDataType_t type, int count, int step) {
  return (Matrix){address, type, 1, count, step < 0 ? -(int64_t)step : step, step < 0};
}

static double sum_of_products(const double *x, const double *y, int count) {
  double sum = 0;
  for (int i = 0; i < count; i++) sum += x[i] * y[i];
  return sum;
}

// y = alpha op(A) x + beta y. With beta 0, y is not read; with alpha 0, A and x are not. An empty A leaves y as it is.
static cublasStatus_t multiply_vector(cublasHandle_t handle, cublasOperation_t op, int m, int n, const void *alpha,
                                      const void *a, int lda, const void *x, int x_step, const void *beta, void *y,
                                      int y_step, cudaDataType_t type) {
  bool transposed = op != CUBLAS_OP_N;
  int rows = transposed ? n : m, depth = transposed ? m : n;
  if (m < 0 || n < 0 || lda < m || x_step == 0 || y_step == 0) return CUBLAS_STATUS_INVALID_VALUE;
  if (m == 0 || n == 0) return CUBLAS_STATUS_SUCCESS;
  Matrix from = {a, type, m, n, lda, false}, in = vector(x, type, depth, x_step), out = vector(y, type, rows, y_step);
  double factor = 0, keep = 0;
  if (!load_scalar(handle, alpha, type, &factor) || !load_scalar(handle, beta, type, &keep))
    return CUBLAS_STATUS_EXECUTION_FAILED;
  double *matrix = factor != 0 ? matrix_load(&from, transposed) : NULL;
  double *values = factor != 0 ? matrix_load(&in, false) : NULL;
  double *old = keep != 0 ? matrix_load(&out, false) : NULL, *result = calloc((size_t)rows, sizeof *result);
  bool done = ((matrix && values) || factor == 0) && (old || keep == 0) && result;
  if (done && factor != 0) matrix_multiply(result, matrix, values, rows, 1, depth);
  for (int i = 0; done && i < rows; i++) result[i] = factor * result[i] + (old ? keep * old[i] : 0);
  done = done && matrix_store(&out, result);
  free(matrix);
  free(values);
  free(old);
  free(result);
  return done ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

// y = alpha x + beta y; a NULL x or y counts as 0.
static cublasStatus_t combine(int count, double alpha, const void *x, int x_step, double beta, void *y, int y_step,
                              cudaDataType_t type) {
  Matrix in = vector(x, type, count, x_step), out = vector(y, type, count, y_step);
  if (count <= 0) return CUBLAS_STATUS_SUCCESS;
  double *from = x ? matrix_load(&in, false) : NULL, *to = beta != 0 ? matrix_load(&out, false) : NULL;
  double *result = malloc((size_t)count * sizeof *result);
  bool done = result && (from || !x) && (to || beta == 0);
  for (int i = 0; done && i < count; i++) result[i] = (from ? alpha * from[i] : 0) + (to ? beta * to[i] : 0);
  done = done && matrix_store(&out, result);
  free(from);
  free(to);
  free(result);
  return done ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

// The sum of x[i] y[i]; of its square root, if so asked.
static cublasStatus_t multiply_vectors(cublasHandle_t handle, int count, const void *x, int x_step, const void *y,
                                       int y_step, bool root, void *result, cudaDataType_t type) {
  Matrix left = vector(x, type, count > 0 ? count : 0, x_step), right = vector(y, type, count > 0 ? count : 0, y_step);
  double *a = matrix_load(&left, false), *b = matrix_load(&right, false);
  double sum = a && b ? sum_of_products(a, b, count) : 0;
  bool done = a && b && store_scalar(handle, result, type, root ? sqrt(sum) : sum);
  free(a);
  free(b);
  return done ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

#define VECTORS(letter, T, type)                                                                                       \
  cublasStatus_t cublas##letter##gemv_v2(cublasHandle_t handle, cublasOperation_t op, int m, int n, const T *alpha,    \
                                         const T *a, int lda, const T *x, int x_step, const T *beta, T *y,             \
                                         int y_step) {                                                                 \
    return multiply_vector(handle, op, m, n, alpha, a, lda, x, x_step, beta, y, y_step, type);                         \
  }                                                                                                                    \
  cublasStatus_t cublas##letter##dot_v2(cublasHandle_t handle, int n, const T *x, int x_step, const T *y, int y_step,  \
                                        T *result) {                                                                   \
    return multiply_vectors(handle, n, x, x_step, y, y_step, false, result, type);                                     \
  }                                                                                                                    \
  cublasStatus_t cublas##letter##nrm2_v2(cublasHandle_t handle, int n, const T *x, int x_step, T *result) {            \
    return multiply_vectors(handle, n, x, x_step, x, x_step, true, result, type);                                      \
  }                                                                                                                    \
  cublasStatus_t cublas##letter##axpy_v2(cublasHandle_t handle, int n, const T *alpha, const T *x, int x_step, T *y,   \
                                         int y_step) {                                                                 \
    double factor;                                                                                                     \
    if (!load_scalar(handle, alpha, type, &factor)) return CUBLAS_STATUS_EXECUTION_FAILED;                             \
    if (factor == 0) return CUBLAS_STATUS_SUCCESS; /* y stays, and nothing is read */                                  \
    return combine(n, factor, x, x_step, 1, y, y_step, type);                                                          \
  }                                                                                                                    \
  cublasStatus_t cublas##letter##scal_v2(cublasHandle_t handle, int n, const T *alpha, T *x, int x_step) {             \
    double factor;                                                                                                     \
    if (!load_scalar(handle, alpha, type, &factor)) return CUBLAS_STATUS_EXECUTION_FAILED;                             \
    return combine(n, 0, NULL, 1, factor, x, x_step, type);                                                            \
  }                                                                                                                    \
  cublasStatus_t cublas##letter##copy_v2(cublasHandle_t handle, int n, const T *x, int x_step, T *y, int y_step) {     \
    (void)handle;                                                                                                      \
    return combine(n, 1, x, x_step, 0, y, y_step, type);                                                               \
  }
VECTORS(S, float, CUDA_R_32F)
VECTORS(D, double, CUDA_R_64F)
