// Four queries with lengths of their own: main LENGTH LENGTH LENGTH LENGTH
#include "kernel.cuh"
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

int main(int argc, char **argv) {
  int lengths[WARPS] = {500, 130, 300, 20};
  for (int w = 0; w < WARPS && w + 1 < argc; w++) lengths[w] = atoi(argv[w + 1]);
  const int count = (*std::max_element(lengths, lengths + WARPS) + TILE - 1) / TILE * TILE;  // whole tiles
  std::vector<float> values(count), out(WARPS);
  for (int i = 0; i < count; i++) values[i] = 1 + i % 5 + i / TILE;
  double sums[WARPS] = {}, largest = 0;
  for (int w = 0; w < WARPS; w++) {
    for (int i = 0; i < lengths[w]; i++) sums[w] += values[i];
    largest = fmax(largest, sums[w]);
  }
  float *device_values, *device_out;
  int *device_lengths;
  cudaMalloc(&device_values, count * sizeof(float));
  cudaMalloc(&device_out, WARPS * sizeof(float));
  cudaMalloc(&device_lengths, sizeof lengths);
  cudaMemcpy(device_values, values.data(), count * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(device_lengths, lengths, sizeof lengths, cudaMemcpyHostToDevice);
  run_shared_tiles(device_values, device_lengths, device_out);
  cudaError_t error = cudaMemcpy(out.data(), device_out, WARPS * sizeof(float), cudaMemcpyDeviceToHost);
  if (error) return printf("%s\n", cudaGetErrorString(error)), 3;
  for (int w = 0; w < WARPS; w++)
    if (!(fabs(out[w] - sums[w] / largest) < 1e-5))
      return printf("wrong: query %d has %g, and should have %g\n", w, out[w], sums[w] / largest), 3;
  printf("right\n");
  return 0;
}
