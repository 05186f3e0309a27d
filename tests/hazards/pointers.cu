// Pointers to what is not there, or not the kernel's to touch.
#include "kernels.h"

// An optional array is not there.
// launch null_pointer: grid 1 block 32 args float[32] null float[32]=zero
extern "C" __global__ void null_pointer(const float *in, const float *bias, float *out) {
  int i = threadIdx.x;
  float sum = in[i];
#ifdef REPAIRED
  if (bias)
#endif
    sum += bias[i];  // HAZARD(null_pointer): out-of-bounds access
  out[i] = sum;
}

// The buffer was freed before the launch.
// launch freed: grid 1 block 32 args float[32]=freed float[32] float[32]=zero
extern "C" __global__ void freed(const float *previous, const float *current, float *out) {
  int i = threadIdx.x;
#ifdef REPAIRED
  out[i] = current[i];
#else
  out[i] = previous[i];  // HAZARD(freed): out-of-bounds access
#endif
}

// The function does not know that its pointer is to shared memory, and takes the element after the last.
__device__ __noinline__ float last_of(const float *array, int n) {
#ifdef REPAIRED
  return array[n - 1];
#else
  return array[n];  // HAZARD(generic_pointer): out-of-bounds access
#endif
}

// launch generic_pointer: grid 1 block 64 args float[64] float[64]=zero 64
extern "C" __global__ void generic_pointer(const float *in, float *out, int n) {
  __shared__ float tile[64];
  tile[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = last_of(tile, n);
}

// That other kernel of the file has shared memory that its function may be given; this one has no more than its own.
// launch own_shared: grid 1 block 64 args float[64] float[64]=zero
extern "C" __global__ void own_shared(const float *in, float *out) {
  __shared__ float tile[64];
  int t = threadIdx.x;
  tile[t] = in[t];
  __syncthreads();
#ifdef REPAIRED
  out[t] = tile[63 - t];
#else
  out[t] = tile[64 - t];  // HAZARD(own_shared): out-of-bounds access
#endif
}

__constant__ float constants[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

// Constant memory is the host's to write. (asm hides from the compiler where the pointer comes from.)
// launch constant_write: grid 1 block 16 args float[16]=zero
extern "C" __global__ void constant_write(float *out) {
  float *to = const_cast<float *>(constants);
#ifdef REPAIRED
  to = out;
#endif
  asm("" : "+l"(to));
  to[threadIdx.x] = constants[threadIdx.x] + 1;  // HAZARD(constant_write): out-of-bounds access
}

// Parameters are the host's to write, too.
// launch parameter_write: grid 1 block 1 args float[4]=zero bytes16
extern "C" __global__ void parameter_write(float *out, const __grid_constant__ float4 point) {
  const float4 *from = &point;
  asm("" : "+l"(from));
#ifdef REPAIRED
  float4 copy = *from, *to = &copy;
#else
  float4 *to = const_cast<float4 *>(from);
#endif
  asm("" : "+l"(to) : : "memory");
  to->y = 7;  // HAZARD(parameter_write): out-of-bounds access
  *(float4 *)out = *to;
}
