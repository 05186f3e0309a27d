// What every kernel of patterns.cu takes: the place in memory that each lane uses.
#pragma once

#include <stdint.h>

enum {
  MAX_ROWS = 32,
  WARP_LANES = 32,
  INACTIVE = 0xffff,         // the lane leaves the kernel at once
  SHARED_BYTES = 32 * 1024,  // dynamic shared memory of a launch
  MEMORY_BYTES = 64 * 1024,  // what the kernel's `memory` points to
  LOCAL_BYTES = 1024,        // the array of a thread, where a kernel has one
};

// Block b uses row b. Offsets are in bytes. Kernels that repeat an instruction read a trip count instead.
typedef struct Offsets {
  uint16_t of[MAX_ROWS][WARP_LANES];
} Offsets;

// The kernels of async.cuh read these from a row, in place of lanes' offsets.
enum {
  ARG_TRIPS,
  // wgmma: of the two descriptors. Bytes; the swizzle as a descriptor has it.
  ARG_A_LEADING,
  ARG_A_STRIDE,
  ARG_A_SWIZZLE,
  ARG_B_LEADING,
  ARG_B_STRIDE,
  ARG_B_SWIZZLE,
  ASYNC_ARGS,
  // Copies: how many bytes land in shared memory, or leave it; where in memory; or which element of the tensor is the
  // box's first, which may be negative.
  ARG_BYTES = 1,
  ARG_GLOBAL,
  ARG_X,
  ARG_Y,
  ARG_SHARED,  // where in shared memory
};
