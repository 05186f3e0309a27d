// cuBLAS' stand-in: a product that is right, and with an argument one that reads what nobody has written.
#include <cublasLt.h>
#include <cublas_v2.h>

#include <cstring>

#include "check.h"

enum { ROWS = 4, COLUMNS = 3, DEPTH = 5 };

// Column-major matrices in managed memory. b[1] holds column 0 of the second factor alone.
static float *a, *b[2], *c;

static void multiply(cublasHandle_t handle, const float *second, float beta) {
  const float alpha = 2;
  EXPECT(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, ROWS, COLUMNS, DEPTH, &alpha, a, ROWS, second, DEPTH, &beta, c,
                     ROWS) == CUBLAS_STATUS_SUCCESS);
  CHECK(cudaDeviceSynchronize());
}

static float expected(int row, int column) {
  float sum = 0;
  for (int k = 0; k < DEPTH; k++) sum += a[k * ROWS + row] * b[0][column * DEPTH + k];
  return 2 * sum;
}

// Of these operands nothing was ever written: what cuBLAS does not read needs no value.
static void read_nothing(cublasHandle_t handle) {
  float *fresh, *y, result[4];
  const float zero = 0, one = 1;
  CHECK(cudaMalloc(&fresh, 64 * sizeof *fresh));
  CHECK(cudaMalloc(&y, 4 * sizeof *y));
  auto N = CUBLAS_OP_N;
  EXPECT(!cublasSgemv(handle, N, 4, 5, &one, a, 4, b[0], 1, &zero, y, 1));
  CHECK(cudaMemcpy(result, y, sizeof result, cudaMemcpyDeviceToHost));
  for (int row = 0; row < 4; row++) EXPECT(2 * result[row] == expected(row, 0));
  EXPECT(!cublasSgemv(handle, CUBLAS_OP_T, 4, 4, &zero, fresh, 4, fresh, 1, &one, y, 1));
  EXPECT(!cublasSgemv(handle, N, 0, 4, &one, fresh, 4, fresh, 1, &one, fresh, 1));
  EXPECT(!cublasSgemm(handle, N, N, 2, 2, 4, &zero, fresh, 4, fresh, 4, &one, y, 2));
  EXPECT(!cublasSgemm(handle, N, N, 2, 2, 0, &one, fresh, 4, fresh, 4, &one, y, 2));
  EXPECT(!cublasSgemm(handle, N, N, 0, 2, 4, &one, fresh, 4, fresh, 4, &one, fresh, 2));
  EXPECT(!cublasSgemmStridedBatched(handle, N, N, 2, 2, 4, &one, fresh, 4, 16, fresh, 4, 16, &zero, fresh, 2, 4, 0));
  EXPECT(!cublasSaxpy(handle, 4, &zero, fresh, 1, y, 1));
  CHECK(cudaMemcpy(result, y, sizeof result, cudaMemcpyDeviceToHost));
  for (int row = 0; row < 4; row++) EXPECT(2 * result[row] == expected(row, 0));
  // A negative step begins at the other end.
  EXPECT(!cublasScopy(handle, 4, y, 1, fresh, -1));
  CHECK(cudaMemcpy(result, fresh, sizeof result, cudaMemcpyDeviceToHost));
  for (int row = 0; row < 4; row++) EXPECT(2 * result[3 - row] == expected(row, 0));
  EXPECT(!cublasSgemv(handle, N, 4, 5, &one, a, 4, b[0], 1, &zero, y, -1));
  CHECK(cudaMemcpy(result, y, sizeof result, cudaMemcpyDeviceToHost));
  for (int row = 0; row < 4; row++) EXPECT(2 * result[3 - row] == expected(row, 0));
}

// Two products, which pointers in device memory name; and a pointer that nothing has written.
static void multiply_batch(cublasHandle_t handle, bool all_written) {
  float *matrices[6] = {a, a, b[0], b[0]}, **on_device, result[ROWS * COLUMNS];
  const float zero = 0, one = 1;
  for (int i = 4; i < 6; i++) CHECK(cudaMalloc(&matrices[i], sizeof result));
  CHECK(cudaMalloc(&on_device, sizeof matrices));
  CHECK(cudaMemcpy(on_device, matrices, (all_written ? 6 : 5) * sizeof *matrices, cudaMemcpyHostToDevice));
  auto N = CUBLAS_OP_N;
  cublasStatus_t status = cublasSgemmBatched(handle, N, N, ROWS, COLUMNS, DEPTH, &one, on_device, ROWS, on_device + 2,
                                             DEPTH, &zero, on_device + 4, ROWS, 2);
  EXPECT((status == CUBLAS_STATUS_SUCCESS) == all_written);
  if (!all_written) return;
  for (int which = 4; which < 6; which++) {
    CHECK(cudaMemcpy(result, matrices[which], sizeof result, cudaMemcpyDeviceToHost));
    for (int i = 0; i < ROWS * COLUMNS; i++) EXPECT(2 * result[i] == expected(i % ROWS, i / ROWS));
  }
  // The array itself must not be the host's.
  EXPECT(cublasSgemmBatched(handle, N, N, ROWS, COLUMNS, DEPTH, &one, matrices, ROWS, on_device + 2, DEPTH, &zero,
                            on_device + 4, ROWS, 2) == CUBLAS_STATUS_EXECUTION_FAILED);
  EXPECT(!cublasSgemmBatched(handle, N, N, 0, COLUMNS, DEPTH, &one, nullptr, 1, nullptr, DEPTH, &zero, nullptr, 1, 2));
  EXPECT(cublasSgemmBatched(handle, N, N, 4, 4, 4, &one, on_device, 3, on_device, 4, &zero, on_device, 4, 2) ==
         CUBLAS_STATUS_INVALID_VALUE);
}

// cuBLASLt reads as little.
static void read_nothing_in_lt() {
  float *fresh, *d, result[ROWS * COLUMNS];
  const float zero = 0, one = 1, two = 2;
  cublasLtHandle_t handle;
  cublasLtMatmulDesc_t product;
  cublasLtMatrixLayout_t layouts[3];
  CHECK(cudaMalloc(&fresh, 64 * sizeof *fresh));
  CHECK(cudaMalloc(&d, sizeof result));
  EXPECT(!cublasLtCreate(&handle));
  EXPECT(!cublasLtMatmulDescCreate(&product, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  EXPECT(!cublasLtMatrixLayoutCreate(&layouts[0], CUDA_R_32F, ROWS, DEPTH, ROWS));
  EXPECT(!cublasLtMatrixLayoutCreate(&layouts[1], CUDA_R_32F, DEPTH, COLUMNS, DEPTH));
  EXPECT(!cublasLtMatrixLayoutCreate(&layouts[2], CUDA_R_32F, ROWS, COLUMNS, ROWS));
  EXPECT(!cublasLtMatmul(handle, product, &two, a, layouts[0], b[0], layouts[1], &zero, nullptr, layouts[2], d,
                         layouts[2], nullptr, nullptr, 0, nullptr));
  EXPECT(!cublasLtMatmul(handle, product, &zero, fresh, layouts[0], fresh, layouts[1], &one, d, layouts[2], d,
                         layouts[2], nullptr, nullptr, 0, nullptr));
  CHECK(cudaMemcpy(result, d, sizeof result, cudaMemcpyDeviceToHost));
  for (int i = 0; i < ROWS * COLUMNS; i++) EXPECT(result[i] == expected(i % ROWS, i / ROWS));
  EXPECT(!cublasLtDestroy(handle));
}

// ---- triangular systems ----

static double real(float x) { return x; }
static double real(double x) { return x; }
static double real(cuComplex x) { return x.x; }
static double real(cuDoubleComplex x) { return x.x; }
static cuDoubleComplex wide(float x) { return {x, 0}; }
static cuDoubleComplex wide(double x) { return {x, 0}; }
static cuDoubleComplex wide(cuComplex x) { return {x.x, x.y}; }
static cuDoubleComplex wide(cuDoubleComplex x) { return x; }
static void narrow(float *to, double x, double) { *to = (float)x; }
static void narrow(double *to, double x, double) { *to = x; }
static void narrow(cuComplex *to, double x, double y) { *to = {(float)x, (float)y}; }
static void narrow(cuDoubleComplex *to, double x, double y) { *to = {x, y}; }

#define TRSM(letter, T)                                                                                                \
  static cublasStatus_t trsm(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t uplo,                      \
                             cublasOperation_t op, cublasDiagType_t diag, int m, int n, const T *alpha, T **a,         \
                             int lda, T **b, int ldb, int batch) {                                                     \
    return cublas##letter##trsmBatched(handle, side, uplo, op, diag, m, n, alpha, a, lda, b, ldb, batch);              \
  }                                                                                                                    \
  static cublasStatus_t trsm(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t uplo,                      \
                             cublasOperation_t op, cublasDiagType_t diag, int m, int n, const T *alpha, T *a, int lda, \
                             T *b, int ldb) {                                                                          \
    return cublas##letter##trsm(handle, side, uplo, op, diag, m, n, alpha, a, lda, b, ldb);                            \
  }
TRSM(S, float)
TRSM(D, double)
TRSM(C, cuComplex)
TRSM(Z, cuDoubleComplex)

enum { BATCH = 2, M = 3, N_COLUMNS = 4, LDA = 5, LDB = 6 };

// The element of op(A) as the routine sees it: 0 outside the triangle, 1 on a unit diagonal.
template <class T>
static cuDoubleComplex element(const T *matrix, int row, int column, bool upper, cublasOperation_t op, bool unit) {
  int r = op == CUBLAS_OP_N ? row : column, c = op == CUBLAS_OP_N ? column : row;
  if (r == c && unit) return {1, 0};
  if (upper ? r > c : r < c) return {0, 0};
  cuDoubleComplex value = wide(matrix[c * LDA + r]);
  return op == CUBLAS_OP_C ? cuConj(value) : value;
}

// Solves, and multiplies again. Only the triangle of A is ever written.
template <class T> static void solve(cublasHandle_t handle, int which) {
  bool left = which & 1, upper = which & 2, unit = which & 4, batched = which & 8;
  auto op = (cublasOperation_t)(which >> 4);
  int size = left ? M : N_COLUMNS;
  T alpha, as[LDA * LDA], bs[LDB * N_COLUMNS], xs[LDB * N_COLUMNS];
  T *a[BATCH], *b[BATCH], **on_device;
  narrow(&alpha, 2, 1);
  for (int i = 0; i < LDA * LDA; i++) narrow(&as[i], i % 4 + 1, i % 3 - 1);
  for (int i = 0; i < LDB * N_COLUMNS; i++) narrow(&bs[i], i % 7 - 3, i % 5 - 2);
  for (int i = 0; i < BATCH; i++) {
    CHECK(cudaMalloc(&a[i], sizeof as));
    CHECK(cudaMalloc(&b[i], sizeof bs));
    for (int c = 0; c < size; c++)
      for (int r = 0; r < size; r++)
        if (r == c ? !unit : (r < c) == upper)
          CHECK(cudaMemcpy(a[i] + c * LDA + r, &as[c * LDA + r], sizeof *as, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(b[i], bs, sizeof bs, cudaMemcpyHostToDevice));
  }
  CHECK(cudaMalloc(&on_device, 2 * BATCH * sizeof *on_device));
  CHECK(cudaMemcpy(on_device, a, sizeof a, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(on_device + BATCH, b, sizeof b, cudaMemcpyHostToDevice));
  auto side = left ? CUBLAS_SIDE_LEFT : CUBLAS_SIDE_RIGHT;
  auto uplo = upper ? CUBLAS_FILL_MODE_UPPER : CUBLAS_FILL_MODE_LOWER;
  auto diag = unit ? CUBLAS_DIAG_UNIT : CUBLAS_DIAG_NON_UNIT;
  if (batched)
    EXPECT(!trsm(handle, side, uplo, op, diag, M, N_COLUMNS, &alpha, on_device, LDA, on_device + BATCH, LDB, BATCH));
  else
    for (int i = 0; i < BATCH; i++)
      EXPECT(!trsm(handle, side, uplo, op, diag, M, N_COLUMNS, &alpha, a[i], LDA, b[i], LDB));
  for (int i = 0; i < BATCH; i++) {
    CHECK(cudaMemcpy(xs, b[i], sizeof xs, cudaMemcpyDeviceToHost));
    for (int c = 0; c < N_COLUMNS; c++)
      for (int r = 0; r < LDB; r++) {
        cuDoubleComplex sum = {0, 0}, wanted = cuCmul(wide(alpha), wide(bs[c * LDB + r]));
        for (int k = 0; r < M && k < size; k++)
          sum = cuCadd(sum, left ? cuCmul(element(as, r, k, upper, op, unit), wide(xs[c * LDB + k]))
                                 : cuCmul(wide(xs[k * LDB + r]), element(as, k, c, upper, op, unit)));
        if (r >= M) sum = wide(xs[c * LDB + r]), wanted = wide(bs[c * LDB + r]);  // between the columns
        EXPECT(cuCabs(cuCsub(sum, wanted)) < 1e-4);
      }
    CHECK(cudaFree(a[i]));
    CHECK(cudaFree(b[i]));
  }
  CHECK(cudaFree(on_device));
}

template <class T> static void solve_all(cublasHandle_t handle) {
  for (int which = 0; which < 3 << 4; which++) solve<T>(handle, which);
  T zero, *fresh;
  narrow(&zero, 0, 0);
  CHECK(cudaMalloc(&fresh, 16 * sizeof(T)));
  auto N = CUBLAS_OP_N;
  auto left = CUBLAS_SIDE_LEFT;
  auto lower = CUBLAS_FILL_MODE_LOWER;
  auto unit = CUBLAS_DIAG_UNIT;
  // With alpha 0 nothing is read, and the result is 0. An empty system needs no matrices.
  EXPECT(!trsm(handle, left, lower, N, unit, 4, 4, &zero, fresh, 4, fresh, 4));
  T result;
  CHECK(cudaMemcpy(&result, fresh + 15, sizeof result, cudaMemcpyDeviceToHost));
  EXPECT(real(result) == 0);
  EXPECT(!trsm(handle, left, lower, N, unit, 0, 4, &zero, (T *)nullptr, 1, (T *)nullptr, 1));
  EXPECT(trsm(handle, left, lower, N, unit, 4, 4, &zero, fresh, 3, fresh, 4) == CUBLAS_STATUS_INVALID_VALUE);
  EXPECT(trsm(handle, left, lower, N, unit, 4, 4, &zero, fresh, 4, fresh, 3) == CUBLAS_STATUS_INVALID_VALUE);
  EXPECT(trsm(handle, left, lower, N, unit, -1, 4, &zero, fresh, 4, fresh, 4) == CUBLAS_STATUS_INVALID_VALUE);
}

// One element of the triangle was not written.
static void solve_unwritten(cublasHandle_t handle) {
  float *matrix, *right, one = 1;
  CHECK(cudaMalloc(&matrix, 9 * sizeof *matrix));
  CHECK(cudaMalloc(&right, 3 * sizeof *right));
  CHECK(cudaMemset(matrix, 1, 5 * sizeof *matrix));
  CHECK(cudaMemset(matrix + 6, 1, 3 * sizeof *matrix));
  CHECK(cudaMemset(right, 1, 3 * sizeof *right));
  EXPECT(!cublasStrsm(handle, CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N, CUBLAS_DIAG_NON_UNIT, 3, 1, &one,
                      matrix, 3, right, 3));
}

int main(int argc, char **argv) {
  const char *what = argc > 1 ? argv[1] : "";
  cublasHandle_t handle;
  EXPECT(cublasCreate(&handle) == CUBLAS_STATUS_SUCCESS);
  CHECK(cudaMalloc(&c, ROWS * COLUMNS * sizeof *c));
  CHECK(cudaMalloc(&b[1], DEPTH * COLUMNS * sizeof **b));
  CHECK(cudaMemset(b[1], 0, DEPTH * sizeof **b));
  CHECK(cudaMallocManaged(&a, ROWS * DEPTH * sizeof *a));
  CHECK(cudaMallocManaged(&b[0], DEPTH * COLUMNS * sizeof **b));
  for (int i = 0; i < ROWS * DEPTH; i++) a[i] = (float)(i % 7 - 3);
  for (int i = 0; i < DEPTH * COLUMNS; i++) b[0][i] = (float)(i % 5 - 1);
  if (!strcmp(what, "factor")) multiply(handle, b[1], 0);
  if (!strcmp(what, "sum")) multiply(handle, b[0], 1);
  if (!strcmp(what, "gemv")) {
    const float one = 1;
    EXPECT(!cublasSgemv(handle, CUBLAS_OP_N, 4, 5, &one, a, 4, b[0], 1, &one, c, 1));
  }
  if (!strcmp(what, "triangle")) solve_unwritten(handle);
  if (!strcmp(what, "pointers")) multiply_batch(handle, false);
  if (!*what) {
    read_nothing(handle);
    read_nothing_in_lt();
    multiply_batch(handle, true);
    solve_all<float>(handle);
    solve_all<double>(handle);
    solve_all<cuComplex>(handle);
    solve_all<cuDoubleComplex>(handle);
  }
  if (!*what) {
    float result[ROWS * COLUMNS];
    multiply(handle, b[0], 0);  // with beta 0 nobody reads c
    multiply(handle, b[0], 1);
    CHECK(cudaMemcpy(result, c, sizeof result, cudaMemcpyDeviceToHost));
    for (int i = 0; i < ROWS * COLUMNS; i++) EXPECT(result[i] == 2 * expected(i % ROWS, i / ROWS));
  }
  if (!*what) {  // every second element of a vector; two columns of three rows
    const double from[6] = {1, 2, 3, 4, 5, 6};
    double *on_device, to[8] = {};
    CHECK(cudaMalloc(&on_device, sizeof from));
    EXPECT(cublasSetVector(3, sizeof(double), from, 2, on_device, 1) == CUBLAS_STATUS_SUCCESS);
    EXPECT(cublasGetVector(3, sizeof(double), on_device, 1, to, 2) == CUBLAS_STATUS_SUCCESS);
    EXPECT(to[0] == 1 && to[1] == 0 && to[2] == 3 && to[4] == 5);
    EXPECT(cublasSetMatrix(2, 2, sizeof(double), from, 3, on_device, 2) == CUBLAS_STATUS_SUCCESS);
    EXPECT(cublasGetMatrix(2, 2, sizeof(double), on_device, 2, to, 4) == CUBLAS_STATUS_SUCCESS);
    EXPECT(to[0] == 1 && to[1] == 2 && to[4] == 4 && to[5] == 5);
    EXPECT(cublasSetMatrix(4, 2, sizeof(double), from, 3, on_device, 4) == CUBLAS_STATUS_INVALID_VALUE);
  }
  EXPECT(cublasDestroy(handle) == CUBLAS_STATUS_SUCCESS);
  printf("right\n");
  return 0;
}
