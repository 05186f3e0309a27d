// Stage 22: decode for a server, in one launch. Sequences differ in length, their keys lie in pages, and nothing but O
// is written to device memory.
//
// A cluster answers the queries of one key head of one sequence. Its blocks share out the keys that this sequence has,
// and combine their parts through each other's shared memory. Where a sequence has fewer tiles than its cluster has
// blocks, some blocks have no keys. They take part all the same: the others expect a part from each.
#include "../13-decode/merge.h"
#include "ptx/cluster.h"

#include "share.h"
#include "tiles.h"

// A block's shared memory: as in stage 13, and what the blocks of the cluster send. The pairs of neighbouring columns
// of all queries are shared out: block r has those from r * pairs on.
struct Exchange {
  Shared shared;
  float lse[BLOCKS_AT_MOST][GROUP_AT_MOST];                 // [from block][query]
  float2 o[GROUP_AT_MOST * HEAD_DIM / 2 + BLOCKS_AT_MOST];  // [from block][pairs]
};
static_assert(sizeof(Exchange) == sizeof(Shared) + EXCHANGE_BYTES, "see stage.c");

// The share of this block: O and log-sum-exp over its keys. Without keys it weighs nothing.
__device__ Merged merge_share(const Shared &shared, const Share &share, int query, int column) {
  return share.first < share.end ? merge<HEAD_DIM>(shared, query, column) : Merged{{0, 0}, -INFINITY};
}

// Sends each block of the cluster the pairs that it answers for.
__device__ void send(Exchange &exchange, const Share &share, int rank, int blocks, int group, int pairs) {
  for (int i = threadIdx.x; i < group * HEAD_DIM / 2; i += THREADS) {
    int query = i / (HEAD_DIM / 2), column = i % (HEAD_DIM / 2) * 2;
    Merged merged = merge_share(exchange.shared, share, query, column);
    store_cluster(in_block(shared_address(&exchange.o[rank * pairs + i % pairs]), i / pairs), merged.o);
    if (column / 2 < blocks)  // a thread for each block
      store_cluster(in_block(shared_address(&exchange.lse[rank][query]), column / 2), merged.lse);
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
    o[rank * pairs + i] = keys ? pack_bf16(all.x / sum, all.y / sum) : 0;  // an empty sequence: 0 / 0 otherwise
  }
}

// Grid: cluster size, key heads, sequences, in clusters along x. Block: WARPS warps.
template <int QUERIES> __device__ void decode(const Maps &maps, const Work &work) {
  extern __shared__ __align__(1024) char memory[];  // where a swizzle of 128 bytes begins anew
  Exchange &exchange = *(Exchange *)memory;
  int rank = cluster_rank(), blocks = cluster_size(), head = blockIdx.y, sequence = blockIdx.z;
  cluster_arrive();  // this block has begun, so that the others may write to its shared memory

  int warp = __shfl_sync(ALL_LANES, threadIdx.x / WARP, 0);  // tells ptxas that all lanes have the same
  int keys = keys_of(work, sequence), tiles = tiles_of<KEYS_OF(HEAD_DIM)>(keys);
  Share share = {(int)((long)tiles * rank / blocks), (int)((long)tiles * (rank + 1) / blocks)};
  ShareReader<HEAD_DIM, QUERIES> reader(maps, work, sequence, head, keys, {share.first + warp, share.end},
                                        shared_address(exchange.shared.rings[warp]),
                                        shared_address(exchange.shared.full[warp]));
  reader.run();
  put(exchange.shared, warp, reader);
  __syncthreads();

  cluster_wait();  // all blocks have begun
  int group = work.problem.group, pairs = (group * HEAD_DIM / 2 + blocks - 1) / blocks;
  send(exchange, share, rank, blocks, group, pairs);
  cluster_sync();  // all parts are there
  __nv_bfloat16 *o = work.problem.o + (size_t)(sequence * work.problem.kv_heads + head) * group * HEAD_DIM;
  answer(exchange, rank, blocks, group, pairs, keys, (uint32_t *)o);
}

#define ENTRY_POINT(QUERIES)                                                                                           \
  extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_PER_SM)                                                 \
      decode_128_##QUERIES(const __grid_constant__ Maps maps, const Work work) {                                       \
    decode<QUERIES>(maps, work);                                                                                       \
  }
ENTRY_POINT(8)
ENTRY_POINT(16)
