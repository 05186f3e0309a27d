// Kernels that look faulty and are not.
#include "kernels.h"

// Threads write neighbouring bytes: these are different places, though of one word.
// launch byte_neighbours: grid 1 block 128 args int[128] byte[128]=zero
extern "C" __global__ void byte_neighbours(const int *in, unsigned char *out) {
  __shared__ unsigned char bytes[128];
  int t = threadIdx.x;
  bytes[t] = in[t] * 3;
  out[t] = bytes[t] + 1;
}

// Lanes of one instruction may write one place, if they write the same value.
// launch same_value: grid 1 block 32 args int[32] int[1]=zero
extern "C" __global__ void same_value(const int *in, int *out) {
  __shared__ int found;
  if (threadIdx.x == 0) found = 0;
  __syncwarp();
  if (in[threadIdx.x] > 10) found = 1;
  __syncwarp();
  if (threadIdx.x == 31) *out = found;
}

// A barrier waits for the threads that have not exited.
// launch early_return: grid 2 block 128 args float[200] float[200]=zero 200
extern "C" __global__ void early_return(const float *in, float *out, int n) {
  __shared__ float tile[128];
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  if (i >= n) return;
  tile[t] = in[i];
  __syncthreads();
  out[i] = tile[t / 2] + tile[0];
}

// Whole warps may take different ways, as long as they meet at the barrier.
// launch warp_roles: grid 1 block 96 args float[96] float[96]=zero
extern "C" __global__ void warp_roles(const float *in, float *out) {
  __shared__ float tile[96];
  int t = threadIdx.x;
  if (t < 32) {
    tile[t] = in[t];
    __syncthreads();
  } else if (t < 64) {
    tile[t] = in[t] * in[t];
    __syncthreads();
  } else {
    tile[t] = -in[t];
    __syncthreads();
  }
  out[t] = tile[95 - t];
}

// A shuffle of half a warp, with the mask that says so.
// launch half_warp: grid 1 block 32 args int[32] int[2]=zero
extern "C" __global__ void half_warp(const int *in, int *out) {
  int x = in[threadIdx.x];
  if (threadIdx.x < 16) {
    for (int d = 8; d > 0; d /= 2) x += __shfl_down_sync(0x0000ffff, x, d);
  } else {
    for (int d = 8; d > 0; d /= 2) x = max(x, __shfl_xor_sync(0xffff0000, x, d));
  }
  if (threadIdx.x % 16 == 0) out[threadIdx.x / 16] = x;
}

// Two warps take turns at named barriers. The one that begins arrives at its own barrier first, in the other's place.
// launch first_turn: grid 1 block 64 args int[128] int[64]=zero 4
extern "C" __global__ void first_turn(const int *in, int *out, int rounds) {
  __shared__ int tile[32];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32, sum = 0;
  if (warp == 0) barrier_arrive(1, 64);
  for (int k = 0; k < rounds; k++) {
    barrier_sync(1 + warp, 64);
    tile[lane] = in[32 * k + lane] + warp;
    __syncwarp();
    sum += tile[31 - lane];
    __syncwarp();
    if (warp == 0 || k + 1 < rounds) barrier_arrive(2 - warp, 64);
  }
  out[threadIdx.x] = sum;
}

// A warp arrives twice at a barrier of three warps, where only one other comes.
// launch arrives_for_two: grid 1 block 64 args int[32] int[64]=zero
extern "C" __global__ void arrives_for_two(const int *in, int *out) {
  __shared__ int tile[32];
  int lane = threadIdx.x % 32;
  if (threadIdx.x < 32) {
    tile[lane] = in[lane];
    barrier_arrive(1, 96);
    barrier_arrive(1, 96);
  } else {
    barrier_sync(1, 96);
    out[threadIdx.x] = tile[31 - lane];
  }
}

// Each warp synchronises with itself, and all use one barrier.
// launch barrier_of_one_warp: grid 1 block 128 args int[128] int[128]=zero
extern "C" __global__ void barrier_of_one_warp(const int *in, int *out) {
  __shared__ int tile[128];
  tile[threadIdx.x] = in[threadIdx.x];
  barrier_sync(1, 32);
  out[threadIdx.x] = tile[threadIdx.x ^ 31];
}

// Lanes that are of no use leave, and some of them late: the others vote and reduce without them.
// launch leave_late: grid 1 block 32 args int[32] int[32]=zero 20
extern "C" __global__ void leave_late(const int *in, int *out, int n) {
  int t = threadIdx.x, x = in[t];
  if (t >= n) {
    out[t] = -x;
    return;
  }
  out[t] = __reduce_add_sync(0xffffffff, x) + __popc(__ballot_sync(0xffffffff, x % 2));
}

// The mask of those who come is voted first.
// launch tail_mask: grid 1 block 64 args int[50] int[2]=zero 50
extern "C" __global__ void tail_mask(const int *in, int *out, int n) {
  int t = threadIdx.x;
  unsigned mask = __ballot_sync(0xffffffff, t < n);
  if (t >= n) return;
  int sum = __reduce_add_sync(mask, in[t]);
  if (t % 32 == 0) out[t / 32] = sum;
}

// Two buffers and one barrier a round, which is enough: who fills a buffer has passed the barrier behind its last use.
// launch two_buffers: grid 1 block 128 args float[512] float[128]=zero 4
extern "C" __global__ void two_buffers(const float *in, float *out, int rounds) {
  __shared__ float buffer[2][128];
  int t = threadIdx.x;
  float sum = 0;
  for (int k = 0; k < rounds; k++) {
    buffer[k & 1][t] = in[128 * k + t];
    __syncthreads();
    sum += buffer[k & 1][127 - t];
  }
  out[t] = sum;
}

// A ring of two buffers between producer and consumer warps, on named barriers.
// launch ring: grid 1 block 128 args float[384] float[64]=zero 6
extern "C" __global__ void ring(const float *in, float *out, int rounds) {
  __shared__ float buffer[2][64];
  int t = threadIdx.x % 64;
  if (threadIdx.x < 64) {
    for (int k = 0; k < rounds; k++) {
      if (k >= 2) barrier_sync(3 + k % 2, 128);  // empty
      buffer[k % 2][t] = in[64 * k + t];
      barrier_arrive(1 + k % 2, 128);  // full
    }
  } else {
    float sum = 0;
    for (int k = 0; k < rounds; k++) {
      barrier_sync(1 + k % 2, 128);
      sum = sum / 2 + buffer[k % 2][63 - t];
      if (k + 2 < rounds) barrier_arrive(3 + k % 2, 128);
    }
    out[t] = sum;
  }
}

// Groups of two warps take turns: each waits at its own barrier until all others have let it go.
__device__ void take_turns(int groups, int rounds, int *sequence, int *out) {
  int group = threadIdx.x / 64;
  for (int other = 0; other < group; other++) barrier_arrive(1 + other, 64 * groups);
  for (int k = 0; k < rounds; k++) {
    barrier_sync(1 + group, 64 * groups);
    if (threadIdx.x % 64 == 0) {
      out[k * groups + group] = *sequence;
      *sequence = 3 * *sequence + group;
    }
    for (int i = 1; i < groups; i++) {
      int other = (group + i) % groups;
      if (other > group || k < rounds - 1) barrier_arrive(1 + other, 64 * groups);
    }
  }
}

// launch two_turns: grid 1 block 128 args int[1] int[8]=zero
extern "C" __global__ void two_turns(int *sequence, int *out) { take_turns(2, 4, sequence, out); }

// launch three_turns: grid 1 block 192 args int[1] int[9]=zero
extern "C" __global__ void three_turns(int *sequence, int *out) { take_turns(3, 3, sequence, out); }

// All threads write and fence, and after a barrier one of them raises the flag for all.
// launch fence_then_barrier: grid 2 block 64 args int[64]=zero int[1]=zero int[64]=zero
extern "C" __global__ void fence_then_barrier(int *data, volatile int *flag, int *out) {
  int t = threadIdx.x;
  if (blockIdx.x == 0) {
    data[t] = 5 * t;
    __threadfence();
    __syncthreads();
    if (t == 0) *flag = 1;
  } else {
    if (t == 0) {
      while (*flag == 0) {}
      __threadfence();
    }
    __syncthreads();
    out[t] = data[63 - t];
  }
}

// The fence may also stand behind the barrier, in the one thread alone: it covers what that thread has learnt.
// launch barrier_then_fence: grid 2 block 64 args int[64]=zero int[1]=zero int[64]=zero
extern "C" __global__ void barrier_then_fence(int *data, volatile int *flag, int *out) {
  int t = threadIdx.x;
  if (blockIdx.x == 0) {
    data[t] = 5 * t;
    __syncthreads();
    if (t == 0) {
      __threadfence();
      *flag = 1;
    }
  } else {
    while (*flag == 0) {}
    __threadfence();
    out[t] = data[63 - t];
  }
}

// Relaxed atomics that many threads read and change at once do not race.
// launch strong: grid 2 block 64 args int[2]=zero int[128]=zero
extern "C" __global__ void strong(int *counters, int *out) {
  int i = blockIdx.x * 64 + threadIdx.x;
  atomicAdd(&counters[i % 2], 1);
  int seen = *(volatile int *)&counters[i % 2];
  out[i] = seen >= 1 && seen <= 64;
}

// The last block adds up the sums of all, as the CUDA programming guide shows it: the sums are volatile, so no access of
// theirs races, and the fence puts each sum before its block's count.
// launch last_block_volatile: grid 8 block 32 args int[256] int[8]=zero int[1]=zero int[1]=zero
extern "C" __global__ void last_block_volatile(const int *in, volatile int *sums, unsigned *finished, int *out) {
  __shared__ bool last;
  int t = threadIdx.x, sum = __reduce_add_sync(0xffffffff, in[32 * blockIdx.x + t]);
  if (t == 0) {
    sums[blockIdx.x] = sum;
    __threadfence();
    last = atomicInc(finished, gridDim.x) == gridDim.x - 1;
  }
  __syncthreads();
  if (!last) return;
  int total = 0;
  for (int i = 0; i < gridDim.x; i++) total += sums[i];
  if (t == 0) *out = total;
}

// Shared memory that is used as two different arrays, one after the other.
// launch reuse: grid 1 block 64 shared 512 args float[64] float[64]=zero
extern "C" __global__ void reuse(const float *in, float *out) {
  extern __shared__ double storage[];
  float *tile = (float *)storage;
  int t = threadIdx.x;
  tile[t] = in[t];
  __syncthreads();
  float x = tile[63 - t];
  __syncthreads();
  storage[t] = 2.0 * x;
  __syncthreads();
  out[t] = (float)storage[63 - t];
}

// Lanes that took different ways wait for each other with the masks of those that did.
// launch branch_masks: grid 1 block 32 args float[32] float[32]=zero
extern "C" __global__ void branch_masks(const float *in, float *out) {
  __shared__ float tile[32];
  int lane = threadIdx.x;
  unsigned even = 0x55555555;
  if (lane % 2 == 0) {
    tile[lane] = in[lane];
    __syncwarp(even);
    out[lane] = tile[30 - lane];
  } else {
    tile[lane] = -in[lane];
    __syncwarp(~even);
    out[lane] = tile[32 - lane];
  }
}

// A lane counts for all lanes that want the same counter.
// launch aggregate: grid 2 block 64 args int[128] int[8]=zero int[128]=zero
extern "C" __global__ void aggregate(const int *in, int *counters, int *out) {
  int i = blockIdx.x * 64 + threadIdx.x, lane = threadIdx.x % 32, which = in[i] * in[i] % 8;
  unsigned peers = __match_any_sync(0xffffffff, which);
  if (lane == __ffs(peers) - 1) atomicAdd(&counters[which], __popc(peers));
  out[i] = __popc(peers);
}

// A thread that adds to two flags hands on at the second what its second fence has covered, too.
// launch two_fences: grid 1 block 64 args int[4]=zero int[2]=zero
extern "C" __global__ void two_fences(int *flags, int *out) {
  __shared__ int data[2];
  if (threadIdx.x == 0) {
    for (int i = 0; i < 2; i++) {
      data[i] = 10 + i;
      __threadfence();
      atomicAdd(&flags[i], 1);
    }
  }
  if (threadIdx.x == 32) {
    while (atomicAdd(&flags[1], 0) == 0) continue;
    __threadfence();
    out[0] = data[0];
    out[1] = data[1];
  }
}

// An addition continues what an earlier one has released at its flag, and not what another flag had.
// launch two_flags: grid 1 block 128 args int[4]=zero int[2]=zero
extern "C" __global__ void two_flags(int *flags, int *out) {
  __shared__ int data[2];
  int warp = threadIdx.x / 32;
  if (threadIdx.x % 32) return;
  if (warp < 2) {
    data[warp] = 10 + warp;
    __threadfence();
    atomicAdd(&flags[warp], 1);
  }
  if (warp == 2) {
    __threadfence();
    for (int i = 0; i < 2; i++)
      while (*(volatile int *)&flags[i] == 0) continue;
    for (int i = 0; i < 2; i++) atomicAdd(&flags[i], 1);
  }
  if (warp == 3) {
    while (atomicAdd(&flags[1], 0) < 2) continue;
    __threadfence();
    out[1] = data[1];
    while (atomicAdd(&flags[0], 0) < 2) continue;
    __threadfence();
    out[0] = data[0];
  }
}
