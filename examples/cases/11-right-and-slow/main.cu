// Multiplies with so many steps of 64 along K, of which A has every third: main STEPS
#include "kernel.cuh"
#include <cstdio>
#include <cstdlib>
#include <vector>

// Where element (row, k) of A stands, and (k, row) of B: core matrices of 8 rows by 8 numbers, two along K.
static int packed(int row, int k) { return k / 16 * PART + row / 8 * 128 + k % 16 / 8 * 64 + row % 8 * 8 + k % 8; }

int main(int argc, char **argv) {
  const int steps = argc > 1 ? atoi(argv[1]) : 12, listed = (steps + 2) / 3, depth = 16 * DEEP;
  std::vector<half> a(listed * STEP), b(steps * STEP);
  std::vector<int> list(listed);
  std::vector<float> right(64 * 64), c(64 * 64);
  for (int i = 0; i < listed; i++) list[i] = 3 * i;
  for (int row = 0; row < 64; row++) {
    for (int k = 0; k < depth * listed; k++) a[packed(row, k)] = __int2half_rn((row + 3 * k) % 5 - 1);
    for (int k = 0; k < depth * steps; k++) b[packed(row, k)] = __int2half_rn((row * 7 + k) % 4 - 2);
  }
  for (int i = 0; i < 64 * 64; i++)
    for (int k = 0; k < depth * listed; k++)
      right[i] +=
          __half2float(a[packed(i / 64, k)]) * __half2float(b[packed(i % 64, list[k / depth] * depth + k % depth)]);
  half *device_a, *device_b;
  int *device_list;
  float *device_c;
  cudaMalloc(&device_a, a.size() * sizeof(half));
  cudaMalloc(&device_b, b.size() * sizeof(half));
  cudaMalloc(&device_list, listed * sizeof(int));
  cudaMalloc(&device_c, c.size() * sizeof(float));
  cudaMemcpy(device_a, a.data(), a.size() * sizeof(half), cudaMemcpyHostToDevice);
  cudaMemcpy(device_b, b.data(), b.size() * sizeof(half), cudaMemcpyHostToDevice);
  cudaMemcpy(device_list, list.data(), listed * sizeof(int), cudaMemcpyHostToDevice);
  run_gemm(device_a, device_b, device_list, listed, steps, device_c);
  cudaError_t error = cudaMemcpy(c.data(), device_c, c.size() * sizeof(float), cudaMemcpyDeviceToHost);
  if (error) return printf("%s\n", cudaGetErrorString(error)), 3;
  for (int i = 0; i < 64 * 64; i++)
    if (c[i] != right[i])
      return printf("wrong: c[%d][%d] is %g, and should be %g\n", i / 64, i % 64, c[i], right[i]), 3;
  printf("right\n");
  return 0;
}
