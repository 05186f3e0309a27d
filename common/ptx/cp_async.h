// cp.async: copies from global to shared memory that run in the background and use no registers, since Ampere. They
// write through the generic proxy, like an ordinary store. PTX ISA 9.7.9.25.3, "cp.async".
#pragma once

#include <stdint.h>

// Copies 16 bytes. They have landed once this thread has waited for the copy's group. Only the first `bytes` of the 16
// are read, and the rest is filled with zeros. With 0 nothing is read.
static __device__ __forceinline__ void cp_async(uint32_t to, const void *from, int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}

// Makes a group of the copies that this thread has started since its last commit.
static __device__ __forceinline__ void cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Waits until at most PENDING of this thread's groups have not landed.
template <int PENDING> static __device__ __forceinline__ void cp_async_wait() {
  static_assert(PENDING >= 0, "a number of groups");
  asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}
