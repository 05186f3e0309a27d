// Stage 22: decode for a server, in one launch. Sequences differ in length, their keys lie in pages, and nothing but O
// is written to device memory.
//
// A cluster answers the queries of one key head of one sequence. Its blocks share out the keys that this sequence has,
// and combine their parts through each other's shared memory. Where a sequence has fewer tiles than its cluster has
// blocks, some blocks have no keys. They take part all the same: the others expect a part from each.
#include "../13-decode/merge.h"
#include "ptx/cluster.h"

#include "few.h"
#include "share.h"
#include "tiles.h"

// A block's shared memory: as in stage 13, and what the blocks of the cluster send. The pairs of neighbouring columns
// of all queries are shared out: block r has those from r * pairs on.
struct Exchange {
  Shared shared;
  float lse[BLOCKS_AT_MOST][GROUP_AT_MOST];                 // [from block][query]
  float2 o[GROUP_AT_MOST * HEAD_DIM / 2 + BLOCKS_AT_MOST];  // [from block][pairs]
  uint64_t arrived;                                         // counts the bytes of both
};
static_assert(sizeof(Exchange) == sizeof(Shared) + EXCHANGE_BYTES, "see stage.c");

// The share of this block: O and log-sum-exp over its keys. Without keys it weighs nothing.
__device__ Merged merge_share(const Shared &shared, const Share &share, int query, int column) {
  return share.first < share.end ? merge<HEAD_DIM>(shared, query, column) : Merged{{0, 0}, -INFINITY};
}

// One thread says how many bytes this block is sent: of each block its pairs, and a log-sum-exp of each query.
__device__ void expect_parts(Exchange &exchange, int rank, int blocks, int group, int pairs) {
  uint32_t arrived = shared_address(&exchange.arrived);
  int own = max(0, min(pairs, group * HEAD_DIM / 2 - rank * pairs));
  mbarrier_init(arrived, 1);
  mbarrier_fence_init();
  mbarrier_arrive_expect(arrived, blocks * (own * sizeof(float2) + group * sizeof(float)));
}

// Sends each block of the cluster the pairs that it answers for.
__device__ void send(Exchange &exchange, const Share &share, int rank, int blocks, int group, int pairs) {
  uint32_t arrived = shared_address(&exchange.arrived);
  for (int i = threadIdx.x; i < group * HEAD_DIM / 2; i += THREADS) {
    int query = i / (HEAD_DIM / 2), column = i % (HEAD_DIM / 2) * 2, to = i / pairs;
    Merged merged = merge_share(exchange.shared, share, query, column);
    store_async(in_block(shared_address(&exchange.o[rank * pairs + i % pairs]), to), merged.o, in_block(arrived, to));
    to = column / 2;  // a thread for each block
    if (to < blocks)
      store_async(in_block(shared_address(&exchange.lse[rank][query]), to), __float_as_uint(merged.lse),
                  in_block(arrived, to));
  }
}

// Combines the parts of this block's pairs, in the order of the ranks, so that the bits are the same each time.
__device__ void answer(const Exchange &exchange, int rank, int blocks, int group, int pairs, int keys, uint32_t *o) {
  for (int i = threadIdx.x; i < pairs && rank * pairs + i < group * HEAD_DIM / 2; i += THREADS) {
    int query = (rank * pairs + i) / (HEAD_DIM / 2);
    float max = -INFINITY, sum = 0;
    float2 all = {0, 0};
    for (int b = 0; b < blocks; b++) max = fmaxf(max, exchange.lse[b][query]);
    for (int b = 0; b < blocks; b++) {
      float weight = power_of_two(exchange.lse[b][query] - max);
      float2 part = exchange.o[b * pairs + i];
      sum += weight;
      all.x += weight * part.x;
      all.y += weight * part.y;
    }
    float inverse = 1 / sum;
    o[rank * pairs + i] = keys ? pack_bf16(all.x * inverse, all.y * inverse) : 0;  // an empty sequence: NaN otherwise
  }
}

// What a cluster of one block answers.
__device__ void answer_alone(const Shared &shared, const Share &share, int group, uint32_t *o) {
  for (int i = threadIdx.x; i < group * HEAD_DIM / 2; i += THREADS) {
    Merged merged = merge_share(shared, share, i / (HEAD_DIM / 2), i % (HEAD_DIM / 2) * 2);
    o[i] = pack_bf16(merged.o.x, merged.o.y);
  }
}

// Grid: cluster size, key heads, sequences, in clusters along x. Block: WARPS warps.
template <int QUERIES> __device__ void decode(const Maps &maps, const Work &work) {
  extern __shared__ __align__(1024) char memory[];  // where a swizzle of 128 bytes begins anew
  Exchange &exchange = *(Exchange *)memory;
  int rank = cluster_rank(), blocks = cluster_size(), head = blockIdx.y, sequence = blockIdx.z;
  int group = work.problem.group, pairs = (group * HEAD_DIM / 2 + blocks - 1) / blocks;
  if (threadIdx.x == 0) expect_parts(exchange, rank, blocks, group, pairs);
  cluster_arrive();  // this block has begun, so that the others may write to its shared memory

  int warp = __shfl_sync(ALL_LANES, threadIdx.x / WARP, 0);  // tells ptxas that all lanes have the same
  int keys = keys_of(work, sequence), tiles = tiles_of<KEYS_OF(HEAD_DIM)>(keys);
  Share share = {tiles * rank / blocks, tiles * (rank + 1) / blocks};
  ShareReader<HEAD_DIM, QUERIES> reader(maps, work, sequence, head, keys, {share.first + warp, share.end},
                                        shared_address(exchange.shared.rings[warp]),
                                        shared_address(exchange.shared.full[warp]));
  reader.run();
  put(exchange.shared, warp, reader);
  __syncthreads();

  uint32_t *o = (uint32_t *)(work.problem.o + (size_t)(sequence * work.problem.kv_heads + head) * group * HEAD_DIM);
  cluster_wait();  // all blocks have begun
  if (blocks == 1) return answer_alone(exchange.shared, share, group, o);
  send(exchange, share, rank, blocks, group, pairs);
  mbarrier_wait_cluster(shared_address(&exchange.arrived), 0);  // all parts are there
  answer(exchange, rank, blocks, group, pairs, keys, o);
}

#define ENTRY_POINT(QUERIES)                                                                                           \
  extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_PER_SM)                                                 \
      decode_128_##QUERIES(const __grid_constant__ Maps maps, const Work work) {                                       \
    decode<QUERIES>(maps, work);                                                                                       \
  }
ENTRY_POINT(8)
ENTRY_POINT(16)

extern "C" __global__ void __launch_bounds__(FEW_WARPS *WARP, BLOCKS_PER_SM)
    few(const __grid_constant__ Maps maps, const Work work) {
  decode_few(maps, work);
}
