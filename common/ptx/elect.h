// One lane of a warp.
#pragma once

// Whether this lane is the elected one: true in one lane of the warp, which all 32 call together. Where a branch depends on
// it, ptxas knows that one lane takes it. So an instruction with operands for the whole warp, as TMA's copies are, needs no loop
// over the lanes. PTX ISA 9.7.13.14, "elect.sync".
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
