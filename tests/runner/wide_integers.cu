// 128-bit integers, which nvcc makes of carries: what the host computes, the kernel must compute.
#include "check.h"

typedef unsigned long long u64;
typedef unsigned __int128 u128;
typedef __int128 s128;

enum { RESULTS = 14, EDGES = 16, COUNT = EDGES * EDGES * EDGES };

// A divisor is never 0, and -1 divides nothing that it would overflow.
template <class T> static __host__ __device__ void arithmetic(T x, T y, u128 *out) {
  T divisor = y == 0 || y == (T)-1 ? (T)3 : y;
  out[0] = (u128)x + (u128)y, out[1] = (u128)x - (u128)y, out[2] = (u128)x * (u128)y;
  out[3] = (u128)(x / divisor), out[4] = (u128)(x % divisor);
  out[5] = (u128)(x >> ((int)y & 127)), out[6] = x < y;
}

static __host__ __device__ void all(u128 x, u128 y, u128 *out) {
  arithmetic(x, y, out);
  arithmetic((s128)x, (s128)y, out + RESULTS / 2);
}

__global__ void compute(const u128 *x, const u128 *y, u128 *out) {
  size_t i = blockIdx.x * blockDim.x + threadIdx.x;
  all(x[i], y[i], out + RESULTS * i);
}

// Edges of both halves against each other.
static u128 operand(int i) {
  static const u64 edges[EDGES] = {0,
                                   1,
                                   2,
                                   3,
                                   ~0ull,
                                   ~0ull - 1,
                                   1ull << 63,
                                   (1ull << 63) - 1,
                                   (1ull << 63) + 1,
                                   0xffffffff,
                                   1ull << 32,
                                   0xffffffff00000000,
                                   1000003,
                                   7919,
                                   0x123456789abcdef,
                                   ~0ull << 63 >> 1};
  return (u128)edges[i % EDGES] << 64 | edges[i / EDGES % EDGES];
}

int main() {
  u128 *x, *y, *out;
  CHECK(cudaMallocManaged(&x, COUNT * sizeof *x));
  CHECK(cudaMallocManaged(&y, COUNT * sizeof *y));
  CHECK(cudaMallocManaged(&out, COUNT * RESULTS * sizeof *out));
  for (int i = 0; i < COUNT; i++) x[i] = operand(i), y[i] = operand(i / EDGES * 7 + i % EDGES * 19);
  compute<<<COUNT / 128, 128>>>(x, y, out);
  CHECK(cudaDeviceSynchronize());
  for (int i = 0; i < COUNT; i++) {
    u128 expected[RESULTS];
    all(x[i], y[i], expected);
    for (int j = 0; j < RESULTS; j++) EXPECT(out[RESULTS * i + j] == expected[j]);
  }
  puts("right");
}
