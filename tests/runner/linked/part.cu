// The file that defines what main.cu declares.
#include "part.h"

__device__ int shared_value = 7;
__device__ int numbers[3] = {10, 20, 30};
__constant__ float factors[4] = {1, 2, 3, 4};
__managed__ int managed_value = 3;

// Both files have a variable of this name, and it is two variables.
static __device__ int hidden = 1;

__device__ int add_hidden(int value) { return value + hidden; }
__device__ Operation add_hidden_pointer = add_hidden;

// The dynamic shared memory is the same array in both files.
__device__ int sum_of_dynamic(int count) {
  int sum = 0;
  for (int i = 0; i < count; i++) sum += dynamic[i];
  return sum;
}

static __global__ void in_part(int *out) {
  hidden = 5;
  out[0] = shared_value + from_the_library(0) + count_up(0);
}

void launch_in_part(int *out) {
  in_part<<<1, 1>>>(out);
  in_both_files<<<1, 1>>>(out + 1);
}

#if defined TWICE && defined __CUDA_ARCH__
__device__ int defined_in_two_files(int value) { return value; }
#endif
