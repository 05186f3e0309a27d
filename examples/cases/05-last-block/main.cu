// The sum of a vector by so many blocks: main BLOCKS
#include "kernel.cuh"
#include <cstdio>
#include <cstdlib>
#include <vector>

int main(int argc, char **argv) {
  const int blocks = argc > 1 ? atoi(argv[1]) : 8, count = 5000;
  std::vector<float> x(count);
  double right = 0;
  for (int i = 0; i < count; i++) right += x[i] = (float)(i % 9);
  float *device_x, *partial, *result, got;
  unsigned *done;
  cudaMalloc(&device_x, count * sizeof(float));
  cudaMalloc(&partial, blocks * sizeof(float));
  cudaMalloc(&result, sizeof(float));
  cudaMalloc(&done, sizeof(unsigned));
  cudaMemcpy(device_x, x.data(), count * sizeof(float), cudaMemcpyHostToDevice);
  for (int round = 0; round < 3; round++) {
    cudaMemset(partial, 0, blocks * sizeof(float));
    cudaMemset(done, 0, sizeof(unsigned));
    run_sum(device_x, count, blocks, partial, done, result);
    cudaError_t error = cudaMemcpy(&got, result, sizeof(float), cudaMemcpyDeviceToHost);
    if (error) return printf("%s\n", cudaGetErrorString(error)), 3;
    if (got != right) return printf("wrong: round %d gives %g, and should give %g\n", round, got, right), 3;
  }
  printf("right\n");
  return 0;
}
