// What PTX does not promise and kernels do all the same: harmless on the hardware (tests/rules), and its relatives, which are
// not.
#include "ptx.h"

// ---- a plain load as the first guess of a compare-and-swap ----

// The compare-and-swap compares the guess with what is there.
// launch guess: grid 2 block 64 args int[4]=one
extern "C" __global__ void guess(int *place) {
#ifdef REPAIRED
  int seen = *(volatile int *)place, expected;
#else
  int seen = *place, expected;                 // HAZARD(guess): formal global-memory race
#endif
  do {
    expected = seen;
    seen = atomicCAS(place, expected, expected * 3 + 1);  // OTHER(guess)
  } while (seen != expected);
}

// A sum of doubles, as in NVIDIA's programming guide, in shared memory. It returns the sum.
// launch guess_double: grid 1 block 64 args double[64] double[64]=zero
extern "C" __global__ void guess_double(const double *in, double *out) {
  __shared__ unsigned long long sum;
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
#ifdef REPAIRED
  unsigned long long seen = *(volatile unsigned long long *)&sum, expected;
#else
  unsigned long long seen = sum, expected;     // HAZARD(guess_double): formal shared-memory race
#endif
  double next;
  do {
    expected = seen;
    next = __longlong_as_double((long long)expected) + in[threadIdx.x];
    seen = atomicCAS(&sum, expected, (unsigned long long)__double_as_longlong(next));  // OTHER(guess_double)
  } while (seen != expected);
  out[threadIdx.x] = next >= in[threadIdx.x];
}

// Half a word. A guess that fails is loaded again.
// launch guess_half: grid 1 block 64 args int[4]=one
extern "C" __global__ void guess_half(unsigned *place) {
  unsigned expected, next, high = threadIdx.x % 2;
  do {
#ifdef REPAIRED
    expected = *(volatile unsigned *)place;
#else
    expected = *place;                         // HAZARD(guess_half): formal global-memory race
#endif
    unsigned short half = (unsigned short)((high ? expected >> 16 : expected) + 3);
    next = high ? (expected & 0xffff) | (unsigned)half << 16 : (expected & 0xffff0000) | half;
  } while (atomicCAS(place, expected, next) != expected);  // OTHER(guess_half)
}

// The first guess is stored, whether it was right or not.
// launch guess_stored: grid 1 block 64 args int[4]=one int[64]=zero
extern "C" __global__ void guess_stored(int *place, int *out) {
#ifdef REPAIRED
  int first = *(volatile int *)place, seen = first, expected;
#else
  int first = *place, seen = first, expected;  // HAZARD(guess_stored): global-memory race
#endif
  do {
    expected = seen;
    seen = atomicCAS(place, expected, expected + 1);  // OTHER(guess_stored)
  } while (seen != expected);
  out[threadIdx.x] = first > 0;
}

// The loop may end by the guess alone.
// launch guess_decides: grid 1 block 64 args int[4]=zero
extern "C" __global__ void guess_decides(int *place) {
#ifdef REPAIRED
  int seen = *(volatile int *)place;
#else
  int seen = *place;                           // HAZARD(guess_decides): global-memory race
#endif
  while (seen < (int)threadIdx.x) {
    int expected = seen;
    seen = atomicCAS(place, expected, (int)threadIdx.x);  // OTHER(guess_decides)
    if (seen == expected) break;
  }
}

// The compare-and-swap is on another place.
// launch guess_elsewhere: grid 1 block 64 args int[4]=one
extern "C" __global__ void guess_elsewhere(int *places) {
#ifdef REPAIRED
  int seen = *(volatile int *)&places[0], expected;
#else
  int seen = places[0], expected;              // HAZARD(guess_elsewhere): global-memory race
#endif
  do {
    expected = seen;
    seen = atomicCAS(&places[1], expected, expected + 1);
  } while (seen != expected);
  atomicAdd(&places[0], 1);  // OTHER(guess_elsewhere)
}

// Nobody compares the result.
// launch guess_unchecked: grid 1 block 64 args int[4]=one int[64]=zero
extern "C" __global__ void guess_unchecked(int *place, int *out) {
#ifdef REPAIRED
  int expected = *(volatile int *)place;
#else
  int expected = *place;                       // HAZARD(guess_unchecked): global-memory race
#endif
  atomicCAS(place, expected, 1);  // OTHER(guess_unchecked)
  out[threadIdx.x] = expected > 0;
}

// ---- equal values ----

// Two warps store the same.
// launch equal_warps: grid 1 block 64 args float[32] float[32]=zero
extern "C" __global__ void equal_warps(const float *in, float *out) {
  __shared__ float tile[32];
  int lane = threadIdx.x % 32;
#ifdef REPAIRED
  if (threadIdx.x < 32)
#endif
    tile[lane] = in[lane];  // HAZARD(equal_warps): formal shared-memory race
  __syncthreads();
  if (threadIdx.x < 32) out[lane] = tile[31 - lane];
}

// So do two blocks, in global memory.
// launch equal_blocks: grid 2 block 32 args float[32] float[32]=zero
extern "C" __global__ void equal_blocks(const float *in, float *out) {
#ifdef REPAIRED
  if (blockIdx.x == 0)
#endif
    out[threadIdx.x] = in[threadIdx.x];  // HAZARD(equal_blocks): formal global-memory race
}

// One of them stores another value.
// launch unequal_warps: grid 1 block 64 args float[64] float[32]=zero
extern "C" __global__ void unequal_warps(const float *in, float *out) {
  __shared__ float tile[32];
  int lane = threadIdx.x % 32;
#ifdef REPAIRED
  if (threadIdx.x < 32)
#endif
    tile[lane] = in[threadIdx.x];  // HAZARD(unequal_warps): shared-memory race
  __syncthreads();
  if (threadIdx.x < 32) out[lane] = tile[31 - lane];
}

// ---- the lanes of a warp, in the order of the program ----

// All lanes execute the ldmatrix before any of them stores again, and before it all have stored.
// launch matrices_in_order: grid 1 block 32 args int[32] int[32]=zero
extern "C" __global__ void matrices_in_order(const unsigned *in, unsigned *out) {
  __shared__ alignas(16) unsigned tile[32];
  unsigned lane = threadIdx.x, sum = 0;
  for (unsigned round = 0; round < 4; round++) {
    tile[31 - lane] = in[lane] + round;  // OTHER(matrices_in_order), ALSO(matrices_in_order): formal shared-memory race
#ifdef REPAIRED
    __syncwarp();
#endif
    sum += load_matrix(&tile[lane % 8 * 4]);  // HAZARD(matrices_in_order): formal shared-memory race
#ifdef REPAIRED
    __syncwarp();
#endif
  }
  out[lane] = sum;
}

// A copy into rows that other lanes have read by ldmatrix.
// launch matrices_then_copy: grid 1 block 32 args int[128] int[32]=zero
extern "C" __global__ void matrices_then_copy(const unsigned *in, unsigned *out) {
  __shared__ alignas(16) unsigned tile[32];
  unsigned lane = threadIdx.x;
  tile[lane] = in[lane];
  __syncwarp();
  unsigned first = load_matrix(&tile[lane % 8 * 4]);  // HAZARD(matrices_then_copy): formal shared-memory race
#ifdef REPAIRED
  __syncwarp();
#endif
  if (lane >= 24) cp_async(&tile[(lane - 24) * 4], &in[lane * 4]);  // OTHER(matrices_then_copy)
  cp_async_commit();
  cp_async_wait<0>();
  __syncwarp();
  out[lane] = first + load_matrix(&tile[lane % 8 * 4]);
}

// Plain loads: ptxas may put a load before a store of another place, and each lane has other places.
// launch loads_in_order: grid 1 block 32 args int[32] int[32]=zero
extern "C" __global__ void loads_in_order(const unsigned *in, unsigned *out) {
  __shared__ unsigned tile[32];
  unsigned lane = threadIdx.x;
  tile[lane] = in[lane];  // OTHER(loads_in_order)
#ifdef REPAIRED
  __syncwarp();
#endif
  out[lane] = tile[31 - lane];  // HAZARD(loads_in_order): shared-memory race
}

// The store is another warp's.
// launch matrices_of_two_warps: grid 1 block 64 args int[64] int[64]=zero
extern "C" __global__ void matrices_of_two_warps(const unsigned *in, unsigned *out) {
  __shared__ alignas(16) unsigned tile[32];
  unsigned t = threadIdx.x;
  if (t < 32) tile[t] = in[t];
  __syncthreads();
  unsigned part = t < 32 ? load_matrix(&tile[t % 8 * 4]) : 0;  // HAZARD(matrices_of_two_warps): shared-memory race
#ifdef REPAIRED
  __syncthreads();
#endif
  if (t >= 32) tile[t - 32] = in[t];  // OTHER(matrices_of_two_warps)
  __syncthreads();
  out[t] = part + tile[t % 32];
}

// ---- proxy fences ----

// The fence stands behind the barrier, in the thread that stores: that is enough.
// launch fence_behind: grid 1 block 64 args float[64] float[64]=zero
extern "C" __global__ void fence_behind(const float *in, float *out) {
  __shared__ alignas(16) float tile[64];
  tile[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  if (threadIdx.x == 0) {
    fence_async();
    bulk_store(out, tile, sizeof tile);
    bulk_commit();
    bulk_wait<0>();
  }
}

// A warp stores, fences and exits; the others meet at a barrier.
// launch fenced_and_left: grid 1 block 64 args float[32] float[32]=zero
extern "C" __global__ void fenced_and_left(const float *in, float *out) {
  __shared__ alignas(16) float tile[32];
  int t = threadIdx.x;
  if (t >= 32) {
    tile[t - 32] = in[t - 32];  // OTHER(fenced_and_left)
    fence_async();
#ifndef REPAIRED
    return;
#endif
  }
  __syncthreads();
  if (t == 0) {
    bulk_store(out, tile, sizeof tile);  // HAZARD(fenced_and_left): formal shared-memory race
    bulk_commit();
    bulk_wait<0>();
  }
}

// The fence behind the barrier serves those that have exited, too.
// launch left_and_fenced: grid 1 block 64 args float[32] float[32]=zero
extern "C" __global__ void left_and_fenced(const float *in, float *out) {
  __shared__ alignas(16) float tile[32];
  int t = threadIdx.x;
  if (t >= 32) {
    tile[t - 32] = in[t - 32];  // OTHER(left_and_fenced)
#ifndef REPAIRED
    return;
#endif
  }
  __syncthreads();
  if (t == 0) {
    fence_async();
    bulk_store(out, tile, sizeof tile);  // HAZARD(left_and_fenced): formal shared-memory race
    bulk_commit();
    bulk_wait<0>();
  }
}

// Nobody fences.
// launch left_unfenced: grid 1 block 64 args float[32] float[32]=zero
extern "C" __global__ void left_unfenced(const float *in, float *out) {
  __shared__ alignas(16) float tile[32];
  int t = threadIdx.x;
  if (t >= 32) {
    tile[t - 32] = in[t - 32];  // OTHER(left_unfenced)
#ifdef REPAIRED
    fence_async();
#else
    return;
#endif
  }
  __syncthreads();
  if (t == 0) {
    bulk_store(out, tile, sizeof tile);  // HAZARD(left_unfenced): shared-memory race
    bulk_commit();
    bulk_wait<0>();
  }
}

// ---- B by the warps of the warpgroup ----

// Each warp writes a part of B, and the product begins when all four are there. A has been written before.
// launch parts_of_b: grid 1 block 128 args half[1152] float[512]=zero
extern "C" __global__ void parts_of_b(const half *in, float *out) {
  __shared__ Tiles tiles;
  int t = threadIdx.x;
  ((uint4 *)tiles.a)[t] = ((const uint4 *)in)[t];
  fence_async();
  __syncthreads();
  if (t % 32 < 4) {
    int i = t / 32 * 4 + t % 32;
    ((uint4 *)tiles.b)[i] = ((const uint4 *)in)[128 + i];  // OTHER(parts_of_b)
    fence_async();
  }
#ifdef REPAIRED
  __syncthreads();
#else
  __syncwarp();
#endif
  float d[4] = {};
  multiply(d, describe(tiles.a), describe(tiles.b));  // HAZARD(parts_of_b): formal shared-memory race
  put(out, d);
}

// The fence is missing as well.
// launch parts_of_b_unfenced: grid 1 block 128 args half[1152] float[512]=zero
extern "C" __global__ void parts_of_b_unfenced(const half *in, float *out) {
  __shared__ Tiles tiles;
  int t = threadIdx.x;
  ((uint4 *)tiles.a)[t] = ((const uint4 *)in)[t];
  fence_async();
  __syncthreads();
  if (t % 32 < 4) {
    int i = t / 32 * 4 + t % 32;
    ((uint4 *)tiles.b)[i] = ((const uint4 *)in)[128 + i];  // OTHER(parts_of_b_unfenced)
  }
#ifdef REPAIRED
  fence_async();
  __syncthreads();
#else
  __syncwarp();
#endif
  float d[4] = {};
  multiply(d, describe(tiles.a), describe(tiles.b));  // HAZARD(parts_of_b_unfenced): missing proxy fence
  put(out, d);
}

// A fifth warp writes a part.
// launch part_of_fifth_warp: grid 1 block 160 args half[1152] float[512]=zero
extern "C" __global__ void part_of_fifth_warp(const half *in, float *out) {
  __shared__ Tiles tiles;
  int t = threadIdx.x;
  if (t < 128) ((uint4 *)tiles.a)[t] = ((const uint4 *)in)[t];
  if (t < 16) ((uint4 *)tiles.b)[t] = make_uint4(0, 0, 0, 0);
  fence_async();
  __syncthreads();
  if (t >= 128 && t < 144) {
    ((uint4 *)tiles.b)[t - 128] = ((const uint4 *)in)[t];  // OTHER(part_of_fifth_warp)
    fence_async();
  }
#ifdef REPAIRED
  __syncthreads();
#endif
  if (t >= 128) return;
  float d[4] = {};
  multiply(d, describe(tiles.a), describe(tiles.b));  // HAZARD(part_of_fifth_warp): shared-memory race
  put(out, d);
}

// ---- one store by all lanes ----

// launch store_by_all_lanes: grid 1 block 32 args float[32] float[32]=zero
extern "C" __global__ void store_by_all_lanes(const float *in, float *out) {
  __shared__ alignas(16) float tile[32];
  tile[threadIdx.x] = in[threadIdx.x];
  fence_async();
  __syncthreads();
#ifdef REPAIRED
  if (threadIdx.x == 0)
#endif
    bulk_store(out, tile, sizeof tile);  // HAZARD(store_by_all_lanes): formal global-memory race
  bulk_commit();
  bulk_wait<0>();
}

// Each lane has a source of its own.
// launch stores_by_all_lanes: grid 1 block 32 args float[256] float[4]=zero
extern "C" __global__ void stores_by_all_lanes(const float *in, float *out) {
  __shared__ alignas(16) float tile[128];
  for (int i = threadIdx.x; i < 128; i += 32) tile[i] = in[i];
  fence_async();
  __syncthreads();
#ifdef REPAIRED
  if (threadIdx.x == 0)
#endif
    bulk_store(out, &tile[threadIdx.x * 4], 16);  // HAZARD(stores_by_all_lanes): global-memory race
  bulk_commit();
  bulk_wait<0>();
}
