// Calls: printf and assert, recursion, function pointers, functions that pass structures, weak and inlined templates.
#include <assert.h>
#include <cstdio>

struct Wide {
  double d;
  int i[5];
  char c;
};

__device__ __noinline__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
__device__ __noinline__ int twice(int x) { return 2 * x; }
__device__ __noinline__ int square(int x) { return x * x; }
__device__ __noinline__ Wide widen(Wide w, int by) {
  w.i[by & 3] += by;
  w.d *= by;
  return w;
}

typedef int (*Unary)(int);
__device__ Unary table[3] = {twice, square, fibonacci};
__constant__ Unary constant_table[2] = {square, twice};

template <typename T, int N> __device__ __noinline__ T sum(const T *x) {
  T s = 0;
#pragma unroll
  for (int i = 0; i < N; i++) s += x[i];
  return s;
}

extern "C" __global__ void __launch_bounds__(256, 2) calls(int *out, const double *in, Wide *wide, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  assert(i < n);
  out[i] = fibonacci(i) + table[i % 3](i) + constant_table[i & 1](n);
  wide[i] = widen(wide[i], i);
  if (sum<double, 7>(in) > 3.0) printf("thread %d: %f %s\n", i, sum<double, 3>(in), "large");
  if (i == n) __trap();
}

template <int N> __global__ void templated(float *x) {
  if (threadIdx.x < N) x[threadIdx.x] = __sinf(x[threadIdx.x]) + rsqrtf((float)N);
}
template __global__ void templated<3>(float *);
template __global__ void templated<64>(float *);

__global__ void allocates(void **out) {
  out[threadIdx.x] = malloc(16 + threadIdx.x);
  if (threadIdx.x & 1) free(out[threadIdx.x - 1]);
}
