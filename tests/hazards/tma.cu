// TMA: one thread issues copies of whole tiles between global and shared memory. Loads complete on an mbarrier, stores
// in groups of the thread that issued them.
#include "ptx.h"

__device__ void init(uint64_t *barrier) {
  if (threadIdx.x == 0) {
    mbarrier_init(barrier, 1);
    fence_mbarrier_init();
  }
  __syncthreads();
}

// A box must begin at a multiple of 128 bytes, and this one begins behind a mask of 16.
// launch box_address: grid 1 block 64 args float[64] float[64]=zero map:0:8x8:8x8
extern "C" __global__ void box_address(const float *in, float *out, const __grid_constant__ TensorMap map) {
  __shared__ alignas(128) char shared[512];
  __shared__ uint64_t full;
  int t = threadIdx.x;
#ifdef REPAIRED
  float *tile = (float *)(shared + 128);
#else
  float *tile = (float *)(shared + 16);
#endif
  init(&full);
  if (t == 0) {
    mbarrier_arrive_expect(&full, 256);
    tensor_load(tile, &map, 0, 0, &full);  // HAZARD(box_address): misaligned access
  }
  mbarrier_wait(&full, 0);
  out[t] = tile[63 - t];
}

// A bulk copy moves multiples of 16 bytes: the tail has 50 floats.
// launch tail_size: grid 1 block 64 args float[64] float[64]=zero 50
// ADVICE(tail_size): Round the size up to a multiple of 16
extern "C" __global__ void tail_size(const float *in, float *out, int n) {
  __shared__ alignas(16) float tile[64];
  __shared__ uint64_t full;
  int t = threadIdx.x, bytes = n * sizeof *in;
#ifdef REPAIRED
  bytes = (bytes + 15) / 16 * 16;
#endif
  init(&full);
  if (t == 0) {
    mbarrier_arrive_expect(&full, bytes);
    bulk_load(tile, in, bytes, &full);  // HAZARD(tail_size): misaligned access
  }
  mbarrier_wait(&full, 0);
  if (t < n) out[t] = tile[n - 1 - t];
}

// Without a tensor map nobody knows where the tensor ends: the last tile reaches past it.
// launch past_the_end: grid 2 block 64 args float[112] float[128]=zero 112
extern "C" __global__ void past_the_end(const float *in, float *out, int n) {
  __shared__ alignas(16) float tile[64];
  __shared__ uint64_t full;
  int t = threadIdx.x, first = 64 * blockIdx.x;
#ifdef REPAIRED
  int count = n - first < 64 ? n - first : 64;
#else
  int count = 64;
#endif
  init(&full);
  if (t == 0) {
    mbarrier_arrive_expect(&full, count * sizeof *in);
    bulk_load(tile, in + first, count * sizeof *in, &full);  // HAZARD(past_the_end): out-of-bounds access
  }
  mbarrier_wait(&full, 0);
  if (t < count) out[first + t] = -tile[t];
}

// The map's box has 8 x 4 floats, and the kernel counts on 8 x 8.
// launch other_box: grid 1 block 64 args float[64] float[64]=zero map:0:8x8:8x4
extern "C" __global__ void other_box(const float *in, float *out, const __grid_constant__ TensorMap map) {
  __shared__ alignas(128) float tile[64];
  __shared__ uint64_t full;
  int t = threadIdx.x;
  init(&full);
  if (t == 0) {
    mbarrier_arrive_expect(&full, sizeof tile);  // HAZARD(other_box): wrong expect_tx
    tensor_load(tile, &map, 0, 0, &full);
#ifdef REPAIRED
    tensor_load(tile + 32, &map, 0, 4, &full);
#endif
  }
  mbarrier_wait(&full, 0);
  out[t] = tile[63 - t];
}

// At the tensor's edge the box is filled up with zeros: they count as bytes like the others.
// launch edge_bytes: grid 1 block 64 args float[48] float[64]=zero map:0:8x6:8x8
extern "C" __global__ void edge_bytes(const float *in, float *out, const __grid_constant__ TensorMap map) {
  __shared__ alignas(128) float tile[64];
  __shared__ uint64_t full;
  int t = threadIdx.x;
  init(&full);
  if (t == 0) {
#ifdef REPAIRED
    mbarrier_arrive_expect(&full, 256);
#else
    mbarrier_arrive_expect(&full, 192);  // HAZARD(edge_bytes): wrong expect_tx
#endif
    tensor_load(tile, &map, 0, 0, &full);
  }
  mbarrier_wait(&full, 0);
  out[t] = tile[63 - t];
}

// The host passes 128 bytes that nobody has encoded.
// launch garbage: grid 1 block 64 args float[64] float[64]=zero bytes128 map:0:8x8:8x8
extern "C" __global__ void garbage(const float *in, float *out, const __grid_constant__ TensorMap junk,
                                   const __grid_constant__ TensorMap map) {
  __shared__ alignas(128) float tile[64];
  __shared__ uint64_t full;
  int t = threadIdx.x;
#ifdef REPAIRED
  const TensorMap *used = &map;
#else
  const TensorMap *used = &junk;
#endif
  init(&full);
  if (t == 0) {
    mbarrier_arrive_expect(&full, sizeof tile);
    tensor_load(tile, used, 0, 0, &full);  // HAZARD(garbage): bad tensor map
  }
  mbarrier_wait(&full, 0);
  out[t] = tile[63 - t];
}

// The map has three dimensions, and the copy names two coordinates.
// launch dimensions: grid 1 block 64 args float[128] float[64]=zero map:0:8x8x2:8x8x1 map:0:8x16:8x8
extern "C" __global__ void dimensions(const float *in, float *out, const __grid_constant__ TensorMap three,
                                      const __grid_constant__ TensorMap two) {
  __shared__ alignas(128) float tile[64];
  __shared__ uint64_t full;
  int t = threadIdx.x;
#ifdef REPAIRED
  const TensorMap *used = &two;
#else
  const TensorMap *used = &three;
#endif
  init(&full);
  if (t == 0) {
    mbarrier_arrive_expect(&full, sizeof tile);
    tensor_load(tile, used, 0, 8, &full);  // HAZARD(dimensions): bad tensor map
  }
  mbarrier_wait(&full, 0);
  out[t] = tile[63 - t];
}

// Without __grid_constant__ the compiler may copy the map into local memory, where TMA cannot read it.
// launch local_map: grid 1 block 64 args float[64] float[64]=zero map:0:8x8:8x8 0
extern "C" __global__ void local_map(const float *in, float *out, const __grid_constant__ TensorMap map, int which) {
  __shared__ alignas(128) float tile[64];
  __shared__ uint64_t full;
  int t = threadIdx.x;
#ifdef REPAIRED
  const TensorMap *used = &map;
#else
  TensorMap copies[2];
  const TensorMap *used = &copies[which];
  copies[which] = map;
#endif
  init(&full);
  if (t == 0) {
    mbarrier_arrive_expect(&full, sizeof tile);
    tensor_load(tile, used, 0, 0, &full);  // HAZARD(local_map): bad tensor map
  }
  mbarrier_wait(&full, 0);
  out[t] = tile[63 - t];
}

// The next result is written over one that TMA still reads.
// launch overwrites_source: grid 1 block 64 args float[128] float[128]=zero
extern "C" __global__ void overwrites_source(const float *in, float *out) {
  __shared__ alignas(16) float tile[64];
  int t = threadIdx.x;
  for (int k = 0; k < 2; k++) {
    tile[63 - t] = in[64 * k + t];  // HAZARD(overwrites_source): overwrite in flight
    fence_async();
    __syncthreads();
    if (t == 0) {
      bulk_store(out + 64 * k, tile, sizeof tile);  // OTHER(overwrites_source)
      bulk_commit();
#ifdef REPAIRED
      bulk_wait_read<0>();
#endif
    }
    __syncthreads();
  }
  if (t == 0) bulk_wait<0>();
}

// Two buffers take turns, and the wait lets two stores be under way: the next one to be written is among them.
// launch two_buffers: grid 1 block 64 args float[256] float[256]=zero 4
extern "C" __global__ void two_buffers(const float *in, float *out, int rounds) {
  __shared__ alignas(16) float tiles[2][64];
  int t = threadIdx.x;
  for (int k = 0; k < rounds; k++) {
    float *tile = tiles[k % 2];
    tile[63 - t] = in[64 * k + t];  // HAZARD(two_buffers): overwrite in flight
    fence_async();
    __syncthreads();
    if (t == 0) {
      bulk_store(out + 64 * k, tile, sizeof *tiles);  // OTHER(two_buffers)
      bulk_commit();
#ifdef REPAIRED
      bulk_wait_read<1>();
#else
      bulk_wait_read<2>();
#endif
    }
    __syncthreads();
  }
  if (t == 0) bulk_wait<0>();
}

// The store was never committed: it is in no group, and the wait is for groups.
// launch no_commit: grid 1 block 64 args float[64] float[64]=zero
extern "C" __global__ void no_commit(const float *in, float *out) {
  __shared__ alignas(16) float tile[64];
  int t = threadIdx.x;
  tile[63 - t] = in[t];
  fence_async();
  __syncthreads();
  if (t == 0) {
    bulk_store(out, tile, sizeof tile);  // OTHER(no_commit), ALSO(no_commit): formal overwrite in flight
#ifdef REPAIRED
    bulk_commit();
#endif
    bulk_wait_read<0>();
  }
  __syncthreads();
  tile[t] = 0;  // HAZARD(no_commit): overwrite in flight
}

// Groups belong to the thread that issued: another one's wait is over at once.
// launch other_waits: grid 1 block 64 args float[64] float[64]=zero
extern "C" __global__ void other_waits(const float *in, float *out) {
  __shared__ alignas(16) float tile[64];
  int t = threadIdx.x;
  tile[63 - t] = in[t];
  fence_async();
  __syncthreads();
  if (t == 0) {
    bulk_store(out, tile, sizeof tile);  // OTHER(other_waits), ALSO(other_waits): formal overwrite in flight
    bulk_commit();
  }
#ifdef REPAIRED
  if (t == 0) bulk_wait<0>();
#else
  if (t == 32) bulk_wait<0>();
#endif
  __syncthreads();
  tile[t] = 0;  // HAZARD(other_waits): overwrite in flight
}

// .read waits until the source has been read; the result may not be there yet.
// launch reads_back: grid 1 block 64 args float[64] float[64]=zero float[1]=zero
extern "C" __global__ void reads_back(const float *in, float *out, float *first) {
  __shared__ alignas(16) float tile[64];
  int t = threadIdx.x;
  tile[63 - t] = in[t];
  fence_async();
  __syncthreads();
  if (t == 0) {
    bulk_store(out, tile, sizeof tile);  // OTHER(reads_back)
    bulk_commit();
#ifdef REPAIRED
    bulk_wait<0>();
#else
    bulk_wait_read<0>();
#endif
    *first = *(volatile float *)out;  // HAZARD(reads_back): read before wait
  }
}

// The block ends, and its shared memory goes to the next one, while a store still reads there.
// launch exits: grid 1 block 64 args float[64] float[64]=zero
extern "C" __global__ void exits(const float *in, float *out) {
  __shared__ alignas(16) float tile[64];
  int t = threadIdx.x;
  tile[63 - t] = in[t];
  fence_async();
  __syncthreads();
  if (t == 0) {
    bulk_store(out, tile, sizeof tile);  // HAZARD(exits): formal overwrite in flight
    bulk_commit();
#ifdef REPAIRED
    bulk_wait_read<0>();
#endif
  }
}

// The same of a load that turned out not to be needed.
// launch unused_load: grid 1 block 64 args float[128] float[64]=zero
extern "C" __global__ void unused_load(const float *in, float *out) {
  __shared__ alignas(16) float tiles[2][64];
  __shared__ uint64_t full[2];
  int t = threadIdx.x;
  init(&full[0]);
  init(&full[1]);
  for (int k = 0; k < 2 && t == 0; k++) {
    mbarrier_arrive_expect(&full[k], 256);
    bulk_load(tiles[k], in + 64 * k, 256, &full[k]);  // HAZARD(unused_load): formal overwrite in flight
  }
  mbarrier_wait(&full[0], 0);
  out[t] = tiles[0][63 - t];
#ifdef REPAIRED
  mbarrier_wait(&full[1], 0);
#endif
}

// The elected thread stores a tile that other threads may still be writing.
// launch before_barrier: grid 1 block 64 args float[64] float[64]=zero
extern "C" __global__ void before_barrier(const float *in, float *out) {
  __shared__ alignas(16) float tile[64];
  int t = threadIdx.x;
  tile[63 - t] = in[t];  // OTHER(before_barrier)
  fence_async();
#ifdef REPAIRED
  __syncthreads();
#endif
  if (t == 0) {
    bulk_store(out, tile, sizeof tile);  // HAZARD(before_barrier): shared-memory race, ALSO(before_barrier): uninitialised read
    bulk_commit();
    bulk_wait<0>();
  }
}

// The tile is read at once.
// launch reads_at_once: grid 1 block 64 args float[64] float[64]=zero map:0:8x8:8x8
extern "C" __global__ void reads_at_once(const float *in, float *out, const __grid_constant__ TensorMap map) {
  __shared__ alignas(128) float tile[64];
  __shared__ uint64_t full;
  int t = threadIdx.x;
  init(&full);
  if (t == 0) {
    mbarrier_arrive_expect(&full, sizeof tile);
    tensor_load(tile, &map, 0, 0, &full);  // OTHER(reads_at_once)
  }
  __syncthreads();
#ifdef REPAIRED
  mbarrier_wait(&full, 0);
#endif
  out[t] = tile[63 - t];  // HAZARD(reads_at_once): read before wait
#ifndef REPAIRED
  mbarrier_wait(&full, 0);
#endif
}

// The rows past the end are masked by a store into the tile, before the tile has come.
// launch masks_early: grid 1 block 64 args float[64] float[64]=zero 50
extern "C" __global__ void masks_early(const float *in, float *out, int n) {
  __shared__ alignas(16) float tile[64];
  __shared__ uint64_t full;
  int t = threadIdx.x;
  init(&full);
  if (t == 0) {
    mbarrier_arrive_expect(&full, sizeof tile);
    bulk_load(tile, in, sizeof tile, &full);  // OTHER(masks_early)
  }
  __syncthreads();
#ifdef REPAIRED
  mbarrier_wait(&full, 0);
#endif
  if (t >= n) tile[t] = 0;  // HAZARD(masks_early): overwrite in flight
#ifndef REPAIRED
  mbarrier_wait(&full, 0);
#endif
  __syncthreads();
  out[t] = tile[63 - t];
}

// elect.sync chooses one of all 32 lanes, so that all must be there; here half of them go another way.
// launch elects_half: grid 1 block 32 args float[64] float[64]=zero
extern "C" __global__ void elects_half(const float *in, float *out) {
  __shared__ alignas(16) float tile[64];
  __shared__ uint64_t full;
  int t = threadIdx.x;
  init(&full);
#ifndef REPAIRED
  if (t < 16)
#endif
  {
    if (elect()) {  // HAZARD(elects_half): divergent .aligned instruction
      mbarrier_arrive_expect(&full, sizeof tile);
      bulk_load(tile, in, sizeof tile, &full);
    }
  }
  __syncthreads();  // ALSO(elects_half): divergent .aligned instruction
  mbarrier_wait(&full, 0);
  out[t] = tile[63 - t];
}
