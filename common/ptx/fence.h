// Fences between the generic proxy (ld, st, cp.async, ldmatrix) and the async proxy (wgmma's operands, TMA).
// PTX ISA 9.7.13.4, "membar / fence".
#pragma once

// From here on wgmma and TMA see what this thread has stored to shared memory, or knows to be stored. The threads that
// wrote a tile execute it before the barrier that the tile's users wait at.
static __device__ __forceinline__ void fence_async_proxy() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
