// Kernels that stop themselves, or never stop.
#include <cassert>

#include "kernels.h"

// An assertion that does not hold for the last thread.
// launch assertion: grid 1 block 32 args int[32] int[32]=zero
extern "C" __global__ void assertion(const int *in, int *out) {
#ifdef REPAIRED
  assert(in[threadIdx.x] <= 31);
#else
  assert(in[threadIdx.x] < 31);  // HAZARD(assertion): trap
#endif
  out[threadIdx.x] = 2 * in[threadIdx.x];
}

// The kernel refuses sizes that it cannot do.
// launch refuses: grid 1 block 32 args float[100] float[100]=zero 100
extern "C" __global__ void refuses(const float *in, float *out, int n) {
#ifndef REPAIRED
  if (n % 32) __trap();  // HAZARD(refuses): trap
#endif
  for (int i = threadIdx.x; i < n; i += 32) out[i] = -in[i];
}

// A recursion without an end.
__device__ __noinline__ int sum_down(int n) {
#ifdef REPAIRED
  if (n == 0) return 0;
#else
  if (n == -1000000) return 0;
#endif
  int rest = sum_down(n - 1);  // HAZARD(recursion): trap
  return rest ^ n;
}

// launch recursion: grid 1 block 32 args int[32] int[32]=zero
extern "C" __global__ void recursion(const int *in, int *out) { out[threadIdx.x] = sum_down(in[threadIdx.x]) + 1; }

typedef int Operation(int, int);
__device__ __noinline__ int add(int a, int b) { return a + b; }
__device__ __noinline__ int multiply(int a, int b) { return a * b; }
#ifdef REPAIRED
__device__ Operation *const operations[] = {add, multiply, add};
#else
__device__ Operation *const operations[] = {add, multiply, nullptr};
#endif

// A table of functions with an empty place.
// launch empty_place: grid 1 block 32 args int[32] int[32]=zero
extern "C" __global__ void empty_place(const int *in, int *out) {
  int i = threadIdx.x;
  out[i] = operations[in[i] % 3](in[i], 3);  // HAZARD(empty_place): trap
}

// The sum of tenths is never exactly one.
// launch tenths: grid 1 block 1 args int[1]=zero 10
extern "C" __global__ void tenths(int *out, int parts) {
  float step = 1.0f / parts;
  int count = 0;
#ifdef REPAIRED
  for (float x = 0; x < 1; x += step)
#else
  for (float x = 0; x != 1; x += step)  // HAZARD(tenths): step limit
#endif
    count++;  // ALSO(tenths): step limit
  *out = count;
}
