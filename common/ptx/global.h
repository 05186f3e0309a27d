// Numbers in global memory that several blocks change. Each of these is relaxed and of GPU scope, if it does not say otherwise.
#pragma once

#include <stdint.h>

// Adds four floats to four in memory, which are 16 bytes aligned. Each is added at once; the four need not be. No result
// comes back, so no thread waits. PTX ISA 9.7.13.6, "red".
static __device__ __forceinline__ void add_four(float *to, const float *x) {
  asm volatile("red.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "f"(x[0]), "f"(x[1]), "f"(x[2]), "f"(x[3])
               : "memory");
}

// Waits until the counter has reached a value, and sees what was done before release_count made it so. PTX ISA 9.7.9.8, "ld".
static __device__ __forceinline__ void acquire_count(const unsigned *counter, unsigned value) {
  unsigned count;
  do {
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(count) : "l"(counter) : "memory");
  } while (count != value);
}

// Adds 1 to the counter, after what this thread has done, or knows to be done. PTX ISA 9.7.13.6, "red".
static __device__ __forceinline__ void release_count(unsigned *counter) {
  asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(counter) : "memory");
}
