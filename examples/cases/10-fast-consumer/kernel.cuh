// C = A B for A of 64 x K and B of K x 64, fp16. A producer warp loads steps of 16 along K into a ring, and a
// warpgroup multiplies. Both matrices are packed: a step of either is 2 KiB, as wgmma reads it (main.cu).
#pragma once
#include "ptx/mbarrier.h"
#include "ptx/tma.h"
#include "ptx/wgmma.h"
#include <cuda_fp16.h>

enum { CONSUMERS = 128, SLOTS = 4, STEP = 64 * 16 };

static __device__ uint32_t in_shared(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }
static __device__ uint64_t describe(const half *p) { return matrix_descriptor(in_shared(p), 128, 256, SWIZZLE_NONE); }

__global__ void __launch_bounds__(CONSUMERS + 32) gemm(const half *a, const half *b, float *c, int steps) {
  __shared__ alignas(128) half slot_a[SLOTS][STEP], slot_b[SLOTS][STEP];
  __shared__ alignas(8) uint64_t full[SLOTS], empty[SLOTS];
  int t = threadIdx.x;
  if (t == 0) {
    for (int s = 0; s < SLOTS; s++) {
      mbarrier_init(in_shared(&full[s]), 1);
      mbarrier_init(in_shared(&empty[s]), CONSUMERS);
    }
    mbarrier_fence_init();
  }
  __syncthreads();
  if (t >= CONSUMERS) {
    for (int i = 0; t == CONSUMERS && i < steps; i++) {
      int s = i % SLOTS, bytes = sizeof slot_a[s];
      mbarrier_wait(in_shared(&empty[s]), (i / SLOTS & 1) ^ 1);
      mbarrier_arrive_expect(in_shared(&full[s]), 2 * bytes);
      bulk_load(in_shared(slot_a[s]), a + i * STEP, in_shared(&full[s]), bytes);
      bulk_load(in_shared(slot_b[s]), b + i * STEP, in_shared(&full[s]), bytes);
    }
    return;
  }
  float d[32] = {};
  for (int i = 0; i < steps; i++) {
    int s = i % SLOTS;
    mbarrier_wait(in_shared(&full[s]), i / SLOTS & 1);
    wgmma_fence();
    wgmma<64>(d, describe(slot_a[s]), describe(slot_b[s]), 1);
    wgmma_commit();
    wgmma_wait<1>();  // this product may run while the next one is issued
    mbarrier_arrive(in_shared(&empty[s]));
  }
  wgmma_wait<0>();
  wgmma_results(d);
  int row = t / 32 * 16 + t % 32 / 4, column = t % 4 * 2;
  for (int i = 0; i < 32; i++) c[(row + i / 2 % 2 * 8) * 64 + column + i / 4 * 8 + i % 2] = d[i];
}

void run_gemm(const half *a, const half *b, float *c, int steps) { gemm<<<1, CONSUMERS + 32>>>(a, b, c, steps); }
