// A quad, four neighbouring lanes: in the accumulators of mma and wgmma it shares a row. PTX ISA 9.7.9.6, "shfl.sync".
#pragma once

// The largest of one number from each lane of the quad; all of them get it.
static __device__ __forceinline__ float quad_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(0xffffffff, x, 1));
  return fmaxf(x, __shfl_xor_sync(0xffffffff, x, 2));
}

// Their sum.
static __device__ __forceinline__ float quad_sum(float x) {
  x += __shfl_xor_sync(0xffffffff, x, 1);
  return x + __shfl_xor_sync(0xffffffff, x, 2);
}
