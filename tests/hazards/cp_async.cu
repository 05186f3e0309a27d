// cp.async: a thread's copy lands when that thread has waited for its group, and is seen by others after a barrier.
#include "ptx.h"

// The copy is committed, and its data read at once.
// launch no_wait: grid 1 block 64 args float[64] float[64]=zero
extern "C" __global__ void no_wait(const float *in, float *out) {
  __shared__ float tile[64];
  int t = threadIdx.x;
  cp_async_float(&tile[t], &in[t]);  // OTHER(no_wait)
  cp_async_commit();
#ifdef REPAIRED
  cp_async_wait<0>();
#endif
  out[t] = 2 * tile[t];  // HAZARD(no_wait): read before wait
}

// A wait for all groups, and the copy is in none: it was never committed.
// launch no_commit: grid 1 block 64 args float[64] float[64]=zero
extern "C" __global__ void no_commit(const float *in, float *out) {
  __shared__ float tile[64];
  int t = threadIdx.x;
  cp_async_float(&tile[t], &in[t]);  // OTHER(no_commit)
#ifdef REPAIRED
  cp_async_commit();
#endif
  cp_async_wait<0>();
  out[t] = 2 * tile[t];  // HAZARD(no_commit): read before wait
}

// Two buffers: while one is computed the other one loads, so that one group may be left in flight. But in the last
// round nothing is loaded any more, and the one group in flight is the one needed.
// launch last_round: grid 1 block 64 args float[256] float[64]=zero 4
extern "C" __global__ void last_round(const float *in, float *out, int rounds) {
  __shared__ float tiles[2][64];
  int t = threadIdx.x;
  float sum = 0;
  cp_async_float(&tiles[0][t], &in[t]);  // OTHER(last_round)
  cp_async_commit();
  for (int k = 0; k < rounds; k++) {
    if (k + 1 < rounds) {
      cp_async_float(&tiles[(k + 1) % 2][t], &in[64 * (k + 1) + t]);  // OTHER(last_round)
#ifndef REPAIRED
      cp_async_commit();
#endif
    }
#ifdef REPAIRED
    cp_async_commit();
#endif
    cp_async_wait<1>();
    __syncthreads();
    sum += tiles[k % 2][63 - t];  // HAZARD(last_round): read before wait
    __syncthreads();
  }
  out[t] = sum;
}

// Three stages, and the wait allows as many groups in flight as there are stages: one too many.
// launch three_stages: grid 1 block 64 args float[512] float[64]=zero 8
extern "C" __global__ void three_stages(const float *in, float *out, int rounds) {
  enum { STAGES = 3 };
  __shared__ float tiles[STAGES][64];
  int t = threadIdx.x;
  float sum = 0;
  for (int k = 0; k < STAGES - 1; k++) {
    cp_async_float(&tiles[k][t], &in[64 * k + t]);  // OTHER(three_stages)
    cp_async_commit();
  }
  for (int k = 0; k < rounds; k++) {
#ifdef REPAIRED
    cp_async_wait<STAGES - 2>();
#else
    cp_async_wait<STAGES - 1>();
#endif
    __syncthreads();
    sum += tiles[k % STAGES][63 - t];  // HAZARD(three_stages): read before wait
    int next = k + STAGES - 1;
    if (next < rounds) cp_async_float(&tiles[next % STAGES][t], &in[64 * next + t]);  // OTHER(three_stages)
    cp_async_commit();
  }
  out[t] = sum;
}

// Each thread waits for its own copies, and reads another's: there is no barrier between.
// launch own_wait: grid 1 block 64 args float[64] float[64]=zero
extern "C" __global__ void own_wait(const float *in, float *out) {
  __shared__ float tile[64];
  int t = threadIdx.x;
  cp_async_float(&tile[t], &in[t]);  // OTHER(own_wait)
  cp_async_commit();
  cp_async_wait<0>();
#ifdef REPAIRED
  __syncthreads();
#endif
  out[t] = tile[63 - t];  // HAZARD(own_wait): shared-memory race, ALSO(own_wait): uninitialised read
}

// The barrier comes before the wait: all have arrived there, and none has waited.
// launch wait_after_barrier: grid 1 block 64 args float[64] float[64]=zero
extern "C" __global__ void wait_after_barrier(const float *in, float *out) {
  __shared__ float tile[64];
  int t = threadIdx.x;
  cp_async_float(&tile[t], &in[t]);  // OTHER(wait_after_barrier)
  cp_async_commit();
#ifdef REPAIRED
  cp_async_wait<0>();
  __syncthreads();
#else
  __syncthreads();
  cp_async_wait<0>();
#endif
  out[t] = tile[63 - t];  // HAZARD(wait_after_barrier): read before wait
}

// One thread waits for all: but groups belong to the thread that committed them.
// launch one_waits: grid 1 block 64 args float[64] float[64]=zero
extern "C" __global__ void one_waits(const float *in, float *out) {
  __shared__ float tile[64];
  int t = threadIdx.x;
  cp_async_float(&tile[t], &in[t]);  // OTHER(one_waits)
  cp_async_commit();
#ifndef REPAIRED
  if (t == 0)
#endif
    cp_async_wait<0>();
  __syncthreads();
  out[t] = tile[63 - t];  // HAZARD(one_waits): read before wait
}

// The rows past the end are set to zero by a store, into a tile that a copy still writes.
// launch zero_tail: grid 1 block 64 args float[64] float[64]=zero 50
extern "C" __global__ void zero_tail(const float *in, float *out, int n) {
  __shared__ float tile[64];
  int t = threadIdx.x;
#ifdef REPAIRED
  if (t < n) cp_async_float(&tile[t], &in[t]);
#else
  cp_async_float(&tile[t], &in[t]);  // OTHER(zero_tail)
#endif
  cp_async_commit();
  if (t >= n) tile[t] = 0;  // HAZARD(zero_tail): overwrite in flight
  cp_async_wait<0>();
  __syncthreads();
  out[t] = tile[63 - t];
}

// The tile is loaded anew while other warps still read what was there.
// launch refill: grid 1 block 64 args float[256] float[64]=zero 4
extern "C" __global__ void refill(const float *in, float *out, int rounds) {
  __shared__ float tile[64];
  int t = threadIdx.x;
  float sum = 0;
  for (int k = 0; k < rounds; k++) {
    cp_async_float(&tile[t], &in[64 * k + t]);  // HAZARD(refill): shared-memory race
    cp_async_commit();
    cp_async_wait<0>();
    __syncthreads();
    sum += tile[63 - t];  // OTHER(refill)
#ifdef REPAIRED
    __syncthreads();
#endif
  }
  out[t] = sum;
}

// The source is overwritten with the result before the copy is known to have read it.
// launch in_place: grid 1 block 64 args float[64] float[64]=zero
extern "C" __global__ void in_place(float *data, float *out) {
  __shared__ float tile[64];
  int t = threadIdx.x;
  cp_async_float(&tile[t], &data[t]);  // OTHER(in_place)
  cp_async_commit();
#ifdef REPAIRED
  cp_async_wait<0>();
#endif
  data[t] = -1;  // HAZARD(in_place): overwrite in flight
#ifndef REPAIRED
  cp_async_wait<0>();
#endif
  out[t] = tile[t];
}

// Rows of 66 halves: every second one begins at no multiple of the 16 bytes that .cg copies.
// launch odd_rows: grid 1 block 64 args half[4224] half[4224]=zero
extern "C" __global__ void odd_rows(const half *in, half *out) {
#ifdef REPAIRED
  enum { PITCH = 72 };
#else
  enum { PITCH = 66 };
#endif
  __shared__ alignas(16) half tile[64 * PITCH];
  int t = threadIdx.x;
  cp_async(&tile[PITCH * t], &in[64 * t]);  // HAZARD(odd_rows): misaligned access
  cp_async_commit();
  cp_async_wait<0>();
  for (int i = 0; i < 8; i++) out[64 * t + i] = tile[PITCH * t + i];
}

// The last thread's 16 bytes reach past the end of the input: fewer must be read, and the rest filled with zero.
// launch tail_bytes: grid 1 block 16 args float[62] float[64]=zero 62
extern "C" __global__ void tail_bytes(const float *in, float *out, int n) {
  __shared__ alignas(16) float tile[64];
  int t = threadIdx.x, left = n - 4 * t;
#ifdef REPAIRED
  cp_async_part(&tile[4 * t], &in[4 * t], left < 4 ? 4 * left : 16);
#else
  cp_async_part(&tile[4 * t], &in[4 * t], left < 0 ? 0 : 16);  // HAZARD(tail_bytes): out-of-bounds access
#endif
  cp_async_commit();
  cp_async_wait<0>();
  for (int i = 0; i < 4; i++) out[4 * t + i] = tile[4 * t + i];
}

// The copies arrive at an mbarrier, which tells when they are done: but only those who wait for it.
// launch no_mbarrier_wait: grid 1 block 64 args float[64] float[64]=zero
extern "C" __global__ void no_mbarrier_wait(const float *in, float *out) {
  __shared__ float tile[64];
  __shared__ uint64_t full;
  int t = threadIdx.x;
  if (t == 0) mbarrier_init(&full, 64);
  __syncthreads();
  cp_async_float(&tile[t], &in[t]);  // OTHER(no_mbarrier_wait)
  cp_async_arrive(&full);
#ifdef REPAIRED
  mbarrier_wait(&full, 0);
#else
  __syncthreads();
#endif
  out[t] = tile[63 - t];  // HAZARD(no_mbarrier_wait): read before wait
}

// A thread reads, and then another one copies the same. The copy's arrival at the mbarrier tells that the copy is done.
// Only an arrival of the thread itself tells what came before the copy.
// launch read_and_copied: grid 1 block 96 args float[64] float[64]=zero
extern "C" __global__ void read_and_copied(float *in, float *out) {
  __shared__ float tile[32];
  __shared__ uint64_t full;
  int t = threadIdx.x;
#ifdef REPAIRED
  int arrivals = 64;
#else
  int arrivals = 32;
#endif
  if (t == 0) mbarrier_init(&full, arrivals);
  __syncthreads();
  if (t == 0) out[0] = *(volatile float *)in;  // OTHER(read_and_copied)
  if (t < 64) barrier_sync(1, 64);
  if (t >= 32 && t < 64) {
    cp_async_float(&tile[t - 32], &in[t - 32]);
    cp_async_arrive(&full);
#ifdef REPAIRED
    mbarrier_arrive(&full);
#endif
  }
  if (t < 64) return;
  mbarrier_wait(&full, 0);
  out[t - 32] = tile[t - 64];
  if (t == 64) *in = 7;  // HAZARD(read_and_copied): global-memory race
}
