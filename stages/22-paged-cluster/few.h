// Few keys: each warp of the cluster has at most one tile of 16. All loads begin at once, and nothing is in a ring.
//
// The warps of a block share their scores, so that none has to wait for another's O:
//
//   S = Q K^T    a warp has its own 16 keys, all columns of K
//   O = P V      a warp has all keys of the block, 16 columns of V
//
// Warp w then sends its columns to block w, which answers for them.
#pragma once

#include "../13d-ragged/list.h"
#include "../13d-ragged/rows.h"
#include "ptx/cluster.h"
#include "ptx/cp_async.h"
#include "ptx/ldmatrix.h"
#include "ptx/math.h"
#include "ptx/mbarrier.h"
#include "ptx/mma.h"
#include "ptx/quad.h"
#include "ptx/tile.h"

#include "tiles.h"

enum { FEW_COLUMNS = HEAD_DIM / BLOCKS_AT_MOST, FEW_STEPS = FEW_KEYS / FEW_TILE };
static_assert(FEW_WARPS == BLOCKS_AT_MOST, "a warp for each block's columns");

// A row of values is 16 bytes longer than its numbers, so that 8 rows begin in different banks.
struct FewShared {
  char values[FEW_KEYS][2 * HEAD_DIM + 16];
  float scores[FEW_GROUP][FEW_KEYS + 8];                        // of each query
  float2 max_sum[BLOCKS_AT_MOST][FEW_GROUP];                    // [from block][query]
  float2 o[BLOCKS_AT_MOST][FEW_GROUP][FEW_COLUMNS / 2];         // [from block][query][pair of columns]
  uint64_t arrived;                                             // counts the bytes of both
};
static_assert(sizeof(FewShared) == FEW_SHARED, "see tiles.h");

// A tile of keys, its numbers as an mma's B. The order of columns does not matter to a product over all of them, if
// both factors agree: lane l has columns 8 (l % 4) to 8 (l % 4) + 7 of each 32, which is one load.
struct FewTile {
  const __nv_bfloat16 *k, *v;
  int count;  // keys that exist: 0 to 16

  __device__ FewTile(const Work &work, const Cache &cache, int sequence, int head, int tile, int end, int keys) {
    count = tile < end ? min(keys - tile * FEW_TILE, (int)FEW_TILE) : 0;
    int page = sequence, key = tile * FEW_TILE;
    if (work.block_table && count) {
      page = work.block_table[(size_t)sequence * work.table_row + (key >> work.page_shift)];
      key &= (1 << work.page_shift) - 1;
    }
    k = cache.k, v = cache.v;
    if (!count) return;
    k += page * cache.of_k.batch + head * cache.of_k.head + key * cache.of_k.query;
    v += page * cache.of_v.batch + head * cache.of_v.head + key * cache.of_v.query;
  }

  __device__ void load_keys(const Strides &strides, uint4 (&to)[2][HEAD_DIM / 32]) const {
    int lane = threadIdx.x % WARP;
#pragma unroll
    for (int j = 0; j < 2; j++)
#pragma unroll
      for (int i = 0; i < HEAD_DIM / 32; i++)
        to[j][i] = 8 * j + lane / 4 < count
                       ? __ldcs((const uint4 *)(k + (8 * j + lane / 4) * strides.query + 32 * i + lane % 4 * 8))
                       : uint4{0, 0, 0, 0};
  }

  // Values of keys that do not exist are zeros: a weight of 0 times NaN would be NaN.
  __device__ void load_values(const Strides &strides, char (*to)[2 * HEAD_DIM + 16]) const {
    int lane = threadIdx.x % WARP, chunk = lane % 16;
#pragma unroll
    for (int i = 0; i < FEW_TILE / 2; i++) {
      int row = 2 * i + lane / 16;
      bool exists = row < count;
      cp_async(shared_address(to[row] + chunk * 16), exists ? v + row * strides.query + chunk * 8 : v, exists ? 16 : 0);
    }
    cp_async_commit();
  }
};

// Grid: BLOCKS_AT_MOST, key heads, sequences, in clusters along x. Block: FEW_WARPS warps. Up to FEW_GROUP queries.
static __device__ void decode_few(const Work &work, const Cache &cache) {
  extern __shared__ __align__(1024) char memory[];
  FewShared &shared = *(FewShared *)memory;
  int rank = cluster_rank(), head = blockIdx.y, sequence = blockIdx.z, group = work.problem.group;
  int warp = __shfl_sync(ALL_LANES, threadIdx.x / WARP, 0), lane = threadIdx.x % WARP, query = lane / 4;
  int keys = keys_of(work, sequence), tiles = tiles_of<FEW_TILE>(keys);
  int tile = tiles * rank / BLOCKS_AT_MOST + warp, end = tiles * (rank + 1) / BLOCKS_AT_MOST;
  size_t queries = (size_t)(sequence * work.problem.kv_heads + head) * group;  // those before this head's
  uint32_t arrived = shared_address(&shared.arrived);

  uint4 q[HEAD_DIM / 32], k[2][HEAD_DIM / 32];
  FewTile own(work, cache, sequence, head, tile, end, keys);
#pragma unroll
  for (int i = 0; i < HEAD_DIM / 32; i++)
    q[i] = query < group ? *(const uint4 *)(work.problem.q + (queries + query) * HEAD_DIM + 32 * i + lane % 4 * 8)
                         : uint4{0, 0, 0, 0};
  own.load_keys(cache.of_k, k);
  own.load_values(cache.of_v, shared.values + warp * FEW_TILE);
  if (threadIdx.x == 0) {
    mbarrier_init(arrived, 1);
    mbarrier_fence_init();
    mbarrier_arrive_expect(arrived, BLOCKS_AT_MOST * group * (FEW_COLUMNS * sizeof(float) + sizeof(float2)));
  }
  cluster_arrive();
  cluster_wait();  // all blocks have begun, and the loads are under way

  // Lane l has query l / 4, and keys 2 (l % 4) and the next of each 8. Rows 8 to 15 of the mma are zeros.
#pragma unroll
  for (int j = 0; j < 2; j++) {
    float s[2][4] = {};
#pragma unroll
    for (int i = 0; i < HEAD_DIM / 32; i++) {
      uint32_t low[4] = {q[i].x, 0, q[i].y, 0}, high[4] = {q[i].z, 0, q[i].w, 0};
      mma_bf16(s[0], low, k[j][i].x, k[j][i].y);
      mma_bf16(s[1], high, k[j][i].z, k[j][i].w);
    }
    int key = 8 * j + lane % 4 * 2;
    float2 both = {s[0][0] + s[1][0], s[0][1] + s[1][1]};
    if (key >= own.count) both.x = -INFINITY;
    if (key + 1 >= own.count) both.y = -INFINITY;
    *(float2 *)(shared.scores[query] + warp * FEW_TILE + key) = both;
  }
  __syncthreads();  // the scores of all keys, while the values are on their way

  float2 s[FEW_STEPS][2];
  float max = -INFINITY, sum = 0;
#pragma unroll
  for (int i = 0; i < FEW_STEPS; i++)
#pragma unroll
    for (int h = 0; h < 2; h++) {
      s[i][h] = *(const float2 *)(shared.scores[query] + FEW_TILE * i + 8 * h + lane % 4 * 2);
      max = fmaxf(max, fmaxf(s[i][h].x, s[i][h].y));
    }
  max = quad_max(max) * work.problem.scale;
  float base = max == -INFINITY ? 0 : max;  // of a block without keys, whose weights are then 0
  uint32_t p[FEW_STEPS][4];
#pragma unroll
  for (int i = 0; i < FEW_STEPS; i++)
#pragma unroll
    for (int h = 0; h < 2; h++) {
      float2 weight = {power_of_two(s[i][h].x * work.problem.scale - base),
                       power_of_two(s[i][h].y * work.problem.scale - base)};
      sum += weight.x + weight.y;
      p[i][2 * h] = pack_bf16(weight.x, weight.y), p[i][2 * h + 1] = 0;
    }
  sum = quad_sum(sum);
  cp_async_wait<0>();
  __syncthreads();  // all values are there

  float o[2][2][4] = {};
#pragma unroll
  for (int i = 0; i < FEW_STEPS; i++) {
    uint32_t v[4];
    ldmatrix_transposed(v, shared_address(shared.values[FEW_TILE * i + lane % 16] + (2 * warp + lane / 16) * 16));
    mma_bf16(o[0][i % 2], p[i], v[0], v[1]);
    mma_bf16(o[1][i % 2], p[i], v[2], v[3]);
  }
  if (query < group) {
    uint32_t to = in_block(arrived, warp);
#pragma unroll
    for (int j = 0; j < 2; j++)
      store_async(in_block(shared_address(&shared.o[rank][query][4 * j + lane % 4]), warp),
                  float2{o[j][0][0] + o[j][1][0], o[j][0][1] + o[j][1][1]}, to);
    if (lane % 4 == 0)
      store_async(in_block(shared_address(&shared.max_sum[rank][query]), warp), float2{max, sum}, to);
  }

  // Combines this block's columns, in the order of the ranks. A thread has two of a query.
  if (threadIdx.x >= group * FEW_COLUMNS / 2) return;
  mbarrier_wait_cluster(arrived, 0);  // all parts are there
  int row = threadIdx.x / (FEW_COLUMNS / 2), pair = threadIdx.x % (FEW_COLUMNS / 2);
  float2 all = {0, 0};
  max = -INFINITY, sum = 0;
#pragma unroll
  for (int b = 0; b < BLOCKS_AT_MOST; b++) max = fmaxf(max, shared.max_sum[b][row].x);
#pragma unroll
  for (int b = 0; b < BLOCKS_AT_MOST; b++) {
    float weight = power_of_two(shared.max_sum[b][row].x - max);
    float2 part = shared.o[b][row][pair];
    sum += weight * shared.max_sum[b][row].y;
    all.x += weight * part.x;
    all.y += weight * part.y;
  }
  float inverse = 1 / sum;
  uint32_t *to = (uint32_t *)(work.problem.o + (queries + row) * HEAD_DIM + rank * FEW_COLUMNS);
  to[pair] = keys ? pack_bf16(all.x * inverse, all.y * inverse) : 0;  // an empty sequence: NaN otherwise
}
