// cuBLAS' trsm and trsmBatched: op(A) X = alpha B or X op(A) = alpha B, for a triangular A. X replaces B. The solution
// is computed in double precision, by substitution.
#include <complex.h>
#include <stdlib.h>

#include "handle.h"
#include "matrix.h"

void core_library_reads(const void *address, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

typedef double complex Number;

// Numbers of one of cuBLAS' four types, and the routine that has them.
typedef struct Kind {
  const char *routine;
  cudaDataType_t real;  // of a number's parts
  int parts;            // 2: complex
} Kind;

typedef struct Problem {
  Kind kind;
  bool left, upper, transposed, conjugated, unit;
  int m, n;
  Number alpha;
  const void *a;
  void *b;
  int lda, ldb;
} Problem;

static size_t number_size(const Kind *kind) { return (size_t)kind->parts * matrix_element(kind->real); }

static Number decode_number(const Kind *kind, const char *bytes) {
  double imaginary = kind->parts == 2 ? matrix_decode(bytes + matrix_element(kind->real), kind->real) : 0;
  return CMPLX(matrix_decode(bytes, kind->real), imaginary);
}

static void encode(const Kind *kind, char *bytes, Number number) {
  matrix_encode(bytes, kind->real, creal(number));
  if (kind->parts == 2) matrix_encode(bytes + matrix_element(kind->real), kind->real, cimag(number));
}

// Numbers of a matrix's column, one after another. matrix: "A" or "B".
static bool read_column(const Kind *kind, const char *matrix, const void *address, int leading, int column, int row,
                        int count, Number *to) {
  size_t size = number_size(kind);
  const char *from = (const char *)address + ((size_t)column * (size_t)leading + (size_t)row) * size;
  char *bytes = malloc((size_t)count * size + 1);
  bool done =
      bytes && (!count || cuMemcpy((CUdeviceptr)bytes, (CUdeviceptr)from, (size_t)count * size) == CUDA_SUCCESS);
  if (done && count)
    core_library_reads(from, (size_t)count * size, "%s reads %s in column %d, rows %d to %d", kind->routine, matrix,
                       column, row, row + count - 1);
  for (int i = 0; done && i < count; i++) to[i] = decode_number(kind, bytes + (size_t)i * size);
  free(bytes);
  return done;
}

static bool write_column(const Kind *kind, void *address, int leading, int column, int count, const Number *from) {
  size_t size = number_size(kind);
  char *bytes = malloc((size_t)count * size + 1);
  for (int i = 0; bytes && i < count; i++) encode(kind, bytes + (size_t)i * size, from[i]);
  char *to = (char *)address + (size_t)column * (size_t)leading * size;
  bool done = bytes && cuMemcpy((CUdeviceptr)to, (CUdeviceptr)bytes, (size_t)count * size) == CUDA_SUCCESS;
  free(bytes);
  return done;
}

// The system's matrix, a row after another: of each vector x of X, S x = alpha b. Only A's triangle is read, and not
// the diagonal of a unit one. NULL when A cannot be read.
static Number *load_system(const Problem *p, int size) {
  Number *system = calloc((size_t)size * (size_t)size + 1, sizeof *system);
  Number *column = malloc(((size_t)size + 1) * sizeof *column);
  bool done = system && column, flip = p->transposed == p->left;
  for (int c = 0; done && c < size; c++) {
    int first = p->upper ? 0 : c + p->unit, last = p->upper ? c - p->unit : size - 1;
    done = read_column(&p->kind, "A", p->a, p->lda, c, first, last - first + 1, column);
    for (int r = first; done && r <= last; r++) {
      Number number = p->conjugated ? conj(column[r - first]) : column[r - first];
      system[flip ? c * size + r : r * size + c] = number;
    }
    if (p->unit) system[c * size + c] = 1;
  }
  free(column);
  if (done) return system;
  free(system);
  return NULL;
}

// A division of real numbers stays real, also by 0.
static Number divide_numbers(Number a, Number b) {
  return cimag(b) == 0 ? CMPLX(creal(a) / creal(b), cimag(a) == 0 ? 0 : cimag(a) / creal(b)) : a / b;
}

// x holds b, and x[i] is at i * step.
static void substitute(const Number *system, int size, bool upper, Number *x, int step) {
  for (int i = 0; i < size; i++) {
    int row = upper ? size - 1 - i : i;
    Number sum = x[row * step];
    for (int k = upper ? row + 1 : 0; k < (upper ? size : row); k++) sum -= system[row * size + k] * x[k * step];
    x[row * step] = divide_numbers(sum, system[row * size + row]);
  }
}

// With alpha 0 neither A nor B is read.
static bool load_right_side(const Problem *p, Number *x) {
  for (int c = 0; p->alpha != 0 && c < p->n; c++) {
    if (!read_column(&p->kind, "B", p->b, p->ldb, c, 0, p->m, x + c * p->m)) return false;
    for (int r = 0; r < p->m; r++) x[c * p->m + r] *= p->alpha;
  }
  return true;
}

static bool solve(const Problem *p) {
  int size = p->left ? p->m : p->n, vectors = p->left ? p->n : p->m;
  Number *x = calloc((size_t)p->m * (size_t)p->n + 1, sizeof *x);
  Number *system = p->alpha != 0 ? load_system(p, size) : NULL;
  bool done = x && (system || p->alpha == 0) && load_right_side(p, x);
  // Of X op(A) = alpha B the rows are solved, by the transpose.
  bool upper = p->upper != (p->transposed == p->left);
  for (int v = 0; done && system && v < vectors; v++)
    substitute(system, size, upper, p->left ? x + v * p->m : x + v, p->left ? 1 : p->m);
  for (int c = 0; done && c < p->n; c++) done = write_column(&p->kind, p->b, p->ldb, c, p->m, x + c * p->m);
  free(x);
  free(system);
  return done;
}

// ---- the API ----

static bool load_alpha(cublasHandle_t handle, const Kind *kind, const void *from, Number *alpha) {
  char bytes[sizeof(double) * 2] = {0};
  bool on_device = handle->pointers == CUBLAS_POINTER_MODE_DEVICE;
  if (on_device && cuMemcpy((CUdeviceptr)bytes, (CUdeviceptr)from, number_size(kind)) != CUDA_SUCCESS) return false;
  *alpha = decode_number(kind, on_device ? bytes : from);
  return true;
}

static bool valid(cublasSideMode_t side, cublasFillMode_t uplo, cublasOperation_t op, cublasDiagType_t diag, int m,
                  int n, const void *alpha, int lda, int ldb) {
  int size = side == CUBLAS_SIDE_LEFT ? m : n;
  return (side == CUBLAS_SIDE_LEFT || side == CUBLAS_SIDE_RIGHT) &&
         (uplo == CUBLAS_FILL_MODE_LOWER || uplo == CUBLAS_FILL_MODE_UPPER) && (unsigned)op <= CUBLAS_OP_C &&
         (diag == CUBLAS_DIAG_UNIT || diag == CUBLAS_DIAG_NON_UNIT) && alpha && m >= 0 && n >= 0 &&
         lda >= (size > 1 ? size : 1) && ldb >= (m > 1 ? m : 1);
}

// a and b point to one matrix each, or in a batch to arrays of pointers.
static cublasStatus_t trsm(cublasHandle_t handle, Kind kind, cublasSideMode_t side, cublasFillMode_t uplo,
                           cublasOperation_t op, cublasDiagType_t diag, int m, int n, const void *alpha, const void *a,
                           int lda, const void *b, int ldb, int batch, bool is_batch) {
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (!valid(side, uplo, op, diag, m, n, alpha, lda, ldb) || batch < 0) return CUBLAS_STATUS_INVALID_VALUE;
  if (m == 0 || n == 0 || batch == 0) return CUBLAS_STATUS_SUCCESS;
  Problem p = {.kind = kind,
               .left = side == CUBLAS_SIDE_LEFT,
               .upper = uplo == CUBLAS_FILL_MODE_UPPER,
               .transposed = op != CUBLAS_OP_N,
               .conjugated = op == CUBLAS_OP_C,
               .unit = diag == CUBLAS_DIAG_UNIT,
               .m = m,
               .n = n,
               .a = a,
               .b = (void *)b,
               .lda = lda,
               .ldb = ldb};
  if (!load_alpha(handle, &kind, alpha, &p.alpha)) return CUBLAS_STATUS_EXECUTION_FAILED;
  if (!is_batch) return solve(&p) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
  void **as = matrix_pointers(a, batch), **bs = matrix_pointers(b, batch);
  bool done = as && bs;
  for (int i = 0; done && i < batch; i++) {
    p.a = as[i];
    p.b = bs[i];
    done = solve(&p);
  }
  free(as);
  free(bs);
  return done ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

#define TRSM(letter, T, real, parts)                                                                                   \
  cublasStatus_t cublas##letter##trsm_v2(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t uplo,          \
                                         cublasOperation_t op, cublasDiagType_t diag, int m, int n, const T *alpha,    \
                                         const T *a, int lda, T *b, int ldb) {                                         \
    return trsm(handle, (Kind){"cublas" #letter "trsm", real, parts}, side, uplo, op, diag, m, n, alpha, a, lda, b,    \
                ldb, 1, false);                                                                                        \
  }                                                                                                                    \
  cublasStatus_t cublas##letter##trsmBatched(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t uplo,      \
                                             cublasOperation_t op, cublasDiagType_t diag, int m, int n,                \
                                             const T *alpha, const T *const a[], int lda, T *const b[], int ldb,       \
                                             int batch) {                                                              \
    return trsm(handle, (Kind){"cublas" #letter "trsm", real, parts}, side, uplo, op, diag, m, n, alpha, a, lda, b,    \
                ldb, batch, true);                                                                                     \
  }
TRSM(S, float, CUDA_R_32F, 1)
TRSM(D, double, CUDA_R_64F, 1)
TRSM(C, cuComplex, CUDA_R_32F, 2)
TRSM(Z, cuDoubleComplex, CUDA_R_64F, 2)
