// Quantises three batches of so many numbers, each larger than the one before: main COUNT
#include "kernel.cuh"
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

int main(int argc, char **argv) {
  const int count = argc > 1 ? atoi(argv[1]) : 3000;
  std::vector<float> x(count);
  std::vector<int8_t> q(count);
  float *device_x, *amax, one = 1;
  int8_t *device_q;
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  cudaMalloc(&device_x, count * sizeof(float));
  cudaMalloc(&amax, sizeof(float));
  cudaMalloc(&device_q, count);
  cudaMemcpy(amax, &one, sizeof one, cudaMemcpyHostToDevice);
  for (int batch = 1; batch <= 3; batch++) {
    float largest = 0;
    for (int i = 0; i < count; i++) largest = fmaxf(largest, fabsf(x[i] = (float)((i * 13 % 201 - 100) * batch)));
    cudaMemcpy(device_x, x.data(), count * sizeof(float), cudaMemcpyHostToDevice);
    run_quantize(device_x, count, amax, device_q, stream);
    cudaStreamSynchronize(stream);
    cudaError_t error = cudaMemcpy(q.data(), device_q, count, cudaMemcpyDeviceToHost);
    if (error) return printf("%s\n", cudaGetErrorString(error)), 3;
    for (int i = 0; i < count; i++) {
      int right = (int8_t)rintf(x[i] * (127 / largest));
      if (q[i] != right) return printf("wrong: q[%d] of batch %d is %d, and should be %d\n", i, batch, q[i], right), 3;
    }
  }
  printf("right\n");
  return 0;
}
