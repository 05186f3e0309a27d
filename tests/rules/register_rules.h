// Registers that setmaxnreg moves.
#pragma once

#include "block.h"

template <int REGISTERS> static __device__ void registers_inc() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}
template <int REGISTERS> static __device__ void registers_dec() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}

// The same by instructions of their own: the comment keeps the compiler from merging the two.
template <int REGISTERS> static __device__ void registers_inc_of_odd_warps() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0; // odd warps" ::"n"(REGISTERS));
}
template <int REGISTERS> static __device__ void registers_dec_of_odd_warps() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0; // odd warps" ::"n"(REGISTERS));
}

// Word w of the output: warp w has its registers.
template <int DEC, int INC, bool OF_TWO = false> static __device__ void registers(const RuleInput *in, uint32_t *out) {
  __shared__ uint32_t finished;
  volatile uint32_t *done = output_of_block(out);
  if (threadIdx.x == 0) finished = 0;
  __syncthreads();
  if (threadIdx.x >= in->threads) {
    watch(in, &finished);
    return;
  }
  if (DEC && threadIdx.x < 128) {
    delay(in, 0);
    if (OF_TWO && threadIdx.x / 32 % 2)
      registers_dec_of_odd_warps<DEC ? DEC : 24>();
    else
      registers_dec<DEC ? DEC : 24>();
  } else if (OF_TWO && threadIdx.x / 32 % 2) {
    registers_inc_of_odd_warps<INC>();
  } else {
    registers_inc<INC>();
  }
  if (threadIdx.x % 32 == 0) done[threadIdx.x / 32] = 1;
  __threadfence_system();
  atomicAdd(&finished, 1);
  // The registers stay with their warps.
  while (*(volatile uint32_t *)&finished < in->threads) {}
}

// The same, and then .dec and .inc to what the warps have, two more times. The warps of a warpgroup do not meet.
template <int DEC, int INC> static __device__ void registers_again(const RuleInput *in, uint32_t *out) {
  registers<DEC, INC>(in, out);
  if (threadIdx.x >= in->threads) return;
#pragma unroll
  for (uint32_t again = 1; again <= 2; again++) {
    delay(in, again);
    if (threadIdx.x < 128)
      registers_dec<DEC>();
    else
      registers_inc<INC>();
  }
  if (threadIdx.x % 32 == 0) output_of_block(out)[threadIdx.x / 32] = 3;
}

extern "C" __global__ void __maxnreg__(64) registers_0(const RuleInput *in, uint32_t *out) {
  registers<24, 104>(in, out);
}
extern "C" __global__ void __maxnreg__(64) registers_1(const RuleInput *in, uint32_t *out) {
  registers<24, 112>(in, out);
}
extern "C" __global__ void __maxnreg__(64) registers_2(const RuleInput *in, uint32_t *out) {
  registers<0, 72>(in, out);
}
extern "C" __global__ void __maxnreg__(64) registers_3(const RuleInput *in, uint32_t *out) {
  registers_again<24, 104>(in, out);
}
extern "C" __global__ void __maxnreg__(64) registers_4(const RuleInput *in, uint32_t *out) {
  registers<24, 104, true>(in, out);
}
