// Mistakes that were reported from kernels in use. Each kernel here is our own: the mistake, and no more of the kernel that
// had it than the mistake needs. Repository and number of the report stand in front of it.
#include "ptx.h"

__device__ void init(uint64_t *barrier, int arrivals = 1) {
  if (threadIdx.x == 0) {
    mbarrier_init(barrier, arrivals);
    fence_mbarrier_init();
  }
  __syncthreads();
}

// csarofeen/pytorch 2457: a group is committed behind the wait that should count it, so that each wait is a copy behind.
// launch commit_behind_wait: grid 1 block 64 args float[2048] float[64]=zero 8
extern "C" __global__ void commit_behind_wait(const float *in, float *out, int tiles) {
  __shared__ alignas(16) float ring[3][256];
  int t = threadIdx.x;
  float sum = 0;
  for (int i = 0; i < 2; i++) {
    cp_async(&ring[i][4 * t], in + 256 * i + 4 * t);  // OTHER(commit_behind_wait)
    cp_async_commit();
  }
  cp_async_wait<1>();
  __syncthreads();
  for (int i = 0; i < tiles; i++) {
    int next = i + 2;
    if (next < tiles) cp_async(&ring[next % 3][4 * t], in + 256 * next + 4 * t);  // OTHER(commit_behind_wait)
#ifdef REPAIRED
    cp_async_commit();
#endif
    sum += ring[i % 3][255 - 4 * t];  // HAZARD(commit_behind_wait): read before wait
    cp_async_wait<1>();
#ifndef REPAIRED
    cp_async_commit();
#endif
    __syncthreads();
  }
  out[t] = sum;
}

// deepseek-ai/DeepEP 657: a slot is filled again while one store may be pending, and with two slots it is the slot's own.
// launch store_of_slot_pending: grid 1 block 32 args float[448] float[448]=zero 7
extern "C" __global__ void store_of_slot_pending(const float *in, float *out, int tiles) {
  __shared__ alignas(128) float slots[2][64];
  __shared__ uint64_t full[2];
  if (threadIdx.x) return;
  for (int s = 0; s < 2; s++) mbarrier_init(&full[s], 1);
  fence_mbarrier_init();
  for (int i = 0; i < tiles + 2; i++) {
    int s = i % 2, stored = i - 2;
    if (stored >= 0) {
      mbarrier_wait(&full[s], stored / 2 % 2);
      bulk_store(out + 64 * stored, slots[s], 256);  // OTHER(store_of_slot_pending)
      bulk_commit();
    }
    if (i >= tiles) continue;
#ifdef REPAIRED
    bulk_wait_read<0>();
#else
    bulk_wait_read<1>();
#endif
    mbarrier_arrive_expect(&full[s], 256);
    bulk_load(slots[s], in + 64 * i, 256, &full[s]);  // HAZARD(store_of_slot_pending): overwrite in flight
  }
  bulk_wait<0>();
}

// MoonshotAI/FlashKDA 24: the fence stands inside a loop that an empty sequence never enters. Sequence 1 of 3 is empty.
// launch fence_in_empty_loop: grid 3 block 64 args float[256] float[192]=zero
extern "C" __global__ void fence_in_empty_loop(const float *in, float *out) {
  __shared__ alignas(128) float state[64];
  int t = threadIdx.x, rows = blockIdx.x == 1 ? 0 : 2;
  state[t] = 0;  // OTHER(fence_in_empty_loop)
#ifdef REPAIRED
  fence_async();
#endif
  for (int i = 0; i < rows; i++) {
    state[t] = 0.5f * state[t] + in[64 * (blockIdx.x + i) % 256 + t];
    fence_async();
  }
  __syncthreads();
  if (t == 0) {
    bulk_store(out + 64 * blockIdx.x, state, 256);  // HAZARD(fence_in_empty_loop): missing proxy fence
    bulk_commit();
    bulk_wait<0>();
  }
}

// NVIDIA/Fuser 1552: no thread waits for the one that initialises the mbarrier.
// launch init_without_barrier: grid 1 block 64 args float[64] float[64]=zero
extern "C" __global__ void init_without_barrier(const float *in, float *out) {
  __shared__ float row[64];
  __shared__ uint64_t stored;
  int t = threadIdx.x;
  if (t == 0) mbarrier_init(&stored, 64);
#ifdef REPAIRED
  __syncthreads();
#endif
  row[t] = in[t];
  mbarrier_arrive(&stored);   // HAZARD(init_without_barrier): mbarrier misuse
  mbarrier_wait(&stored, 0);  // ALSO(init_without_barrier): mbarrier misuse
  out[t] = row[63 - t];
}

// NVIDIA/Fuser 3561: the producer gets a slot back while the product that reads it is in flight.
// launch slot_of_running_product: grid 1 block 160 args half[4608] float[512]=zero 4
extern "C" __global__ void slot_of_running_product(const half *in, float *out, int tiles) {
  __shared__ Tiles slots[2];
  __shared__ uint64_t full[2], empty[2];
  int t = threadIdx.x;
  for (int s = 0; s < 2; s++) {
    init(&full[s]);
    init(&empty[s], 128);
  }
  if (t == 128)
    for (int i = 0; i < tiles; i++) {
      mbarrier_wait(&empty[i % 2], i / 2 % 2 ^ 1);
      mbarrier_arrive_expect(&full[i % 2], 2304);
      Tiles *slot = &slots[i % 2];
      bulk_load(slot, in + 1152 * i, 2304, &full[i % 2]);  // HAZARD(slot_of_running_product): overwrite in flight
    }
  if (t >= 128) return;
  float d[4] = {};
  for (int i = 0; i < tiles; i++) {
    mbarrier_wait(&full[i % 2], i / 2 % 2);
    wgmma_fence();
    wgmma(d, describe(slots[i % 2].a), describe(slots[i % 2].b));  // OTHER(slot_of_running_product)
    wgmma_commit();
#ifdef REPAIRED
    wgmma_wait<0>();
#endif
    mbarrier_arrive(&empty[i % 2]);
  }
  wgmma_wait<0>();
  put(out, d);
}

// triton-lang/triton 8964: in the loop one product may stay in flight, and the last one is stored with no further wait.
// launch last_product_not_awaited: grid 1 block 128 args half[2304] float[512]=zero
extern "C" __global__ void last_product_not_awaited(const half *in, float *out) {
  __shared__ Tiles slots[2];
  int t = threadIdx.x;
  float d[4] = {};
  for (int i = 0; i < 2; i++) {
    ((uint4 *)slots[i].a)[t] = ((const uint4 *)(in + 1152 * i))[t];
    if (t < 16) ((uint4 *)slots[i].b)[t] = ((const uint4 *)(in + 1152 * i))[128 + t];
    fence_async();
    __syncthreads();
    wgmma_fence();
    wgmma(d, describe(slots[i].a), describe(slots[i].b));
    wgmma_commit();
    wgmma_wait<1>();
  }
#ifdef REPAIRED
  wgmma_wait<0>();
#endif
  out[t] = d[0] + d[1] + d[2] + d[3];  // HAZARD(last_product_not_awaited): register touched in flight
  wgmma_wait<0>();
}

// NVIDIA/TransformerEngine 2695: a barrier orders the loads of a tile before its refill, and TMA may overtake the loads.
// launch refill_overtakes_loads: grid 1 block 64 args float[256] float[64]=zero 4
extern "C" __global__ void refill_overtakes_loads(const float *in, float *out, int tiles) {
  __shared__ alignas(128) float tile[64];
  __shared__ uint64_t full;
  int t = threadIdx.x;
  float sum = 0;
  init(&full);
  for (int i = 0; i < tiles; i++) {
    if (t == 0) {
      mbarrier_arrive_expect(&full, 256);
      bulk_load(tile, in + 64 * i, 256, &full);  // OTHER(refill_overtakes_loads)
    }
    mbarrier_wait(&full, i % 2);
    float x = tile[63 - t];  // HAZARD(refill_overtakes_loads): missing proxy fence
#ifdef REPAIRED
    fence_async();
#endif
    __syncthreads();
    sum += x;
  }
  out[t] = sum;
}

// tile-ai/tilelang 2566: the bytes of the copy are announced, and the arrival is forgotten: the phase never completes.
// launch expects_and_never_arrives: grid 1 block 64 args float[32] float[32]=zero
extern "C" __global__ void expects_and_never_arrives(const float *in, float *out) {
  __shared__ alignas(128) float tile[32];
  __shared__ uint64_t full;
  int t = threadIdx.x;
  init(&full);
  if (t >= 32) {
    if (t > 32) return;
    asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], 128;" : : "r"(shared_address(&full)) : "memory");
    bulk_load(tile, in, 128, &full);
#ifdef REPAIRED
    mbarrier_arrive(&full);
#endif
    return;
  }
  mbarrier_wait(&full, 0);  // HAZARD(expects_and_never_arrives): deadlock
  out[t] = tile[31 - t];
}

// mirage-project/mirage 705: the kernel expects the 4 rows that the tensor has left, and the box of its map has 8. TMA fills
// the other rows with zeros, and counts them.
// launch box_of_all_rows: grid 1 block 64 args float[32] float[64]=zero map:0:8x4:8x8
extern "C" __global__ void box_of_all_rows(const float *in, float *out, const __grid_constant__ TensorMap map) {
  __shared__ alignas(128) float tile[64];
  __shared__ uint64_t full;
  int t = threadIdx.x;
#ifdef REPAIRED
  int rows = 8;
#else
  int rows = 4;
#endif
  init(&full);
  if (t == 0) {
    mbarrier_arrive_expect(&full, rows * 32);  // HAZARD(box_of_all_rows): wrong expect_tx
    tensor_load(tile, &map, 0, 0, &full);
  }
  mbarrier_wait(&full, 0);
  out[t] = tile[t];
}

// ggml-org/llama.cpp 28358: a row has 16 words and all 32 lanes store one, the last 16 of them on the scales behind the row.
// launch lanes_past_row: grid 1 block 32 shared 144 args int[32] int[16]=zero int[2]=zero 16
extern "C" __global__ void lanes_past_row(const int *in, int *row_out, int *scales_out, int words) {
  extern __shared__ int row[];
  int *scales = row + words, lane = threadIdx.x;
#ifdef REPAIRED
  if (lane < words)
#endif
    row[lane] = in[lane];                                          // HAZARD(lanes_past_row): shared-memory race
  if (lane < words && lane % 8 == 0) scales[lane / 8] = lane + 1;  // OTHER(lanes_past_row)
  __syncwarp();
  if (lane < words) row_out[lane] = row[lane];
  if (lane < words / 8) scales_out[lane] = scales[lane];
}

// Dao-AILab/quack 146: four warps load, and the count of their barrier was right when one did.
// launch count_of_one_loader: grid 1 block 160 args int[128] int[32]=zero
extern "C" __global__ void count_of_one_loader(const int *in, int *out) {
  __shared__ int rows[128];
  int t = threadIdx.x;
#ifdef REPAIRED
  const int threads = 160;
#else
  const int threads = 64;
#endif
  if (t < 128) {
    rows[t] = 3 * in[t];         // ALSO(count_of_one_loader): shared-memory race
    barrier_arrive(1, threads);  // HAZARD(count_of_one_loader): barrier misuse
    return;
  }
  barrier_sync(1, threads);  // ALSO(count_of_one_loader): deadlock
  int sum = 0;
  for (int i = t - 128; i < 128; i += 32) sum += rows[i];  // ALSO(count_of_one_loader): uninitialised read
  out[t - 128] = sum;
}

// triton-lang/triton 11730: block 0 exits while the others of its cluster still read its shared memory.
// launch exits_before_peers_read: grid 4 block 32 cluster 4 args int[1] int[128]=zero
extern "C" __global__ void exits_before_peers_read(int *lock, int *out) {
  __shared__ float old;
  if (cluster_rank() == 0 && threadIdx.x == 0) old = atomicCAS(lock, 0, 1) + 5;
  cluster_arrive();
  cluster_wait();
  float seen = load_cluster(shared_address_in(&old, 0));  // HAZARD(exits_before_peers_read): out-of-bounds access
  out[blockIdx.x * 32 + threadIdx.x] = (int)seen;
#ifdef REPAIRED
  cluster_arrive();
  cluster_wait();
#endif
}  // ALSO(exits_before_peers_read): out-of-bounds access

// facebookexperimental/triton 1538: each warp elects a lane that copies to the peer, where one of the block was meant.
// launch every_warp_elects: grid 2 block 64 cluster 2 args float[128] float[128]=zero
extern "C" __global__ void every_warp_elects(const float *in, float *out) {
  __shared__ alignas(128) float mine[64], theirs[64];
  __shared__ uint64_t full;
  unsigned rank = cluster_rank(), t = threadIdx.x, far_theirs, far_full;
  init(&full);
  if (t == 0) mbarrier_arrive_expect(&full, 256);  // ALSO(every_warp_elects): wrong expect_tx
  mine[t] = in[64 * rank + t];
  fence_async();
  far_theirs = shared_address_in(theirs, rank ^ 1);
  far_full = shared_address_in(&full, rank ^ 1);
  cluster_arrive();
  cluster_wait();
#ifdef REPAIRED
  bool copies = t < 32 && elect();
#else
  bool copies = elect();
#endif
  if (copies) bulk_to_peer(far_theirs, mine, 256, far_full);  // HAZARD(every_warp_elects): shared-memory race
  mbarrier_wait(&full, 0);
  out[64 * rank + t] = theirs[63 - t];  // ALSO(every_warp_elects): overwrite in flight
  cluster_arrive();
  cluster_wait();
}
