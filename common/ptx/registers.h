// setmaxnreg: moves registers between warpgroups. The block's registers are allotted at launch, the same number for each
// thread; a warpgroup that needs few gives some back, and others can then have more. An increase waits until there are
// enough. All four warps of a warpgroup execute it. PTX ISA 9.7.20.5, "setmaxnreg".
#pragma once

template <int REGISTERS> static __device__ __forceinline__ void registers_decrease() {
  static_assert(REGISTERS >= 24 && REGISTERS <= 256 && REGISTERS % 8 == 0, "24 to 256, a multiple of 8");
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}

template <int REGISTERS> static __device__ __forceinline__ void registers_increase() {
  static_assert(REGISTERS >= 24 && REGISTERS <= 256 && REGISTERS % 8 == 0, "24 to 256, a multiple of 8");
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}
