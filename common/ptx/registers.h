// setmaxnreg: moves registers between warpgroups. The launch allots the same number to each thread of the block. A
// warpgroup that needs few releases some, and others can then take more. An increase waits until enough are
// free, and what the new ones hold is undefined. All four warps of a warpgroup execute it. It is a hint: ptxas ignores
// it (C7508) where it cannot tell the number at launch, as without __launch_bounds__(threads, blocks). PTX ISA
// 9.7.19.5, "setmaxnreg".
#pragma once

template <int REGISTERS> static __device__ __forceinline__ void registers_decrease() {
  static_assert(REGISTERS >= 24 && REGISTERS <= 256 && REGISTERS % 8 == 0, "24 to 256, a multiple of 8");
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}

template <int REGISTERS> static __device__ __forceinline__ void registers_increase() {
  static_assert(REGISTERS >= 24 && REGISTERS <= 256 && REGISTERS % 8 == 0, "24 to 256, a multiple of 8");
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}
