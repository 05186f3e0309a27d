// Sums of the columns of so many tiles: main TILES
#include "kernel.cuh"
#include <cstdio>
#include <cstdlib>
#include <vector>

int main(int argc, char **argv) {
  const int tiles = argc > 1 ? atoi(argv[1]) : 8;
  std::vector<float> in(tiles * TILE), out(COLUMNS), right(COLUMNS);
  for (int i = 0; i < tiles * TILE; i++) right[i % COLUMNS] += in[i] = (float)(i / TILE + i % 3 + 1);
  float *device_in, *device_out;
  cudaMalloc(&device_in, in.size() * sizeof(float));
  cudaMalloc(&device_out, COLUMNS * sizeof(float));
  cudaMemcpy(device_in, in.data(), in.size() * sizeof(float), cudaMemcpyHostToDevice);
  run_column_sums(device_in, device_out, tiles);
  cudaError_t error = cudaMemcpy(out.data(), device_out, COLUMNS * sizeof(float), cudaMemcpyDeviceToHost);
  if (error) return printf("%s\n", cudaGetErrorString(error)), 3;
  for (int i = 0; i < COLUMNS; i++)
    if (out[i] != right[i]) return printf("wrong: column %d has %g, and should have %g\n", i, out[i], right[i]), 3;
  printf("right\n");
  return 0;
}
