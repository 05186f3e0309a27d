// Programmatic dependent launch: a kernel that the host launches for it may begin before the kernel in front has ended.
// So its launch costs no time; but what the kernel in front writes is there only after a wait. PTX ISA 9.7.13.13,
// "griddepcontrol".
#pragma once

// The kernel behind may begin once all blocks of this one have executed this, or have ended.
static __device__ __forceinline__ void launch_dependents() {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

// Waits until the kernel in front has ended, and sees all that it has written. No wait where the host asked for none.
static __device__ __forceinline__ void wait_for_kernel_in_front() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
