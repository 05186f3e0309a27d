// State spaces and initial values: constant and global tables, addresses in initializers, packed structures (masked
// addresses), vectors, static and dynamic shared arrays, managed memory, unsized arrays.
#include <cstdint>

__constant__ float weights[3][4] = {{1, 2, 3, 4}, {-0.5f, 1e-20f}, {}};
__constant__ double doubles[3] = {3.14159, -0.0, 1e300};
__device__ int counter = 42;
__device__ long long longs[] = {-1, 9223372036854775807ll, (-9223372036854775807ll) - 1};
__device__ unsigned short halfwords[4] = {65535, 1};
__device__ const char *messages[] = {"first", "second\n", "third \"quoted\""};
__device__ int *pointer_into = &counter;
__device__ float4 vector4 = {1, 2, 3, 4};
__managed__ int managed = 7;
struct __attribute__((packed)) Packed {
  char tag;
  const int *pointer;
  short rest;
};
__device__ Packed packed[2] = {{'a', &counter, 3}, {'b', nullptr, -4}};
struct Node {
  int value;
  Node *next;
};
__device__ Node second = {2, nullptr};  // nvcc refuses a cycle: "Circular dependency found in global variable set"
__device__ Node first = {1, &second};

extern __shared__ __align__(128) unsigned char dynamic[];

extern "C" __global__ void data(float *out, const __grid_constant__ Packed argument, int n) {
  __shared__ float tile[16][17];
  __shared__ double2 pairs[8];
  __shared__ unsigned char bytes[3];
  int x = threadIdx.x & 15, y = threadIdx.x >> 4;
  tile[y & 15][x] = weights[y % 3][x & 3];
  pairs[x & 7] = make_double2(doubles[x % 3], longs[y % 3]);
  bytes[x % 3] = messages[y % 3][x & 3];
  ((int4 *)dynamic)[threadIdx.x] = make_int4(x, y, halfwords[x & 3], managed);
  __syncthreads();
  const Node *node = &first;
  for (int i = 0; i < n && node->next; i++) node = node->next;
  out[threadIdx.x] = tile[x][y & 15] + pairs[y & 7].y + bytes[0] + dynamic[n] + *pointer_into + node->value +
                     packed[x & 1].rest + *packed[0].pointer + argument.tag + vector4.z;
}
