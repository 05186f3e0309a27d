// Fences between the generic proxy (ld, st, cp.async, ldmatrix) and the async proxy (wgmma's operands, TMA).
// PTX ISA 9.7.13.4, "membar / fence".
#pragma once

// What this thread has stored to shared memory, or knows to be stored, wgmma and TMA will see from here on. The writing
// threads execute it, then comes the barrier behind which the tile is used.
static __device__ __forceinline__ void fence_async_proxy() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
