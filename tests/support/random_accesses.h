// Kernels of random loads and stores: coalesced, strided, to one place, by some of the threads, with and without something that
// orders them. Most have hazards; what they are, two ways of checking must agree on.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "run_kernel.h"

enum { RANDOM_BYTES = 4096 };  // of `in` and of `out`, its two arguments, and of its shared memory

typedef struct RandomKernel {
  Shape shape;
  char ptx[1 << 15];
} RandomKernel;

// The kernel "test" of a seed.
void random_kernel(RandomKernel *kernel, uint64_t seed);
