// Numbers in global memory that several blocks change: sums to which they add, and turns.
//
// Turns are a fixed order among blocks, by counters in global memory that are 0 before the launch. A warp waits until
// the counter is at its number, does its part, and adds 1. PTX ISA 8.5, "Release and Acquire Patterns".
#pragma once

// ---- sums ----

// Adds four floats to four in memory, at a multiple of 16 bytes. Each addition is atomic; the four together are not. No
// result comes back, so the thread goes on at once. CUDA 12.0 has no vectors of them. PTX ISA 9.7.13.6, "red".
static __device__ __forceinline__ void add_four(float *to, const float *x) {
#if __CUDACC_VER_MAJOR__ == 12 && __CUDACC_VER_MINOR__ == 0
  for (int i = 0; i < 4; i++) asm volatile("red.global.add.f32 [%0], %1;" ::"l"(to + i), "f"(x[i]) : "memory");
#else
  asm volatile("red.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "f"(x[0]), "f"(x[1]), "f"(x[2]), "f"(x[3])
               : "memory");
#endif
}

// ---- turns ----

// A block's number in the order in which blocks begin, which need not be that of blockIdx. All threads call it; `place`
// is a number in shared memory.
static __device__ __forceinline__ unsigned ticket(unsigned *counter, unsigned &place) {
  if (threadIdx.x == 0) place = atomicAdd(counter, 1);
  __syncthreads();
  return place;
}

// The acquire load synchronises with the release below, and __syncwarp passes that on to the other lanes.
static __device__ __forceinline__ void wait_for_turn(const unsigned *counter, unsigned number, int lane) {
  unsigned count = number;
  do {
    if (lane == 0) asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(count) : "l"(counter) : "memory");
  } while (count != number);
  __syncwarp();
}

// What the warp's lanes did before comes before the release.
static __device__ __forceinline__ void pass_turn(unsigned *counter, int lane) {
  __syncwarp();
  if (lane == 0) asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(counter) : "memory");
}
