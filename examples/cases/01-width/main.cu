// Normalises 3 rows of so many columns, and compares with the host: main COLUMNS
#include "kernel.cuh"
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

int main(int argc, char **argv) {
  const int rows = 3, columns = argc > 1 ? atoi(argv[1]) : 1000;
  std::vector<float> x(rows * columns), y(rows * columns);
  for (int i = 0; i < rows * columns; i++) x[i] = 1 + i % 7;
  float *device_x, *device_y;
  size_t bytes = x.size() * sizeof(float);
  cudaMalloc(&device_x, bytes);
  cudaMalloc(&device_y, bytes);
  cudaMemcpy(device_x, x.data(), bytes, cudaMemcpyHostToDevice);
  run_rms_norm(device_x, device_y, rows, columns);
  cudaError_t error = cudaMemcpy(y.data(), device_y, bytes, cudaMemcpyDeviceToHost);
  if (error) return printf("%s\n", cudaGetErrorString(error)), 3;

  for (int row = 0; row < rows; row++) {
    double sum = 0;
    for (int i = 0; i < columns; i++) sum += x[row * columns + i] * x[row * columns + i];
    for (int i = 0; i < columns; i++) {
      double right = x[row * columns + i] / sqrt(sum / columns);
      float got = y[row * columns + i];
      if (!(fabs(got - right) < 1e-4 * right))
        return printf("wrong: y[%d][%d] is %g, and should be %g\n", row, i, got, right), 3;
    }
  }
  printf("right\n");
  return 0;
}
