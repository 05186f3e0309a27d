// Named barriers: each block has sixteen, and __syncthreads uses number 0. A barrier opens when `threads` threads, a
// multiple of 32, have arrived; those that wait and those that only arrive both count.
// PTX ISA 9.7.13.1, "bar / barrier".
#pragma once

#include <stdint.h>

// Arrives and waits.
static __device__ __forceinline__ void barrier_sync(int barrier, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

// Arrives and continues at once.
static __device__ __forceinline__ void barrier_arrive(int barrier, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

// Arrives and waits. Returns whether x was other than 0 in any of the threads. PTX ISA 9.7.13.1, "bar.red".
static __device__ __forceinline__ bool barrier_or(int barrier, int threads, uint32_t x) {
  int any;
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %3, 0;\nbar.red.or.pred p, %1, %2, p;\nselp.b32 %0, 1, 0, p;\n}"
               : "=r"(any)
               : "r"(barrier), "r"(threads), "r"(x)
               : "memory");
  return any;
}
