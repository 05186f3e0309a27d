// Stage 13d: sequences differ in length, and their keys and values lie in pages, wherever there was room. A block for
// each head would leave most SMs idle while the longest sequence is read. So all tiles of all sequences are one list,
// and each warp takes an equal share of it.
#include "combine.h"
#include "paged_reader.h"
#include "worker.h"

// Grid: any number of blocks, one for each SM. Block: WARPS warps, each a worker.
template <int HEAD_DIM, int QUERIES>
__device__ void decode(const Maps &maps, const Work &work, const Leftovers &leftovers) {
  extern __shared__ __align__(1024) char memory[];  // where a swizzle of 128 bytes begins anew
  launch_dependents();
  int warp = __shfl_sync(0xffffffff, threadIdx.x / WARP, 0);  // tells ptxas that all lanes have the same
  PagedReader<HEAD_DIM, QUERIES> reader(maps, work);
  Worker<PagedReader<HEAD_DIM, QUERIES>>(maps, work, reader, *(Rings *)memory, warp)
      .run(leftovers, warp * gridDim.x + blockIdx.x);
}

#define ENTRY_POINT(HEAD_DIM, QUERIES)                                                                                 \
  extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_PER_SM)                                                 \
      decode_##HEAD_DIM##_##QUERIES(const __grid_constant__ Maps maps, const Work work, const Leftovers leftovers) {   \
    decode<HEAD_DIM, QUERIES>(maps, work, leftovers);                                                                  \
  }
ENTRY_POINT(64, 8)
ENTRY_POINT(64, 16)
ENTRY_POINT(128, 8)
ENTRY_POINT(128, 16)

extern "C" __global__ void __launch_bounds__(COMBINE_THREADS) combine_64(const Work work, const Leftovers leftovers) {
  combine<64, KEYS_OF(64)>(work, leftovers);
}
extern "C" __global__ void __launch_bounds__(COMBINE_THREADS) combine_128(const Work work, const Leftovers leftovers) {
  combine<128, KEYS_OF(128)>(work, leftovers);
}
