// A pipeline as CUTLASS writes it: a producer warp fills a ring of tiles through TMA, half of one operand for both blocks of
// the cluster by multicast; a consumer warpgroup adds up products and stores the sum through TMA.
//
//   out[row][column] = sum over tiles k of a[row][32 k + column] * w[row mod 32][32 k + column]
//
// A block has 32 rows of a; w is the same for both blocks. Tiles are 32 x 32 floats, rows of 128 bytes under a 128B swizzle.
#include <cstdint>
#include <cuda.h>

enum { TILE = 32, STAGES = 3, TILE_BYTES = TILE * TILE * 4, CONSUMERS = 128 };

struct Shared {
  alignas(1024) float a[STAGES][TILE * TILE];
  alignas(1024) float w[STAGES][TILE * TILE];
  alignas(1024) float sum[TILE * TILE];
  alignas(8) uint64_t full[STAGES], empty[STAGES];
};

__device__ __forceinline__ uint32_t address(const void *pointer) { return (uint32_t)__cvta_generic_to_shared(pointer); }

__device__ __forceinline__ void init(uint64_t *barrier, uint32_t count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address(barrier)), "r"(count) : "memory");
}

// Whether the phase with this parity has completed.
__device__ __forceinline__ bool is_over(uint64_t *barrier, uint32_t parity) {
  uint32_t over;
  asm volatile("{ .reg .pred over; mbarrier.try_wait.parity.shared::cta.b64 over, [%1], %2; selp.u32 %0, 1, 0, over; }"
               : "=r"(over)
               : "r"(address(barrier)), "r"(parity)
               : "memory");
  return over;
}

__device__ __forceinline__ void wait(uint64_t *barrier, uint32_t parity) {
  while (!is_over(barrier, parity)) continue;
}

__device__ __forceinline__ void expect(uint64_t *barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address(barrier)), "r"(bytes) : "memory");
}

// An arrival at the same mbarrier of another block of the cluster.
__device__ __forceinline__ void arrive_at(uint64_t *barrier, uint32_t rank) {
  asm volatile("{\n"
               ".reg .b32 remote;\n"
               "mapa.shared::cluster.u32 remote, %0, %1;\n"
               "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [remote];\n"
               "}\n" ::"r"(address(barrier)),
               "r"(rank)
               : "memory");
}

__device__ __forceinline__ void load(void *to, const CUtensorMap *map, uint64_t *barrier, int x, int y) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::"r"(
          address(to)),
      "l"(map), "r"(address(barrier)), "r"(x), "r"(y)
      : "memory");
}

__device__ __forceinline__ void load_multicast(void *to, const CUtensorMap *map, uint64_t *barrier, uint16_t mask,
                                               int x, int y) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
               "[%0], [%1, {%4, %5}], [%2], %3;" ::"r"(address(to)),
               "l"(map), "r"(address(barrier)), "h"(mask), "r"(x), "r"(y)
               : "memory");
}

__device__ __forceinline__ uint32_t cluster_rank() {
  uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

__device__ __forceinline__ int swizzled(int row, int column) { return row * TILE + (column ^ row % 8 * 4); }

extern "C" __global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(CONSUMERS + 32)
    pipeline(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap w,
             const __grid_constant__ CUtensorMap out, int tiles) {
  extern __shared__ __align__(1024) unsigned char memory[];
  Shared &shared = *(Shared *)memory;
  int thread = threadIdx.x;
  uint32_t rank = cluster_rank();
  if (thread == 0) {
    for (int s = 0; s < STAGES; s++) {
      init(&shared.full[s], 1);
      init(&shared.empty[s], 2 * CONSUMERS);  // the consumers of both blocks: a slot is free when both have read it
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  asm volatile("barrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
  if (thread >= CONSUMERS) {
    if (thread == CONSUMERS) {
      asm volatile("prefetch.tensormap [%0];" ::"l"(&a) : "memory");
      for (int k = 0; k < tiles; k++) {
        int s = k % STAGES, parity = k / STAGES % 2;
        wait(&shared.empty[s], parity ^ 1);
        expect(&shared.full[s], 2 * TILE_BYTES);
        load(shared.a[s], &a, &shared.full[s], k * TILE, blockIdx.x * TILE);
        load_multicast(shared.w[s] + rank * TILE / 2 * TILE, &w, &shared.full[s], 3, k * TILE, rank * TILE / 2);
      }
    }
  } else {
    float sum[TILE * TILE / CONSUMERS] = {0};
    for (int k = 0; k < tiles; k++) {
      int s = k % STAGES, parity = k / STAGES % 2;
      wait(&shared.full[s], parity);
      for (int i = 0; i < TILE * TILE / CONSUMERS; i++) {
        int at = swizzled(i * 4 + thread / TILE, thread % TILE);
        sum[i] += shared.a[s][at] * shared.w[s][at];
      }
      for (int r = 0; r < 2; r++) arrive_at(&shared.empty[s], r);
    }
    for (int i = 0; i < TILE * TILE / CONSUMERS; i++)
      shared.sum[swizzled(i * 4 + thread / TILE, thread % TILE)] = sum[i];
    asm volatile("fence.proxy.async.shared::cta;\nbar.sync 1, 128;" ::: "memory");
    if (thread == 0)
      asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {0, %1}], [%2];\n"
                   "cp.async.bulk.commit_group;\n"
                   "cp.async.bulk.wait_group.read 0;" ::"l"(&out),
                   "r"(blockIdx.x * TILE), "r"(address(shared.sum))
                   : "memory");
  }
  // Neither block may exit while the other still arrives at its mbarriers.
  asm volatile("barrier.cluster.arrive;\nbarrier.cluster.wait;" ::: "memory");
}
