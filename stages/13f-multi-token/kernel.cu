// Stage 13f: several queries a sequence, as when a model checks what a smaller one has guessed. They read the same
// cache, so that more of them cost little, until instructions are the limit.
#include "../13d-ragged/combine.h"
#include "../13d-ragged/worker.h"

#include "lse_reader.h"

// Grid: any number of blocks along x; along y, a block for each QUERIES rows of a key head. Block: WARPS warps, each a
// worker. Blocks with the same x have the same tiles, at about the same time, so that all but one find them in L2.
template <int HEAD_DIM, int QUERIES>
__device__ void decode(const Maps &maps, const Work &work, const Leftovers &leftovers) {
  extern __shared__ __align__(1024) char memory[];  // where a swizzle of 128 bytes begins anew
  Rings &rings = *(Rings *)memory;
  launch_dependents();
  int warp = __shfl_sync(0xffffffff, threadIdx.x / WARP, 0);  // tells ptxas that all lanes have the same
  uint4 *half = (uint4 *)(memory + sizeof(Rings) + warp * HALF_OF_Q_BYTES);
  MultiReader<HEAD_DIM, QUERIES> reader(maps, work, blockIdx.y * QUERIES, half);
  Worker<MultiReader<HEAD_DIM, QUERIES>>(maps, work, reader, rings, warp).run(leftovers, warp * gridDim.x + blockIdx.x);
}

#define ENTRY_POINT(HEAD_DIM, QUERIES)                                                                                 \
  extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_PER_SM)                                                 \
      decode_##HEAD_DIM##_##QUERIES(const __grid_constant__ Maps maps, const Work work, const Leftovers leftovers) {   \
    decode<HEAD_DIM, QUERIES>(maps, work, leftovers);                                                                  \
  }
ENTRY_POINT(64, 8)
ENTRY_POINT(64, 16)
ENTRY_POINT(64, 32)
ENTRY_POINT(128, 8)
ENTRY_POINT(128, 16)
ENTRY_POINT(128, 32)

extern "C" __global__ void __launch_bounds__(COMBINE_THREADS) combine_64(const Work work, const Leftovers leftovers) {
  combine<64, KEYS_OF(64)>(work, leftovers);
}
extern "C" __global__ void __launch_bounds__(COMBINE_THREADS) combine_128(const Work work, const Leftovers leftovers) {
  combine<128, KEYS_OF(128)>(work, leftovers);
}

// For a caller who wants the log-sum-exp, too: [batch][heads][queries].
template <int HEAD_DIM, int QUERIES>
__device__ void decode_with_lse(const Maps &maps, const Work &work, const Leftovers &leftovers, float *lse) {
  extern __shared__ __align__(1024) char memory[];
  Rings &rings = *(Rings *)memory;
  launch_dependents();
  int warp = __shfl_sync(0xffffffff, threadIdx.x / WARP, 0);
  uint4 *half = (uint4 *)(memory + sizeof(Rings) + warp * HALF_OF_Q_BYTES);
  LseReader<HEAD_DIM, QUERIES> reader(maps, work, blockIdx.y * QUERIES, half, lse);
  Worker<LseReader<HEAD_DIM, QUERIES>>(maps, work, reader, rings, warp).run(leftovers, warp * gridDim.x + blockIdx.x);
}

#define ENTRY_POINT_WITH_LSE(HEAD_DIM, QUERIES)                                                                        \
  extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_PER_SM) decode_##HEAD_DIM##_##QUERIES##_lse(            \
      const __grid_constant__ Maps maps, const Work work, const Leftovers leftovers, float *lse) {                     \
    decode_with_lse<HEAD_DIM, QUERIES>(maps, work, leftovers, lse);                                                    \
  }
ENTRY_POINT_WITH_LSE(64, 8)
ENTRY_POINT_WITH_LSE(64, 16)
ENTRY_POINT_WITH_LSE(64, 32)
ENTRY_POINT_WITH_LSE(128, 8)
ENTRY_POINT_WITH_LSE(128, 16)
ENTRY_POINT_WITH_LSE(128, 32)

extern "C" __global__ void __launch_bounds__(COMBINE_THREADS)
    combine_64_lse(const Work work, const Leftovers leftovers, float *lse) {
  combine<64, KEYS_OF(64)>(work, leftovers, lse);
}
extern "C" __global__ void __launch_bounds__(COMBINE_THREADS)
    combine_128_lse(const Work work, const Leftovers leftovers, float *lse) {
  combine<128, KEYS_OF(128)>(work, leftovers, lse);
}
