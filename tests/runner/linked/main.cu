// A program of several files of device code, built with -rdc=true.
#include "../check.h"
#include "part.h"

static __device__ int hidden = 100;
__device__ int *address_of_shared = &shared_value;
__device__ Operation chosen[2];

extern __device__ int sum_of_dynamic(int count);
#ifdef MISSING_VARIABLE
extern __device__ int defined_nowhere;
#endif
#ifdef MISSING_FUNCTION
extern __device__ int defined_nowhere(int value);
#endif
#if defined TWICE && defined __CUDA_ARCH__  // the host's linker would refuse two functions, too
__device__ int defined_in_two_files(int value) { return value; }
#endif

__global__ void reads(int *out) {
  out[0] = shared_value;
  out[1] = numbers[2];
  out[2] = (int)factors[3];
  out[3] = add_hidden(hidden);
  out[4] = add_hidden_pointer(0);
  out[5] = *address_of_shared;
  out[6] = managed_value;
  out[7] = from_the_library(1);
  out[8] = count_up(0);
#ifdef MISSING_VARIABLE
  out[0] = defined_nowhere;
#endif
}

__global__ void adds_up(int *out) {
  dynamic[threadIdx.x] = threadIdx.x;
  __syncthreads();
  if (threadIdx.x == 0) *out = sum_of_dynamic(blockDim.x);
}

// A kernel of its own chooses the functions that the next one calls.
__global__ void choose() {
  chosen[0] = add_hidden;
  chosen[1] = from_the_library;
}
__global__ void call_chosen(int *out) {
  out[0] = chosen[0](1);
  out[1] = chosen[1](1);
}

#ifdef MISSING_FUNCTION
__global__ void calls_nothing(int *out) { *out = defined_nowhere(1); }
#endif

int main() {
  int *out, value = 8, constant[2];
  const float factor = 9;
  CHECK(cudaMallocManaged(&out, 16 * sizeof *out));
  reads<<<1, 1>>>(out);
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());
  static const int expected[] = {7, 30, 4, 101, 1, 7, 3, 1001, 0};
  for (int i = 0; i < 9; i++) EXPECT(out[i] == expected[i]);

  // The host reaches another file's variables, too.
  CHECK(cudaMemcpyToSymbol(shared_value, &value, sizeof value));
  CHECK(cudaMemcpyToSymbol(factors, &factor, sizeof factor, 3 * sizeof factor));
  CHECK(cudaMemcpyFromSymbol(constant, numbers, sizeof constant, sizeof constant[0]));
  EXPECT(constant[0] == 20 && constant[1] == 30);
  managed_value = 4;
  reads<<<1, 1>>>(out);
  CHECK(cudaDeviceSynchronize());
  EXPECT(out[0] == 8 && out[2] == 9 && out[5] == 8 && out[6] == 4 && out[8] == 1);

  launch_in_part(out);
  in_both_files<<<1, 1>>>(out + 2);
  CHECK(cudaDeviceSynchronize());
  EXPECT(out[0] == 8 + 1000 + 2 && out[1] == 43 && out[2] == 44);
  reads<<<1, 1>>>(out);
  CHECK(cudaDeviceSynchronize());
  EXPECT(out[3] == 105 && out[4] == 5);

  adds_up<<<1, 64, 64 * sizeof(int)>>>(out);
  choose<<<1, 1>>>();
  call_chosen<<<1, 1>>>(out + 1);
  CHECK(cudaDeviceSynchronize());
  EXPECT(out[0] == 63 * 32 && out[1] == 6 && out[2] == 1001);
#ifdef MISSING_FUNCTION
  calls_nothing<<<1, 1>>>(out);
  CHECK(cudaGetLastError());
#endif
  printf("right\n");
  return 0;
}
