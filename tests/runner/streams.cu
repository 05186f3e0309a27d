// Two streams that add vectors, with events between them, pinned memory, and memory of the stream's own.
#include <cmath>
#include <vector>

#include "check.h"

template <typename T> __global__ void add(const T *a, const T *b, T *c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}

static void count_up(void *data) { ++*static_cast<int *>(data); }

int main() {
  const int n = 1000, bytes = n * sizeof(float);
  float *host, *a, *b, *c;
  cudaStream_t first, second;
  cudaEvent_t copied, done;
  CHECK(cudaMallocHost(&host, 2 * bytes));
  CHECK(cudaStreamCreate(&first));
  CHECK(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
  CHECK(cudaEventCreate(&copied));
  CHECK(cudaEventCreate(&done));
  CHECK(cudaMallocAsync(&a, bytes, first));
  CHECK(cudaMallocAsync(&b, bytes, first));
  CHECK(cudaMallocAsync(&c, bytes, first));
  for (int i = 0; i < n; i++) host[i] = i, host[n + i] = 2 * i;
  CHECK(cudaMemcpyAsync(a, host, bytes, cudaMemcpyHostToDevice, first));
  CHECK(cudaMemcpyAsync(b, host + n, bytes, cudaMemcpyDefault, first));
  CHECK(cudaEventRecord(copied, first));
  CHECK(cudaStreamWaitEvent(second, copied));
  add<<<(n + 255) / 256, 256, 0, second>>>(a, b, c, n);
  CHECK(cudaGetLastError());
  add<<<(n + 255) / 256, 256, 0, second>>>(a, c, c, n);
  int calls = 0;
  CHECK(cudaLaunchHostFunc(second, count_up, &calls));
  CHECK(cudaEventRecord(done, second));
  CHECK(cudaMemcpyAsync(host, c, bytes, cudaMemcpyDeviceToHost, second));
  CHECK(cudaStreamSynchronize(second));
  EXPECT(calls == 1);
  for (int i = 0; i < n; i++) EXPECT(host[i] == 4 * i);
  float milliseconds = 0;
  CHECK(cudaEventElapsedTime(&milliseconds, copied, done));
  EXPECT(std::isnan(milliseconds));
  CHECK(cudaFreeAsync(a, first));
  CHECK(cudaFreeAsync(b, first));
  CHECK(cudaFreeAsync(c, first));
  CHECK(cudaStreamDestroy(first));
  CHECK(cudaStreamDestroy(second));
  CHECK(cudaFreeHost(host));
  printf("right\n");
}
