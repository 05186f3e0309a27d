// Threads that wait for what never happens.
#include "kernels.h"

// The barrier expects four warps, and three come.
// launch missing_warp: grid 1 block 128 args float[128] float[128]=zero
extern "C" __global__ void missing_warp(const float *in, float *out) {
  __shared__ float tile[96];
  int t = threadIdx.x;
  if (t >= 96) return;
  tile[t] = in[t];
#ifdef REPAIRED
  barrier_sync(1, 96);
#else
  barrier_sync(1, 128);  // HAZARD(missing_warp): deadlock
#endif
  out[t] = tile[95 - t];
}

// The producer forgets to say that it is done.
// launch no_arrival: grid 1 block 64 args float[32] float[32]=zero
extern "C" __global__ void no_arrival(const float *in, float *out) {
  __shared__ float tile[32];
  int lane = threadIdx.x % 32;
  if (threadIdx.x < 32) {
    tile[lane] = in[lane];
#ifdef REPAIRED
    barrier_arrive(1, 64);
#endif
  } else {
    barrier_sync(1, 64);  // HAZARD(no_arrival): deadlock
    out[lane] = tile[31 - lane];
  }
}

// The consumer takes one round more than the producer gives, and the producer has gone.
// launch one_round_more: grid 1 block 64 args float[128] float[32]=zero 4
extern "C" __global__ void one_round_more(const float *in, float *out, int rounds) {
  enum { FULL = 1, EMPTY = 2 };
  __shared__ float buffer[32];
  int lane = threadIdx.x % 32;
  if (threadIdx.x < 32) {
    for (int k = 0; k < rounds; k++) {
      buffer[lane] = in[32 * k + lane];
      barrier_arrive(FULL, 64);
      barrier_sync(EMPTY, 64);
    }
  } else {
    float sum = 0;
#ifdef REPAIRED
    for (int k = 0; k < rounds; k++) {
#else
    for (int k = 0; k <= rounds; k++) {
#endif
      barrier_sync(FULL, 64);  // HAZARD(one_round_more): deadlock
      sum += buffer[31 - lane];
      barrier_arrive(EMPTY, 64);
    }
    out[lane] = sum;
  }
}

// Two warps wait at two barriers, each for the other, in opposite order.
// launch opposite_order: grid 1 block 64 args float[64] float[64]=zero
extern "C" __global__ void opposite_order(const float *in, float *out) {
#ifdef REPAIRED
  int first = 1;
#else
  int first = 1 + threadIdx.x / 32;
#endif
  barrier_sync(first, 64);  // HAZARD(opposite_order): deadlock
  barrier_sync(3 - first, 64);
  out[threadIdx.x] = in[threadIdx.x];
}

// The flag that is waited for is not the flag that is set.
// launch wrong_flag: grid 1 block 64 args int[2]=zero int[1]=zero
extern "C" __global__ void wrong_flag(volatile int *flags, int *out) {
  if (threadIdx.x == 0) {
#ifdef REPAIRED
    flags[1] = 1;
#else
    flags[0] = 1;
#endif
  } else if (threadIdx.x == 32) {
    while (flags[1] == 0) {}  // HAZARD(wrong_flag): deadlock
    *out = 1;
  }
}

// Each block waits for the other's flag before it sets its own.
// launch blocks: grid 2 block 1 args int[2]=zero int[2]=zero
extern "C" __global__ void blocks(volatile int *flags, int *out) {
  int self = blockIdx.x, other = 1 - self;
#ifdef REPAIRED
  flags[self] = 1;
#endif
  while (flags[other] == 0) {}  // HAZARD(blocks): deadlock
  flags[self] = 1;
  out[self] = self + 10;
}

// A barrier of the grid that waits for one block more than there are.
// launch grid_barrier: grid 4 block 32 args int[1]=zero int[4]=zero
extern "C" __global__ void grid_barrier(int *arrived, int *out) {
#ifdef REPAIRED
  int expected = gridDim.x;
#else
  int expected = gridDim.x + 1;
#endif
  if (threadIdx.x == 0) {
    atomicAdd(arrived, 1);
    while (*(volatile int *)arrived < expected) {}  // HAZARD(grid_barrier): deadlock
    out[blockIdx.x] = 1;
  }
}

// One way out of the critical section leaves the lock taken.
// launch lock_kept: grid 1 block 32 args int[1]=zero int[1]=zero int[32]
extern "C" __global__ void lock_kept(int *mutex, int *sum, const int *in) {
  while (atomicCAS(mutex, 0, 1)) {}  // HAZARD(lock_kept): deadlock
  __threadfence();
#ifndef REPAIRED
  if (in[threadIdx.x] > 20) return;
#endif
  *sum += in[threadIdx.x];
  __threadfence();
  atomicExch(mutex, 0);
}

// The holder of a lock waits at the barrier for threads that wait for the lock.
// launch lock_and_barrier: grid 1 block 64 args int[1]=zero int[64]=zero
extern "C" __global__ void lock_and_barrier(int *mutex, int *out) {
  __shared__ int total;
  bool leader = threadIdx.x % 32 == 0;
  if (threadIdx.x == 0) total = 0;
  __syncthreads();
  if (leader) {
    while (atomicCAS(mutex, 0, 1)) {}  // HAZARD(lock_and_barrier): deadlock
    __threadfence();
    total += threadIdx.x + 1;
    __threadfence();
#ifdef REPAIRED
    atomicExch(mutex, 0);
#endif
  }
  __syncthreads();
#ifndef REPAIRED
  if (leader) atomicExch(mutex, 0);
#endif
  out[threadIdx.x] = total;
}
