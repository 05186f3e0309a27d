// Four queries: main LENGTH LENGTH LENGTH LENGTH
#include "kernel.cuh"
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

int main(int argc, char **argv) {
  int lengths[CONSUMERS] = {2000, 1900, 300, 1500};
  for (int w = 0; w < CONSUMERS && w + 1 < argc; w++) lengths[w] = atoi(argv[w + 1]);
  const int tiles = (*std::max_element(lengths, lengths + CONSUMERS) + TILE - 1) / TILE;
  std::vector<float> values(tiles * TILE), sums(CONSUMERS), right(CONSUMERS);
  for (int i = 0; i < tiles * TILE; i++) values[i] = (float)(i % 5 + i / TILE);
  for (int w = 0; w < CONSUMERS; w++)
    for (int i = 0; i < lengths[w]; i++) right[w] += values[i];
  float *device_values, *device_sums;
  int *device_lengths;
  cudaMalloc(&device_values, values.size() * sizeof(float));
  cudaMalloc(&device_sums, CONSUMERS * sizeof(float));
  cudaMalloc(&device_lengths, sizeof lengths);
  cudaMemcpy(device_values, values.data(), values.size() * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(device_lengths, lengths, sizeof lengths, cudaMemcpyHostToDevice);
  run_ragged_sums(device_values, device_lengths, device_sums, tiles);
  cudaError_t error = cudaMemcpy(sums.data(), device_sums, CONSUMERS * sizeof(float), cudaMemcpyDeviceToHost);
  if (error) return printf("%s\n", cudaGetErrorString(error)), 3;
  for (int w = 0; w < CONSUMERS; w++)
    if (sums[w] != right[w]) return printf("wrong: query %d has %g, and should have %g\n", w, sums[w], right[w]), 3;
  printf("right\n");
  return 0;
}
