// Clusters: blocks that reach into each other's shared memory, and have one barrier of all their threads.
#include "ptx.h"

// The other block may not have written its half yet: __syncthreads is of one block.
// launch block_barrier: grid 2 block 32 cluster 2 args float[64] float[64]=zero
extern "C" __global__ void block_barrier(const float *in, float *out) {
  __shared__ float tile[32];
  int t = threadIdx.x, rank = cluster_rank();
  tile[t] = in[32 * rank + t];  // OTHER(block_barrier)
#ifdef REPAIRED
  cluster_arrive();
  cluster_wait();
#else
  __syncthreads();
#endif
  unsigned other = shared_address_in(&tile[31 - t], 1 - rank);
  // ALSO(block_barrier): uninitialised read, ALSO(block_barrier): out-of-bounds access
  float x = load_cluster(other);  // HAZARD(block_barrier): shared-memory race
  out[32 * rank + t] = x;
  cluster_arrive();
  cluster_wait();
}

// The owner exits as soon as it is done, and its shared memory with it.
// launch owner_exits: grid 2 block 32 cluster 2 args float[64] float[64]=zero
// ADVICE(owner_exits): ut a cluster barrier (cluster.sync())
extern "C" __global__ void owner_exits(const float *in, float *out) {
  __shared__ float tile[32];
  int t = threadIdx.x, rank = cluster_rank();
  tile[t] = in[32 * rank + t];
  cluster_arrive();
  cluster_wait();
  unsigned other = shared_address_in(&tile[31 - t], 1 - rank);
  out[32 * rank + t] = load_cluster(other);  // HAZARD(owner_exits): out-of-bounds access
#ifdef REPAIRED
  cluster_arrive();
  cluster_wait();
#endif
}

// They add by atomics, but of a block's scope.
// launch both_count: grid 2 block 32 cluster 2 args int[64] int[1]=zero
extern "C" __global__ void both_count(const int *in, int *out) {
  __shared__ int sum;
  int t = threadIdx.x, rank = cluster_rank();
  if (t == 0) sum = 0;
  cluster_arrive();
  cluster_wait();
  unsigned first = shared_address_in(&sum, 0);
#ifdef REPAIRED
  add_cluster(first, in[32 * rank + t]);
#else
  add_cta(first, in[32 * rank + t]);  // HAZARD(both_count): shared-memory race
#endif
  cluster_arrive();
  cluster_wait();
  if (t == 0 && rank == 0) *out = sum;
}

// Both blocks add into the first one's memory, with a load and a store.
// launch both_add: grid 2 block 32 cluster 2 args float[64] float[32]=zero
extern "C" __global__ void both_add(const float *in, float *out) {
  __shared__ float sums[32];
  int t = threadIdx.x, rank = cluster_rank();
  sums[t] = 0;
  cluster_arrive();
  cluster_wait();
#ifdef REPAIRED
  for (int turn = 0; turn < 2; turn++) {
    if (rank == turn)
#endif
    {
      unsigned sum = shared_address_in(&sums[t], 0);
      float before = load_cluster(sum);                // ALSO(both_add): shared-memory race
      store_cluster(sum, before + in[32 * rank + t]);  // HAZARD(both_add): shared-memory race
    }
#ifdef REPAIRED
    cluster_arrive();
    cluster_wait();
  }
#else
  cluster_arrive();
  cluster_wait();
#endif
  if (rank == 0) out[t] = sums[t];
}

// A relaxed arrival hands nothing on: it is for what a fence has released before.
// launch relaxed: grid 2 block 32 cluster 2 args float[64] float[64]=zero
extern "C" __global__ void relaxed(const float *in, float *out) {
  __shared__ float tile[32];
  int t = threadIdx.x, rank = cluster_rank();
  unsigned other = shared_address_in(&tile[31 - t], 1 - rank);
  cluster_arrive();
  cluster_wait();
  store_cluster(other, in[32 * rank + t]);  // OTHER(relaxed), ALSO(relaxed): shared-memory race
#ifdef REPAIRED
  cluster_arrive();
#else
  cluster_arrive_relaxed();
#endif
  cluster_wait();
  out[32 * rank + t] = tile[t];  // HAZARD(relaxed): shared-memory race
  cluster_arrive();
  cluster_wait();
}

// The neighbour on the right, and the last block has none.
// launch right_neighbour: grid 4 block 32 cluster 4 args float[128] float[128]=zero
extern "C" __global__ void right_neighbour(const float *in, float *out) {
  __shared__ float tile[32];
  int t = threadIdx.x, rank = cluster_rank();
  tile[t] = in[32 * rank + t];
  cluster_arrive();
  cluster_wait();
#ifdef REPAIRED
  int right = (rank + 1) % 4;
#else
  int right = rank + 1;
#endif
  unsigned other = shared_address_in(&tile[t], right);
  out[32 * rank + t] = load_cluster(other);  // HAZARD(right_neighbour): out-of-bounds access
  cluster_arrive();
  cluster_wait();
}

// Two arrivals and one wait.
// launch arrives_twice: grid 2 block 32 cluster 2 args float[64] float[64]=zero
extern "C" __global__ void arrives_twice(const float *in, float *out) {
  __shared__ float tile[32];
  int t = threadIdx.x, rank = cluster_rank();
  tile[t] = in[32 * rank + t];
  cluster_arrive();
#ifdef REPAIRED
  cluster_wait();
  out[32 * rank + t] = load_cluster(shared_address_in(&tile[31 - t], 1 - rank));
#endif
  out[32 * rank + t] += tile[t];
  cluster_arrive();  // HAZARD(arrives_twice): barrier misuse
  cluster_wait();
}

// One copy for both blocks: the other one's mbarrier must have been initialised, and all know of it.
// launch multicast_early: grid 2 block 32 cluster 2 args float[32] float[64]=zero
extern "C" __global__ void multicast_early(const float *in, float *out) {
  __shared__ alignas(16) float tile[32];
  __shared__ uint64_t full;
  int t = threadIdx.x, rank = cluster_rank();
  if (t == 0) {
    mbarrier_init(&full, 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect(&full, sizeof tile);
  }
#ifdef REPAIRED
  cluster_arrive();
  cluster_wait();
#else
  __syncthreads();
#endif
  // ALSO(multicast_early): out-of-bounds access
  if (t == 0 && rank == 0) bulk_multicast(tile, in, sizeof tile, &full, 3);  // HAZARD(multicast_early): mbarrier misuse
  mbarrier_wait(&full, 0);
  out[32 * rank + t] = tile[31 - t];
  cluster_arrive();
  cluster_wait();
}

// The mask names a block that the cluster does not have.
// launch multicast_mask: grid 2 block 32 cluster 2 args float[32] float[64]=zero
extern "C" __global__ void multicast_mask(const float *in, float *out) {
  __shared__ alignas(16) float tile[32];
  __shared__ uint64_t full;
  int t = threadIdx.x, rank = cluster_rank();
  if (t == 0) {
    mbarrier_init(&full, 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect(&full, sizeof tile);
  }
  cluster_arrive();
  cluster_wait();
#ifdef REPAIRED
  int mask = 3;
#else
  int mask = 6;
#endif
  if (t == 0 && rank == 0)
    bulk_multicast(tile, in, sizeof tile, &full, mask);  // HAZARD(multicast_mask): out-of-bounds access
  mbarrier_wait(&full, 0);
  out[32 * rank + t] = tile[31 - t];
  cluster_arrive();
  cluster_wait();
}

// Each block expects the bytes of both copies, and each block's copy goes to itself alone.
// launch half_of_it: grid 2 block 32 cluster 2 args float[64] float[128]=zero
extern "C" __global__ void half_of_it(const float *in, float *out) {
  __shared__ alignas(16) float tile[64];
  __shared__ uint64_t full;
  int t = threadIdx.x, rank = cluster_rank();
  if (t == 0) {
    mbarrier_init(&full, 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect(&full, sizeof tile);  // HAZARD(half_of_it): wrong expect_tx
  }
  cluster_arrive();
  cluster_wait();
#ifdef REPAIRED
  int ranks = 3;
#else
  int ranks = 1 << rank;
#endif
  if (t == 0) bulk_multicast(&tile[32 * rank], in + 32 * rank, 128, &full, ranks);
  mbarrier_wait(&full, 0);
  out[64 * rank + t] = tile[t];
  out[64 * rank + 32 + t] = tile[32 + t];
  cluster_arrive();
  cluster_wait();
}

// A tile for both blocks is refilled when the issuing block's threads are done with it, and the other block still
// reads.
// launch others_read: grid 2 block 32 cluster 2 args float[128] float[64]=zero 4
extern "C" __global__ void others_read(const float *in, float *out, int rounds) {
  __shared__ alignas(16) float tile[32];
  __shared__ uint64_t full, empty;
  int t = threadIdx.x, rank = cluster_rank();
  if (t == 0) {
    mbarrier_init(&full, 1);
#ifdef REPAIRED
    mbarrier_init(&empty, 64);
#else
    mbarrier_init(&empty, 32);
#endif
    fence_mbarrier_init();
  }
  cluster_arrive();
  cluster_wait();
  float sum = 0;
  for (int k = 0; k < rounds; k++) {
    if (t == 0) mbarrier_arrive_expect(&full, sizeof tile);  // ALSO(others_read): wrong expect_tx
    if (t == 0 && rank == 0) {
      if (k > 0) mbarrier_wait(&empty, (k - 1) % 2);
      bulk_multicast(tile, in + 32 * k, sizeof tile, &full, 3);  // HAZARD(others_read): overwrite in flight
    }
    __syncwarp();
    mbarrier_wait(&full, k % 2);
    sum += tile[31 - t];  // ALSO(others_read): shared-memory race
#ifdef REPAIRED
    mbarrier_arrive_at(shared_address_in(&empty, 0));
#else
    mbarrier_arrive(&empty);
#endif
  }
  out[32 * rank + t] = sum;
  cluster_arrive();
  cluster_wait();
}

// The last release goes to a block that may have gone: nobody there waits for it any more.
// launch last_release: grid 2 block 32 cluster 2 args float[32] float[32]=zero
extern "C" __global__ void last_release(const float *in, float *out) {
  __shared__ uint64_t empty;
  int t = threadIdx.x, rank = cluster_rank();
  if (rank == 0 && t == 0) {
    mbarrier_init(&empty, 32);
    fence_mbarrier_init();
  }
  cluster_arrive();
  cluster_wait();
  if (rank == 1) {
    out[t] = in[t];
    mbarrier_arrive_at(shared_address_in(&empty, 0));  // HAZARD(last_release): out-of-bounds access
  }
#ifdef REPAIRED
  else
    mbarrier_wait(&empty, 0);
#endif
}  // ALSO(last_release): out-of-bounds access

// An arrival at another block's mbarrier without .release.cluster. Here it tells that the tile has been read, which
// is so on the hardware.
// launch narrow_release: grid 2 block 32 cluster 2 args float[128] float[64]=zero 4
extern "C" __global__ void narrow_release(const float *in, float *out, int rounds) {
  __shared__ alignas(16) float tile[32];
  __shared__ uint64_t full, empty;
  int t = threadIdx.x, rank = cluster_rank();
  if (t == 0) {
    mbarrier_init(&full, 1);
    mbarrier_init(&empty, 64);
    fence_mbarrier_init();
  }
  cluster_arrive();
  cluster_wait();
  float sum = 0;
  for (int k = 0; k < rounds; k++) {
    if (t == 0) mbarrier_arrive_expect(&full, sizeof tile);
    if (t == 0 && rank == 0) {
      if (k > 0) mbarrier_wait(&empty, (k - 1) % 2);
      bulk_multicast(tile, in + 32 * k, sizeof tile, &full, 3);  // OTHER(narrow_release)
    }
    __syncwarp();
    mbarrier_wait(&full, k % 2);
    sum += tile[31 - t];  // HAZARD(narrow_release): formal shared-memory race
#ifdef REPAIRED
    mbarrier_arrive_at(shared_address_in(&empty, 0));
#else
    mbarrier_arrive_narrow(shared_address_in(&empty, 0));
#endif
  }
  out[32 * rank + t] = sum;
  cluster_arrive();
  cluster_wait();
}

// The same, and the tile is read behind the arrival.
// launch narrow_early: grid 2 block 32 cluster 2 args float[128] float[64]=zero 4
extern "C" __global__ void narrow_early(const float *in, float *out, int rounds) {
  __shared__ alignas(16) float tile[32];
  __shared__ uint64_t full, empty;
  int t = threadIdx.x, rank = cluster_rank();
  if (t == 0) {
    mbarrier_init(&full, 1);
    mbarrier_init(&empty, 64);
    fence_mbarrier_init();
  }
  cluster_arrive();
  cluster_wait();
  float sum = 0;
  for (int k = 0; k < rounds; k++) {
    if (t == 0) mbarrier_arrive_expect(&full, sizeof tile);
    if (t == 0 && rank == 0) {
      if (k > 0) mbarrier_wait(&empty, (k - 1) % 2);
      bulk_multicast(tile, in + 32 * k, sizeof tile, &full, 3);  // HAZARD(narrow_early): overwrite in flight
    }
    __syncwarp();
    mbarrier_wait(&full, k % 2);
#ifdef REPAIRED
    sum += tile[31 - t];
    mbarrier_arrive_at(shared_address_in(&empty, 0));
#else
    mbarrier_arrive_narrow(shared_address_in(&empty, 0));
    sum += tile[31 - t];  // ALSO(narrow_early): shared-memory race
#endif
  }
  out[32 * rank + t] = sum;
  cluster_arrive();
  cluster_wait();
}

// Such an arrival hands on nothing that was written.
// launch narrow_data: grid 2 block 32 cluster 2 args float[32] float[32]=zero
extern "C" __global__ void narrow_data(const float *in, float *out) {
  __shared__ float tile[32];
  __shared__ uint64_t full;
  int t = threadIdx.x, rank = cluster_rank();
  if (t == 0) {
    mbarrier_init(&full, 32);
    fence_mbarrier_init();
  }
  cluster_arrive();
  cluster_wait();
  if (rank == 1) {
    store_cluster(shared_address_in(&tile[31 - t], 0), in[t]);  // OTHER(narrow_data)
#ifdef REPAIRED
    mbarrier_arrive_at(shared_address_in(&full, 0));
#else
    mbarrier_arrive_narrow(shared_address_in(&full, 0));
#endif
  } else {
    mbarrier_wait(&full, 0);
    out[t] = tile[t];  // HAZARD(narrow_data): shared-memory race
  }
  cluster_arrive();
  cluster_wait();
}

// Nor does it show that what was written is there: it may come after what the other block writes.
// launch narrow_overwrite: grid 2 block 32 cluster 2 args float[32] float[32]=zero
extern "C" __global__ void narrow_overwrite(const float *in, float *out) {
  __shared__ float tile[32];
  __shared__ uint64_t empty;
  int t = threadIdx.x, rank = cluster_rank();
  if (t == 0) {
    mbarrier_init(&empty, 32);
    fence_mbarrier_init();
  }
  cluster_arrive();
  cluster_wait();
  if (rank == 1) {
    tile[t] = in[t];  // OTHER(narrow_overwrite)
#ifdef REPAIRED
    mbarrier_arrive_at(shared_address_in(&empty, 0));
#else
    mbarrier_arrive_narrow(shared_address_in(&empty, 0));
#endif
  } else {
    mbarrier_wait(&empty, 0);
    store_cluster(shared_address_in(&tile[t], 1), 2.0f * in[t]);  // HAZARD(narrow_overwrite): shared-memory race
  }
  cluster_arrive();
  cluster_wait();
  if (rank == 1) out[t] = tile[t];
}

// The block waits for all arrivals at its mbarrier before it exits.
// launch narrow_end: grid 2 block 32 cluster 2 args float[32] float[32]=zero
extern "C" __global__ void narrow_end(const float *in, float *out) {
  __shared__ uint64_t empty;
  int t = threadIdx.x, rank = cluster_rank();
  if (t == 0) {
    mbarrier_init(&empty, 32);
    fence_mbarrier_init();
  }
  cluster_arrive();
  cluster_wait();
  if (rank == 0) {
    out[t] = in[t];
    mbarrier_wait(&empty, 0);
    return;
  }
#ifdef REPAIRED
  mbarrier_arrive_at(shared_address_in(&empty, 0));
#else
  mbarrier_arrive_narrow(shared_address_in(&empty, 0));  // OTHER(narrow_end)
#endif
}  // HAZARD(narrow_end): formal out-of-bounds access

// Two blocks take turns. An arrival of the wide scope has to come after the phase before, and only the narrow one shows that
// this is over. The wait has ended, so it is.
// launch narrow_turns: grid 2 block 32 cluster 2 args int[1] int[64]=zero 4
extern "C" __global__ void narrow_turns(const int *in, int *out, int rounds) {
  __shared__ uint64_t mine, yours;
  int t = threadIdx.x, rank = cluster_rank();
  if (t == 0) {
    mbarrier_init(&mine, 32);
    mbarrier_init(&yours, 32);
    fence_mbarrier_init();
  }
  cluster_arrive();
  cluster_wait();
  for (int k = 0; k < rounds; k++)
    if (rank == 0) {
      mbarrier_arrive_at(shared_address_in(&yours, 1));  // HAZARD(narrow_turns): formal mbarrier misuse
      mbarrier_wait(&mine, k % 2);
    } else {
      mbarrier_wait(&yours, k % 2);
#ifdef REPAIRED
      mbarrier_arrive_at(shared_address_in(&mine, 0));
#else
      mbarrier_arrive_narrow(shared_address_in(&mine, 0));
#endif
    }
  out[32 * rank + t] = 1 + *in;
  cluster_arrive();
  cluster_wait();
}

// All blocks of a cluster run at the same time, but one may begin before the other.
// launch not_begun: grid 2 block 32 cluster 2 args float[64] float[64]=zero
extern "C" __global__ void not_begun(const float *in, float *out) {
  __shared__ float tile[32];
  int t = threadIdx.x, rank = cluster_rank();
#ifdef REPAIRED
  cluster_arrive();
  cluster_wait();
#endif
  store_cluster(shared_address_in(&tile[t], 1 - rank), in[32 * rank + t]);  // HAZARD(not_begun): out-of-bounds access
  cluster_arrive();
  cluster_wait();
  out[32 * rank + t] = tile[t];
}

// An arrival is enough, and need not hand on anything.
// launch begun_relaxed: grid 2 block 32 cluster 2 args float[64] float[64]=zero
extern "C" __global__ void begun_relaxed(const float *in, float *out) {
  __shared__ float tile[32];
  int t = threadIdx.x, rank = cluster_rank();
  asm volatile("barrier.cluster.arrive.relaxed;");
  float x = in[32 * rank + t];
  cluster_wait();
  store_cluster(shared_address_in(&tile[t], 1 - rank), x);
  cluster_arrive();
  cluster_wait();
  out[32 * rank + t] = tile[t];
}
