// Accesses outside the memory that a kernel was given.
#include "kernels.h"

#pragma nv_diag_suppress 186  // the compiler would warn of the countdown below

// The last block has more threads than there are elements left, and nothing guards them.
// launch tail: grid 2 block 128 args float[200] float[200]=zero 200
extern "C" __global__ void tail(const float *in, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
#ifdef REPAIRED
  if (i >= n) return;
#endif
  out[i] = 2 * in[i];  // HAZARD(tail): out-of-bounds access
}

// The guard is there, but says <= where it must say <.
// launch off_by_one: grid 2 block 128 args float[200] float[200]=zero 200
extern "C" __global__ void off_by_one(const float *in, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
#ifdef REPAIRED
  if (i < n)
#else
  if (i <= n)
#endif
    out[i] = 2 * in[i];  // HAZARD(off_by_one): out-of-bounds access
}

// A stencil reads the neighbour to the left, which the first element does not have.
// launch left_neighbour: grid 1 block 128 args float[128] float[128]=zero
extern "C" __global__ void left_neighbour(const float *in, float *out) {
  int i = threadIdx.x;
#ifdef REPAIRED
  if (i == 0) return;
#endif
  out[i] = in[i] - in[i - 1];  // HAZARD(left_neighbour): out-of-bounds access
}

// The same with an unsigned index: it does not become -1 but four billion.
// launch unsigned_index: grid 1 block 128 args float[128] float[128]=zero
extern "C" __global__ void unsigned_index(const float *in, float *out) {
  unsigned i = threadIdx.x, left = i - 1;
#ifdef REPAIRED
  if (i == 0) left = 0;
#endif
  out[i] = in[left];  // HAZARD(unsigned_index): out-of-bounds access
}

// An unsigned counter is never negative: the loop goes on below zero.
// launch countdown: grid 1 block 1 args float[40]=zero 40
extern "C" __global__ void countdown(float *out, unsigned n) {
#ifdef REPAIRED
  for (unsigned i = n; i-- > 0;)
#else
  for (unsigned i = n - 1; i >= 0; i--)
#endif
    out[i] = i;  // HAZARD(countdown): out-of-bounds access
}

// Columns are guarded, rows are not, and 20 rows do not fill two blocks of 16.
// launch rows: grid 2x2 block 16x16 args float[640] float[640]=zero 20 32
extern "C" __global__ void rows(const float *in, float *out, int row_count, int columns) {
  int row = blockIdx.y * blockDim.y + threadIdx.y, column = blockIdx.x * blockDim.x + threadIdx.x;
#ifdef REPAIRED
  if (row >= row_count) return;
#endif
  if (column < columns) out[row * columns + column] = in[row * columns + column];  // HAZARD(rows): out-of-bounds access
}

// A pointer to float already counts in floats: the index must not be in bytes.
// launch bytes_for_elements: grid 1 block 64 args float[64] float[64]=zero
extern "C" __global__ void bytes_for_elements(const float *in, float *out) {
  int i = threadIdx.x;
#ifdef REPAIRED
  out[i] = in[i];
#else
  out[i] = in[i * sizeof(float)];  // HAZARD(bytes_for_elements): out-of-bounds access
#endif
}

// The last vector of four reaches past an array of 126 floats.
// launch vector_tail: grid 1 block 32 args float[126] float[126]=zero 126
extern "C" __global__ void vector_tail(const float *in, float *out, int n) {
  int i = 4 * threadIdx.x;
#ifdef REPAIRED
  if (i + 4 > n) {
    for (; i < n; i++) out[i] = in[i];
    return;
  }
#endif
  float4 four = *(const float4 *)(in + i);  // HAZARD(vector_tail): out-of-bounds access
  out[i] = four.x;
  out[i + 1] = four.y;
  out[i + 2] = four.z;
  out[i + 3] = four.w;
}

// A value selects the bin, and one value has none.
// launch bin: grid 1 block 128 args int[128] int[100]=zero
extern "C" __global__ void bin(const int *values, int *bins) {
#ifdef REPAIRED
  if (values[threadIdx.x] < 100)
#endif
    atomicAdd(&bins[values[threadIdx.x]], 1);  // HAZARD(bin): out-of-bounds access
}

// The tile has no room for the neighbour of the first element.
// launch shared_tile: grid 1 block 128 args float[128] float[128]=zero
extern "C" __global__ void shared_tile(const float *in, float *out) {
  int t = threadIdx.x;
#ifdef REPAIRED
  __shared__ float tile[129];
#else
  __shared__ float tile[128];
#endif
  if (t == 0) tile[0] = 0;
  tile[t + 1] = in[t];  // HAZARD(shared_tile): out-of-bounds access
  __syncthreads();
  out[t] = tile[t] + tile[t + 1];
}

// Two arrays fit into the dynamic shared memory of the launch; the second begins where a third would.
// launch shared_dynamic: grid 1 block 128 shared 1024 args float[128] float[128]=zero
extern "C" __global__ void shared_dynamic(const float *in, float *out) {
  extern __shared__ float arrays[];
  int t = threadIdx.x;
#ifdef REPAIRED
  float *second = arrays + blockDim.x;
#else
  float *second = arrays + 2 * blockDim.x;
#endif
  arrays[t] = in[t];
  second[t] = -in[t];  // HAZARD(shared_dynamic): out-of-bounds access
  __syncthreads();
  out[t] = arrays[127 - t] + second[t];
}

// An array of a thread's own has eight counters; nine is not among them.
// launch local_array: grid 1 block 32 args int[160] int[256]=zero
extern "C" __global__ void local_array(const int *values, int *out) {
  int counters[8], t = threadIdx.x;
  for (int i = 0; i < 8; i++) counters[i] = 0;
  for (int i = 0; i < 5; i++) {
#ifdef REPAIRED
    int which = values[5 * t + i] % 8;
#else
    int which = values[5 * t + i] % 10;
#endif
    counters[which]++;  // HAZARD(local_array): out-of-bounds access
  }
  for (int i = 0; i < 8; i++) out[8 * t + i] = counters[i];
}

__constant__ float table[16] = {0, 1, 4, 9, 16, 25, 36, 49, 64, 81, 100, 121, 144, 169, 196, 225};

// The table of constants is shorter than the warp.
// launch constant_table: grid 1 block 32 args float[32]=zero
extern "C" __global__ void constant_table(float *out) {
#ifdef REPAIRED
  int i = threadIdx.x % 16;
#else
  int i = threadIdx.x;
#endif
  out[threadIdx.x] = table[i];  // HAZARD(constant_table): out-of-bounds access
}

struct Weights {
  float of[4];
};

// Parameters are memory too: four weights were passed, and five are read.
// launch parameter: grid 1 block 32 args float[32]=zero bytes16
extern "C" __global__ void parameter(float *out, const Weights weights) {
#ifdef REPAIRED
  int i = threadIdx.x % 4;
#else
  int i = threadIdx.x % 5;
#endif
  out[threadIdx.x] = weights.of[i] + 1;  // HAZARD(parameter): out-of-bounds access
}
