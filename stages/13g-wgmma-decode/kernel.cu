// Stage 13g: the queries of all heads that share a key head are the 64 rows of one wgmma, so that 8 rows and 64 take the
// same time: that of the bytes. A worker is a block now.
#include "block_worker.h"
#include "combine_rows.h"

// Grid: any number of blocks, workers; and as many along y as 64 rows make up a key head. Block: WARPS warps, and
// one that loads.
template <int HEAD_DIM>
__device__ void decode(const Maps &maps, const Work &work, const Leftovers &leftovers, float *lse) {
  extern __shared__ __align__(1024) char memory[];  // where a swizzle of 128 bytes begins anew
  Slots<HEAD_DIM> &shared = *(Slots<HEAD_DIM> *)memory;
  launch_dependents();
  int warp = __shfl_sync(0xffffffff, threadIdx.x / WARP, 0);  // tells ptxas that all lanes have the same
  Part part = part_of<BLOCK_KEYS_OF(HEAD_DIM)>(work, blockIdx.x, leftovers.workers);
  if (part.count == 0) return;
  if (warp == WARPS) {
    BlockProducer<HEAD_DIM> producer(maps, work, shared, part);
    producer.begin();
    __syncthreads();
    producer.run();
  } else {
    __syncthreads();
    consume<HEAD_DIM>(work, leftovers, shared, part, lse);
  }
}

#define ENTRY_POINTS(HEAD_DIM)                                                                                         \
  extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, BLOCKS_PER_SM)                                           \
      decode_##HEAD_DIM(const __grid_constant__ Maps maps, const Work work, const Leftovers leftovers, float *lse) {   \
    decode<HEAD_DIM>(maps, work, leftovers, lse);                                                                      \
  }                                                                                                                    \
  extern "C" __global__ void __launch_bounds__(THREADS)                                                                \
      combine_##HEAD_DIM(const Work work, const Leftovers leftovers, float *lse) {                                     \
    combine_rows<HEAD_DIM>(work, leftovers, lse);                                                                      \
  }
ENTRY_POINTS(64)
ENTRY_POINTS(128)
