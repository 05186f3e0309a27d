// Lanes of one warp that meet in shared memory. They run together only until the compiler or the hardware decides
// otherwise: since Volta every thread has a program counter of its own.
#include "kernels.h"

// Lanes exchange values through memory, and nothing makes them wait.
// launch neighbour: grid 1 block 32 args float[32] float[32]=zero
extern "C" __global__ void neighbour(const float *in, float *out) {
  __shared__ float tile[32];
  int lane = threadIdx.x;
  tile[lane] = in[lane];  // OTHER(neighbour)
#ifdef REPAIRED
  __syncwarp();
#endif
  out[lane] = tile[lane ^ 1];  // HAZARD(neighbour): shared-memory race
}

// The last steps of a tree of sums, "warp-synchronous" as they were written before Volta.
// launch unrolled: grid 1 block 32 args float[64] float[1]=zero
extern "C" __global__ void unrolled(const float *in, float *out) {
  __shared__ float sums[64];
  int lane = threadIdx.x;
  sums[lane] = in[lane];
  sums[lane + 32] = in[lane + 32];
  __syncwarp();
  for (int d = 32; d > 0; d /= 2) {
    float sum = sums[lane] + sums[lane + d];  // OTHER(unrolled)
#ifdef REPAIRED
    __syncwarp();
#endif
    sums[lane] = sum;  // HAZARD(unrolled): shared-memory race
#ifdef REPAIRED
    __syncwarp();
#endif
  }
  if (lane == 0) *out = sums[0];
}

// __shfl_sync brings the lanes together, but orders no memory accesses.
// launch shuffle: grid 1 block 32 args float[32] float[32]=zero
extern "C" __global__ void shuffle(const float *in, float *out) {
  __shared__ float tile[32];
  int lane = threadIdx.x;
  tile[lane] = in[lane];  // OTHER(shuffle)
  float first = __shfl_sync(0xffffffff, in[lane] + 1, 0);
#ifdef REPAIRED
  __syncwarp();
#endif
  out[lane] = first * tile[31 - lane];  // HAZARD(shuffle): shared-memory race
}

// Nor does a vote.
// launch vote: grid 1 block 32 args float[32] float[32]=zero
extern "C" __global__ void vote(const float *in, float *out) {
  __shared__ float tile[32];
  int lane = threadIdx.x;
  tile[lane] = in[lane];  // OTHER(vote)
  bool all = __all_sync(0xffffffff, in[lane] >= 0);
#ifdef REPAIRED
  __syncwarp();
#endif
  out[lane] = all ? tile[31 - lane] : -1;  // HAZARD(vote): shared-memory race
}

// Each half of the warp waits for itself, and reads from the other.
// launch half_mask: grid 1 block 32 args float[32] float[32]=zero
extern "C" __global__ void half_mask(const float *in, float *out) {
  __shared__ float tile[32];
  int lane = threadIdx.x;
  tile[lane] = in[lane];  // OTHER(half_mask)
#ifdef REPAIRED
  __syncwarp();
#else
  __syncwarp(lane < 16 ? 0x0000ffff : 0xffff0000);
#endif
  out[lane] = tile[31 - lane];  // HAZARD(half_mask): shared-memory race
}

// Write after read inside a warp.
// launch rotate: grid 1 block 32 args float[32] float[32]=zero
extern "C" __global__ void rotate(const float *in, float *out) {
  __shared__ float tile[32];
  int lane = threadIdx.x;
  tile[lane] = in[lane];
  __syncwarp();
  float next = tile[(lane + 1) % 32];  // OTHER(rotate)
#ifdef REPAIRED
  __syncwarp();
#endif
  tile[lane] = 2 * next;  // HAZARD(rotate): shared-memory race
  __syncwarp();
  out[lane] = tile[31 - lane];
}

// Lanes of different branches: the if has ended, but that does not mean that both sides have.
// launch branches: grid 1 block 32 args float[32] float[32]=zero
extern "C" __global__ void branches(const float *in, float *out) {
  __shared__ float tile[32];
  int lane = threadIdx.x;
  if (lane < 16) tile[lane] = in[lane];  // OTHER(branches)
  else out[lane] = in[lane];
#ifdef REPAIRED
  __syncwarp();
#endif
  if (lane >= 16) out[lane] += tile[lane - 16];  // HAZARD(branches): shared-memory race
}

// Two lanes store the same value, which may be done in one store. But these are two: the second lane comes a round later.
// PTX calls it a race, which makes no difference.
// launch same_value_later: grid 1 block 32 args int[32] int[32]=zero
extern "C" __global__ void same_value_later(const int *in, int *out) {
  __shared__ int flag;
  unsigned address = (unsigned)__cvta_generic_to_shared(&flag);
  int lane = threadIdx.x;
#pragma unroll 1
  for (int round = 0; round < 2; round++) {
    if (lane == round)
      asm volatile("st.shared.u32 [%0], 5;" : : "r"(address) : "memory");  // HAZARD(same_value_later): formal shared-memory race
#ifdef REPAIRED
    __syncwarp();
#else
    __syncwarp(1u << lane);
#endif
  }
  __syncwarp();
  out[lane] = in[lane] + flag;
}
