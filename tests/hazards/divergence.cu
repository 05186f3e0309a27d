// Instructions that all lanes of a warp must execute together, and do not.
#include "kernels.h"

// A barrier inside an if that only some lanes enter.
// launch sync_in_branch: grid 1 block 64 args float[64] float[64]=zero
extern "C" __global__ void sync_in_branch(const float *in, float *out) {
  __shared__ float tile[64];
  int t = threadIdx.x;
  float x = in[t];
  tile[t] = x;
#ifdef REPAIRED
  __syncthreads();
#endif
  if (t % 32 < 20) {
#ifndef REPAIRED
    __syncthreads();  // HAZARD(sync_in_branch): divergent .aligned instruction
#endif
    x += tile[t ^ 32];
  }
  __syncthreads();
  out[t] = x;
}

// A barrier in a loop that lanes leave after different numbers of rounds. An H200 goes on without those that have exited.
// launch sync_in_loop: grid 1 block 64 args int[64] int[64]=zero
extern "C" __global__ void sync_in_loop(const int *in, int *out) {
  __shared__ int tile[64];
  int t = threadIdx.x, sum = 0;
#ifdef REPAIRED
  for (int k = 0; k < 4; k++) {
#else
  for (int k = 0; k < in[t] % 4 + 1; k++) {
#endif
    tile[t] = in[t] + k;
    __syncthreads();  // HAZARD(sync_in_loop): formal divergent .aligned instruction
    if (k < in[t] % 4 + 1) sum += tile[t ^ 63];
    __syncthreads();  // ALSO(sync_in_loop): formal divergent .aligned instruction
  }
  out[t] = sum;
}

// Both sides of a branch have a barrier, but not the same one.
// launch two_barriers: grid 1 block 32 args float[32] float[32]=zero
extern "C" __global__ void two_barriers(const float *in, float *out) {
  int t = threadIdx.x;
  float x = in[t];
#ifdef REPAIRED
  barrier_sync(1, 32);
#else
  if (t < 16) {
    barrier_sync(1, 32);  // HAZARD(two_barriers): divergent .aligned instruction
    x = -x;
  } else {
    barrier_sync(1, 32);  // OTHER(two_barriers)
    x = x * x;
  }
#endif
  out[t] = x;
}

// One lane speaks for its warp. But a barrier is for whole warps: the others must come too.
// launch one_lane: grid 1 block 64 args float[96] float[32]=zero 3
extern "C" __global__ void one_lane(const float *in, float *out, int rounds) {
  enum { FULL = 1, EMPTY = 2 };
  __shared__ float buffer[32];
  int lane = threadIdx.x % 32;
  float sum = 0;
  for (int k = 0; k < rounds; k++) {
    if (threadIdx.x < 32) {
      buffer[lane] = in[32 * k + lane];
#ifndef REPAIRED
      if (lane == 0)
#endif
        barrier_arrive(FULL, 64);  // HAZARD(one_lane): divergent .aligned instruction
      barrier_sync(EMPTY, 64);  // ALSO(one_lane): divergent .aligned instruction
    } else {
      barrier_sync(FULL, 64);
      sum += buffer[31 - lane];
      barrier_arrive(EMPTY, 64);
    }
  }
  if (threadIdx.x >= 32) out[lane] = sum;
}

// The mask names all lanes, and half of them wait elsewhere.
// launch shuffle_in_branch: grid 1 block 32 args float[32] float[32]=zero
extern "C" __global__ void shuffle_in_branch(const float *in, float *out) {
  float x = in[threadIdx.x];
#ifdef REPAIRED
  float other = __shfl_down_sync(0xffffffff, x, 8);
  if (threadIdx.x < 16) x += other;
#else
  if (threadIdx.x < 16) x += __shfl_down_sync(0xffffffff, x, 8);  // HAZARD(shuffle_in_branch): divergent .aligned instruction
#endif
  __syncwarp();
  out[threadIdx.x] = x;
}

// The same when the others do not wait, but go on and exit: then the shuffle reads what is not there.
// launch shuffle_missed: grid 1 block 32 args float[32] float[32]=zero
extern "C" __global__ void shuffle_missed(const float *in, float *out) {
  float x = in[threadIdx.x];
#ifdef REPAIRED
  int step = 8;
#else
  int step = 16;
#endif
  if (threadIdx.x < 16) x += __shfl_xor_sync(0xffffffff, x, step);  // HAZARD(shuffle_missed): divergent .aligned instruction
  out[threadIdx.x] = x;
}

// Lanes of a warp leave early, and the others reduce with the mask of the whole warp: they read what is not there.
// launch shuffle_from_exited: grid 1 block 32 args float[32] float[32]=zero 20
extern "C" __global__ void shuffle_from_exited(const float *in, float *out, int count) {
  int t = threadIdx.x;
#ifdef REPAIRED
  float x = t < count ? in[t] : 0;
#else
  if (t >= count) return;
  float x = in[t];
#endif
  for (int step = 16; step > 0; step /= 2)
    x += __shfl_xor_sync(0xffffffff, x, step);  // HAZARD(shuffle_from_exited): divergent .aligned instruction
  out[t] = x;
}

// A block of a warp and a half: the other half does not exist.
// launch shuffle_from_nobody: grid 1 block 48 args float[48] float[48]=zero
extern "C" __global__ void shuffle_from_nobody(const float *in, float *out) {
  int t = threadIdx.x;
  unsigned mask = t < 32 ? 0xffffffff : 0x0000ffff;
  float other = __shfl_down_sync(mask, in[t], 16);  // HAZARD(shuffle_from_nobody): divergent .aligned instruction
#ifdef REPAIRED
  if (t + 16 >= 48) other = 0;
#endif
  out[t] = in[t] + other;
}

// The lanes 16 to 31 shuffle with a mask in which they are not.
// launch not_in_mask: grid 1 block 32 args float[32] float[32]=zero
extern "C" __global__ void not_in_mask(const float *in, float *out) {
#ifdef REPAIRED
  unsigned mask = 0xffffffff;
#else
  unsigned mask = 0x0000ffff;
#endif
  out[threadIdx.x] = __shfl_xor_sync(mask, in[threadIdx.x], 1);  // HAZARD(not_in_mask): divergent .aligned instruction
}

// A vote of all lanes in a loop that lanes leave one by one.
// launch vote_in_loop: grid 1 block 32 args int[32] int[32]=zero
extern "C" __global__ void vote_in_loop(const int *in, int *out) {
  int votes = 0;
#ifdef REPAIRED
  for (int k = 0; k < 31; k++)
#else
  for (int k = 0; k < in[threadIdx.x]; k++)
#endif
    votes += __popc(__ballot_sync(0xffffffff, in[threadIdx.x] > k));  // HAZARD(vote_in_loop): divergent .aligned instruction
  __syncwarp();
  out[threadIdx.x] = votes;
}

// __syncwarp in a branch, with the mask of the whole warp; the others have gone on to the block's barrier.
// launch syncwarp_in_branch: grid 1 block 64 args float[64] float[64]=zero
extern "C" __global__ void syncwarp_in_branch(const float *in, float *out) {
  __shared__ float tile[64];
  int t = threadIdx.x;
  tile[t] = in[t];
#ifdef REPAIRED
  __syncwarp();
#endif
  if (t % 32 < 16) {
#ifndef REPAIRED
    __syncwarp();  // HAZARD(syncwarp_in_branch): divergent .aligned instruction
#endif
    out[t] = tile[t ^ 1];
  }
  __syncthreads();  // ALSO(syncwarp_in_branch): divergent .aligned instruction
  if (t % 32 >= 16) out[t] = tile[t ^ 63];
}

// All lanes execute __syncwarp with the mask of the first sixteen. They go on all the same, in the other half each by itself.
// launch syncwarp_of_others: grid 1 block 32 args float[32] float[32]=zero
extern "C" __global__ void syncwarp_of_others(const float *in, float *out) {
  __shared__ float tile[32];
  int t = threadIdx.x;
  tile[t] = in[t];
#ifdef REPAIRED
  __syncwarp();
#else
  __syncwarp(0x0000ffff);  // HAZARD(syncwarp_of_others): divergent .aligned instruction
#endif
  out[t] = tile[t < 16 ? t ^ 1 : t];
}
