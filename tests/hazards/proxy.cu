// Two proxies reach shared memory: ld, st and cp.async go through the generic one, TMA and wgmma through the async one.
// What one has written the other sees only after a fence.proxy.async, which the writing threads execute before the
// barrier, or the reading ones after it.
#include "ptx.h"

// Tiles are stored, the barrier is there, and the fence is not.
// launch no_fence: grid 1 block 128 args half[1152] float[512]=zero
extern "C" __global__ void no_fence(const half *in, float *out) {
  __shared__ Tiles tiles;
  int t = threadIdx.x;
  ((uint4 *)tiles.a)[t] = ((const uint4 *)in)[t];                    // OTHER(no_fence)
  if (t < 16) ((uint4 *)tiles.b)[t] = ((const uint4 *)in)[128 + t];  // OTHER(no_fence)
#ifdef REPAIRED
  fence_async();
#endif
  __syncthreads();
  float d[4] = {};
  multiply(d, describe(tiles.a), describe(tiles.b));  // HAZARD(no_fence): missing proxy fence
  put(out, d);
}

// __threadfence is a fence of the generic proxy.
// launch thread_fence: grid 1 block 128 args half[1152] float[512]=zero
extern "C" __global__ void thread_fence(const half *in, float *out) {
  __shared__ Tiles tiles;
  int t = threadIdx.x;
  ((uint4 *)tiles.a)[t] = ((const uint4 *)in)[t];                    // OTHER(thread_fence)
  if (t < 16) ((uint4 *)tiles.b)[t] = ((const uint4 *)in)[128 + t];  // OTHER(thread_fence)
#ifdef REPAIRED
  fence_async();
#else
  __threadfence();
#endif
  __syncthreads();
  float d[4] = {};
  multiply(d, describe(tiles.a), describe(tiles.b));  // HAZARD(thread_fence): missing proxy fence
  put(out, d);
}

// cp.async has "async" in its name, and uses the generic proxy all the same. But the hardware is right.
// launch after_cp_async: grid 1 block 128 args half[1152] float[512]=zero
extern "C" __global__ void after_cp_async(const half *in, float *out) {
  __shared__ Tiles tiles;
  int t = threadIdx.x;
  cp_async(&((uint4 *)tiles.a)[t], &((const uint4 *)in)[t]);                    // OTHER(after_cp_async)
  if (t < 16) cp_async(&((uint4 *)tiles.b)[t], &((const uint4 *)in)[128 + t]);  // OTHER(after_cp_async)
  cp_async_commit();
  cp_async_wait<0>();
#ifdef REPAIRED
  fence_async();
#endif
  __syncthreads();
  float d[4] = {};
  multiply(d, describe(tiles.a), describe(tiles.b));  // HAZARD(after_cp_async): formal missing proxy fence
  put(out, d);
}

// The fence stands before the wait: it covers copies that have landed, and these have not.
// ADVICE(fence_before_wait): Put fence.proxy.async after the wait for the copy at line
// launch fence_before_wait: grid 1 block 128 args half[1152] float[512]=zero
extern "C" __global__ void fence_before_wait(const half *in, float *out) {
  __shared__ Tiles tiles;
  int t = threadIdx.x;
  cp_async(&((uint4 *)tiles.a)[t], &((const uint4 *)in)[t]);                    // OTHER(fence_before_wait)
  if (t < 16) cp_async(&((uint4 *)tiles.b)[t], &((const uint4 *)in)[128 + t]);  // OTHER(fence_before_wait)
  cp_async_commit();
#ifdef REPAIRED
  cp_async_wait<0>();
  fence_async();
#else
  fence_async();
  cp_async_wait<0>();
#endif
  __syncthreads();
  float d[4] = {};
  multiply(d, describe(tiles.a), describe(tiles.b));  // HAZARD(fence_before_wait): formal missing proxy fence
  put(out, d);
}

// One thread fences for all before the barrier: it knows of no stores but its own.
// launch one_fences: grid 1 block 128 args half[1152] float[512]=zero
extern "C" __global__ void one_fences(const half *in, float *out) {
  __shared__ Tiles tiles;
  int t = threadIdx.x;
  ((uint4 *)tiles.a)[t] = ((const uint4 *)in)[t];                    // OTHER(one_fences)
  if (t < 16) ((uint4 *)tiles.b)[t] = ((const uint4 *)in)[128 + t];  // OTHER(one_fences)
#ifndef REPAIRED
  if (t == 0)
#endif
    fence_async();
  __syncthreads();
  float d[4] = {};
  multiply(d, describe(tiles.a), describe(tiles.b));  // HAZARD(one_fences): missing proxy fence
  put(out, d);
}

// One thread fences after the barrier, when it knows of all stores; but the product is one of all four warps.
// launch one_fences_after: grid 1 block 128 args half[1152] float[512]=zero
extern "C" __global__ void one_fences_after(const half *in, float *out) {
  __shared__ Tiles tiles;
  int t = threadIdx.x;
  ((uint4 *)tiles.a)[t] = ((const uint4 *)in)[t];                    // OTHER(one_fences_after)
  if (t < 16) ((uint4 *)tiles.b)[t] = ((const uint4 *)in)[128 + t];  // OTHER(one_fences_after)
  __syncthreads();
#ifndef REPAIRED
  if (t == 0)
#endif
    fence_async();
  float d[4] = {};
  multiply(d, describe(tiles.a), describe(tiles.b));  // HAZARD(one_fences_after): missing proxy fence
  put(out, d);
}

// The first tile is fenced, those of the later rounds are not.
// launch first_round: grid 1 block 128 args half[3456] float[512]=zero 3
extern "C" __global__ void first_round(const half *in, float *out, int rounds) {
  __shared__ Tiles tiles;
  int t = threadIdx.x;
  float d[4] = {};
  for (int k = 0; k < rounds; k++) {
    ((uint4 *)tiles.a)[t] = ((const uint4 *)in)[144 * k + t];                    // OTHER(first_round)
    if (t < 16) ((uint4 *)tiles.b)[t] = ((const uint4 *)in)[144 * k + 128 + t];  // OTHER(first_round)
#ifndef REPAIRED
    if (k == 0)
#endif
      fence_async();
    __syncthreads();
    multiply(d, describe(tiles.a), describe(tiles.b));  // HAZARD(first_round): missing proxy fence
    __syncthreads();
  }
  put(out, d);
}

// The probabilities go back to shared memory as A of the second product, after the fence that was meant for the first.
// launch probabilities: grid 1 block 128 args half[1152] float[512]=zero
extern "C" __global__ void probabilities(const half *in, float *out) {
  __shared__ Tiles tiles;
  int t = threadIdx.x;
  ((uint4 *)tiles.a)[t] = ((const uint4 *)in)[t];
  if (t < 16) ((uint4 *)tiles.b)[t] = ((const uint4 *)in)[128 + t];
  fence_async();
  __syncthreads();
  float d[4] = {};
  multiply(d, describe(tiles.a), describe(tiles.b));
  __syncthreads();
  for (int i = 0; i < 4; i++) tiles.a[8 * t + i] = __float2half(exp2f(-fabsf(d[i])));  // OTHER(probabilities)
#ifdef REPAIRED
  fence_async();
#endif
  __syncthreads();
  multiply(d, describe(tiles.a), describe(tiles.b));  // HAZARD(probabilities): missing proxy fence
  put(out, d);
}

// A result is stored to shared memory, and TMA carries it to global memory.
// launch bulk_out: grid 1 block 64 args float[64] float[64]=zero
extern "C" __global__ void bulk_out(const float *in, float *out) {
  __shared__ alignas(16) float tile[64];
  int t = threadIdx.x;
  tile[63 - t] = in[t];  // OTHER(bulk_out)
#ifdef REPAIRED
  fence_async();
#endif
  __syncthreads();
  if (t == 0) {
    bulk_store(out, tile, sizeof tile);  // HAZARD(bulk_out): missing proxy fence
    bulk_commit();
    bulk_wait<0>();
  }
}

// The same with a tensor map, and a fence by another thread than those that wrote.
// launch tensor_out: grid 1 block 64 args float[64] float[64]=zero map:1:8x8:8x8
extern "C" __global__ void tensor_out(const float *in, float *out, const __grid_constant__ TensorMap map) {
  __shared__ alignas(128) float tile[64];
  int t = threadIdx.x;
  tile[63 - t] = in[t];  // OTHER(tensor_out)
#ifdef REPAIRED
  fence_async();
#else
  if (t == 32) fence_async();
#endif
  __syncthreads();
  if (t == 0) {
    tensor_store(&map, 0, 0, tile);  // HAZARD(tensor_out): missing proxy fence
    bulk_commit();
    bulk_wait<0>();
  }
}

// The tile is set to zero before TMA loads a part of it: the two writes are through different proxies too.
// launch zero_first: grid 1 block 64 args float[64] float[64]=zero
extern "C" __global__ void zero_first(const float *in, float *out) {
  __shared__ alignas(16) float tile[64];
  __shared__ uint64_t full;
  int t = threadIdx.x;
  tile[t] = 0;  // OTHER(zero_first)
  if (t == 0) {
    mbarrier_init(&full, 1);
    fence_mbarrier_init();
  }
#ifdef REPAIRED
  fence_async();
#endif
  __syncthreads();
  if (t == 0) {
    mbarrier_arrive_expect(&full, 128);
    bulk_load(tile, in, 128, &full);  // HAZARD(zero_first): missing proxy fence
  }
  mbarrier_wait(&full, 0);
  out[t] = tile[63 - t];
}

// The mbarrier's own initialisation is a generic write, and TMA counts bytes on it.
// launch init_unseen: grid 1 block 64 args float[64] float[64]=zero
extern "C" __global__ void init_unseen(const float *in, float *out) {
  __shared__ alignas(16) float tile[64];
  __shared__ uint64_t full;
  int t = threadIdx.x;
  if (t == 0) {
    mbarrier_init(&full, 1);  // OTHER(init_unseen)
#ifdef REPAIRED
    fence_mbarrier_init();
#endif
    mbarrier_arrive_expect(&full, sizeof tile);
    bulk_load(tile, in, sizeof tile, &full);  // HAZARD(init_unseen): note missing proxy fence
  }
  __syncthreads();
  mbarrier_wait(&full, 0);
  out[t] = tile[63 - t];
}

// A barrier orders the initialisation before TMA's use of the mbarrier by another warp. It is no fence of a proxy.
// launch init_unseen_by_another: grid 1 block 64 args float[64] float[64]=zero
extern "C" __global__ void init_unseen_by_another(const float *in, float *out) {
  __shared__ alignas(16) float tile[64];
  __shared__ uint64_t full;
  int t = threadIdx.x;
  if (t == 0) {
    mbarrier_init(&full, 1);  // OTHER(init_unseen_by_another)
#ifdef REPAIRED
    fence_mbarrier_init();
#endif
  }
  __syncthreads();
  if (t == 32) {
    mbarrier_arrive_expect(&full, sizeof tile);
    bulk_load(tile, in, sizeof tile, &full);  // HAZARD(init_unseen_by_another): note missing proxy fence
  }
  mbarrier_wait(&full, 0);
  out[t] = tile[63 - t];
}

// Global memory has two proxies as well: what the kernel has stored there TMA loads back.
// launch through_global: grid 1 block 64 args float[64]=zero float[64]=zero
extern "C" __global__ void through_global(float *scratch, float *out) {
  __shared__ alignas(16) float tile[64];
  __shared__ uint64_t full;
  int t = threadIdx.x;
  if (t == 0) {
    mbarrier_init(&full, 1);
    fence_mbarrier_init();
  }
  scratch[t] = 3 * t;  // OTHER(through_global)
#ifdef REPAIRED
  fence_async();
#endif
  __syncthreads();
  if (t == 0) {
    mbarrier_arrive_expect(&full, sizeof tile);
    bulk_load(tile, scratch, sizeof tile, &full);  // HAZARD(through_global): missing proxy fence
  }
  mbarrier_wait(&full, 0);
  out[t] = tile[63 - t];
}

// What TMA has written needs no fence: the mbarrier says it all.
// launch loaded_by_tma: grid 1 block 128 args half[1152] float[512]=zero
extern "C" __global__ void loaded_by_tma(const half *in, float *out) {
  __shared__ Tiles tiles;
  __shared__ uint64_t full;
  if (threadIdx.x == 0) {
    mbarrier_init(&full, 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect(&full, sizeof tiles);
    bulk_load(&tiles, in, sizeof tiles, &full);
  }
  __syncthreads();
  mbarrier_wait(&full, 0);
  float d[4] = {};
  multiply(d, describe(tiles.a), describe(tiles.b));
  put(out, d);
}
