// Stage 13: decode. Each sequence has one query a head, and a long cache of keys and values, all in bf16. A block
// reads the cache of one key head and answers all query heads that share it. Nobody else uses the bytes. So the rate at
// which device memory is read decides how long the kernel takes, and that needs many bytes in flight at all times.
#include "merge.h"

// Grid: key heads, sequences. Block: WARPS warps.
template <int HEAD_DIM, int QUERIES> __device__ void decode(const Maps &maps, const Problem &problem) {
  extern __shared__ __align__(1024) char memory[];  // where a swizzle of 128 bytes begins anew
  Shared &shared = *(Shared *)memory;
  int head = blockIdx.x, batch = blockIdx.y;
  int tiles = (problem.keys + KEYS_OF(HEAD_DIM) - 1) / KEYS_OF(HEAD_DIM);
  read_tiles<HEAD_DIM, QUERIES>(shared, maps, problem, batch, head, 0, tiles);

  uint32_t *o = (uint32_t *)(problem.o + (size_t)(batch * problem.kv_heads + head) * problem.group * HEAD_DIM);
  for (int i = threadIdx.x; i < problem.group * HEAD_DIM / 2; i += THREADS) {
    Merged merged = merge<HEAD_DIM>(shared, i / (HEAD_DIM / 2), i % (HEAD_DIM / 2) * 2);
    o[i] = pack_bf16(merged.o.x, merged.o.y);
  }
}

#define ENTRY_POINT(HEAD_DIM, QUERIES)                                                                                 \
  extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_PER_SM)                                                 \
      decode_##HEAD_DIM##_##QUERIES(const __grid_constant__ Maps maps, const Problem problem) {                        \
    decode<HEAD_DIM, QUERIES>(maps, problem);                                                                          \
  }
ENTRY_POINT(64, 8)
ENTRY_POINT(64, 16)
ENTRY_POINT(128, 8)
ENTRY_POINT(128, 16)
