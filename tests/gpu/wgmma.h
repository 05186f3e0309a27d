// What the host gives to the kernels of wgmma_*.cu, and gets from them. One warpgroup; C and D are the accumulators, as
// they lie in the registers: [N / 8][128 threads][8 columns' share of a thread], 16 bytes in f32 and 8 in f16.
#pragma once

#include <stdint.h>

enum {
  WGMMA_STEPS = 4,
  WGMMA_SHARED = 200 * 1024,  // bytes of shared memory; the host's image is copied to its start
};

// One wgmma. The descriptors' addresses count from the start of shared memory.
typedef struct WgmmaStep {
  uint64_t a, b;
  uint32_t accumulate;  // 0: D = A·B; 1: D += A·B
  uint32_t unused[3];
} WgmmaStep;

typedef struct WgmmaInput {
  uint32_t steps, unused[3];
  WgmmaStep step[WGMMA_STEPS];
  uint32_t a[WGMMA_STEPS][128][4];  // A's fragments, of kernels that take A from registers
  uint32_t image[WGMMA_SHARED / 4];
} WgmmaInput;
