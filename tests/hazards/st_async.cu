// st.async: stores into another block's shared memory, which arrive some time later. An mbarrier of that block counts
// their bytes.
#include "ptx.h"

// Both blocks know of the mbarriers from here on. They are used through the generic proxy alone.
__device__ void init(uint64_t *barrier) {
  if (threadIdx.x == 0) mbarrier_init(barrier, 1);
  cluster_arrive();
  cluster_wait();
}

// The cluster's barrier orders what the threads do, but the stores are still under way.
// launch no_wait: grid 2 block 32 cluster 2 args float[64] float[64]=zero
extern "C" __global__ void no_wait(const float *in, float *out) {
  __shared__ float tile[32];
  __shared__ uint64_t full;
  int t = threadIdx.x, rank = cluster_rank();
  unsigned other = shared_address_in(&tile[31 - t], 1 - rank);
  init(&full);
  if (t == 0) mbarrier_arrive_expect(&full, sizeof tile);
  store_async(other, in[32 * rank + t], shared_address_in(&full, 1 - rank));  // OTHER(no_wait)
  cluster_arrive();
  cluster_wait();
#ifdef REPAIRED
  mbarrier_wait(&full, 0);
#endif
  out[32 * rank + t] = tile[t];  // HAZARD(no_wait): read before wait
  cluster_arrive();
  cluster_wait();
  mbarrier_wait(&full, 0);
}

// The tile has 32 floats, and the mbarrier is told of 32 bytes.
// launch too_few: grid 2 block 32 cluster 2 args float[64] float[64]=zero
extern "C" __global__ void too_few(const float *in, float *out) {
  __shared__ float tile[32];
  __shared__ uint64_t full;
  int t = threadIdx.x, rank = cluster_rank();
#ifdef REPAIRED
  int bytes = sizeof tile;
#else
  int bytes = 32;
#endif
  init(&full);
  if (t == 0) mbarrier_arrive_expect(&full, bytes);  // HAZARD(too_few): wrong expect_tx
  store_async(shared_address_in(&tile[31 - t], 1 - rank), in[32 * rank + t],  // ALSO(too_few): shared-memory race
              shared_address_in(&full, 1 - rank));
  mbarrier_wait(&full, 0);
  out[32 * rank + t] = tile[t];  // ALSO(too_few): overwrite in flight
  cluster_arrive();
  cluster_wait();
}

// Eight threads store four floats each: a quarter of what is expected.
// launch too_many: grid 2 block 32 cluster 2 args float[64] float[64]=zero
extern "C" __global__ void too_many(const float *in, float *out) {
  __shared__ alignas(16) float tile[32];
  __shared__ uint64_t full;
  int t = threadIdx.x, rank = cluster_rank();
  init(&full);
  if (t == 0) mbarrier_arrive_expect(&full, sizeof tile);  // HAZARD(too_many): wrong expect_tx
#ifdef REPAIRED
  bool stores = t < 8;
#else
  bool stores = t < 2;
#endif
  if (stores) {
    float4 x = reinterpret_cast<const float4 *>(in)[8 * rank + t];
    store_async_four(shared_address_in(&tile[4 * t], 1 - rank), x, shared_address_in(&full, 1 - rank));
  }
  mbarrier_wait(&full, 0);
  out[32 * rank + t] = tile[t];
  cluster_arrive();
  cluster_wait();
}

// Four floats in one store need an address that is a multiple of 16.
// launch odd_place: grid 2 block 32 cluster 2 args float[64] float[64]=zero
extern "C" __global__ void odd_place(const float *in, float *out) {
  __shared__ alignas(16) float tile[36];
  __shared__ uint64_t full;
  int t = threadIdx.x, rank = cluster_rank();
#ifdef REPAIRED
  float *first = tile;
#else
  float *first = tile + 1;
#endif
  init(&full);
  if (t == 0) mbarrier_arrive_expect(&full, 128);
  if (t < 8) {
    float4 x = reinterpret_cast<const float4 *>(in)[8 * rank + t];
    unsigned other = shared_address_in(&first[4 * t], 1 - rank);
    store_async_four(other, x, shared_address_in(&full, 1 - rank));  // HAZARD(odd_place): misaligned access
  }
  mbarrier_wait(&full, 0);
  out[32 * rank + t] = first[t];
  cluster_arrive();
  cluster_wait();
}

// The other block's tile is taken for one of 64 KiB.
// launch past_the_tile: grid 2 block 32 cluster 2 args float[64] float[64]=zero
extern "C" __global__ void past_the_tile(const float *in, float *out) {
  __shared__ float tile[32];
  __shared__ uint64_t full;
  int t = threadIdx.x, rank = cluster_rank();
#ifdef REPAIRED
  int stride = 1;
#else
  int stride = 512;
#endif
  init(&full);
  if (t == 0) mbarrier_arrive_expect(&full, sizeof tile);
  unsigned other = shared_address_in(tile, 1 - rank) + 4 * stride * t, barrier = shared_address_in(&full, 1 - rank);
  store_async(other, in[32 * rank + t], barrier);  // HAZARD(past_the_tile): out-of-bounds access
  mbarrier_wait(&full, 0);
  out[32 * rank + t] = tile[t];
  cluster_arrive();
  cluster_wait();
}

// The sender's own mbarrier: but the bytes must be counted where they arrive.
// launch own_mbarrier: grid 2 block 32 cluster 2 args float[64] float[64]=zero
extern "C" __global__ void own_mbarrier(const float *in, float *out) {
  __shared__ float tile[32];
  __shared__ uint64_t full;
  int t = threadIdx.x, rank = cluster_rank();
#ifdef REPAIRED
  int counts = 1 - rank;
#else
  int counts = rank;
#endif
  unsigned other = shared_address_in(&tile[31 - t], 1 - rank), barrier = shared_address_in(&full, counts);
  init(&full);
  if (t == 0) mbarrier_arrive_expect(&full, sizeof tile);
  store_async(other, in[32 * rank + t], barrier);  // HAZARD(own_mbarrier): mbarrier misuse
  mbarrier_wait(&full, 0);
  out[32 * rank + t] = tile[t];
  cluster_arrive();
  cluster_wait();
}

// The receiver clears its tile while values arrive in it.
// launch clears_late: grid 2 block 32 cluster 2 args float[64] float[64]=zero
extern "C" __global__ void clears_late(const float *in, float *out) {
  __shared__ float tile[32];
  __shared__ uint64_t full;
  int t = threadIdx.x, rank = cluster_rank();
  unsigned other = shared_address_in(&tile[31 - t], 1 - rank);
#ifdef REPAIRED
  tile[t] = 0;
#endif
  init(&full);
  if (t == 0) mbarrier_arrive_expect(&full, sizeof tile);
  store_async(other, in[32 * rank + t], shared_address_in(&full, 1 - rank));  // OTHER(clears_late)
  cluster_arrive();
  cluster_wait();
#ifndef REPAIRED
  tile[t] = 0;  // HAZARD(clears_late): overwrite in flight
#endif
  mbarrier_wait(&full, 0);
  out[32 * rank + t] = tile[t];  // ALSO(clears_late): shared-memory race
  cluster_arrive();
  cluster_wait();
}

// A slot is filled again when its values have been read, of which the sender must hear.
// launch no_release: grid 2 block 32 cluster 2 args float[64] float[64]=zero
extern "C" __global__ void no_release(const float *in, float *out) {
  __shared__ float tile[32];
  __shared__ uint64_t full;
  int t = threadIdx.x, rank = cluster_rank();
  unsigned other = shared_address_in(&tile[31 - t], 1 - rank), barrier = shared_address_in(&full, 1 - rank);
  float sum = 0;
  init(&full);
  if (t == 0) mbarrier_arrive_expect(&full, sizeof tile);  // ALSO(no_release): wrong expect_tx
  for (int k = 0; k < 2; k++) {
    store_async(other, in[32 * rank + t] + k, barrier);  // HAZARD(no_release): overwrite in flight
    mbarrier_wait(&full, k);
    sum += tile[t];  // ALSO(no_release): shared-memory race
    __syncwarp();
    if (t == 0 && k == 0) mbarrier_arrive_expect(&full, sizeof tile);  // ALSO(no_release): wrong expect_tx
#ifdef REPAIRED
    cluster_arrive();
    cluster_wait();
#endif
  }
  out[32 * rank + t] = sum;
  cluster_arrive();
  cluster_wait();
}

// The store goes through the generic proxy, and the copy that takes its values on through the async proxy.
// launch no_proxy_fence: grid 2 block 32 cluster 2 args float[64] float[64]=zero
extern "C" __global__ void no_proxy_fence(const float *in, float *out) {
  __shared__ alignas(16) float tile[32];
  __shared__ uint64_t full;
  int t = threadIdx.x, rank = cluster_rank();
  unsigned other = shared_address_in(&tile[31 - t], 1 - rank);
  init(&full);
  if (t == 0) mbarrier_arrive_expect(&full, sizeof tile);
  store_async(other, in[32 * rank + t], shared_address_in(&full, 1 - rank));  // OTHER(no_proxy_fence)
  mbarrier_wait(&full, 0);
#ifdef REPAIRED
  fence_async();
#endif
  __syncwarp();
  if (t == 0) {
    bulk_store(out + 32 * rank, tile, sizeof tile);  // HAZARD(no_proxy_fence): missing proxy fence
    bulk_commit();
    bulk_wait<0>();
  }
  cluster_arrive();
  cluster_wait();
}

// What the sender has written before its store, the receiver may read after its wait: the mbarrier hands it on.
// launch message: grid 2 block 32 cluster 2 args float[64] float[128]=zero
extern "C" __global__ void message(const float *in, float *out) {
  __shared__ float tile[32], note[32];
  __shared__ uint64_t full;
  int t = threadIdx.x, rank = cluster_rank();
  init(&full);
  if (t == 0) mbarrier_arrive_expect(&full, sizeof tile);
  store_cluster(shared_address_in(&note[t], 1 - rank), in[32 * rank + t] + 1);
  __syncwarp();
  store_async(shared_address_in(&tile[31 - t], 1 - rank), in[32 * rank + t], shared_address_in(&full, 1 - rank));
  mbarrier_wait(&full, 0);
  out[64 * rank + t] = tile[t];
  out[64 * rank + 32 + t] = note[t];
  cluster_arrive();
  cluster_wait();
}

// A block that has waited for all that the other one stores in it may end: nobody comes any more.
// launch last_word: grid 2 block 32 cluster 2 args float[64] float[64]=zero
extern "C" __global__ void last_word(const float *in, float *out) {
  __shared__ float tile[32];
  __shared__ uint64_t full;
  int t = threadIdx.x, rank = cluster_rank();
  init(&full);
  if (t == 0) mbarrier_arrive_expect(&full, sizeof tile);
  store_async(shared_address_in(&tile[31 - t], 1 - rank), in[32 * rank + t], shared_address_in(&full, 1 - rank));
  mbarrier_wait(&full, 0);
  out[32 * rank + t] = tile[t];
}
