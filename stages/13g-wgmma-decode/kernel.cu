// Stage 13g: the queries of all heads that share a key head are the 64 rows of one wgmma. So 8 rows and 64 take the
// same time: that of the bytes.
#include "block_share.h"
#include "rows_answer.h"

// Grid: cluster size, times a cluster for each 64 rows of a key head; key heads; sequences. Block: WARPS
// warps that compute, and one that loads.
template <int HEAD_DIM> __device__ void decode(const Maps &maps, const Work &work, float *lse) {
  extern __shared__ __align__(1024) char memory[];  // where a swizzle of 128 bytes begins anew
  Slots<HEAD_DIM> &shared = *(Slots<HEAD_DIM> *)memory;
  int warp = __shfl_sync(ALL_LANES, threadIdx.x / WARP, 0);  // tells ptxas that all lanes have the same
  int rank = cluster_rank(), blocks = cluster_size(), first = (int)blockIdx.x / blocks * ROWS;
  BlockShare share = {(int)blockIdx.z, (int)blockIdx.y};
  if (work.lengths && work.batch <= WARP)
    find_sequence(work, blockIdx.z, share);
  else
    share.keys = keys_of(work, share.batch);
  int tiles = tiles_of<BLOCK_KEYS_OF(HEAD_DIM)>(share.keys);
  share.first = (int)((long)tiles * rank / blocks), share.end = (int)((long)tiles * (rank + 1) / blocks);
  if (threadIdx.x == 0) shared.init();
  __syncthreads();
  if (warp == WARPS) {
    BlockProducer<HEAD_DIM>(maps, work, shared, share).run();
  } else {
    RowsConsumer<HEAD_DIM> consumer(work, shared_address(shared.queries), first);
    consumer.open(share.batch, share.head);  // the queries come while the first tiles do
    consume<HEAD_DIM>(consumer, shared, share);
    if (blocks == 1)
      consumer.store(share.batch, share.head, lse);
    else
      consumer.put(shared.parts);
  }
  if (blocks == 1) return;
  cluster_sync();  // all parts are there
  answer<HEAD_DIM>(work, shared.parts, share.batch, share.head, first, lse);
  cluster_sync();  // nobody reads this block's part any more
}

#define ENTRY_POINT(HEAD_DIM)                                                                                          \
  extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, BLOCKS_PER_SM)                                           \
      decode_##HEAD_DIM(const __grid_constant__ Maps maps, const Work work, float *lse) {                              \
    decode<HEAD_DIM>(maps, work, lse);                                                                                 \
  }
ENTRY_POINT(64)
ENTRY_POINT(128)
