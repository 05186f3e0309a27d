// What goes wrong, by the program's argument. Each prints what the calls return.
#include <cassert>
#include <cstring>

#include "check.h"

__global__ void out_of_bounds(int *out) { out[threadIdx.x + 1000] = 1; }
__global__ void misaligned(int *out) { *(long long *)(out + 1) = 1; }
__global__ void fails(int *out) { assert(out == nullptr); }
__global__ void spins(volatile int *out) {
  while (*out == 0) {}
}
__global__ void races(int *out) {
  __shared__ int tile[64];
  tile[threadIdx.x] = threadIdx.x;
  out[threadIdx.x] = tile[63 - threadIdx.x];  // no barrier
}
__global__ void prints(int *out) {
  if (threadIdx.x < 2) printf("thread %d of %s: %.1f\n", threadIdx.x, "prints", 0.5 + threadIdx.x);
}

static void say(const char *what, cudaError_t error) {
  printf("%s: %s: %s\n", what, cudaGetErrorName(error), cudaGetErrorString(error));
}

static void run(void (*kernel)(int *), int *out) {
  kernel<<<1, 64>>>(out);
  say("launch", cudaGetLastError());
  say("synchronise", cudaDeviceSynchronize());
  say("after", cudaMemset(out, 0, 4));
  int *none = nullptr, value;
  say("allocation", cudaMalloc(&none, 4));
  say("copy", cudaMemcpy(&value, none, 4, cudaMemcpyDeviceToHost));
  say("last", cudaGetLastError());
}

int main(int argc, char **argv) {
  int *out, exit_code = argc > 2 ? atoi(argv[2]) : 0;
  CHECK(cudaMalloc(&out, 64 * sizeof(int)));
  CHECK(cudaMemset(out, 0, 64 * sizeof(int)));
  const char *what = argc > 1 ? argv[1] : "";
  if (!strcmp(what, "out_of_bounds")) run(out_of_bounds, out);
  if (!strcmp(what, "misaligned")) run(misaligned, out);
  if (!strcmp(what, "fails")) run(fails, out);
  if (!strcmp(what, "spins")) run((void (*)(int *))spins, out);
  if (!strcmp(what, "races")) run(races, out);
  if (!strcmp(what, "prints")) run(prints, out);
  if (!strcmp(what, "configuration")) {
    prints<<<1, 2000>>>(out);
    say("launch", cudaGetLastError());
    prints<<<0, 32>>>(out);
    say("launch", cudaGetLastError());
  }
  if (!strcmp(what, "reset")) {
    run(out_of_bounds, out);
    say("reset", cudaDeviceReset());
    CHECK(cudaMalloc(&out, 64 * sizeof(int)));
    run(prints, out);
  }
  if (!strcmp(what, "abort")) {
    run(races, out);
    abort();
  }
  return exit_code;
}
