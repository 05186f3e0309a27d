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

// A recursion whose end is missed: the number before the first is asked for, and the one before that.
__device__ __noinline__ int fibonacci(int n) {
#ifdef REPAIRED
  if (n < 2) return n;
#else
  if (n == 1) return n;
#endif
  return fibonacci(n - 1) + fibonacci(n - 2);  // HAZARD(recursion): trap
}

// launch recursion: grid 1 block 32 args int[32] int[32]=zero
extern "C" __global__ void recursion(const int *in, int *out) { out[threadIdx.x] = fibonacci(in[threadIdx.x] % 8) + 1; }

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
// launch tenths: grid 1 block 1 steps 200000 args int[1]=zero float[4]=one 10
extern "C" __global__ void tenths(int *count, const float *one, int parts) {
  float step = *one / parts;
#ifdef REPAIRED
  for (float x = 0; x < 1; x += step) ++*count;
#else
  for (float x = 0; x != 1; x += step) ++*count;  // HAZARD(tenths): step limit
#endif
}
