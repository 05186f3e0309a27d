// setmaxnreg: moves registers between warpgroups. The launch allots the same number to each thread of the block. A
// warpgroup that needs few releases some, and others can then take more. An increase waits until enough are
// free. All four warps of a warpgroup execute it. PTX ISA 9.7.20.5, "setmaxnreg".
#pragma once

template <int REGISTERS> static __device__ __forceinline__ void registers_decrease() {
  static_assert(REGISTERS >= 24 && REGISTERS <= 256 && REGISTERS % 8 == 0, "24 to 256, a multiple of 8");
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}

template <int REGISTERS> static __device__ __forceinline__ void registers_increase() {
  static_assert(REGISTERS >= 24 && REGISTERS <= 256 && REGISTERS % 8 == 0, "24 to 256, a multiple of 8");
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}
