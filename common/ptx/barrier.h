// Named barriers: sixteen of them in each block, 0 being that of __syncthreads. `threads` is how many threads, a multiple
// of 32, arrive before the barrier opens; those that wait and those that only arrive are both counted.
// PTX ISA 9.7.13.1, "bar / barrier".
#pragma once

// Arrives and waits.
static __device__ __forceinline__ void barrier_sync(int barrier, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

// Arrives and goes on.
static __device__ __forceinline__ void barrier_arrive(int barrier, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}
