// Threads of different warps that meet in shared memory without a barrier between them.
#include "kernels.h"

// Read after write: the element was written by another warp, perhaps not yet.
// launch reverse: grid 1 block 128 args float[128] float[128]=zero
extern "C" __global__ void reverse(const float *in, float *out) {
  __shared__ float tile[128];
  int t = threadIdx.x;
  tile[t] = in[t];  // OTHER(reverse)
#ifdef REPAIRED
  __syncthreads();
#endif
  out[t] = tile[127 - t];  // HAZARD(reverse): shared-memory race, ALSO(reverse): uninitialised read
}

// Write after read: a neighbour may still want the old value.
// launch in_place: grid 1 block 128 args float[128] float[128]=zero
extern "C" __global__ void in_place(const float *in, float *out) {
  __shared__ float tile[128];
  int t = threadIdx.x;
  tile[t] = in[t];
  __syncthreads();
  float sum = tile[t] + tile[(t + 1) % 128];  // OTHER(in_place)
#ifdef REPAIRED
  __syncthreads();
#endif
  tile[t] = sum;  // HAZARD(in_place): shared-memory race
  __syncthreads();
  out[t] = tile[127 - t];
}

// Write after write: which thread's number remains is chance.
// launch winner: grid 1 block 128 args float[128] int[1]=zero
extern "C" __global__ void winner(const float *in, int *out) {
  __shared__ int found;
  if (threadIdx.x == 0) found = -1;
  __syncthreads();
  if (in[threadIdx.x] > 50) {
#ifdef REPAIRED
    atomicMax(&found, threadIdx.x);
#else
    found = threadIdx.x;  // HAZARD(winner): shared-memory race
#endif
  }
  __syncthreads();
  if (threadIdx.x == 0) *out = found;
}

// Tiled matrix product without the second barrier: a fast warp loads the next tiles while a slow one uses these.
// launch matmul: grid 2x2 block 16x16 args float[1024] float[1024] float[1024]=zero 32
extern "C" __global__ void matmul(const float *a, const float *b, float *c, int n) {
  __shared__ float tile_a[16][16], tile_b[16][16];
  int x = threadIdx.x, y = threadIdx.y, row = 16 * blockIdx.y + y, column = 16 * blockIdx.x + x;
  float sum = 0;
  for (int k = 0; k < n; k += 16) {
    tile_a[y][x] = a[row * n + k + x];       // OTHER(matmul)
    tile_b[y][x] = b[(k + y) * n + column];  // OTHER(matmul)
    __syncthreads();
    for (int i = 0; i < 16; i++)
      sum += tile_a[y][i] * tile_b[i][x];  // HAZARD(matmul): shared-memory race
#ifdef REPAIRED
    __syncthreads();
#endif
  }
  c[row * n + column] = sum;
}

// Two buffers, and the only barrier of a round between filling one and using the other: the next round fills again what
// is still used. Behind the use, one barrier is enough.
// launch double_buffer: grid 1 block 128 args float[640] float[128]=zero 4
extern "C" __global__ void double_buffer(const float *in, float *out, int rounds) {
  __shared__ float buffer[2][128];
  int t = threadIdx.x;
  float sum = 0;
  buffer[0][t] = in[t];
  __syncthreads();
  for (int k = 0; k < rounds; k++) {
    buffer[(k + 1) & 1][t] = in[128 * (k + 1) + t];  // OTHER(double_buffer)
#ifndef REPAIRED
    __syncthreads();
#endif
    sum += buffer[k & 1][127 - t];  // HAZARD(double_buffer): shared-memory race
#ifdef REPAIRED
    __syncthreads();
#endif
  }
  out[t] = sum;
}

// A tree of sums whose levels nothing separates.
// launch reduction: grid 1 block 128 args float[128] float[1]=zero
extern "C" __global__ void reduction(const float *in, float *out) {
  __shared__ float sums[128];
  int t = threadIdx.x;
  sums[t] = in[t];
  __syncthreads();
  for (int half = 64; half > 0; half /= 2) {
    if (t < half) sums[t] += sums[t + half];  // HAZARD(reduction): shared-memory race
#ifdef REPAIRED
    __syncthreads();
#endif
  }
#ifndef REPAIRED
  __syncthreads();
#endif
  if (t == 0) *out = sums[0];
}

// The last warp sums the warps' results without waiting for them.
// launch warp_sums: grid 1 block 128 args float[128] float[1]=zero
extern "C" __global__ void warp_sums(const float *in, float *out) {
  __shared__ float sums[4];
  int t = threadIdx.x;
  float sum = in[t];
  for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffff, sum, d);
  if (t % 32 == 0) sums[t / 32] = sum;  // OTHER(warp_sums)
#ifdef REPAIRED
  __syncthreads();
#endif
  if (t == 127) *out = sums[0] + sums[1] + sums[2] + sums[3];  // HAZARD(warp_sums): shared-memory race, ALSO(warp_sums): uninitialised read
}

// A function that leaves its scratch memory in use: called twice in a row, the second call overwrites what the first
// still reads.
__device__ float block_maximum(float x, float *scratch) {
  scratch[threadIdx.x] = x;  // HAZARD(scratch): shared-memory race
  __syncthreads();
  float most = x;
  for (int i = 0; i < 64; i++) most = fmaxf(most, scratch[i]);  // OTHER(scratch)
#ifdef REPAIRED
  __syncthreads();
#endif
  return most;
}

// launch scratch: grid 1 block 64 args float[64] float[64]=zero
extern "C" __global__ void scratch(const float *in, float *out) {
  __shared__ float scratch[64];
  float x = in[threadIdx.x];
  float most = block_maximum(x, scratch), least = -block_maximum(-x, scratch);
  out[threadIdx.x] = (x - least) / (most - least);
}

// One thread announces a number to all; in the next round it may do so again before all have read it.
// launch announce: grid 1 block 96 args int[8] int[96]=zero 8
extern "C" __global__ void announce(const int *in, int *out, int rounds) {
  __shared__ int number;
  int sum = 0;
  for (int k = 0; k < rounds; k++) {
    if (threadIdx.x == 0) number = in[k];  // HAZARD(announce): shared-memory race
    __syncthreads();
    sum += number * threadIdx.x;  // OTHER(announce)
#ifdef REPAIRED
    __syncthreads();
#endif
  }
  out[threadIdx.x] = sum;
}

// ++ is a read and a write; between them another thread counts as well.
// launch histogram: grid 1 block 128 args int[128] int[8]=zero
extern "C" __global__ void histogram(const int *in, int *out) {
  __shared__ int bins[8];
  if (threadIdx.x < 8) bins[threadIdx.x] = 0;
  __syncthreads();
#ifdef REPAIRED
  atomicAdd(&bins[in[threadIdx.x] % 8], 1);
#else
  bins[in[threadIdx.x] % 8]++;  // HAZARD(histogram): shared-memory race
#endif
  __syncthreads();
  if (threadIdx.x < 8) out[threadIdx.x] = bins[threadIdx.x];
}

// A prefix sum in place needs two barriers a step: one before the writes, one after.
// launch scan: grid 1 block 128 args int[128] int[128]=zero
extern "C" __global__ void scan(const int *in, int *out) {
  __shared__ int sums[128];
  int t = threadIdx.x;
  sums[t] = in[t];
  __syncthreads();
  for (int d = 1; d < 128; d *= 2) {
    int left = t >= d ? sums[t - d] : 0;  // OTHER(scan)
#ifdef REPAIRED
    __syncthreads();
#endif
    sums[t] += left;  // HAZARD(scan): shared-memory race
    __syncthreads();
  }
  out[t] = sums[t];
}

// Each half of the block has a barrier of its own, and then reads what the other half wrote.
// launch halves: grid 1 block 128 args float[128] float[128]=zero
extern "C" __global__ void halves(const float *in, float *out) {
  __shared__ float tile[128];
  int t = threadIdx.x;
  tile[t] = in[t];  // OTHER(halves)
#ifdef REPAIRED
  barrier_sync(1, 128);
#else
  barrier_sync(1 + t / 64, 64);
#endif
  out[t] = tile[127 - t];  // HAZARD(halves): shared-memory race, ALSO(halves): uninitialised read
}

// bar.arrive does not wait: the consumer must say bar.sync.
// launch arrive: grid 1 block 64 args float[32] float[32]=zero
extern "C" __global__ void arrive(const float *in, float *out) {
  __shared__ float tile[32];
  int lane = threadIdx.x % 32;
  if (threadIdx.x < 32) {
    tile[lane] = in[lane];  // OTHER(arrive)
    barrier_arrive(1, 64);
  } else {
#ifdef REPAIRED
    barrier_sync(1, 64);
#else
    barrier_arrive(1, 64);
#endif
    out[lane] = tile[31 - lane];  // HAZARD(arrive): shared-memory race, ALSO(arrive): uninitialised read
  }
}

// Two stages between producer and consumer, and barriers for two; but both stages use the first buffer.
// launch stages: grid 1 block 64 args float[128] float[32]=zero 4
extern "C" __global__ void stages(const float *in, float *out, int rounds) {
  enum { FULL = 1, EMPTY = 3 };
  __shared__ float buffers[2][32];
  int lane = threadIdx.x % 32;
  if (threadIdx.x < 32) {
    for (int k = 0; k < rounds; k++) {
      if (k >= 2) barrier_sync(EMPTY + k % 2, 64);
#ifdef REPAIRED
      float *buffer = buffers[k % 2];
#else
      float *buffer = buffers[0];
#endif
      buffer[lane] = in[32 * k + lane];  // HAZARD(stages): shared-memory race
      barrier_arrive(FULL + k % 2, 64);
    }
  } else {
    float sum = 0;
    for (int k = 0; k < rounds; k++) {
      barrier_sync(FULL + k % 2, 64);
#ifdef REPAIRED
      const float *buffer = buffers[k % 2];
#else
      const float *buffer = buffers[0];
#endif
      sum += buffer[31 - lane];  // OTHER(stages)
      if (k + 2 < rounds) barrier_arrive(EMPTY + k % 2, 64);
    }
    out[lane] = sum;
  }
}

// Four threads put their byte into one word: each writes the others' bytes back as it found them.
// launch bytes_in_word: grid 1 block 128 args int[128] int[32]=zero
extern "C" __global__ void bytes_in_word(const int *in, int *out) {
  __shared__ unsigned words[32];
  int t = threadIdx.x;
  if (t < 32) words[t] = 0;
  __syncthreads();
#ifdef REPAIRED
  ((unsigned char *)words)[t] = in[t];
#else
  words[t / 4] |= (in[t] & 255u) << 8 * (t % 4);  // HAZARD(bytes_in_word): shared-memory race
#endif
  __syncthreads();
  if (t < 32) out[t] = words[t];
}
