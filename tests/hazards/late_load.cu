// Loads that are under way when their threads hand the memory on. See common/emulator/check/flights.h.
#include <cuda_fp16.h>

#include "ptx.h"

// All have read the tile when they meet at the barrier, as it seems; but nothing has waited for the values. Behind it a copy
// may overwrite what a load has not read yet. An H200 does that (tests/rules).
// launch late_load: grid 1 block 64 args float[128] float[64]=zero
extern "C" __global__ void late_load(const float *in, float *out) {
  __shared__ alignas(16) float tile[64];
  __shared__ uint64_t full;
  int t = threadIdx.x;
  if (t == 0) {
    mbarrier_init(&full, 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect(&full, sizeof tile);
    bulk_load(tile, in, sizeof tile, &full);
  }
  __syncthreads();
  mbarrier_wait(&full, 0);
  float first = tile[63 - t];  // OTHER(late_load)
#ifdef REPAIRED
  out[t] = first;
#endif
  __syncthreads();
  if (t == 0) {
    mbarrier_arrive_expect(&full, sizeof tile);
    bulk_load(tile, in + 64, sizeof tile, &full);  // HAZARD(late_load): missing proxy fence
  }
  mbarrier_wait(&full, 1);
  out[t] = first + tile[63 - t];
}

// Two consumers and a producer with a ring of one slot. The lanes of a warp have synchronised before the first of them arrives.
// launch late_release: grid 1 block 96 args float[256] float[64]=zero 4
extern "C" __global__ void late_release(const float *in, float *out, int tiles) {
  __shared__ alignas(16) float tile[64];
  __shared__ uint64_t full, empty;
  int t = threadIdx.x;
  if (t == 0) {
    mbarrier_init(&full, 1);
    mbarrier_init(&empty, 2);
    fence_mbarrier_init();
  }
  __syncthreads();
  if (t >= 64) {
    for (int k = 0; k < tiles && t == 64; k++) {
      if (k) mbarrier_wait(&empty, (k - 1) & 1);
      mbarrier_arrive_expect(&full, sizeof tile);
      bulk_load(tile, in + 64 * k, sizeof tile, &full);  // HAZARD(late_release): missing proxy fence
    }
    return;
  }
  float sum = 0;
  for (int k = 0; k < tiles; k++) {
    mbarrier_wait(&full, k & 1);
    float x = tile[63 - t];  // OTHER(late_release)
#ifdef REPAIRED
    fence_async();
#endif
    __syncwarp();
    if (t % 32 == 0) mbarrier_arrive(&empty);
    sum += x;
  }
  out[t] = sum;
}

// Matrices that ldmatrix loads are under way like other values.
// launch late_matrix: grid 1 block 64 args half[256] int[32]=zero 2
extern "C" __global__ void late_matrix(const half *in, unsigned *out, int tiles) {
  __shared__ alignas(128) half tile[64];
  __shared__ uint64_t full, empty;
  int t = threadIdx.x;
  if (t == 0) {
    mbarrier_init(&full, 1);
    mbarrier_init(&empty, 1);
    fence_mbarrier_init();
  }
  __syncthreads();
  if (t >= 32) {
    for (int k = 0; k < tiles && t == 32; k++) {
      if (k) mbarrier_wait(&empty, (k - 1) & 1);
      mbarrier_arrive_expect(&full, sizeof tile);
      bulk_load(tile, in + 64 * k, sizeof tile, &full);  // HAZARD(late_matrix): missing proxy fence
    }
    return;
  }
  unsigned sum = 0;
  for (int k = 0; k < tiles; k++) {
    mbarrier_wait(&full, k & 1);
    unsigned x = load_matrix(&tile[8 * (t & 7)]);  // OTHER(late_matrix)
#ifdef REPAIRED
    sum ^= x;
    asm volatile("" : "+r"(sum));
#endif
    __syncwarp();
    if (t == 0) mbarrier_arrive(&empty);
#ifndef REPAIRED
    sum ^= x;
#endif
  }
  out[t] = sum;
}

// The value of the next tile is under way while the slot of this one is released: its own is released later.
// launch loads_ahead: grid 1 block 96 args float[512] float[64]=zero 8
extern "C" __global__ void loads_ahead(const float *in, float *out, int tiles) {
  __shared__ alignas(16) float slots[2][64];
  __shared__ uint64_t full[2], empty[2];
  int t = threadIdx.x;
  if (t == 0) {
    for (int s = 0; s < 2; s++) mbarrier_init(&full[s], 1), mbarrier_init(&empty[s], 2);
    fence_mbarrier_init();
  }
  __syncthreads();
  if (t >= 64) {
    for (int k = 0; k < tiles && t == 64; k++) {
      if (k > 1) mbarrier_wait(&empty[k & 1], (k / 2 - 1) & 1);
      mbarrier_arrive_expect(&full[k & 1], sizeof slots[0]);
      bulk_load(slots[k & 1], in + 64 * k, sizeof slots[0], &full[k & 1]);
    }
    return;
  }
  mbarrier_wait(&full[0], 0);
  float sum = 0, x = slots[0][63 - t];
  for (int k = 0; k < tiles; k++) {
    float next = 0;
    if (k + 1 < tiles) {
      mbarrier_wait(&full[(k + 1) & 1], (k + 1) / 2 & 1);
      next = slots[(k + 1) & 1][63 - t];
    }
    sum += 2 * x;
    out[t] = sum;
    __syncwarp();
    if (t % 32 == 0) mbarrier_arrive(&empty[k & 1]);
    x = next;
  }
}

// Two rings: while a value of one is under way, the slot of the other is released, whose value has been used.
// launch two_rings: grid 1 block 96 args float[512] float[64]=zero 4
extern "C" __global__ void two_rings(const float *in, float *out, int tiles) {
  __shared__ alignas(16) float keys[64], values[64];
  __shared__ uint64_t k_full, k_empty, v_full, v_empty;
  int t = threadIdx.x;
  if (t == 0) {
    mbarrier_init(&k_full, 1), mbarrier_init(&v_full, 1), mbarrier_init(&k_empty, 2), mbarrier_init(&v_empty, 2);
    fence_mbarrier_init();
  }
  __syncthreads();
  if (t >= 64) {
    for (int k = 0; k < tiles && t == 64; k++) {
      if (k) mbarrier_wait(&k_empty, (k - 1) & 1);
      mbarrier_arrive_expect(&k_full, sizeof keys);
      bulk_load(keys, in + 128 * k, sizeof keys, &k_full);
      if (k) mbarrier_wait(&v_empty, (k - 1) & 1);
      mbarrier_arrive_expect(&v_full, sizeof values);
      bulk_load(values, in + 128 * k + 64, sizeof values, &v_full);
    }
    return;
  }
  float sum = 0;
#pragma unroll 1
  for (int k = 0; k < tiles; k++) {
    mbarrier_wait(&k_full, k & 1);
    float key = keys[63 - t];
    __syncwarp();
    if (k && t % 32 == 0) mbarrier_arrive(&v_empty);
    mbarrier_wait(&v_full, k & 1);
    float value = values[63 - t];
    sum += 2 * key;
    out[t] = sum;
    __syncwarp();
    if (t % 32 == 0) mbarrier_arrive(&k_empty);
    sum += 3 * value;
    out[t] = sum;
  }
}

// Some threads do not use what they have loaded: it does not matter what they get.
// launch unused_value: grid 1 block 64 args float[128] float[64]=zero 10
extern "C" __global__ void unused_value(const float *in, float *out, int n) {
  __shared__ alignas(16) float tile[64];
  __shared__ uint64_t full;
  int t = threadIdx.x;
  if (t == 0) {
    mbarrier_init(&full, 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect(&full, sizeof tile);
    bulk_load(tile, in, sizeof tile, &full);
  }
  __syncthreads();
  mbarrier_wait(&full, 0);
  float first = *(volatile float *)&tile[63 - t];
  if (t < n) out[t] = first;
  __syncthreads();
  if (t == 0) {
    mbarrier_arrive_expect(&full, sizeof tile);
    bulk_load(tile, in + 64, sizeof tile, &full);
  }
  mbarrier_wait(&full, 1);
  if (t >= n) out[t] = tile[63 - t];
}

// A store of another thread comes after the loads: it goes the same way as they do.
// launch stored_after: grid 1 block 64 args float[64] float[64]=zero
extern "C" __global__ void stored_after(const float *in, float *out) {
  __shared__ alignas(16) float tile[64];
  __shared__ uint64_t full;
  int t = threadIdx.x;
  if (t == 0) {
    mbarrier_init(&full, 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect(&full, sizeof tile);
    bulk_load(tile, in, sizeof tile, &full);
  }
  __syncthreads();
  mbarrier_wait(&full, 0);
  float first = tile[63 - t];
  __syncthreads();
  tile[t] = 1;
  __syncthreads();
  out[t] = first + tile[63 - t];
}
