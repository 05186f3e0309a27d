// One lane of a warp.
#pragma once

// Whether this lane is the elected one. All 32 lanes of a warp call it together, and it is true in one of them. Where a
// branch depends on it, ptxas knows that one lane takes it. So an instruction with operands for the whole warp, as
// TMA's copies are, needs no loop over the lanes. PTX ISA 9.7.13.14, "elect.sync".
static __device__ __forceinline__ bool elected() {
  int is;
  asm volatile("{\n"
               ".reg .pred is;\n"
               "elect.sync _|is, 0xffffffff;\n"
               "selp.b32 %0, 1, 0, is;\n"
               "}"
               : "=r"(is));
  return is;
}
