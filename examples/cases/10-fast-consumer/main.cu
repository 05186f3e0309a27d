// Multiplies matrices with so many steps of 16 along K: main STEPS
#include "kernel.cuh"
#include <cstdio>
#include <cstdlib>
#include <vector>

// Where element (row, k) of A stands, and (k, row) of B: core matrices of 8 rows by 8 numbers, two along K.
static int packed(int row, int k) { return k / 16 * STEP + row / 8 * 128 + k % 16 / 8 * 64 + row % 8 * 8 + k % 8; }

int main(int argc, char **argv) {
  const int steps = argc > 1 ? atoi(argv[1]) : 12;
  std::vector<half> a(steps * STEP), b(steps * STEP);
  std::vector<float> right(64 * 64), c(64 * 64);
  for (int k = 0; k < 16 * steps; k++)
    for (int row = 0; row < 64; row++) {
      a[packed(row, k)] = __int2half_rn((row + 3 * k) % 5 - 1);
      b[packed(row, k)] = __int2half_rn((row * 7 + k) % 4 - 2);
    }
  for (int row = 0; row < 64; row++)
    for (int column = 0; column < 64; column++)
      for (int k = 0; k < 16 * steps; k++)
        right[row * 64 + column] += __half2float(a[packed(row, k)]) * __half2float(b[packed(column, k)]);
  half *device_a, *device_b;
  float *device_c;
  cudaMalloc(&device_a, a.size() * sizeof(half));
  cudaMalloc(&device_b, b.size() * sizeof(half));
  cudaMalloc(&device_c, c.size() * sizeof(float));
  cudaMemcpy(device_a, a.data(), a.size() * sizeof(half), cudaMemcpyHostToDevice);
  cudaMemcpy(device_b, b.data(), b.size() * sizeof(half), cudaMemcpyHostToDevice);
  run_gemm(device_a, device_b, device_c, steps);
  cudaError_t error = cudaMemcpy(c.data(), device_c, c.size() * sizeof(float), cudaMemcpyDeviceToHost);
  if (error) return printf("%s\n", cudaGetErrorString(error)), 3;
  for (int i = 0; i < 64 * 64; i++)
    if (c[i] != right[i])
      return printf("wrong: c[%d][%d] is %g, and should be %g\n", i / 64, i % 64, c[i], right[i]), 3;
  printf("right\n");
  return 0;
}
