// C = A B for A of 64 x K and B of K x 64, fp16. A is zero except for some steps of 64 along K: `list` says which.
// A producer warp loads these steps into a ring, and a warpgroup multiplies. Both matrices are packed (main.cu).
#pragma once
#include "ptx/mbarrier.h"
#include "ptx/tma.h"
#include "ptx/wgmma.h"
#include <cassert>
#include <cuda_fp16.h>

enum { CONSUMERS = 128, SLOTS = 2, DEEP = 4, PART = 64 * 16, STEP = DEEP * PART };

static __device__ uint32_t in_shared(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }
static __device__ uint64_t describe(const half *p) { return matrix_descriptor(in_shared(p), 128, 256, SWIZZLE_NONE); }

__global__ void __launch_bounds__(CONSUMERS + 32)
    gemm(const half *a, const half *b, const int *list, int listed, int steps, float *c) {
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
    for (int i = 0; t == CONSUMERS && i < listed; i++) {
      int s = i % SLOTS, bytes = sizeof slot_a[s];
      mbarrier_wait(in_shared(&empty[s]), (i / SLOTS & 1) ^ 1);
      mbarrier_arrive_expect(in_shared(&full[s]), 2 * bytes);
      bulk_load(in_shared(slot_a[s]), a + i * STEP, in_shared(&full[s]), bytes);
      bulk_load(in_shared(slot_b[s]), b + list[i] * STEP, in_shared(&full[s]), bytes);
    }
    return;
  }
  float d[32] = {};
  for (int i = 0; i < listed; i++) {
    int s = i % SLOTS;
    mbarrier_wait(in_shared(&full[s]), i / SLOTS & 1);
    wgmma_fence();
    for (int k = 0; k < DEEP; k++) wgmma<64>(d, describe(slot_a[s] + k * PART), describe(slot_b[s] + k * PART), 1);
    wgmma_commit();
    assert(list[i] < steps);  // costs nothing: the tensor cores are busy anyway
    wgmma_wait<0>();
    mbarrier_arrive(in_shared(&empty[s]));
  }
  wgmma_results(d);
  int row = t / 32 * 16 + t % 32 / 4, column = t % 4 * 2;
  for (int i = 0; i < 32; i++) c[(row + i / 2 % 2 * 8) * 64 + column + i / 4 * 8 + i % 2] = d[i];
}

void run_gemm(const half *a, const half *b, const int *list, int listed, int steps, float *c) {
  gemm<<<1, CONSUMERS + 32>>>(a, b, list, listed, steps, c);
}
