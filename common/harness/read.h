// Kernels that read K and V and do nothing else. The program times them in turn with the stage: no kernel can answer
// faster than the cache is read.
#pragma once

#include "ptx/mbarrier.h"
#include "ptx/tile.h"
#include "ptx/tma.h"

// 16 bytes a load, eight loads in flight in each thread. `chunks`: of 16 bytes, of K and as many of V. A sum that never
// comes out is stored, or the compiler would leave the loads out.
static __device__ __forceinline__ void read_with_loads(const uint4 *from, size_t chunks, uint4 *to) {
  enum { LOADS = 8 };
  size_t threads = (size_t)gridDim.x * blockDim.x, first = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
  uint32_t sum = 0;
  for (size_t i = first; i < chunks; i += LOADS * threads) {
    uint4 x[LOADS] = {};
#pragma unroll
    for (int n = 0; n < LOADS; n++)
      if (i + n * threads < chunks) x[n] = __ldcs(from + i + n * threads);
#pragma unroll
    for (int n = 0; n < LOADS; n++) sum |= x[n].x ^ x[n].y ^ x[n].z ^ x[n].w ^ 0x5eed5eed;
  }
  if (sum == 0x12345678) to->x = sum;
}

// Bulk copies of 8 KB into a ring of 12, by one thread. Each block reads a part that lies together.
enum { READ_BYTES = 8192, READ_SLOTS = 12 };
static __device__ __forceinline__ void read_with_copies(const char *from, size_t bytes, char *slots, uint64_t *full) {
  size_t pieces = (bytes + READ_BYTES - 1) / READ_BYTES;
  size_t first = pieces * blockIdx.x / gridDim.x, count = pieces * (blockIdx.x + 1) / gridDim.x - first;
  for (int i = 0; i < READ_SLOTS; i++) mbarrier_init(shared_address(full + i), 1);
  mbarrier_fence_init();
  for (size_t i = 0; i < count + READ_SLOTS; i++) {
    uint32_t barrier = shared_address(full + i % READ_SLOTS);
    if (i >= READ_SLOTS && i - READ_SLOTS < count) mbarrier_wait(barrier, (i / READ_SLOTS - 1) % 2);
    if (i >= count) continue;
    size_t at = (first + i) * READ_BYTES, size = bytes - at < READ_BYTES ? bytes - at : READ_BYTES;
    mbarrier_arrive_expect(barrier, (uint32_t)size);
    bulk_load(shared_address(slots + i % READ_SLOTS * READ_BYTES), from + at, barrier, (int)size);
  }
}

// `bytes` of K, and as many of V. Grid: any, 2 along y, for K and for V.
extern "C" __global__ void __launch_bounds__(256) read_loads(const void *k, const void *v, size_t bytes, void *to) {
  read_with_loads((const uint4 *)(blockIdx.y ? v : k), bytes / 16, (uint4 *)to);
}
extern "C" __global__ void __launch_bounds__(32) read_copies(const void *k, const void *v, size_t bytes) {
  extern __shared__ __align__(128) char slots[];
  __shared__ uint64_t full[READ_SLOTS];
  if (threadIdx.x == 0) read_with_copies((const char *)(blockIdx.y ? v : k), bytes, slots, full);
}
