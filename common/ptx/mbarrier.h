// mbarrier: a barrier object in shared memory, 8 bytes. A phase completes when as many threads have arrived as it was
// initialised with, and all expected bytes have landed. The next phase then begins, with the same number of arrivals.
// Parity tells phases apart: the first has parity 0. PTX ISA 9.7.13.15, "mbarrier".
#pragma once

#include <stdint.h>

static __device__ __forceinline__ void mbarrier_init(uint32_t barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

// After the initialisations, by the thread that did them, and before the barrier that lets others use the mbarriers. It
// orders initialisations alone, for a cluster; without clusters each block is one of its own. It is no proxy fence, but
// CUTLASS has no other one before TMA either, and an H200 needs none (notes/hazards.md, "New mbarriers").
static __device__ __forceinline__ void mbarrier_fence_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// Arrives. A thread that has waited for the phase sees what this thread wrote before, and may overwrite what it read.
// TMA may do so only if this thread has used what it read, or has executed fence_async_proxy (notes/hazards.md, "Loads
// under way").
// `_` is for the state that the instruction returns and that is not needed here.
static __device__ __forceinline__ void mbarrier_arrive(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

// Arrives, and adds `bytes` to the bytes that must land in this phase.
static __device__ __forceinline__ void mbarrier_arrive_expect(uint32_t barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

// Waits until the phase of that parity is complete. try_wait sleeps for a while before it returns false.
static __device__ __forceinline__ void mbarrier_wait(uint32_t barrier, uint32_t parity) {
  asm volatile("{\n"
               ".reg .pred complete;\n"
               "again:\n"
               "mbarrier.try_wait.parity.shared::cta.b64 complete, [%0], %1;\n"
               "@!complete bra again;\n"
               "}" ::"r"(barrier),
               "r"(parity)
               : "memory");
}
