// wgmma is asynchronous: between its issue and wgmma.wait_group the accumulators, the A registers and the tiles in
// shared memory belong to the tensor core.
#include "ptx.h"

// in: first A, then B.
__device__ void fill(Tiles *tiles, const half *in) {
  int t = threadIdx.x;
  ((uint4 *)tiles->a)[t] = ((const uint4 *)in)[t];
  if (t < 16) ((uint4 *)tiles->b)[t] = ((const uint4 *)in)[128 + t];
  fence_async();
  __syncthreads();
}

// The accumulators are stored after commit_group, without a wait.
// launch no_wait: grid 1 block 128 args half[1152] float[512]=zero
extern "C" __global__ void no_wait(const half *in, float *out) {
  __shared__ Tiles tiles;
  fill(&tiles, in);
  float d[4] = {};
  wgmma_fence();
  wgmma(d, describe(tiles.a), describe(tiles.b));
  wgmma_commit();
#ifdef REPAIRED
  wgmma_wait<0>();
#endif
  out[threadIdx.x] = d[0] + d[1] + d[2] + d[3];  // HAZARD(no_wait): register touched in flight
#ifndef REPAIRED
  wgmma_wait<0>();
#endif
}

// The wait allows one group in flight, and it is this one.
// launch one_in_flight: grid 1 block 128 args half[1152] float[512]=zero
extern "C" __global__ void one_in_flight(const half *in, float *out) {
  __shared__ Tiles tiles;
  fill(&tiles, in);
  float d[4] = {};
  wgmma_fence();
  wgmma(d, describe(tiles.a), describe(tiles.b));
  wgmma_commit();
#ifdef REPAIRED
  wgmma_wait<0>();
#else
  wgmma_wait<1>();
#endif
  out[threadIdx.x] = d[0] + d[1] + d[2] + d[3];  // HAZARD(one_in_flight): register touched in flight
  wgmma_wait<0>();
}

// Without a commit the multiplication is in no group, and wait_group waits for groups.
// launch no_commit: grid 1 block 128 args half[1152] float[512]=zero
extern "C" __global__ void no_commit(const half *in, float *out) {
  __shared__ Tiles tiles;
  fill(&tiles, in);
  float d[4] = {};
  wgmma_fence();
  wgmma(d, describe(tiles.a), describe(tiles.b));
#ifdef REPAIRED
  wgmma_commit();
#endif
  wgmma_wait<0>();
  out[threadIdx.x] = d[0] + d[1] + d[2] + d[3];  // HAZARD(no_commit): register touched in flight
}

// Two products in flight as in a pipeline: the first one's wait lets one group run on, but it was the last one
// committed.
// launch pipeline: grid 1 block 128 args half[2304] float[512]=zero
extern "C" __global__ void pipeline(const half *in, float *out) {
  __shared__ Tiles tiles[2];
  fill(&tiles[0], in);
  fill(&tiles[1], in + 1152);
  float scores[4] = {}, sums[4] = {};
  wgmma_fence();
#ifdef REPAIRED
  wgmma(scores, describe(tiles[0].a), describe(tiles[0].b));
  wgmma_commit();
  wgmma(sums, describe(tiles[1].a), describe(tiles[1].b));
  wgmma_commit();
#else
  wgmma(sums, describe(tiles[1].a), describe(tiles[1].b));
  wgmma_commit();
  wgmma(scores, describe(tiles[0].a), describe(tiles[0].b));
  wgmma_commit();
#endif
  wgmma_wait<1>();
  for (int i = 0; i < 4; i++)
    out[4 * threadIdx.x + i] = exp2f(scores[i] * 1e-6f);  // HAZARD(pipeline): register touched in flight
  wgmma_wait<0>();
  for (int i = 0; i < 4; i++) out[4 * threadIdx.x + i] += sums[i];
}

// The rescaling of an online softmax, before the product that it rescales has arrived.
// launch rescale: grid 1 block 128 args half[1152] float[512]=zero
extern "C" __global__ void rescale(const half *in, float *out) {
  __shared__ Tiles tiles;
  fill(&tiles, in);
  float d[4] = {};
  for (int k = 0; k < 3; k++) {
    wgmma_fence();
    wgmma(d, describe(tiles.a), describe(tiles.b));
    wgmma_commit();
#ifdef REPAIRED
    wgmma_wait<0>();
#endif
    for (int i = 0; i < 4; i++) d[i] *= 0.5f;  // HAZARD(rescale): register touched in flight
#ifndef REPAIRED
    wgmma_wait<0>();
#endif
  }
  put(out, d);
}

// A's registers get the next tile's values while the tensor core may still read the last one's.
// launch next_a: grid 1 block 128 args half[1152] int[2048] float[512]=zero 4
extern "C" __global__ void next_a(const half *in, const unsigned *fragments, float *out, int rounds) {
  __shared__ Tiles tiles;
  fill(&tiles, in);
  float d[4] = {};
  unsigned a[4];
  const unsigned *mine = fragments + 4 * threadIdx.x;
  for (int i = 0; i < 4; i++) a[i] = mine[i];
#pragma unroll 1
  for (int k = 1; k <= rounds; k++) {
    wgmma_fence();
    wgmma_registers(d, a, describe(tiles.b));
    wgmma_commit();
#ifdef REPAIRED
    wgmma_wait<0>();
#endif
    for (int i = 0; i < 4; i++) a[i] = mine[i] + k;  // HAZARD(next_a): register touched in flight
  }
  wgmma_wait<0>();
  put(out, d);
}

// wgmma.fence orders the registers' first values before the tensor core's use of them; here nothing does.
// launch no_fence: grid 1 block 128 args half[1152] float[512]=zero
extern "C" __global__ void no_fence(const half *in, float *out) {
  __shared__ Tiles tiles;
  fill(&tiles, in);
  float d[4] = {};
#ifdef REPAIRED
  wgmma_fence();
#endif
  wgmma(d, describe(tiles.a), describe(tiles.b));  // HAZARD(no_fence): missing wgmma.fence
  wgmma_commit();
  wgmma_wait<0>();
  put(out, d);
}

// There was a fence, but the accumulators have been scaled since.
// launch fence_once: grid 1 block 128 args half[1152] float[512]=zero
extern "C" __global__ void fence_once(const half *in, float *out) {
  __shared__ Tiles tiles;
  fill(&tiles, in);
  float d[4] = {};
  wgmma_fence();
  wgmma(d, describe(tiles.a), describe(tiles.b));
  wgmma_commit();
  wgmma_wait<0>();
  for (int i = 0; i < 4; i++) d[i] *= 0.5f;
#ifdef REPAIRED
  wgmma_fence();
#endif
  wgmma(d, describe(tiles.a), describe(tiles.b));  // HAZARD(fence_once): missing wgmma.fence
  wgmma_commit();
  wgmma_wait<0>();
  put(out, d);
}

// The fence stands before the loop, and the accumulators begin at zero in each round: their last use came after it.
// launch fence_outside: grid 1 block 128 args half[1152] float[512]=zero 3
extern "C" __global__ void fence_outside(const half *in, float *out, int rounds) {
  __shared__ Tiles tiles;
  fill(&tiles, in);
  float sum[4] = {};
#ifndef REPAIRED
  wgmma_fence();
#endif
#pragma unroll 1
  for (int k = 0; k < rounds; k++) {
    float d[4] = {};
#ifdef REPAIRED
    wgmma_fence();
#endif
    wgmma(d, describe(tiles.a), describe(tiles.b));  // HAZARD(fence_outside): missing wgmma.fence
    wgmma_commit();
    wgmma_wait<0>();
    for (int i = 0; i < 4; i++) sum[i] += k * d[i];
  }
  put(out, sum);
}

// Reading the accumulators is a use of them, too.
// launch fence_read: grid 1 block 128 args half[1152] float[512]=zero
extern "C" __global__ void fence_read(const half *in, float *out) {
  __shared__ Tiles tiles;
  fill(&tiles, in);
  float d[4] = {}, most = 0;
  wgmma_fence();
  wgmma(d, describe(tiles.a), describe(tiles.b));
  wgmma_commit();
  wgmma_wait<0>();
  for (int i = 0; i < 4; i++) most = fmaxf(most, d[i]);
#ifdef REPAIRED
  wgmma_fence();
#endif
  wgmma(d, describe(tiles.a), describe(tiles.b));  // HAZARD(fence_read): missing wgmma.fence
  wgmma_commit();
  wgmma_wait<0>();
  for (int i = 0; i < 4; i++) d[i] += most;
  put(out, d);
}

// One fence is enough for two sets of accumulators that were ready before it, though the second is used much later.
// launch one_fence: grid 1 block 128 args half[1152] float[512]=zero 3
extern "C" __global__ void one_fence(const half *in, float *out, int rounds) {
  __shared__ Tiles tiles;
  fill(&tiles, in);
  float sum[4] = {};
#pragma unroll 1
  for (int k = 0; k < rounds; k++) {
    float first[4] = {}, second[4] = {};
    wgmma_fence();
    wgmma(first, describe(tiles.a), describe(tiles.b));
    wgmma_commit();
    wgmma_wait<0>();
    for (int i = 0; i < 4; i++) sum[i] += first[i];
    wgmma(second, describe(tiles.a), describe(tiles.b));
    wgmma_commit();
    wgmma_wait<0>();
    for (int i = 0; i < 4; i++) sum[i] += k * second[i];
  }
  put(out, sum);
}

// The same of A in registers: packed after the fence.
// launch fence_before_a: grid 1 block 128 args half[1152] float[512]=zero
extern "C" __global__ void fence_before_a(const half *in, float *out) {
  __shared__ Tiles tiles;
  fill(&tiles, in);
  float d[4] = {};
  unsigned a[4];
#ifndef REPAIRED
  wgmma_fence();
#endif
  for (int i = 0; i < 4; i++) a[i] = ((const volatile unsigned *)in)[4 * threadIdx.x + i];
#ifdef REPAIRED
  wgmma_fence();
#endif
  wgmma_registers(d, a, describe(tiles.b));  // HAZARD(fence_before_a): missing wgmma.fence
  wgmma_commit();
  wgmma_wait<0>();
  put(out, d);
}

// The next tile is stored while the product of this one is in flight.
// launch next_tile: grid 1 block 128 args half[2304] float[512]=zero
extern "C" __global__ void next_tile(const half *in, float *out) {
  __shared__ Tiles tiles;
  int t = threadIdx.x;
  fill(&tiles, in);
  float d[4] = {};
  for (int k = 0; k < 2; k++) {
    wgmma_fence();
    wgmma(d, describe(tiles.a), describe(tiles.b));  // OTHER(next_tile), ALSO(next_tile): shared-memory race
    wgmma_commit();
#ifdef REPAIRED
    wgmma_wait<0>();
    __syncthreads();
#endif
    if (k == 0) ((uint4 *)tiles.a)[t] = ((const uint4 *)in)[144 + t];  // HAZARD(next_tile): overwrite in flight
    fence_async();
    __syncthreads();
#ifndef REPAIRED
    wgmma_wait<0>();
#endif
  }
  put(out, d);
}

// The same with cp.async, which a double buffer would make right: there is but one buffer.
// launch copy_under_wgmma: grid 1 block 128 args half[2304] float[512]=zero
extern "C" __global__ void copy_under_wgmma(const half *in, float *out) {
#ifdef REPAIRED
  enum { BUFFERS = 2 };
#else
  enum { BUFFERS = 1 };
#endif
  __shared__ Tiles tiles[BUFFERS];
  int t = threadIdx.x;
  fill(&tiles[0], in);
  if (BUFFERS == 2 && t < 16) ((uint4 *)tiles[1 % BUFFERS].b)[t] = ((const uint4 *)in)[128 + t];
  float d[4] = {};
  for (int k = 0; k < 2; k++) {
    const Tiles *now = &tiles[k % BUFFERS];
    wgmma_fence();
    wgmma(d, describe(now->a), describe(now->b));  // OTHER(copy_under_wgmma), ALSO(copy_under_wgmma): shared-memory race
    wgmma_commit();
    void *next = &((uint4 *)tiles[1 % BUFFERS].a)[t];
    if (k == 0) cp_async(next, in + 1152 + 8 * t);  // HAZARD(copy_under_wgmma): overwrite in flight
    cp_async_commit();
    cp_async_wait<0>();
    fence_async();
    __syncthreads();
    wgmma_wait<0>();
  }
  put(out, d);
}

// All four warps of a warpgroup read all of B. But their parts of the product are complete together, so that each knows of
// the others' by its own wait.
// launch warps_wait: grid 1 block 128 args half[1152] float[512]=zero
extern "C" __global__ void warps_wait(const half *in, float *out) {
  __shared__ Tiles tiles;
  int t = threadIdx.x;
  fill(&tiles, in);
  float d[4] = {};
  for (int k = 0; k < 2; k++) {
    wgmma_fence();
    wgmma(d, describe(tiles.a), describe(tiles.b));
    wgmma_commit();
    wgmma_wait<0>();
    tiles.b[t] = k;
    fence_async();
    __syncthreads();
  }
  put(out, d);
}

// Of another warpgroup's product it tells nothing.
// launch warpgroups_wait: grid 1 block 256 args half[1152] float[1024]=zero
extern "C" __global__ void warpgroups_wait(const half *in, float *out) {
  __shared__ Tiles tiles;
  int t = threadIdx.x;
  if (t < 128) ((uint4 *)tiles.a)[t] = ((const uint4 *)in)[t];
  if (t < 16) ((uint4 *)tiles.b)[t] = ((const uint4 *)in)[128 + t];
  fence_async();
  __syncthreads();
  float d[4] = {};
  for (int k = 0; k < 2; k++) {
    wgmma_fence();
    wgmma(d, describe(tiles.a), describe(tiles.b));  // OTHER(warpgroups_wait)
    wgmma_commit();
    wgmma_wait<0>();
#ifdef REPAIRED
    __syncthreads();
#endif
    if (t < 128) tiles.b[t] = k;  // HAZARD(warpgroups_wait): shared-memory race
    fence_async();
    __syncthreads();
  }
  put(out, d);
}

// A producer warp refills the tile by TMA as soon as it can, and nobody tells it that the consumers' product is done.
// launch producer: grid 1 block 160 args half[4608] float[512]=zero 4
extern "C" __global__ void producer(const half *in, float *out, int rounds) {
  __shared__ Tiles tiles;
  __shared__ uint64_t full, empty;
  if (threadIdx.x == 0) {
    mbarrier_init(&full, 1);
    mbarrier_init(&empty, 128);
    fence_mbarrier_init();
  }
  __syncthreads();
  if (threadIdx.x == 128) {
    for (int k = 0; k < rounds; k++) {
      if (k > 0) mbarrier_wait(&empty, (k - 1) % 2);
      mbarrier_arrive_expect(&full, sizeof tiles);
      bulk_load(&tiles, in + 1152 * k, sizeof tiles, &full);  // HAZARD(producer): overwrite in flight
    }
  } else if (threadIdx.x < 128) {
    float d[4] = {};
    for (int k = 0; k < rounds; k++) {
      mbarrier_wait(&full, k % 2);
      wgmma_fence();
      wgmma(d, describe(tiles.a), describe(tiles.b));  // OTHER(producer)
      wgmma_commit();
#ifndef REPAIRED
      mbarrier_arrive(&empty);
#endif
      wgmma_wait<0>();
#ifdef REPAIRED
      mbarrier_arrive(&empty);
#endif
    }
    put(out, d);
  }
}

// The consumers let one product run on, and give back the tile of this one instead of the one before.
// launch releases_early: grid 1 block 160 args half[9216] float[512]=zero 8
extern "C" __global__ void releases_early(const half *in, float *out, int rounds) {
  enum { STAGES = 2 };
  __shared__ Tiles tiles[STAGES];
  __shared__ uint64_t full[STAGES], empty[STAGES];
  if (threadIdx.x == 0) {
    for (int s = 0; s < STAGES; s++) mbarrier_init(&full[s], 1), mbarrier_init(&empty[s], 128);
    fence_mbarrier_init();
  }
  __syncthreads();
  if (threadIdx.x == 128) {
    for (int k = 0; k < rounds; k++) {
      int s = k % STAGES;
      mbarrier_wait(&empty[s], (k / STAGES + 1) % 2);
      mbarrier_arrive_expect(&full[s], sizeof tiles[s]);
      bulk_load(&tiles[s], in + 1152 * k, sizeof tiles[s], &full[s]);  // HAZARD(releases_early): overwrite in flight
    }
  } else if (threadIdx.x < 128) {
    float d[4] = {};
    for (int k = 0; k < rounds; k++) {
      int s = k % STAGES;
      mbarrier_wait(&full[s], k / STAGES % 2);
      wgmma_fence();
      wgmma(d, describe(tiles[s].a), describe(tiles[s].b));  // OTHER(releases_early)
      wgmma_commit();
      wgmma_wait<1>();
#ifdef REPAIRED
      if (k > 0) mbarrier_arrive(&empty[(k - 1) % STAGES]);
#else
      mbarrier_arrive(&empty[s]);
#endif
    }
    wgmma_wait<0>();
    put(out, d);
  }
}

// A warpgroup multiplies, not a warp.
// launch one_warp: grid 1 block 128 args half[1152] float[512]=zero
extern "C" __global__ void one_warp(const half *in, float *out) {
  __shared__ Tiles tiles;
  fill(&tiles, in);
#ifndef REPAIRED
  if (threadIdx.x >= 32) return;
#endif
  float d[4] = {};
  wgmma_fence();
  wgmma(d, describe(tiles.a), describe(tiles.b));  // HAZARD(one_warp): divergent .aligned instruction
  wgmma_commit();
  wgmma_wait<0>();
  put(out, d);
}

// One warp of the four goes another way, and waits at the end for the others.
// launch three_warps: grid 1 block 128 args half[1152] float[512]=zero
extern "C" __global__ void three_warps(const half *in, float *out) {
  __shared__ Tiles tiles;
  fill(&tiles, in);
  float d[4] = {};
#ifdef REPAIRED
  bool multiplies = true;
#else
  bool multiplies = threadIdx.x < 96;
#endif
  if (multiplies) {
    wgmma_fence();
    wgmma(d, describe(tiles.a), describe(tiles.b));  // HAZARD(three_warps): divergent .aligned instruction
    wgmma_commit();
    wgmma_wait<0>();
  }
  __syncthreads();
  put(out, d);
}

// The halves of a warpgroup take different branches, each with a product of its own.
// launch two_branches: grid 1 block 128 args half[1152] float[512]=zero
extern "C" __global__ void two_branches(const half *in, float *out) {
  __shared__ Tiles tiles;
  fill(&tiles, in);
  float d[4] = {};
  wgmma_fence();
#ifdef REPAIRED
  wgmma(d, describe(tiles.a), describe(tiles.b));
#else
  if (threadIdx.x < 64)
    wgmma(d, describe(tiles.a), describe(tiles.b));  // HAZARD(two_branches): divergent .aligned instruction
  else
    wgmma_registers(d, {1, 2, 3, 4}, describe(tiles.b));  // OTHER(two_branches)
#endif
  wgmma_commit();
  wgmma_wait<0>();
  put(out, d);
}

// Threads past the end leave out the product: but lanes of a warp execute it together or not at all.
// launch tail_threads: grid 1 block 128 args half[1152] float[512]=zero 100
extern "C" __global__ void tail_threads(const half *in, float *out, int n) {
  __shared__ Tiles tiles;
  fill(&tiles, in);
#ifndef REPAIRED
  if (threadIdx.x >= n) return;
#endif
  float d[4] = {};
  wgmma_fence();
  wgmma(d, describe(tiles.a), describe(tiles.b));  // HAZARD(tail_threads): divergent .aligned instruction
  wgmma_commit();
  wgmma_wait<0>();
  if (threadIdx.x < n) put(out, d);
}

// A thread looks at A, and then wgmma reads it. Who waits for wgmma does not wait for the thread.
// launch looked_at_before: grid 1 block 128 args half[1152] float[512]=zero float[1]=zero
extern "C" __global__ void looked_at_before(const half *in, float *out, float *seen) {
  __shared__ Tiles tiles;
  fill(&tiles, in);
  if (threadIdx.x == 0) *seen = __half2float(tiles.a[8]);  // OTHER(looked_at_before)
  float d[4] = {};
  multiply(d, describe(tiles.a), describe(tiles.b));
  put(out, d);
#ifdef REPAIRED
  __syncthreads();
#endif
  if (threadIdx.x == 32) tiles.a[8] = 0;  // HAZARD(looked_at_before): shared-memory race
}

// Each warp writes its own 16 rows of A, and the warps do not meet. An H200 multiplies them rightly, and PTX does not say so.
// launch own_rows_only: grid 1 block 128 args half[2048] float[512]=zero
extern "C" __global__ void own_rows_only(const half *in, float *out) {
  __shared__ Tiles tiles;
  half *own = tiles.a + threadIdx.x / 32 * 256;
  for (int i = threadIdx.x; i < sizeof tiles.b / 2; i += 128) tiles.b[i] = in[i];
  fence_async();
  __syncthreads();
  for (int i = threadIdx.x % 32; i < 256; i += 32) own[i] = in[i];  // OTHER(own_rows_only)
  fence_async();
#ifdef REPAIRED
  __syncthreads();
#else
  __syncwarp();
#endif
  float d[4] = {};
  multiply(d, describe(tiles.a), describe(tiles.b));  // HAZARD(own_rows_only): formal shared-memory race
  put(out, d);
}

// The same with the rows of the next warp: nothing says that it has them before its product begins.
// launch rows_of_the_next: grid 1 block 128 args half[2048] float[512]=zero
extern "C" __global__ void rows_of_the_next(const half *in, float *out) {
  __shared__ Tiles tiles;
  half *next = tiles.a + (threadIdx.x / 32 + 1) % 4 * 256;
  for (int i = threadIdx.x; i < sizeof tiles.b / 2; i += 128) tiles.b[i] = in[i];
  fence_async();
  __syncthreads();
  for (int i = threadIdx.x % 32; i < 256; i += 32) next[i] = in[i];  // OTHER(rows_of_the_next)
  fence_async();
#ifdef REPAIRED
  __syncthreads();
#else
  __syncwarp();
#endif
  float d[4] = {};
  multiply(d, describe(tiles.a), describe(tiles.b));  // HAZARD(rows_of_the_next): shared-memory race
  put(out, d);
}

// Own rows, but without the fence between the two proxies.
// launch own_rows_unseen: grid 1 block 128 args half[2048] float[512]=zero
extern "C" __global__ void own_rows_unseen(const half *in, float *out) {
  __shared__ Tiles tiles;
  half *own = tiles.a + threadIdx.x / 32 * 256;
  for (int i = threadIdx.x; i < sizeof tiles.b / 2; i += 128) tiles.b[i] = in[i];
  fence_async();
  __syncthreads();
  for (int i = threadIdx.x % 32; i < 256; i += 32) own[i] = in[i];  // OTHER(own_rows_unseen)
#ifdef REPAIRED
  fence_async();
  __syncthreads();
#else
  __syncwarp();
#endif
  float d[4] = {};
  multiply(d, describe(tiles.a), describe(tiles.b));  // HAZARD(own_rows_unseen): missing proxy fence
  put(out, d);
}
