// What every kernel of patterns.cu takes: the place in memory that each lane uses.
#pragma once

#include <stdint.h>

enum {
  MAX_ROWS = 32,
  WARP_LANES = 32,
  INACTIVE = 0xffff,         // the lane leaves the kernel at once
  SHARED_BYTES = 32 * 1024,  // dynamic shared memory of a launch
  MEMORY_BYTES = 64 * 1024,  // what the kernel's `memory` points to
};

// Block b uses row b. Offsets are in bytes. Kernels that repeat an instruction read a trip count instead.
typedef struct Offsets {
  uint16_t of[MAX_ROWS][WARP_LANES];
} Offsets;
