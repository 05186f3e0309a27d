// Scales so many tiles: main TILES
#include "kernel.cuh"
#include <cstdio>
#include <cstdlib>
#include <vector>

int main(int argc, char **argv) {
  const int tiles = argc > 1 ? atoi(argv[1]) : 7, count = tiles * TILE;
  std::vector<float> x(count), y(count);
  for (int i = 0; i < count; i++) x[i] = (float)(i % 1000);
  float *device_x, *device_y;
  cudaMalloc(&device_x, count * sizeof(float));
  cudaMalloc(&device_y, count * sizeof(float));
  cudaMemcpy(device_x, x.data(), count * sizeof(float), cudaMemcpyHostToDevice);
  run_scale(device_x, device_y, 2, tiles);
  cudaError_t error = cudaMemcpy(y.data(), device_y, count * sizeof(float), cudaMemcpyDeviceToHost);
  if (error) return printf("%s\n", cudaGetErrorString(error)), 3;
  for (int i = 0; i < count; i++)
    if (y[i] != 2 * x[i])
      return printf("wrong: y[%d] of tile %d is %g, and should be %g\n", i % TILE, i / TILE, y[i], 2 * x[i]), 3;
  printf("right\n");
  return 0;
}
