// Stage 13c's launch: a cluster for each key head of each sequence.
#include "../13b-split-kv/splits.h"

#include "exchange.h"

// Besides struct Shared, of struct Exchange: the log-sum-exp and the columns that the blocks send.
enum { EXCHANGE_BYTES = 4 * CLUSTER_AT_MOST * QUERIES_AT_MOST + 8 * (QUERIES_AT_MOST * 128 / 2 + CLUSTER_AT_MOST) };

// The blocks of a cluster read neighbouring tiles at the same time. Where that many clusters follow one another that no
// block is missed, large clusters read device memory faster than it is read otherwise (README.md).
enum { TILES_OF_A_BLOCK = 32, MANY_WAVES = 15 };

static int blocks_of(const Decode *decode, int sm_count) {
  const DecodeShape *shape = &decode->shape;
  int wanted = decode->splits;
  // All blocks of a cluster run in one part of the GPU, a GPC. Large clusters fill the GPCs unevenly, so a few blocks
  // less are better.
  int enough = sm_count * 3 / 8, blocks = splits_for(shape, wanted, sm_count, CLUSTER_AT_MOST, enough), most = 1;
  while (most < CLUSTER_AT_MOST && 2 * most * TILES_OF_A_BLOCK <= decode_tiles(shape)) most *= 2;
  long clusters = (long)shape->batch * shape->kv_heads, slots = (long)sm_count * BLOCKS_PER_SM;
  return !wanted && clusters * most >= slots * MANY_WAVES ? most : blocks;
}

static bool launch(Device *device, const Decode *decode) {
  const DecodeShape *shape = &decode->shape;
  Problem problem = decode_problem(decode);
  unsigned blocks = (unsigned)blocks_of(decode, device_info(device)->sm_count);
  Maps maps;
  DeviceLaunch kernel = {
      .kernel = decode_kernel(device, decode),
      .grid = {blocks, (unsigned)shape->kv_heads, (unsigned)shape->batch},
      .block = {THREADS},
      .cluster = {blocks, 1, 1},
      .dynamic_shared = DECODE_SHARED + EXCHANGE_BYTES,
      .arguments = ARGUMENTS(&maps, &problem),
  };
  return decode_maps(device, decode, &maps) && device_launch(device, &kernel);
}

const Stage stage = {
    .name = "13c-cluster",
    .title = "the blocks of a cluster combine their parts through each other's shared memory",
    .decode = launch,
    .splits = blocks_of,
};
