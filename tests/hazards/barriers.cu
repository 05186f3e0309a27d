// Named barriers whose users do not agree, or ask for what there is not.
#include "kernels.h"

// The count is of threads, not of warps.
// launch warps_for_threads: grid 1 block 64 args float[64] float[64]=zero
extern "C" __global__ void warps_for_threads(const float *in, float *out) {
  __shared__ float tile[64];
  int t = threadIdx.x;
  tile[t] = in[t];
#ifdef REPAIRED
  int count = blockDim.x;
#else
  int count = blockDim.x / 32;
#endif
  barrier_sync(1, count);  // HAZARD(warps_for_threads): barrier misuse
  out[t] = tile[63 - t];
}

// A barrier counts whole warps: 48 threads are none.
// launch one_and_a_half: grid 1 block 64 args float[64] float[64]=zero 48
extern "C" __global__ void one_and_a_half(const float *in, float *out, int users) {
  __shared__ float tile[64];
  int t = threadIdx.x;
  tile[t] = in[t];
#ifdef REPAIRED
  users = (users + 31) / 32 * 32;
#endif
  barrier_sync(1, users);  // HAZARD(one_and_a_half): barrier misuse
  out[t] = tile[63 - t];
}

// Two warps meet at a barrier, one for 64 threads and one for 96.
// launch two_counts: grid 1 block 64 args float[64] float[64]=zero
extern "C" __global__ void two_counts(const float *in, float *out) {
  __shared__ float tile[64];
  int t = threadIdx.x;
  tile[t] = in[t];
#ifdef REPAIRED
  int count = 64;
#else
  int count = t < 32 ? 64 : 96;
#endif
  barrier_sync(1, count);  // HAZARD(two_counts): barrier misuse
  out[t] = tile[63 - t];
}

// Barriers are numbered from 0 to 15: the second group takes the one after the last.
// launch sixteenth: grid 1 block 128 args float[128] float[128]=zero 15
extern "C" __global__ void sixteenth(const float *in, float *out, int first) {
  __shared__ float tile[128];
  int t = threadIdx.x, group = t / 64;
  tile[t] = in[t];
#ifdef REPAIRED
  barrier_sync(first - group, 64);
#else
  barrier_sync(first + group, 64);  // HAZARD(sixteenth): barrier misuse
#endif
  out[t] = tile[t ^ 63];
}

// Barrier 0 is the one of __syncthreads, which here the other half of the block is waiting at.
// launch barrier_zero: grid 1 block 128 args float[128] float[128]=zero
extern "C" __global__ void barrier_zero(const float *in, float *out) {
  __shared__ float tile[128];
  int t = threadIdx.x;
  tile[t] = in[t];
#ifdef REPAIRED
  int number = 1;
#else
  int number = 0;
#endif
  if (t < 64) {
    barrier_sync(number, 64);  // HAZARD(barrier_zero): barrier misuse
    out[t] = tile[t ^ 63];
  }
  __syncthreads();  // OTHER(barrier_zero)
  if (t >= 64) out[t] = tile[127 - t];
}

// The producer does not wait for the consumer, and says twice that the buffer is full: the barrier may take that for both.
// launch full_twice: grid 1 block 64 args float[128] float[32]=zero 4
extern "C" __global__ void full_twice(const float *in, float *out, int rounds) {
  enum { FULL = 1, EMPTY = 2 };
  __shared__ float buffer[2][32];
  int lane = threadIdx.x % 32;
  if (threadIdx.x < 32) {
    for (int k = 0; k < rounds; k++) {
      buffer[k % 2][lane] = in[32 * k + lane];  // ALSO(full_twice): shared-memory race
      barrier_arrive(FULL, 64);  // HAZARD(full_twice): barrier misuse
#ifdef REPAIRED
      barrier_sync(EMPTY, 64);
#endif
    }
  } else {
    float sum = 0;
    for (int k = 0; k < rounds; k++) {
      barrier_sync(FULL, 64);  // ALSO(full_twice): barrier misuse, ALSO(full_twice): deadlock
      sum += buffer[k % 2][31 - lane];  // ALSO(full_twice): shared-memory race
#ifdef REPAIRED
      barrier_arrive(EMPTY, 64);
#endif
    }
    out[lane] = sum;
  }
}

// Three warps sync at a barrier for two: which of them is left over?
// launch third_warp: grid 1 block 96 args float[96] float[96]=zero
extern "C" __global__ void third_warp(const float *in, float *out) {
#ifdef REPAIRED
  if (threadIdx.x < 64)
#endif
    barrier_sync(1, 64);  // HAZARD(third_warp): barrier misuse, ALSO(third_warp): deadlock
  out[threadIdx.x] = in[threadIdx.x];
}

// The number of the barrier differs between the lanes of a warp.
// launch barrier_of_lane: grid 1 block 64 args float[64] float[64]=zero
extern "C" __global__ void barrier_of_lane(const float *in, float *out) {
  __shared__ float tile[64];
  int t = threadIdx.x;
  tile[t] = in[t];
#ifdef REPAIRED
  int number = 1;
#else
  int number = 1 + t % 2;
#endif
  barrier_sync(number, 64);  // HAZARD(barrier_of_lane): barrier misuse
  out[t] = tile[63 - t];
}

// Some warps vote at the barrier, others only wait there.
// launch vote_and_wait: grid 1 block 64 args int[64] int[64]=zero
extern "C" __global__ void vote_and_wait(const int *in, int *out) {
  int t = threadIdx.x, votes = 0;
#ifdef REPAIRED
  votes = __syncthreads_count(in[t] % 2);
#else
  if (t < 32) votes = __syncthreads_count(in[t] % 2);  // HAZARD(vote_and_wait): barrier misuse
  else __syncthreads();  // OTHER(vote_and_wait)
#endif
  out[t] = votes + 1;
}

// Half a warp arrives alone, without .aligned, and then a whole one: 48 threads for 32.
// launch half_a_warp_more: grid 1 block 64 args float[64] float[64]=zero
extern "C" __global__ void half_a_warp_more(const float *in, float *out) {
#ifdef REPAIRED
  int first = 32;
#else
  int first = 16;
#endif
  if (threadIdx.x < first) asm volatile("barrier.arrive 1, 32;" : : : "memory");
  __syncthreads();
  if (threadIdx.x >= 32) barrier_arrive(1, 32);  // HAZARD(half_a_warp_more): barrier misuse
  out[threadIdx.x] = in[threadIdx.x];
}

// A warp arrives, and then waits at the same barrier: three arrivals of warps at a barrier of two.
// launch arrives_and_waits: grid 1 block 64 args float[64] float[64]=zero
extern "C" __global__ void arrives_and_waits(const float *in, float *out) {
  __shared__ float tile[64];
  int t = threadIdx.x;
#ifdef REPAIRED
  int second = 2;
#else
  int second = 1;
#endif
  tile[t] = in[t];  // ALSO(arrives_and_waits): shared-memory race
  if (t < 32) {
    barrier_arrive(1, 64);
    barrier_sync(second, 64);  // HAZARD(arrives_and_waits): barrier misuse, ALSO(arrives_and_waits): deadlock
    out[t] = tile[t + 32];
  } else {
    barrier_sync(1, 64);  // ALSO(arrives_and_waits): barrier misuse
#ifdef REPAIRED
    barrier_arrive(2, 64);
#endif
    out[t] = tile[t - 32];  // ALSO(arrives_and_waits): uninitialised read
  }
}

// A consumer without work only arrives, so that it may arrive for the next tile before the producer has come for this one.
// launch laps: grid 1 block 64 args float[128] float[128]=zero 4
extern "C" __global__ void laps(const float *in, float *out, int tiles) {
  enum { DONE = 1 };
  int lane = threadIdx.x % 32;
  for (int k = 0; k < tiles; k++) {
    if (threadIdx.x < 32) {
      out[32 * k + lane] = in[32 * k + lane];
#ifdef REPAIRED
      barrier_sync(DONE, 64);
#else
      barrier_arrive(DONE, 64);  // HAZARD(laps): barrier misuse
#endif
    } else {
      barrier_sync(DONE, 64);  // ALSO(laps): barrier misuse, ALSO(laps): deadlock
    }
  }
}

// Three warps bring their parts to a fourth one, and the count is still that of one.
// launch count_of_one: grid 1 block 128 args float[96] float[32]=zero
extern "C" __global__ void count_of_one(const float *in, float *out) {
  __shared__ float parts[96];
#ifdef REPAIRED
  enum { USERS = 128 };
#else
  enum { USERS = 64 };
#endif
  int t = threadIdx.x, lane = t % 32;
  if (t < 96) {
    parts[t] = in[t];  // ALSO(count_of_one): shared-memory race
    barrier_arrive(1, USERS);  // HAZARD(count_of_one): barrier misuse
  } else {
    barrier_sync(1, USERS);  // ALSO(count_of_one): barrier misuse, ALSO(count_of_one): deadlock
    out[lane] = parts[lane] + parts[32 + lane] + parts[64 + lane];  // ALSO(count_of_one): shared-memory race, ALSO(count_of_one): uninitialised read
  }
}

// Two pairs of warps, each of which meets at a barrier, and both took the same number.
// launch one_number: grid 1 block 128 args float[128] float[128]=zero
extern "C" __global__ void one_number(const float *in, float *out) {
  __shared__ float tile[128];
  int t = threadIdx.x;
#ifdef REPAIRED
  int number = 1 + t / 64;
#else
  int number = 1;
#endif
  tile[t] = in[t];  // ALSO(one_number): shared-memory race
  barrier_sync(number, 64);  // HAZARD(one_number): barrier misuse
  out[t] = tile[t ^ 63];  // ALSO(one_number): shared-memory race, ALSO(one_number): uninitialised read
}

// Two of the four warps execute one __syncthreads more: from then on all meet at the wrong ones.
// launch one_sync_more: grid 1 block 128 args float[256] float[128]=zero 2
extern "C" __global__ void one_sync_more(const float *in, float *out, int tiles) {
  __shared__ float tile[128], half[64];
  int t = threadIdx.x;
  float sum = 0;
  for (int k = 0; k < tiles; k++) {
    tile[t] = in[128 * k + t];  // ALSO(one_sync_more): shared-memory race
    __syncthreads();
    float x = tile[127 - t];  // HAZARD(one_sync_more): shared-memory race, ALSO(one_sync_more): uninitialised read
    if (t < 64) {
      half[t] = x;
#ifndef REPAIRED
      __syncthreads();  // HAZARD(one_sync_more): note barrier misuse
#endif
    }
#ifdef REPAIRED
    __syncthreads();
#endif
    sum += t < 64 ? half[63 - t] : x;
    __syncthreads();
  }
  out[t] = sum;
}

// Both branches have a __syncthreads, and each warp takes one of them: nothing is wrong, and nothing is said.
// launch sync_in_both: grid 1 block 128 args float[128] float[128]=zero
extern "C" __global__ void sync_in_both(const float *in, float *out) {
  __shared__ float first[4];
  int t = threadIdx.x, warp = t / 32;
  if (warp % 2 == 0) {
    if (t % 32 == 0) first[warp] = in[t];
    __syncthreads();
  } else {
    __syncthreads();
  }
  out[t] = in[t] + first[warp / 2 * 2];
}
