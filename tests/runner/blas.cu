// cuBLAS' stand-in: a product that is right, and with an argument one that reads what nobody has written.
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
