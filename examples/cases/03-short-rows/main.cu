// The largest of so many negative scores in each of 4 rows: main COLUMNS
#include "kernel.cuh"
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

int main(int argc, char **argv) {
  const int rows = 4, columns = argc > 1 ? atoi(argv[1]) : 11;
  std::vector<float> scores(rows * columns), largest(rows);
  for (int i = 0; i < rows * columns; i++) scores[i] = -1.f - i * 37 % 101;
  float *device_scores, *device_largest;
  cudaMalloc(&device_scores, scores.size() * sizeof(float));
  cudaMalloc(&device_largest, rows * sizeof(float));
  cudaMemcpy(device_scores, scores.data(), scores.size() * sizeof(float), cudaMemcpyHostToDevice);
  run_row_max(device_scores, device_largest, rows, columns);
  cudaError_t error = cudaMemcpy(largest.data(), device_largest, rows * sizeof(float), cudaMemcpyDeviceToHost);
  if (error) return printf("%s\n", cudaGetErrorString(error)), 3;
  for (int row = 0; row < rows; row++) {
    float right = *std::max_element(&scores[row * columns], &scores[row * columns] + columns);
    if (largest[row] != right)
      return printf("wrong: the largest of row %d is %g, not %g\n", row, right, largest[row]), 3;
  }
  printf("right\n");
  return 0;
}
