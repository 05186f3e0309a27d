// Small kernels, each with exactly one fault, and with the fault repaired when compiled with -DREPAIRED.
//
// A comment above each kernel tells the trap. Two more are read by tests/test_hazards.c:
//
//   // launch NAME: grid 2x1 block 128 shared 1024 steps 1000000 args float[200] float[200]=zero 200 null
//
// how to launch it: dynamic shared memory in bytes; the warp instructions after which it counts as endless; and the
// arguments. These are buffers of int, float, double, half or byte, which hold 0, 1, 2, ... or what the = says: zero, one,
// fresh (never written), freed (before the launch); ints; null; bytesN, a parameter of N bytes; and map:1:64x32:16x8:128B, a
// tensor map of the buffer that is argument 1 (from 0), its size and box in elements, innermost first, and its swizzle.
//
//   // HAZARD(NAME): shared-memory race      the line that the report must name, as one of two or in its sentence
//   // OTHER(NAME)                           the line that it must name beside it
//   // ALSO(NAME): deadlock                  what may be reported there as well
//
//   // ADVICE(NAME): put a barrier after line {OTHER}, before line {HAZARD}      what the report must say, with those lines
//
// What is no fault has its grade in front: "HAZARD(NAME): formal barrier misuse", "note ...".
//
// A kernel without a HAZARD only looks faulty: nothing may be reported.
#pragma once

// Barriers of the hardware by number, for a count of threads. PTX ISA, "bar, barrier".
__device__ __forceinline__ void barrier_sync(int number, int threads) {
  asm volatile("bar.sync %0, %1;" : : "r"(number), "r"(threads) : "memory");
}

__device__ __forceinline__ void barrier_arrive(int number, int threads) {
  asm volatile("bar.arrive %0, %1;" : : "r"(number), "r"(threads) : "memory");
}
