// Few keys: each warp of the cluster has at most one tile of 16. All loads begin at once, and nothing is in a ring.
//
// The warps of a block share their weights, so that none has to wait for another's O:
//
//   S^T = K Q^T    a warp has its own 16 keys, all columns of K
//   O^T = V^T P^T  a warp has all keys of the block, 16 columns of V
//
// Warp w then sends its columns to block w, which answers for them.
#pragma once

#include "../13d-ragged/list.h"
#include "../13d-ragged/rows.h"
#include "ptx/cluster.h"
#include "ptx/ldmatrix.h"
#include "ptx/math.h"
#include "ptx/mbarrier.h"
#include "ptx/mma.h"
#include "ptx/tile.h"
#include "ptx/tma.h"

#include "tiles.h"

enum { FEW_COLUMNS = HEAD_DIM / BLOCKS_AT_MOST, FEW_CHUNKS = HEAD_DIM / 32 };
static_assert(FEW_WARPS == BLOCKS_AT_MOST && FEW_COLUMNS == 16, "a warp for each block's columns, an mma's rows");

struct FewShared {
  char keys[FEW_WARPS][TILE_BYTES], values[FEW_WARPS][TILE_BYTES];
  char weights[FEW_GROUP][FEW_PITCH];  // P in bf16: [query][key]. Rows begin in different banks
  float maxima[FEW_GROUP][FEW_WARPS], sums[FEW_GROUP][FEW_WARPS];  // of each warp's keys
  float2 o[BLOCKS_AT_MOST][FEW_GROUP / 2][FEW_COLUMNS];            // [from block][pair of queries][column]
  float2 max_sum[BLOCKS_AT_MOST][FEW_GROUP];                       // [from block][query]
  uint64_t keys_full[FEW_WARPS], values_full[FEW_WARPS];
  uint64_t arrived;  // counts the bytes that blocks send
};
static_assert(sizeof(FewShared) == FEW_SHARED, "see tiles.h");

// Asks for a warp's tile, by one lane.
static __device__ void load_few(FewShared &shared, const Maps &maps, const Work &work, int sequence, int head, int tile,
                                int warp) {
  uint32_t keys = shared_address(shared.keys_full + warp), values = shared_address(shared.values_full + warp);
  int page = sequence, key = tile * FEW_TILE;
  if (work.block_table) {
    page = work.block_table[(size_t)sequence * work.table_row + (key >> work.page_shift)];
    key &= (1 << work.page_shift) - 1;
  }
  mbarrier_init(keys, 1);
  mbarrier_init(values, 1);
  mbarrier_fence_init();
  mbarrier_arrive_expect(keys, TILE_BYTES);
  tma_load(shared_address(shared.keys[warp]), &maps.k, keys, 0, key, 0, head, page);
  mbarrier_arrive_expect(values, TILE_BYTES);
  tma_load(shared_address(shared.values[warp]), &maps.v, values, 0, key, 0, head, page);
}

// Where lane l's columns begin, of the i-th 32: it has 16 neighbours of each 64, in two loads of 8. Two rows that a
// load reads at the same time then lie in different banks.
static __device__ int few_column(int i) { return i / 2 * 64 + threadIdx.x % 4 * 16 + i % 2 * 8; }

// K Q^T for 16 keys. The order of columns does not matter to a product over all of them, if both factors agree.
static __device__ void multiply_few_keys(const char *keys, const uint4 (&q)[FEW_CHUNKS], float (&s)[4]) {
  int row = threadIdx.x % WARP / 4;
  float even[4] = {}, odd[4] = {};
#pragma unroll
  for (int i = 0; i < FEW_CHUNKS; i++) {
    uint4 low = *(const uint4 *)(keys + swizzled(FEW_TILE, row, few_column(i) / 8));
    uint4 high = *(const uint4 *)(keys + swizzled(FEW_TILE, row + 8, few_column(i) / 8));
    uint32_t a[2][4] = {{low.x, high.x, low.y, high.y}, {low.z, high.z, low.w, high.w}};
    mma_bf16(even, a[0], q[i].x, q[i].y);
    mma_bf16(odd, a[1], q[i].z, q[i].w);
  }
#pragma unroll
  for (int i = 0; i < 4; i++) s[i] = even[i] + odd[i];
}

// Of one number of each warp.
static __device__ float largest_of(const float (&x)[FEW_WARPS]) {
  float4 a = *(const float4 *)x, b = *(const float4 *)(x + 4);
  return fmaxf(fmaxf(fmaxf(a.x, a.y), fmaxf(a.z, a.w)), fmaxf(fmaxf(b.x, b.y), fmaxf(b.z, b.w)));
}
static __device__ float sum_of(const float (&x)[FEW_WARPS]) {
  float4 a = *(const float4 *)x, b = *(const float4 *)(x + 4);
  return ((a.x + a.y) + (a.z + a.w)) + ((b.x + b.y) + (b.z + b.w));
}

// Scores become weights in shared memory. Lane l has keys l / 4 and l / 4 + 8, queries 2 (l % 4) and the next.
static __device__ void weigh_few(FewShared &shared, const Work &work, int warp, int count, float (&s)[4]) {
  int lane = threadIdx.x % WARP, query = lane % 4 * 2;
  if (lane / 4 >= count) s[0] = s[1] = -INFINITY;
  if (lane / 4 + 8 >= count) s[2] = s[3] = -INFINITY;
  float max[2] = {fmaxf(s[0], s[2]), fmaxf(s[1], s[3])}, sum[2];
#pragma unroll
  for (int distance = 4; distance < WARP; distance *= 2)
#pragma unroll
    for (int h = 0; h < 2; h++) max[h] = fmaxf(max[h], __shfl_xor_sync(ALL_LANES, max[h], distance));
  if (lane < 4) shared.maxima[query][warp] = max[0], shared.maxima[query + 1][warp] = max[1];
  __syncthreads();
#pragma unroll
  for (int h = 0; h < 2; h++) {
    float base = largest_of(shared.maxima[query + h]) * work.problem.scale;
    if (base == -INFINITY) base = 0;  // a block without keys: its weights are 0
    s[h] = power_of_two(s[h] * work.problem.scale - base);
    s[h + 2] = power_of_two(s[h + 2] * work.problem.scale - base);
    sum[h] = s[h] + s[h + 2];
  }
  // Transposed, a lane has a query, and two keys that are neighbours.
  uint32_t *to = (uint32_t *)(shared.weights[lane / 4] + 2 * FEW_TILE * warp + lane % 4 * 4);
  to[0] = transpose(pack_bf16(s[0], s[1]));
  to[4] = transpose(pack_bf16(s[2], s[3]));
#pragma unroll
  for (int distance = 4; distance < WARP; distance *= 2)
#pragma unroll
    for (int h = 0; h < 2; h++) sum[h] += __shfl_xor_sync(ALL_LANES, sum[h], distance);
  if (lane < 4) shared.sums[query][warp] = sum[0], shared.sums[query + 1][warp] = sum[1];
}

// V^T P^T for the warp's 16 columns.
static __device__ void multiply_few_values(const FewShared &shared, int warp, float (&o)[4]) {
  int lane = threadIdx.x % WARP;
  float even[4] = {}, odd[4] = {};
#pragma unroll
  for (int i = 0; i < FEW_WARPS; i += 2) {
    uint32_t p[4], v[2][4];
    ldmatrix(p, shared_address(shared.weights[lane % 8] + 32 * i + lane / 8 * 16));
#pragma unroll
    for (int h = 0; h < 2; h++)
      ldmatrix_transposed(v[h], shared_address(shared.values[i + h]) +
                                    swizzled(FEW_TILE, lane / 16 * 8 + lane % 8, 2 * warp + lane / 8 % 2));
    mma_bf16(even, v[0], p[0], p[1]);
    mma_bf16(odd, v[1], p[2], p[3]);
  }
#pragma unroll
  for (int i = 0; i < 4; i++) o[i] = even[i] + odd[i];
}

// Sends block `to`, which answers for these columns, O over this block's keys. Lane l has columns l / 4 and l / 4 + 8.
static __device__ void send_few(FewShared &shared, const Work &work, int rank, int to, const float (&o)[4]) {
  int lane = threadIdx.x % WARP, pair = lane % 4, column = lane / 4;
  uint32_t arrived = in_block(shared_address(&shared.arrived), to);
  if (2 * pair < work.problem.group) {
    uint32_t at = in_block(shared_address(&shared.o[rank][pair][column]), to);
    store_async(at, float2{o[0], o[1]}, arrived);
    store_async(at + 8 * sizeof(float2), float2{o[2], o[3]}, arrived);
  }
  if (lane < work.problem.group) {
    float max = largest_of(shared.maxima[lane]) * work.problem.scale;
    store_async(in_block(shared_address(&shared.max_sum[rank][lane]), to), float2{max, sum_of(shared.sums[lane])},
                arrived);
  }
}

// Combines this block's columns, in the order of the ranks. A thread has two neighbouring columns of a query.
static __device__ void answer_few(const FewShared &shared, int query, int column, bool empty, uint32_t *to) {
  float max = -INFINITY, sum = 0, all[2] = {0, 0};
#pragma unroll
  for (int b = 0; b < BLOCKS_AT_MOST; b++) max = fmaxf(max, shared.max_sum[b][query].x);
#pragma unroll
  for (int b = 0; b < BLOCKS_AT_MOST; b++) {
    float weight = power_of_two(shared.max_sum[b][query].x - max);
    sum += weight * shared.max_sum[b][query].y;
#pragma unroll
    for (int c = 0; c < 2; c++) all[c] += weight * ((const float *)&shared.o[b][query / 2][column + c])[query % 2];
  }
  float inverse = 1 / sum;
  *to = empty ? 0 : pack_bf16(all[0] * inverse, all[1] * inverse);  // an empty sequence: NaN otherwise
}

// Grid: BLOCKS_AT_MOST, key heads, sequences, in clusters along x. Block: FEW_WARPS warps. Up to FEW_GROUP queries.
static __device__ void decode_few(const Maps &maps, const Work &work) {
  extern __shared__ __align__(1024) char memory[];  // where a swizzle of 128 bytes begins anew
  FewShared &shared = *(FewShared *)memory;
  int rank = cluster_rank(), head = blockIdx.y, sequence = blockIdx.z, group = work.problem.group;
  int warp = __shfl_sync(ALL_LANES, threadIdx.x / WARP, 0), lane = threadIdx.x % WARP;
  int keys = keys_of(work, sequence), tiles = tiles_of<FEW_TILE>(keys);
  int tile = tiles * rank / BLOCKS_AT_MOST + warp, end = tiles * (rank + 1) / BLOCKS_AT_MOST;
  int count = tile < end ? min(keys - tile * FEW_TILE, (int)FEW_TILE) : 0;  // keys of the warp
  if (count && lane == 0) load_few(shared, maps, work, sequence, head, tile, warp);

  size_t queries = (size_t)(sequence * work.problem.kv_heads + head) * group;  // those before this head's
  const __nv_bfloat16 *from = work.problem.q + (queries + lane / 4) * HEAD_DIM;
  uint4 q[FEW_CHUNKS];
#pragma unroll
  for (int i = 0; i < FEW_CHUNKS; i++)
    q[i] = lane / 4 < group ? *(const uint4 *)(from + few_column(i)) : uint4{0, 0, 0, 0};
  uint32_t arrived = shared_address(&shared.arrived);
  if (threadIdx.x == 0) {
    mbarrier_init(arrived, 1);
    mbarrier_fence_init();
    int bytes = (FEW_COLUMNS * ((group + 1) / 2) + group) * (int)sizeof(float2);  // of each block
    mbarrier_arrive_expect(arrived, BLOCKS_AT_MOST * bytes);
  }
  cluster_arrive();
  cluster_wait();  // all blocks have begun, and the loads are under way

  float s[4] = {}, o[4];
  if (count) {
    mbarrier_wait(shared_address(shared.keys_full + warp), 0);
    multiply_few_keys(shared.keys[warp], q, s);
  }
  weigh_few(shared, work, warp, count, s);
  if (count) mbarrier_wait(shared_address(shared.values_full + warp), 0);
  if (count < FEW_TILE) clear_keys<HEAD_DIM / PANEL, FEW_TILE, ROW_BYTES>(shared_address(shared.values[warp]), count);
  __syncthreads();  // all weights and values are there
  multiply_few_values(shared, warp, o);
  send_few(shared, work, rank, warp, o);

  int query = threadIdx.x / (FEW_COLUMNS / 2), column = threadIdx.x % (FEW_COLUMNS / 2) * 2;
  if (query >= group) return;
  mbarrier_wait_cluster(arrived, 0);  // all parts are there
  answer_few(shared, query, column, keys == 0,
             (uint32_t *)(work.problem.o + (queries + query) * HEAD_DIM + rank * FEW_COLUMNS + column));
}
