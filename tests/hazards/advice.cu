// What a report says must be changed follows from the cause of the hazard, and not from its kind.
#include "ptx.h"

// ---- barriers ----

// Two barriers are needed: the one that is there orders the store before the load, and not the load before the next store.
// launch one_of_two: grid 1 block 64 args float[640] float[64]=zero
// ADVICE(one_of_two): Put __syncthreads() after the load at line {HAZARD}, before the next round's store at line {OTHER}
// ADVICE(one_of_two): orders the two the other way alone: the store at line {OTHER}, then the load at line {HAZARD}
extern "C" __global__ void one_of_two(const float *in, float *out) {
  __shared__ float tile[64];
  float sum = 0;
#pragma unroll 1
  for (int i = 0; i < 10; i++) {
    tile[threadIdx.x] = in[i * 64 + threadIdx.x];  // OTHER(one_of_two)
    __syncthreads();
    sum += tile[63 - threadIdx.x];  // HAZARD(one_of_two): shared-memory race
#ifdef REPAIRED
    __syncthreads();
#endif
  }
  out[threadIdx.x] = sum;
}

// The same where the compiler has unrolled the loop: no branch leads back.
// launch one_of_two_unrolled: grid 1 block 64 args float[256] float[64]=zero
// ADVICE(one_of_two_unrolled): Put __syncthreads() after the load at line {HAZARD}, before the next round's store at line {OTHER}
// ADVICE(one_of_two_unrolled): orders the two the other way alone: the store at line {OTHER}, then the load at line {HAZARD}
extern "C" __global__ void one_of_two_unrolled(const float *in, float *out) {
  __shared__ float tile[64];
  float sum = 0;
#pragma unroll
  for (int i = 0; i < 4; i++) {
    tile[threadIdx.x] = in[i * 64 + threadIdx.x];  // OTHER(one_of_two_unrolled)
    __syncthreads();
    sum += tile[63 - threadIdx.x];  // HAZARD(one_of_two_unrolled): shared-memory race
#ifdef REPAIRED
    __syncthreads();
#endif
  }
  out[threadIdx.x] = sum;
}

// A function that is called twice, without a loop: its store stands above its load, but no round leads back.
// launch called_twice: grid 1 block 64 args float[64] float[64]=zero
// ADVICE(called_twice): Put __syncthreads() after the load at line {HAZARD} (called at
// ADVICE(called_twice): ), before the store at line {OTHER} (called at
__device__ float exchange(float *tile, float x) {
  tile[threadIdx.x] = x;  // OTHER(called_twice)
  __syncthreads();
  return tile[63 - threadIdx.x];  // HAZARD(called_twice): shared-memory race
}

extern "C" __global__ void called_twice(const float *in, float *out) {
  __shared__ float tile[64];
  float x = exchange(tile, in[threadIdx.x]);
#ifdef REPAIRED
  __syncthreads();
#endif
  out[threadIdx.x] = exchange(tile, 2 * x);
}

// The other barrier of the two is missing.
// launch other_of_two: grid 1 block 64 args float[640] float[64]=zero
// ADVICE(other_of_two): Put __syncthreads() after the store at line {OTHER}, before the load at line {HAZARD}. The barrier
// ADVICE(other_of_two): orders the two the other way alone: the load at line {HAZARD}, then the store at line {OTHER}
// ALSO(other_of_two): uninitialised read
extern "C" __global__ void other_of_two(const float *in, float *out) {
  __shared__ float tile[64];
  float sum = 0;
#pragma unroll 1
  for (int i = 0; i < 10; i++) {
    tile[threadIdx.x] = in[i * 64 + threadIdx.x];  // OTHER(other_of_two)
#ifdef REPAIRED
    __syncthreads();
#endif
    sum += tile[63 - threadIdx.x];  // HAZARD(other_of_two): shared-memory race
    __syncthreads();
  }
  out[threadIdx.x] = sum;
}

// Neither of the two is there.
// launch none_of_two: grid 1 block 64 args float[640] float[64]=zero
// ADVICE(none_of_two): Put __syncthreads() after the store at line {OTHER}, before the load at line {HAZARD}, and another one
// ADVICE(none_of_two): another one after the load at line {HAZARD}, before the next round's store at line {OTHER}, if that
// ALSO(none_of_two): uninitialised read
extern "C" __global__ void none_of_two(const float *in, float *out) {
  __shared__ float tile[64];
  float sum = 0;
#pragma unroll 1
  for (int i = 0; i < 10; i++) {
    tile[threadIdx.x] = in[i * 64 + threadIdx.x];  // OTHER(none_of_two)
#ifdef REPAIRED
    __syncthreads();
#endif
    sum += tile[63 - threadIdx.x];  // HAZARD(none_of_two): shared-memory race
#ifdef REPAIRED
    __syncthreads();
#endif
  }
  out[threadIdx.x] = sum;
}

// Lanes of one warp need no barrier of the block.
// launch one_warp: grid 1 block 32 args float[32] float[32]=zero
// ADVICE(one_warp): Put __syncwarp() after the store at line {OTHER}, before the load at line {HAZARD}.
extern "C" __global__ void one_warp(const float *in, float *out) {
  __shared__ float tile[32];
  tile[threadIdx.x] = in[threadIdx.x];  // OTHER(one_warp)
#ifdef REPAIRED
  __syncwarp();
#endif
  out[threadIdx.x] = tile[31 - threadIdx.x];  // HAZARD(one_warp): shared-memory race
}

// A barrier stands between the two, for the first two warps.
// launch for_others: grid 1 block 128 args float[128] float[128]=zero
// ADVICE(for_others): A barrier stands between the two, at line
// ADVICE(for_others): but these two threads do not meet there
// ALSO(for_others): uninitialised read
extern "C" __global__ void for_others(const float *in, float *out) {
  __shared__ float tile[128];
  tile[threadIdx.x] = in[threadIdx.x];  // OTHER(for_others)
#ifdef REPAIRED
  barrier_sync(1, 128);
#else
  barrier_sync(1 + threadIdx.x / 64, 64);
#endif
  out[threadIdx.x] = tile[127 - threadIdx.x];  // HAZARD(for_others): shared-memory race
}

// Blocks of a cluster meet at its own barrier alone.
// launch peers: grid 2 block 32 cluster 2 args float[64] float[64]=zero
// ADVICE(peers): Put a cluster barrier (cluster.sync()) after the store at line {OTHER}, before the
// ALSO(peers): uninitialised read, ALSO(peers): out-of-bounds access
extern "C" __global__ void peers(const float *in, float *out) {
  __shared__ float tile[32];
  int t = threadIdx.x, rank = cluster_rank();
  tile[t] = in[rank * 32 + t];  // OTHER(peers)
#ifdef REPAIRED
  cluster_arrive();
  cluster_wait();
#else
  __syncthreads();
#endif
  out[rank * 32 + t] = load_cluster(shared_address_in(&tile[t], rank ^ 1));  // HAZARD(peers): shared-memory race
  cluster_arrive();
  cluster_wait();
}

// A warp is not alone with the bytes: the barrier must be the block's.
// launch many_warps: grid 1 block 64 args float[64] float[64]=zero
// ADVICE(many_warps): Put __syncthreads(), or __syncwarp() if one warp alone shares the bytes, after the store at line {OTHER}
extern "C" __global__ void many_warps(const float *in, float *out) {
  __shared__ float tile[64];
  int t = threadIdx.x;
  tile[t] = in[t];  // OTHER(many_warps)
#ifdef REPAIRED
  __syncwarp();
#endif
  out[t] = tile[t ^ 1];  // HAZARD(many_warps): shared-memory race
}

// All threads store to one place: no barrier helps.
// launch one_place: grid 1 block 64 args float[64] float[64]=zero
// ADVICE(one_place): Let one thread store, or give each thread a place of its own.
extern "C" __global__ void one_place(const float *in, float *out) {
  __shared__ float first;
#ifdef REPAIRED
  if (threadIdx.x == 5)
#endif
    first = in[threadIdx.x];  // HAZARD(one_place): shared-memory race
  __syncthreads();
  out[threadIdx.x] = first;
}

// The lanes behind the row of 16 store all the same, into the scales.
// launch into_the_scales: grid 1 block 32 shared 192 args int[32] int[32]=zero 16
// ADVICE(into_the_scales): covers 0x400 to 0x47f here; lane 16 of it writes what line {HAZARD} stores at 0x440.
// ADVICE(into_the_scales): If they are two arrays, the index of one leaves it: mask it, or make room; a barrier
extern "C" __global__ void into_the_scales(const int *in, int *out, int n) {
  extern __shared__ int packed[];
  int *scales = packed + n, t = threadIdx.x;
#ifdef REPAIRED
  if (t < n)
#endif
    packed[t] = in[t];                                    // OTHER(into_the_scales)
  if (t < n && t % 4 == 0) scales[t / 4] = in[t] + 1000;  // HAZARD(into_the_scales): shared-memory race
  __syncwarp();
  if (t < n) out[t] = packed[t] + scales[t / 4];
}

// ---- blocks ----

// A flag tells that the data is there, and no fence stands on either side.
// launch bare_flag: grid 2 block 32 args float[32] int[1]=zero float[32]=zero float[32]=zero
// ADVICE(bare_flag): A flag or an atomic alone hands no other memory on. Put __threadfence() after the store at line {OTHER}
// ADVICE(bare_flag): before the load at line {HAZARD}: in each thread that reads, or before a barrier.
// ALSO(bare_flag): uninitialised read
extern "C" __global__ void bare_flag(const float *in, volatile int *flag, float *data, float *out) {
  int t = threadIdx.x;
  if (blockIdx.x == 0) {
    data[t] = in[t];  // OTHER(bare_flag)
#ifdef REPAIRED
    __threadfence();
#endif
    __syncwarp();
    if (t == 0) *flag = 1;
  } else {
    if (t == 0)
      while (!*flag) {
      }
#ifdef REPAIRED
    __threadfence();
#endif
    __syncwarp();
    out[t] = data[t];  // HAZARD(bare_flag): global-memory race
  }
}

// The writers have their fence, and the readers do not.
// launch last_block: grid 4 block 32 args float[128] int[1]=zero float[128]=zero float[32]=zero
// ADVICE(last_block): A flag or an atomic alone hands no other memory on. Put __threadfence() after line
// ADVICE(last_block): before the load at line {HAZARD}: in each thread that reads, or before a barrier.
extern "C" __global__ void last_block(const float *in, int *done, float *part, float *out) {
  __shared__ bool last;
  int t = threadIdx.x;
  part[blockIdx.x * 32 + t] = in[blockIdx.x * 32 + t];  // OTHER(last_block)
  __threadfence();
  __syncthreads();
  if (t == 0) {
    last = atomicAdd(done, 1) == 3;
#ifdef REPAIRED
    __threadfence();
#endif
  }
  __syncthreads();
  if (!last) return;
  float sum = 0;
  for (int b = 0; b < 4; b++) sum += part[b * 32 + t];  // HAZARD(last_block): global-memory race
  out[t] = sum;
}

// ---- groups of copies ----

// The thread waits for all groups but one, and needs the one.
// launch one_too_many: grid 1 block 32 args float[64] float[32]=zero
// ADVICE(one_too_many): leaves the newest group in flight, and this one is in it. Wait by cp.async.wait_group 0 before line {HAZARD}
extern "C" __global__ void one_too_many(const float *in, float *out) {
  __shared__ float tile[64];
  int t = threadIdx.x;
  cp_async_float(&tile[t], &in[t]);
  cp_async_commit();
  cp_async_float(&tile[32 + t], &in[32 + t]);  // OTHER(one_too_many)
  cp_async_commit();
#ifdef REPAIRED
  cp_async_wait<0>();
#else
  cp_async_wait<1>();
#endif
  out[t] = tile[t] + tile[32 + t];  // HAZARD(one_too_many): read before wait
}

// The group is committed after the wait that should count it.
// launch late_commit: grid 1 block 32 args float[32] float[32]=zero
// ADVICE(late_commit): it was in no group yet. Put cp.async.commit_group after line {OTHER}, before the wait.
extern "C" __global__ void late_commit(const float *in, float *out) {
  __shared__ float tile[32];
  int t = threadIdx.x;
  cp_async_float(&tile[t], &in[t]);  // OTHER(late_commit)
#ifdef REPAIRED
  cp_async_commit();
#endif
  cp_async_wait<0>();
#ifndef REPAIRED
  cp_async_commit();
#endif
  out[t] = tile[t];  // HAZARD(late_commit): read before wait
}

// A wait that leaves one group in flight counts on the newest one, which is not committed yet.
// launch open_group: grid 1 block 32 args float[64] float[32]=zero
// ADVICE(open_group): was in no group yet and did not count: put cp.async.commit_group after it, before the wait.
extern "C" __global__ void open_group(const float *in, float *out) {
  __shared__ float tile[64];
  int t = threadIdx.x;
  cp_async_float(&tile[t], &in[t]);  // OTHER(open_group)
  cp_async_commit();
  cp_async_float(&tile[32 + t], &in[32 + t]);
#ifdef REPAIRED
  cp_async_commit();
#endif
  cp_async_wait<1>();
  float first = tile[t];  // HAZARD(open_group): read before wait
#ifndef REPAIRED
  cp_async_commit();
#endif
  cp_async_wait<0>();
  out[t] = first + tile[32 + t];
}

// Each thread has waited, for its own copies. There is a barrier, before the wait.
// launch others_copies: grid 1 block 64 args float[64] float[64]=zero
// ADVICE(others_copies): A thread waits for its own operations alone, and thread
// ADVICE(others_copies): A barrier or an arrival after the wait hands the memory on, before line {HAZARD}.
extern "C" __global__ void others_copies(const float *in, float *out) {
  __shared__ float tile[64];
  int t = threadIdx.x;
  cp_async_float(&tile[t], &in[t]);  // OTHER(others_copies)
  cp_async_commit();
#ifdef REPAIRED
  cp_async_wait<0>();
#endif
  __syncthreads();
#ifndef REPAIRED
  cp_async_wait<0>();
#endif
  out[t] = tile[63 - t];  // HAZARD(others_copies): read before wait
}

// A slot is filled again while the store that reads it may be the one group that the wait leaves in flight.
// launch slot_in_use: grid 1 block 1 args float[256] float[256]=zero
// ADVICE(slot_in_use): and this one is in it. Wait by cp.async.bulk.wait_group.read 0 before line {HAZARD}.
extern "C" __global__ void slot_in_use(const float *in, float *out) {
  __shared__ alignas(128) float slot[64];
#pragma unroll 1
  for (int i = 0; i < 4; i++) {
#ifdef REPAIRED
    bulk_wait_read<0>();
#else
    bulk_wait_read<1>();
#endif
    for (int j = 0; j < 64; j++) slot[j] = in[i * 64 + j];  // HAZARD(slot_in_use): overwrite in flight
    fence_async();
    bulk_store(out + i * 64, slot, sizeof slot);  // OTHER(slot_in_use)
    bulk_commit();
  }
  bulk_wait<0>();
}

// ---- the fence of the async proxy ----

// The only fence is in a loop that runs for no element.
// launch skipped_fence: grid 1 block 64 args float[64] float[64]=zero 0
// ADVICE(skipped_fence): is not on every way from line {OTHER} to line {HAZARD}
// ADVICE(skipped_fence): Put one where every way passes it, after line {OTHER} and before the barrier.
extern "C" __global__ void skipped_fence(const float *in, float *out, int n) {
  __shared__ alignas(128) float state[64];
  int t = threadIdx.x;
  state[t] = 1;  // OTHER(skipped_fence)
#ifdef REPAIRED
  fence_async();
#endif
#pragma unroll 1
  for (int i = 0; i < n; i++) {
    state[t] += in[t];
    fence_async();
  }
  __syncthreads();
  if (t == 0) {
    bulk_store(out, state, sizeof state);  // HAZARD(skipped_fence): missing proxy fence
    bulk_commit();
    bulk_wait<0>();
  }
}

// One thread executes the fence before the barrier, for all.
// launch fence_of_one: grid 1 block 64 args float[64] float[64]=zero
// ADVICE(fence_of_one): Put one where every way passes it, after line {OTHER} and before the barrier.
extern "C" __global__ void fence_of_one(const float *in, float *out) {
  __shared__ alignas(128) float state[64];
  int t = threadIdx.x;
  state[t] = in[t];  // OTHER(fence_of_one)
#ifndef REPAIRED
  if (t == 0)
#endif
    fence_async();
  __syncthreads();
  if (t == 0) {
    bulk_store(out, state, sizeof state);  // HAZARD(fence_of_one): missing proxy fence
    bulk_commit();
    bulk_wait<0>();
  }
}

// ---- copies by several threads ----

// A lane of each warp is elected, and each issues the copy.
// launch elected_twice: grid 1 block 64 args float[64] float[64]=zero
// ADVICE(elected_twice): Several threads issue this operation for the same bytes: let one thread issue it.
// ALSO(elected_twice): wrong expect_tx
// ALSO(elected_twice): read before wait
// ALSO(elected_twice): formal overwrite in flight
extern "C" __global__ void elected_twice(const float *in, float *out) {
  __shared__ alignas(128) float tile[64];
  __shared__ uint64_t full;
  int t = threadIdx.x;
  if (t == 0) {
    mbarrier_init(&full, 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect(&full, sizeof tile);  // ALSO(elected_twice): wrong expect_tx
  }
  __syncthreads();
#ifdef REPAIRED
  if (t < 32 && elect())
#else
  if (elect())
#endif
    bulk_load(tile, in, sizeof tile, &full);  // HAZARD(elected_twice): shared-memory race
  mbarrier_wait(&full, 0);
  out[t] = tile[t];  // ALSO(elected_twice): shared-memory race
}

// ---- bytes that nothing has written ----

// Rows of 72 halves have 64 that are written, and the matrix that is loaded is 72 wide.
// launch padded_rows: grid 1 block 32 args half[1024] float[32]=zero
// ADVICE(padded_rows): columns 64 to 71 of each row of 72 in `queries`
// ADVICE(padded_rows): Read only the columns that are written
extern "C" __global__ void padded_rows(const half *in, float *out) {
  __shared__ alignas(16) half queries[16 * 72];
  int t = threadIdx.x;
  for (int i = t; i < 16 * 64; i += 32) queries[i / 64 * 72 + i % 64] = in[i];
  __syncwarp();
#ifdef REPAIRED
  unsigned x = load_matrix(&queries[t % 8 * 72 + 56]);
#else
  unsigned x = load_matrix(&queries[t % 8 * 72 + 64]);  // HAZARD(padded_rows): uninitialised read
#endif
  out[t] = x & 0xff;
}

// The rows behind the sequence's end are never written, and their weights are zero.
// launch tail_rows: grid 1 block 32 args float[288] float[32]=zero 9
// ADVICE(tail_rows): bytes 1152 to 2047 of the 2048 of `values`
// ADVICE(tail_rows): What the data does not fill needs zeros, also where it is multiplied by 0: 0 * NaN is NaN.
extern "C" __global__ void tail_rows(const float *in, float *out, int n) {
  __shared__ float values[16 * 32];
  int t = threadIdx.x;
#pragma unroll 1
  for (int r = 0; r < 16; r++) {
    if (r < n) values[r * 32 + t] = in[r * 32 + t];
#ifdef REPAIRED
    else
      values[r * 32 + t] = 0;
#endif
  }
  float sum = 0;
#pragma unroll 1
  for (int r = 0; r < 16; r++) sum += (r < n ? 1.0f : 0.0f) * values[r * 32 + t];  // HAZARD(tail_rows): uninitialised read
  out[t] = sum;
}

// ---- swizzles ----

// The program swizzles offsets in its tile, and the copy swizzles addresses: the tile begins 128 bytes behind a pattern.
// launch off_the_pattern: grid 1 block 64 shared 3072 args half[512] float[512]=zero map:0:64x8:64x8:128B
// ADVICE(off_the_pattern): Align the tile to 1024 bytes
extern "C" __global__ void off_the_pattern(const half *in, float *out, const __grid_constant__ TensorMap map) {
  extern __shared__ char shared[];
  __shared__ uint64_t full;
  int t = threadIdx.x, row = t / 8, chunk = t % 8;
  char *tile = shared + (-shared_address(shared) & 1023);
#ifndef REPAIRED
  tile += 128;
#endif
  if (t == 0) {
    mbarrier_init(&full, 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect(&full, 1024);
    tensor_load(tile, &map, 0, 0, &full);  // HAZARD(off_the_pattern): note misaligned access
  }
  __syncthreads();
  mbarrier_wait(&full, 0);
  const half *p = (const half *)(tile + row * 128 + ((chunk ^ row) * 16));
  for (int i = 0; i < 8; i++) out[t * 8 + i] = __half2float(p[i]);
}

// Four rows are half a pattern: the second box is a part of a tile that begins with one.
// launch half_patterns: grid 1 block 64 shared 3072 args half[512] float[512]=zero map:0:64x8:64x4:128B
extern "C" __global__ void half_patterns(const half *in, float *out, const __grid_constant__ TensorMap map) {
  extern __shared__ char shared[];
  __shared__ uint64_t full;
  int t = threadIdx.x, row = t / 8, chunk = t % 8;
  char *tile = shared + (-shared_address(shared) & 1023);
  if (t == 0) {
    mbarrier_init(&full, 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect(&full, 1024);
    tensor_load(tile, &map, 0, 0, &full);
    tensor_load(tile + 512, &map, 0, 4, &full);
  }
  __syncthreads();
  mbarrier_wait(&full, 0);
  const half *p = (const half *)(tile + row * 128 + ((chunk ^ row) * 16));
  for (int i = 0; i < 8; i++) out[t * 8 + i] = __half2float(p[i]);
}

// ---- updates ----

// A load, an addition and a store: between them no barrier helps, since two threads may have the same place.
// launch histogram: grid 1 block 64 args int[256]=zero int[16]=zero
// ADVICE(histogram): Use an atomic
extern "C" __global__ void histogram(const int *in, int *out) {
  __shared__ int counts[16];
  int t = threadIdx.x;
  if (t < 16) counts[t] = 0;
  __syncthreads();
  for (int i = 0; i < 4; i++) {
    int bin = in[i * 64 + t] + t % 16;
#ifdef REPAIRED
    atomicAdd(&counts[bin], 1);
#else
    counts[bin]++;  // HAZARD(histogram): shared-memory race
#endif
  }
  __syncthreads();
  if (t < 16) out[t] = counts[t];
}

// The store stands two lines below the load, with another between them.
// launch next_place: grid 2 block 64 args int[128]=zero int[1]=zero
// ADVICE(next_place): Use an atomic
extern "C" __global__ void next_place(int *items, int *count) {
#ifdef REPAIRED
  items[atomicAdd(count, 1)] = 1;
#else
  int place = *count;  // HAZARD(next_place): global-memory race
  items[place] = 1;    // ALSO(next_place): global-memory race
  *count = place + 1;  // OTHER(next_place)
#endif
}

// No update: all threads load, and only one of them stores.
// launch one_stores: grid 1 block 64 args int[64]=zero
// ADVICE(one_stores): __syncwarp() if one warp alone shares the bytes, after the load at line {HAZARD}, before the store
extern "C" __global__ void one_stores(int *out) {
  __shared__ int level;
  if (threadIdx.x == 0) level = 5;
  __syncthreads();
  int mine = level;  // HAZARD(one_stores): shared-memory race
#ifdef REPAIRED
  __syncthreads();
#endif
  if (threadIdx.x == 0) level = mine + 1;  // OTHER(one_stores)
  out[threadIdx.x] = mine;
}

// No update of one place: a thread adds to its own place what lies in another's.
// launch tree_sum: grid 1 block 64 args float[64] float[1]=zero
// ADVICE(tree_sum): after the store at line {HAZARD}, before
extern "C" __global__ void tree_sum(const float *in, float *out) {
  __shared__ float sums[64];
  int t = threadIdx.x;
  sums[t] = in[t];
  __syncthreads();
  for (int step = 32; step; step /= 2) {
    if (t < step) sums[t] += sums[t + step];  // HAZARD(tree_sum): shared-memory race
#ifdef REPAIRED
    __syncthreads();
#endif
  }
  if (t == 0) *out = sums[0];
}
