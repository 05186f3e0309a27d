// Threads that meet in global memory, inside a block and between blocks.
#include "kernels.h"

// A blur in place: the neighbour may be blurred already, or not.
// launch blur: grid 1 block 128 args float[129]
extern "C" __global__ void blur(float *x) {
  int i = threadIdx.x;
  float mean = (x[i] + x[i + 1]) / 2;  // OTHER(blur)
#ifdef REPAIRED
  __syncthreads();
#endif
  x[i] = mean;  // HAZARD(blur): global-memory race
}

// The same over two blocks, which no barrier joins: only another array helps.
// launch blur_blocks: grid 2 block 64 args float[129] float[128]=zero
extern "C" __global__ void blur_blocks(float *x, float *out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float mean = (x[i] + x[i + 1]) / 2;  // OTHER(blur_blocks)
  __syncthreads();
#ifdef REPAIRED
  out[i] = mean;
#else
  x[i] = mean;  // HAZARD(blur_blocks): global-memory race
#endif
}

// __syncthreads is a barrier of a block, not of the grid.
// launch two_stages: grid 2 block 64 args float[128] float[128]=zero float[128]=zero
extern "C" __global__ void two_stages(const float *in, float *squares, float *out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  squares[i] = in[i] * in[i];  // OTHER(two_stages)
  __syncthreads();
#ifdef REPAIRED
  out[i] = in[127 - i] * in[127 - i];
#else
  out[i] = squares[127 - i];  // HAZARD(two_stages): global-memory race
#endif
}

// All threads count in one place.
// launch count: grid 2 block 64 args int[128] int[1]=zero
// ADVICE(count): Use an atomic
extern "C" __global__ void count(const int *in, int *total) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
#ifdef REPAIRED
  atomicAdd(total, in[i]);
#else
  *total += in[i];  // HAZARD(count): global-memory race
#endif
}

// An atomic of a block's scope is one for the block's own threads: another block's may come in between.
// launch count_block: grid 2 block 64 args int[128] int[1]=zero
extern "C" __global__ void count_block(const int *in, int *total) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
#ifdef REPAIRED
  atomicAdd(total, in[i]);
#else
  atomicAdd_block(total, in[i]);  // HAZARD(count_block): global-memory race
#endif
}

// Both sides must be wide enough.
// launch count_mixed: grid 2 block 64 args int[128] int[1]=zero
extern "C" __global__ void count_mixed(const int *in, int *total) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (blockIdx.x == 0)
    atomicAdd(total, in[i]);  // HAZARD(count_mixed): global-memory race
  else
#ifdef REPAIRED
    atomicAdd(total, in[i]);
#else
    atomicAdd_block(total, in[i]);  // OTHER(count_mixed)
#endif
}

// With a total for each block the narrow scope does.
// launch count_apart: grid 2 block 64 args int[128] int[2]=zero
extern "C" __global__ void count_apart(const int *in, int *totals) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd_block(&totals[blockIdx.x], in[i]);
}

// The sum is made by atomics, but read while others still add to it.
// launch early_total: grid 1 block 128 args int[128] int[1]=zero int[128]=zero
extern "C" __global__ void early_total(const int *in, int *total, int *out) {
  atomicAdd(total, in[threadIdx.x]);  // OTHER(early_total)
#ifdef REPAIRED
  __syncthreads();
#endif
  out[threadIdx.x] = in[threadIdx.x] - *total;  // HAZARD(early_total): global-memory race
}

// Blocks write tiles of 64 at every 63rd element: neighbours both write one.
// launch overlap: grid 2 block 64 args float[128] float[128]=zero
extern "C" __global__ void overlap(const float *in, float *out) {
#ifdef REPAIRED
  int i = blockIdx.x * 64 + threadIdx.x;
#else
  int i = blockIdx.x * 63 + threadIdx.x;
#endif
  out[i] = in[i] + blockIdx.x;  // HAZARD(overlap): global-memory race
}

// The maximum of a row that two blocks share.
// launch row_maximum: grid 2 block 32 args int[64] int[1]=zero
// ADVICE(row_maximum): Use an atomic
extern "C" __global__ void row_maximum(const int *in, int *most) {
  int value = __reduce_max_sync(0xffffffff, in[blockIdx.x * 32 + threadIdx.x]);
  if (threadIdx.x) return;
#ifdef REPAIRED
  atomicMax(most, value);
#else
  if (value > *most) *most = value;  // HAZARD(row_maximum): global-memory race
#endif
}

// One block hands data to another. The flag is volatile, the data is not: without a fence the flag may be seen first.
// launch handover: grid 2 block 32 args float[32] float[32]=zero int[1]=zero float[32]=zero
extern "C" __global__ void handover(const float *in, float *data, volatile int *flag, float *out) {
  int t = threadIdx.x;
  if (blockIdx.x == 0) {
    data[t] = 2 * in[t];  // OTHER(handover)
#ifdef REPAIRED
    __threadfence();
#endif
    __syncthreads();
    if (t == 0) *flag = 1;
  } else {
    while (*flag == 0) {}
    __threadfence();
    out[t] = data[t];  // HAZARD(handover): global-memory race
  }
}

// The reader needs its fence too: between seeing the flag and reading the data.
// launch reader_fence: grid 2 block 32 args float[32] float[32]=zero int[1]=zero float[32]=zero
extern "C" __global__ void reader_fence(const float *in, float *data, volatile int *flag, float *out) {
  int t = threadIdx.x;
  if (blockIdx.x == 0) {
    data[t] = 2 * in[t];  // OTHER(reader_fence)
    __threadfence();
    __syncthreads();
    if (t == 0) *flag = 1;
  } else {
    while (*flag == 0) {}
#ifdef REPAIRED
    __threadfence();
#endif
    out[t] = data[t];  // HAZARD(reader_fence): global-memory race
  }
}

__device__ void store_relaxed(int *at, int value) {
  asm volatile("st.relaxed.gpu.global.s32 [%0], %1;" : : "l"(at), "r"(value) : "memory");  // OTHER(weak_after_strong)
}
__device__ void store_release(int *at, int value) {
  asm volatile("st.release.gpu.global.s32 [%0], %1;" : : "l"(at), "r"(value) : "memory");
}
__device__ int load_acquire(const int *at) {
  int value;
  asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");  // ALSO(block_release): global-memory race
  return value;
}
__device__ int load_relaxed(const int *at) {
  int value;
  asm volatile("ld.relaxed.gpu.global.s32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
  return value;
}

// The same with the operations of the memory model: a relaxed store publishes nothing but itself.
// launch release: grid 2 block 1 args int[1]=zero int[1]=zero int[1]=zero
extern "C" __global__ void release(int *data, int *flag, int *out) {
  if (blockIdx.x == 0) {
    *data = 42;  // OTHER(release)
#ifdef REPAIRED
    store_release(flag, 1);
#else
    store_relaxed(flag, 1);
#endif
  } else {
    while (load_acquire(flag) == 0) {}
    *out = *data;  // HAZARD(release): global-memory race
  }
}

// And a relaxed load learns of nothing else.
// launch acquire: grid 2 block 1 args int[1]=zero int[1]=zero int[1]=zero
extern "C" __global__ void acquire(int *data, int *flag, int *out) {
  if (blockIdx.x == 0) {
    *data = 42;  // OTHER(acquire)
    store_release(flag, 1);
  } else {
#ifdef REPAIRED
    while (load_acquire(flag) == 0) {}
#else
    while (load_relaxed(flag) == 0) {}
#endif
    *out = *data;  // HAZARD(acquire): global-memory race
  }
}

// The block that finishes last adds up the sums of all. That it is the last does not mean that it sees them.
// launch last_block: grid 8 block 32 args int[256] int[8]=zero int[1]=zero int[1]=zero
extern "C" __global__ void last_block(const int *in, int *sums, unsigned *finished, int *out) {
  int t = threadIdx.x, sum = __reduce_add_sync(0xffffffff, in[32 * blockIdx.x + t]);
  if (t) return;
  sums[blockIdx.x] = sum;  // OTHER(last_block)
#ifdef REPAIRED
  __threadfence();
#endif
  if (atomicInc(finished, gridDim.x - 1) < gridDim.x - 1) return;
#ifdef REPAIRED
  __threadfence();
#endif
  int total = 0;
  for (int i = 0; i < gridDim.x; i++) total += sums[i];  // HAZARD(last_block): global-memory race
  *out = total;
}

// All threads write and fence, one counts the block, and all read if it is the last: the chain passes on by two barriers.
// Then each reader needs a fence.sc of its own, which __threadfence is.
// launch last_block_of_all: grid 3 block 64 args int[192] int[192]=zero int[1]=zero int[64]=zero
extern "C" __global__ void last_block_of_all(const int *in, int *sums, unsigned *finished, int *out) {
  __shared__ bool last;
  int t = threadIdx.x;
  sums[blockIdx.x * 64 + t] = in[blockIdx.x * 64 + t];  // OTHER(last_block_of_all)
  __threadfence();
  __syncthreads();
  if (t == 0) last = atomicAdd(finished, 1) == gridDim.x - 1;
  __syncthreads();
  if (!last) return;
#ifdef REPAIRED
  __threadfence();
#endif
  int sum = 0;
  for (int b = 0; b < gridDim.x; b++) sum += sums[b * 64 + t];  // HAZARD(last_block_of_all): global-memory race
  out[t] = sum;
}

// The order of fences is one of fence.sc: another fence acquires only what its own thread has read.
// launch last_block_acquires: grid 3 block 64 args int[192] int[192]=zero int[1]=zero int[64]=zero
extern "C" __global__ void last_block_acquires(const int *in, int *sums, unsigned *finished, int *out) {
  __shared__ bool last;
  int t = threadIdx.x;
  sums[blockIdx.x * 64 + t] = in[blockIdx.x * 64 + t];  // OTHER(last_block_acquires)
  __threadfence();
  __syncthreads();
  if (t == 0) last = atomicAdd(finished, 1) == gridDim.x - 1;
  __syncthreads();
  if (!last) return;
#ifdef REPAIRED
  asm volatile("fence.sc.gpu;" ::: "memory");
#else
  asm volatile("fence.acq_rel.gpu;" ::: "memory");
#endif
  int sum = 0;
  for (int b = 0; b < gridDim.x; b++) sum += sums[b * 64 + t];  // HAZARD(last_block_acquires): global-memory race
  out[t] = sum;
}

// A fence before the barrier knows nothing of the atomic yet.
// launch last_block_early: grid 3 block 64 args int[192] int[192]=zero int[1]=zero int[64]=zero
extern "C" __global__ void last_block_early(const int *in, int *sums, unsigned *finished, int *out) {
  __shared__ bool last;
  int t = threadIdx.x;
  sums[blockIdx.x * 64 + t] = in[blockIdx.x * 64 + t];  // OTHER(last_block_early)
  __threadfence();
  __syncthreads();
  if (t == 0) last = atomicAdd(finished, 1) == gridDim.x - 1;
#ifndef REPAIRED
  if (t > 0) __threadfence();
#endif
  __syncthreads();
#ifdef REPAIRED
  __threadfence();
#endif
  if (!last) return;
  int sum = 0;
  for (int b = 0; b < gridDim.x; b++) sum += sums[b * 64 + t];  // HAZARD(last_block_early): global-memory race
  out[t] = sum;
}

// The scope of each fence must include the other's thread: __threadfence_block() is fence.sc.cta.
// launch last_block_narrow: grid 3 block 64 args int[192] int[192]=zero int[1]=zero int[64]=zero
extern "C" __global__ void last_block_narrow(const int *in, int *sums, unsigned *finished, int *out) {
  __shared__ bool last;
  int t = threadIdx.x;
  sums[blockIdx.x * 64 + t] = in[blockIdx.x * 64 + t];  // OTHER(last_block_narrow)
  __threadfence();
  __syncthreads();
  if (t == 0) last = atomicAdd(finished, 1) == gridDim.x - 1;
  __syncthreads();
  if (!last) return;
#ifdef REPAIRED
  __threadfence();
#else
  __threadfence_block();
#endif
  int sum = 0;
  for (int b = 0; b < gridDim.x; b++) sum += sums[b * 64 + t];  // HAZARD(last_block_narrow): global-memory race
  out[t] = sum;
}

// Readers alone cannot order what the writers have not fenced.
// launch last_block_unfenced: grid 3 block 64 args int[192] int[192]=zero int[1]=zero int[64]=zero
extern "C" __global__ void last_block_unfenced(const int *in, int *sums, unsigned *finished, int *out) {
  __shared__ bool last;
  int t = threadIdx.x;
  sums[blockIdx.x * 64 + t] = in[blockIdx.x * 64 + t];  // OTHER(last_block_unfenced)
#ifdef REPAIRED
  __threadfence();
#endif
  __syncthreads();
  if (t == 0) last = atomicAdd(finished, 1) == gridDim.x - 1;
  __syncthreads();
  if (!last) return;
  __threadfence();
  int sum = 0;
  for (int b = 0; b < gridDim.x; b++) sum += sums[b * 64 + t];  // HAZARD(last_block_unfenced): global-memory race
  out[t] = sum;
}

// A chain over three blocks. What a relaxed load has seen is not handed on by a relaxed store of another thread, unless a
// fence stands between: the middle block fences.
// launch relay_of_blocks: grid 3 block 64 args int[1]=zero int[2]=zero int[64]=zero
extern "C" __global__ void relay_of_blocks(int *data, volatile int *flags, int *out) {
  int t = threadIdx.x, b = blockIdx.x;
  if (b == 0) {
    if (t == 5) *data = 7;  // OTHER(relay_of_blocks)
    __threadfence();
  } else {
    if (t == 0)
      while (!flags[b - 1]) {
      }
    __syncthreads();
#ifndef REPAIRED
    if (b == 2)
#endif
      __threadfence();
    if (b == 2) out[t] = *data;  // HAZARD(relay_of_blocks): global-memory race
  }
  __syncthreads();
  if (t == 33 && b < 2) flags[b] = 1;
}

// A fence of the block's scope, where the reader is in another block.
// launch block_fence: grid 2 block 1 args int[1]=zero int[1]=zero int[1]=zero
extern "C" __global__ void block_fence(int *data, volatile int *flag, int *out) {
  if (blockIdx.x == 0) {
    *data = 42;  // OTHER(block_fence)
#ifdef REPAIRED
    __threadfence();
#else
    __threadfence_block();
#endif
    *flag = 1;
  } else {
    while (*flag == 0) {}
    __threadfence();
    *out = *data;  // HAZARD(block_fence): global-memory race
  }
}

// A lock keeps others out, but what was done under it must also be seen by the next.
// launch lock: grid 4 block 1 args int[1]=zero int[1]=zero
extern "C" __global__ void lock(int *mutex, int *sum) {
  while (atomicCAS(mutex, 0, 1)) {}
#ifdef REPAIRED
  __threadfence();
#endif
  *sum += blockIdx.x + 1;  // HAZARD(lock): global-memory race
#ifdef REPAIRED
  __threadfence();
#endif
  atomicExch(mutex, 0);
}

// The same with a release and an acquire: both must reach as far as the other block.
// launch block_release: grid 2 block 1 args int[1]=zero int[1]=zero int[1]=zero
extern "C" __global__ void block_release(int *data, int *flag, int *out) {
  if (blockIdx.x == 0) {
    *data = 42;  // OTHER(block_release)
#ifdef REPAIRED
    asm volatile("red.release.gpu.global.add.s32 [%0], 1;" : : "l"(flag) : "memory");
#else
    asm volatile("red.release.cta.global.add.s32 [%0], 1;" : : "l"(flag) : "memory");  // ALSO(block_release): global-memory race
#endif
  } else {
    while (load_acquire(flag) == 0) {}
    *out = *data;  // HAZARD(block_release): global-memory race
  }
}

// All read a word, and one overwrites it in the end: whatever has been read since, and that is much, the first reads count.
// launch read_long_ago: grid 1 block 64 args float[64] float[64]=zero 6000
extern "C" __global__ void read_long_ago(float *in, float *out, int rounds) {
  __shared__ float tile[64];
  int t = threadIdx.x;
  tile[t] = t;
  __syncthreads();
  float sum = *(volatile float *)in;  // OTHER(read_long_ago)
#pragma unroll 1
  for (int round = 0; round < rounds; round++) {
    sum += tile[round % 64];
    __syncwarp();
  }
  out[t] = sum;
#ifdef REPAIRED
  __syncthreads();
#endif
  if (t == 0) *in = sum;  // HAZARD(read_long_ago): global-memory race
}

// A strong read may meet a strong write; the weak read after it may not.
// launch weak_after_strong: grid 1 block 64 args int[1]=zero int[64]=zero
extern "C" __global__ void weak_after_strong(int *flag, int *out) {
  int t = threadIdx.x;
  if (t < 32) {
    int sum = load_relaxed(flag);
#ifdef REPAIRED
    sum += load_relaxed(flag);
#else
    sum += *flag;  // HAZARD(weak_after_strong): global-memory race
#endif
    out[t] = sum + t + 1;
  } else if (t == 32) {
    store_relaxed(flag, 0);
  }
}

// The middle block hands on what it has learnt from the first: that takes a fence between its load and its store.
// launch relay: grid 3 block 1 args int[1]=zero int[2]=zero int[1]=zero
extern "C" __global__ void relay(int *data, int *flags, int *out) {
  if (blockIdx.x == 0) {
    *data = 42;  // OTHER(relay)
    __threadfence();
    store_relaxed(&flags[0], 1);
  } else if (blockIdx.x == 1) {
    while (load_relaxed(&flags[0]) == 0) {}
#ifdef REPAIRED
    __threadfence();
#endif
    store_relaxed(&flags[1], 1);
  } else {
    while (load_relaxed(&flags[1]) == 0) {}
    __threadfence();
    *out = *data;  // HAZARD(relay): global-memory race
  }
}

// A thread releases data by a flag, and a thread of the other block overwrites the flag. To read the second value is not to
// acquire the first.
// launch overwritten_release: grid 2 block 64 cluster 2 args int[1]=zero int[1]=zero int[1]=zero
extern "C" __global__ void overwritten_release(int *data, int *flag, int *out) {
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    *data = 42;  // OTHER(overwritten_release)
    store_release(flag, 1);
  } else if (blockIdx.x == 1 && threadIdx.x == 0) {
#ifdef REPAIRED
    while (load_acquire(flag) == 0) {}
    store_release(flag, 2);
#else
    while (load_relaxed(flag) == 0) {}
    store_relaxed(flag, 2);
#endif
  } else if (blockIdx.x == 0 && threadIdx.x == 32) {
    while (load_relaxed(flag) != 2) {}
    load_acquire(flag);
    *out = *data;  // HAZARD(overwritten_release): global-memory race
  }
}

// All lanes read a word, one after the other, and then lane 0 alone says that it may be overwritten.
// launch one_says: grid 1 block 64 args int[1] int[1]=zero int[32]=zero
extern "C" __global__ void one_says(int *word, int *flag, int *out) {
  int t = threadIdx.x, value = 0;
  if (t < 32) {
#pragma unroll 1
    for (int lane = 0; lane < 32; lane++)
      if (t == lane) value = *word + lane;  // OTHER(one_says)
#ifdef REPAIRED
    __syncwarp();
#endif
    if (t == 0) store_release(flag, 1);
    out[t] = value;
  } else if (t == 32) {
    while (load_acquire(flag) == 0) {}
    *word = 8;  // HAZARD(one_says): global-memory race
  }
}

// Thread 0 has handed on something before, and after the barrier it hands on what thread 32 did: what a fence has covered.
// launch hand_on_again: grid 2 block 64 args int[1]=zero int[2]=zero int[1]=zero
extern "C" __global__ void hand_on_again(int *data, int *flags, int *out) {
  int t = threadIdx.x;
  if (blockIdx.x == 0) {
    if (t == 0) {
      __threadfence();
      store_relaxed(&flags[0], 1);
    } else if (t == 32) {
      *data = 42;  // OTHER(hand_on_again)
#ifdef REPAIRED
      __threadfence();
#endif
    }
    __syncthreads();
    if (t == 0) store_relaxed(&flags[1], 1);
  } else if (t == 0) {
    while (load_relaxed(&flags[1]) == 0) {}
    __threadfence();
    *out = *data;  // HAZARD(hand_on_again): global-memory race
  }
}

// A block polls a flag and then sets it back by a plain store. That comes after the strong store that it has seen, although
// nothing releases and acquires.
// launch set_back: grid 2 block 1 args int[1]=zero
extern "C" __global__ void set_back(int *flag) {
  if (blockIdx.x == 0) {
    *(volatile int *)flag = 1;  // HAZARD(set_back): global-memory race
  } else {
#ifdef REPAIRED
    while (load_relaxed(flag) == 0) {}
#endif
    *flag = 2;  // OTHER(set_back)
  }
}

// The same by another thread, behind a barrier.
// launch set_back_by_other: grid 2 block 64 args int[1]=zero
extern "C" __global__ void set_back_by_other(int *flag) {
  if (blockIdx.x == 0) {
    if (threadIdx.x == 0) store_relaxed(flag, 1);
  } else {
    if (threadIdx.x == 0)
      while (load_relaxed(flag) == 0) {}
    __syncthreads();
    if (threadIdx.x == 32) *flag = 2;
  }
}

// But what the other thread has done since its fence does not come before that.
// launch since_the_fence: grid 2 block 1 args int[1]=zero int[1]=zero
extern "C" __global__ void since_the_fence(int *data, int *flag) {
  if (blockIdx.x == 0) {
#ifdef REPAIRED
    *data = 1;
    __threadfence();
#else
    __threadfence();
    *data = 1;  // OTHER(since_the_fence)
#endif
    store_relaxed(flag, 1);
  } else {
    while (load_acquire(flag) == 0) {}
    *data = 2;  // HAZARD(since_the_fence): global-memory race
    *flag = 0;
  }
}

// A flag of 4 bytes is polled as one byte. Strong accesses synchronise only at the same place with the same size.
// launch flag_as_byte: grid 2 block 1 args int[1]=zero int[1]=zero int[1]=zero
extern "C" __global__ void flag_as_byte(int *data, unsigned *flag, int *out) {
  if (blockIdx.x == 0) {
    *data = 7;  // OTHER(flag_as_byte)
    asm volatile("st.release.gpu.u32 [%0], 1;" ::"l"(flag) : "memory");  // OTHER(flag_as_byte)
  } else {
    unsigned seen;
    do {
#ifdef REPAIRED
      asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
#else
      asm volatile("ld.acquire.gpu.u8 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");  // HAZARD(flag_as_byte): global-memory race
#endif
    } while (!seen);
    *out = *data;  // HAZARD(flag_as_byte): global-memory race
  }
}

// An atomic on 4 bytes, and a volatile load of the byte in which it sets a bit.
// launch flag_by_or: grid 2 block 1 args int[1]=zero int[1]=zero int[1]=zero
extern "C" __global__ void flag_by_or(int *data, unsigned *flag, int *out) {
  if (blockIdx.x == 0) {
    *data = 7;  // OTHER(flag_by_or)
    __threadfence();
    atomicOr(flag, 0x100);  // OTHER(flag_by_or)
  } else {
#ifdef REPAIRED
    while (!(*(volatile unsigned *)flag & 0x100)) {
    }
#else
    while (!((volatile unsigned char *)flag)[1]) {  // HAZARD(flag_by_or): global-memory race
    }
#endif
    __threadfence();
    *out = *data;  // ALSO(flag_by_or): global-memory race
  }
}

// Two flags are stored as a vector, which is two stores of 4 bytes, and polled as one of 8 bytes.
// launch flags_as_one: grid 2 block 1 args int[1]=zero int[2]=zero int[1]=zero
extern "C" __global__ void flags_as_one(int *data, unsigned *flags, int *out) {
  if (blockIdx.x == 0) {
    *data = 7;  // OTHER(flags_as_one)
    __threadfence();
    asm volatile("st.relaxed.gpu.v2.u32 [%0], {1, 1};" ::"l"(flags) : "memory");  // OTHER(flags_as_one)
  } else {
#ifdef REPAIRED
    unsigned first, second;
    do
      asm volatile("ld.relaxed.gpu.v2.u32 {%0, %1}, [%2];" : "=r"(first), "=r"(second) : "l"(flags) : "memory");
    while (!first || !second);
#else
    unsigned long long both;
    do
      asm volatile("ld.relaxed.gpu.u64 %0, [%1];" : "=l"(both) : "l"(flags) : "memory");  // HAZARD(flags_as_one): global-memory race
    while (!both);
#endif
    __threadfence();
    *out = *data;  // HAZARD(flags_as_one): global-memory race
  }
}

// So a load of the second one by itself does synchronise.
// launch second_flag: grid 2 block 1 args int[1]=zero int[2]=zero int[1]=zero
extern "C" __global__ void second_flag(int *data, unsigned *flags, int *out) {
  if (blockIdx.x == 0) {
    *data = 7;
    __threadfence();
    asm volatile("st.relaxed.gpu.v2.u32 [%0], {1, 1};" ::"l"(flags) : "memory");
  } else {
    unsigned seen;
    do
      asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(seen) : "l"(flags + 1) : "memory");
    while (!seen);
    *out = *data;
  }
}

// Many lanes have read it, and their reads are remembered together.
// launch flag_by_bytes: grid 1 block 64 args int[1]=zero int[64]=zero
extern "C" __global__ void flag_by_bytes(unsigned *flag, int *out) {
  if (threadIdx.x >= 32) {
    if (threadIdx.x == 32) atomicAdd(flag, 1);  // OTHER(flag_by_bytes)
    return;
  }
#ifdef REPAIRED
  out[threadIdx.x] = *(volatile unsigned *)flag > 1;
#else
  out[threadIdx.x] = *(volatile unsigned char *)flag > 1;  // HAZARD(flag_by_bytes): global-memory race
#endif
}

// An access of another size may follow once a barrier orders the two.
// launch sizes_in_turn: grid 1 block 64 args int[2]=zero int[64]=zero
extern "C" __global__ void sizes_in_turn(unsigned *words, int *out) {
  atomicAdd(words, 1);
  __syncthreads();
  out[threadIdx.x] = (int)*(volatile unsigned long long *)words + ((volatile unsigned char *)words)[0];
}

// Packed numbers are accessed one by one: an atomic on one of the two is of the same size.
// launch packed_and_single: grid 2 block 32 args half[2]=zero
extern "C" __global__ void packed_and_single(unsigned short *sums) {
  if (blockIdx.x == 0)
    asm volatile("red.relaxed.gpu.global.add.noftz.f16x2 [%0], %1;" ::"l"(sums), "r"(0x3c003c00) : "memory");
  else
    asm volatile("red.relaxed.gpu.global.add.noftz.f16 [%0], %1;" ::"l"(sums + 1), "h"((unsigned short)0x3c00) : "memory");
}
