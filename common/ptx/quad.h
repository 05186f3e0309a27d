// A quad, four neighbouring lanes: in the accumulators of mma and wgmma it shares a row. PTX ISA 9.7.9.6, "shfl.sync".
#pragma once

// The maximum over the quad of one number from each lane. Every lane gets it.
static __device__ __forceinline__ float quad_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(0xffffffff, x, 1));
  return fmaxf(x, __shfl_xor_sync(0xffffffff, x, 2));
}

// Their sum, in the same way.
static __device__ __forceinline__ float quad_sum(float x) {
  x += __shfl_xor_sync(0xffffffff, x, 1);
  return x + __shfl_xor_sync(0xffffffff, x, 2);
}
