// Stage 13b: the keys of a head are shared out among several blocks, so that all SMs read also where there are few
// sequences. Each block leaves the O of its keys and their log-sum-exp in device memory; a second kernel combines them.
#include "../13-decode/merge.h"
#include "ptx/dependent.h"

#include "parts.h"

// Grid: splits, key heads, sequences. Block: WARPS warps.
template <int HEAD_DIM, int QUERIES>
__device__ void decode(const Maps &maps, const Problem &problem, const Parts &parts) {
  extern __shared__ __align__(1024) char memory[];  // where a swizzle of 128 bytes begins anew
  Shared &shared = *(Shared *)memory;
  launch_dependents();  // the second kernel comes to the SMs as soon as they have room, and waits there
  int split = blockIdx.x, head = blockIdx.y, batch = blockIdx.z;
  long tiles = (problem.keys + KEYS_OF(HEAD_DIM) - 1) / KEYS_OF(HEAD_DIM);
  int first = (int)(tiles * split / parts.splits), end = (int)(tiles * (split + 1) / parts.splits);
  read_tiles<HEAD_DIM, QUERIES>(shared, maps, problem, batch, head, first, end);

  size_t queries = (size_t)(batch * problem.kv_heads + head) * problem.group;  // those before this head's
  for (int i = threadIdx.x; i < problem.group * HEAD_DIM / 2; i += THREADS) {
    int query = i / (HEAD_DIM / 2), column = i % (HEAD_DIM / 2) * 2;
    Merged merged = merge<HEAD_DIM>(shared, query, column);
    size_t part = (queries + query) * parts.splits + split;
    if (parts.splits == 1) {
      ((uint32_t *)(problem.o + queries * HEAD_DIM))[i] = pack_bf16(merged.o.x, merged.o.y);
    } else {
      *(float2 *)(parts.o + part * HEAD_DIM + column) = merged.o;
      if (column == 0) parts.lse[part] = merged.lse;
    }
  }
}

// Grid: queries. Block: WARPS warps. A warp adds up every WARPS-th part.
template <int HEAD_DIM> __device__ void combine(const Problem &problem, const Parts &parts) {
  constexpr int PAIRS = HEAD_DIM / 2 / WARP;  // of columns, of each lane
  __shared__ float2 o[WARPS][HEAD_DIM / 2];
  __shared__ float sums[WARPS];
  int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
  size_t query = blockIdx.x;
  const float *lse = parts.lse + query * parts.splits;
  wait_for_kernel_in_front();

  float max = -INFINITY, sum = 0;
  for (int i = lane; i < parts.splits; i += WARP) max = fmaxf(max, lse[i]);
#pragma unroll
  for (int distance = 1; distance < WARP; distance *= 2) max = fmaxf(max, __shfl_xor_sync(0xffffffff, max, distance));

  float2 mine[PAIRS] = {};
#pragma unroll 4
  for (int i = warp; i < parts.splits; i += WARPS) {
    float weight = power_of_two(lse[i] - max);
    const float2 *part = (const float2 *)(parts.o + (query * parts.splits + i) * HEAD_DIM);
    sum += weight;
#pragma unroll
    for (int p = 0; p < PAIRS; p++) {
      float2 x = part[p * WARP + lane];
      mine[p].x += weight * x.x;
      mine[p].y += weight * x.y;
    }
  }
#pragma unroll
  for (int p = 0; p < PAIRS; p++) o[warp][p * WARP + lane] = mine[p];
  if (lane == 0) sums[warp] = sum;
  __syncthreads();

  if (threadIdx.x >= HEAD_DIM / 2) return;
  float2 all = {0, 0};
  sum = 0;
#pragma unroll
  for (int w = 0; w < WARPS; w++) {
    sum += sums[w];
    all.x += o[w][threadIdx.x].x;
    all.y += o[w][threadIdx.x].y;
  }
  ((uint32_t *)problem.o)[query * (HEAD_DIM / 2) + threadIdx.x] = pack_bf16(all.x / sum, all.y / sum);
}

#define ENTRY_POINT(HEAD_DIM, QUERIES)                                                                                 \
  extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_PER_SM)                                                 \
      decode_##HEAD_DIM##_##QUERIES(const __grid_constant__ Maps maps, const Problem problem, const Parts parts) {     \
    decode<HEAD_DIM, QUERIES>(maps, problem, parts);                                                                   \
  }
ENTRY_POINT(64, 8)
ENTRY_POINT(64, 16)
ENTRY_POINT(128, 8)
ENTRY_POINT(128, 16)

extern "C" __global__ void __launch_bounds__(THREADS) combine_64(const Problem problem, const Parts parts) {
  combine<64>(problem, parts);
}
extern "C" __global__ void __launch_bounds__(THREADS) combine_128(const Problem problem, const Parts parts) {
  combine<128>(problem, parts);
}
