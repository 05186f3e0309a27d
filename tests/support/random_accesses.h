// Kernels of random loads and stores: coalesced, strided, to one place, by some of the threads, with and without
// something that orders them. Most have hazards; what they are, two ways of checking must agree on.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "run_kernel.h"

// Bytes of `in` and of `out`, its two arguments, and of its shared memory. Nearly all accesses are to the first 4096.
enum { RANDOM_BYTES = 4096 + 72 };

typedef struct RandomKernel {
  Shape shape;
  char ptx[1 << 15];
} RandomKernel;

// The kernel "test" of a seed.
void random_kernel(RandomKernel *kernel, uint64_t seed);
