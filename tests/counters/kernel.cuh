// What the kernels of patterns.cu have in common.
//
// The offsets are a kernel parameter, which is constant memory: reading them touches none of the counters of interest.
#pragma once

#include "offsets.h"

#define KERNEL(name) extern "C" __global__ void name(const __grid_constant__ Offsets offsets, char *memory)

extern __shared__ __align__(1024) char tile[];

__device__ unsigned my_offset(const Offsets &offsets) { return offsets.of[blockIdx.x][threadIdx.x % WARP_LANES]; }

__device__ unsigned shared_address(const void *pointer) { return (unsigned)__cvta_generic_to_shared(pointer); }

// Makes the compiler keep what computes x: it cannot know that x is never this number.
__device__ void keep(unsigned x, char *memory) {
  if (x == 0x5eed5eedu) *(unsigned *)memory = x;
}
__device__ void keep(unsigned long long x, char *memory) { keep((unsigned)x ^ (unsigned)(x >> 32), memory); }
__device__ void keep(float x, char *memory) { keep(__float_as_uint(x), memory); }
__device__ void keep(double x, char *memory) { keep((unsigned long long)__double_as_longlong(x), memory); }

// ---- one instruction, repeated: the launch says how often ----

#define EIGHT(text) text text text text text text text text
#define LOOP(trips) _Pragma("unroll 1") for (unsigned i = 0; i < (trips); i++)
#define REPEAT_LOOP                                                                                                    \
  unsigned trips = offsets.of[blockIdx.x][0];                                                                          \
  LOOP(trips)
