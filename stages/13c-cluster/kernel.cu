// Stage 13c: the blocks that share a head's keys are a cluster, and combine their parts through each other's shared
// memory. There is one launch, and nothing but the cache is read from device memory.
//
// Each block answers for a slice of O. When a block has read its keys, it sends every other block the part of that
// block's slice that it has, and the log-sum-exp of each query. A block writes to others alone and reads its own, so it
// may end as soon as all have arrived at the second barrier.
#include "../13-decode/merge.h"
#include "ptx/cluster.h"

#include "exchange.h"

// A block's shared memory: as in stage 13, and what the blocks of the cluster send. The pairs of neighbouring columns
// of all queries are shared out: block r has those from r * share on.
struct Exchange {
  Shared shared;
  float lse[CLUSTER_AT_MOST][16];            // [from block][query]
  float2 o[16 * 128 / 2 + CLUSTER_AT_MOST];  // [from block][share]
};

// Grid: cluster size, key heads, sequences, in clusters along x. Block: WARPS warps.
template <int HEAD_DIM, int QUERIES> __device__ void decode(const Maps &maps, const Problem &problem) {
  extern __shared__ __align__(1024) char memory[];  // where a swizzle of 128 bytes begins anew
  Exchange &exchange = *(Exchange *)memory;
  int rank = cluster_rank(), blocks = cluster_size(), head = blockIdx.y, batch = blockIdx.z;
  long tiles = (problem.keys + KEYS_OF(HEAD_DIM) - 1) / KEYS_OF(HEAD_DIM);
  int first = (int)(tiles * rank / blocks), end = (int)(tiles * (rank + 1) / blocks);
  cluster_arrive();  // this block has begun, so that the others may write to its shared memory
  read_tiles<HEAD_DIM, QUERIES>(exchange.shared, maps, problem, batch, head, first, end);
  cluster_wait();  // and all others have begun

  int pairs = problem.group * HEAD_DIM / 2, share = (pairs + blocks - 1) / blocks;
  for (int i = threadIdx.x; i < pairs; i += THREADS) {
    int query = i / (HEAD_DIM / 2), column = i % (HEAD_DIM / 2) * 2;
    Merged merged = merge<HEAD_DIM>(exchange.shared, query, column);
    store_cluster(in_block(shared_address(&exchange.o[rank * share + i % share]), i / share), merged.o);
    if (column / 2 < blocks)  // a thread for each block
      store_cluster(in_block(shared_address(&exchange.lse[rank][query]), column / 2), merged.lse);
  }
  cluster_sync();  // all parts are there

  uint32_t *o = (uint32_t *)(problem.o + (size_t)(batch * problem.kv_heads + head) * problem.group * HEAD_DIM);
  for (int i = threadIdx.x; i < share && rank * share + i < pairs; i += THREADS) {
    int query = (rank * share + i) / (HEAD_DIM / 2);
    float max = -INFINITY, sum = 0;
    float2 all = {0, 0};
    for (int b = 0; b < blocks; b++) max = fmaxf(max, exchange.lse[b][query]);
    for (int b = 0; b < blocks; b++) {
      float weight = power_of_two(exchange.lse[b][query] - max);
      float2 part = exchange.o[b * share + i];
      sum += weight;
      all.x += weight * part.x;
      all.y += weight * part.y;
    }
    o[rank * share + i] = pack_bf16(all.x / sum, all.y / sum);
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
