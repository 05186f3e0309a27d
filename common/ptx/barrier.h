// Named barriers: each block has sixteen, and __syncthreads uses number 0. A barrier opens when `threads` threads, a
// multiple of 32, have arrived; those that wait and those that only arrive both count.
// PTX ISA 9.7.13.1, "bar / barrier".
#pragma once

// Arrives and waits.
static __device__ __forceinline__ void barrier_sync(int barrier, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

// Arrives and continues at once.
static __device__ __forceinline__ void barrier_arrive(int barrier, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}
