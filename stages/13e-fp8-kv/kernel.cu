// Stage 13e: the cache is e4m3, half as many bytes. Device memory decides how long decode takes, so that is half the
// time, if the warps can widen the numbers beside the loads.
#include "../13d-ragged/combine.h"
#include "../13d-ragged/worker.h"

#include "lse_reader.h"

// Grid: any number of blocks, one for each SM. Block: WARPS warps, each a worker.
template <class Reader>
__device__ void decode(const Maps &maps, const Work &work, const Leftovers &leftovers, Reader reader) {
  extern __shared__ __align__(1024) char memory[];  // where a swizzle of 128 bytes begins anew
  launch_dependents();
  int warp = __shfl_sync(0xffffffff, threadIdx.x / WARP, 0);  // tells ptxas that all lanes have the same
  Worker<Reader>(maps, work, reader, *(Rings *)memory, warp).run(leftovers, warp * gridDim.x + blockIdx.x);
}

#define ENTRY_POINT(HEAD_DIM, QUERIES)                                                                                 \
  extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_PER_SM) decode_##HEAD_DIM##_##QUERIES(                  \
      const __grid_constant__ Maps maps, const Work work, const Leftovers leftovers, const Scales scales) {            \
    decode(maps, work, leftovers, E4m3Reader<HEAD_DIM, QUERIES>(work, scales));                                        \
  }
ENTRY_POINT(64, 8)
ENTRY_POINT(64, 16)
ENTRY_POINT(128, 8)
ENTRY_POINT(128, 16)

extern "C" __global__ void __launch_bounds__(COMBINE_THREADS) combine_64(const Work work, const Leftovers leftovers) {
  combine<64, E4M3_KEYS_OF(64)>(work, leftovers);
}
extern "C" __global__ void __launch_bounds__(COMBINE_THREADS) combine_128(const Work work, const Leftovers leftovers) {
  combine<128, E4M3_KEYS_OF(128)>(work, leftovers);
}

// For a caller who also wants the log-sum-exp: [batch][heads].
#define ENTRY_POINT_WITH_LSE(HEAD_DIM, QUERIES)                                                                        \
  extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_PER_SM)                                                 \
      decode_##HEAD_DIM##_##QUERIES##_lse(const __grid_constant__ Maps maps, const Work work,                          \
                                          const Leftovers leftovers, const Scales scales, float *lse) {                \
    decode(maps, work, leftovers, E4m3LseReader<HEAD_DIM, QUERIES>(work, scales, lse));                                \
  }
ENTRY_POINT_WITH_LSE(64, 8)
ENTRY_POINT_WITH_LSE(64, 16)
ENTRY_POINT_WITH_LSE(128, 8)
ENTRY_POINT_WITH_LSE(128, 16)

extern "C" __global__ void __launch_bounds__(COMBINE_THREADS)
    combine_64_lse(const Work work, const Leftovers leftovers, float *lse) {
  combine<64, E4M3_KEYS_OF(64)>(work, leftovers, lse);
}
extern "C" __global__ void __launch_bounds__(COMBINE_THREADS)
    combine_128_lse(const Work work, const Leftovers leftovers, float *lse) {
  combine<128, E4M3_KEYS_OF(128)>(work, leftovers, lse);
}
