// Stage 22's launch: a cluster for each key head of each sequence. The lengths are on the GPU, so the host knows only
// how long the longest sequence may be.
#include "../13b-split-kv/splits.h"
#include "../13d-ragged/paged.h"

#include "tiles.h"

enum { TILES_OF_A_BLOCK = 64 };  // of the longest sequence

// As many blocks as sequences of one length would have. Where lengths differ there may be more, if the longest sequence
// has many tiles: once the short ones are read, its clusters must keep device memory busy alone.
static int blocks_of(const Decode *decode, int sm_count) {
  const DecodeShape *shape = &decode->shape;
  int even = splits_for(shape, decode->splits, sm_count, BLOCKS_AT_MOST, sm_count * 3 / 8);
  if (decode->splits || !decode->lengths) return even;
  int ragged = decode_tiles(shape) / TILES_OF_A_BLOCK;
  if (ragged > BLOCKS_AT_MOST) ragged = BLOCKS_AT_MOST;
  return even > ragged ? even : ragged;
}

// Whether each warp of a cluster has at most one tile.
static bool are_few(const DecodeShape *shape, unsigned blocks) {
  return blocks == BLOCKS_AT_MOST && shape->keys <= BLOCKS_AT_MOST * FEW_KEYS &&
         shape->heads / shape->kv_heads <= FEW_GROUP;
}

static Strides cache_strides(const DecodeShape *pool, DeviceTensor tensor) {
  tensor = decode_tensor_with_strides(pool->kv_heads, pool->keys, HEAD_DIM, tensor);
  return (Strides){tensor.batch, tensor.head, tensor.row};
}

static bool launch_few(Device *device, const Decode *decode) {
  const DecodeShape *shape = &decode->shape;
  DecodeShape pool = pool_of(decode);
  Work work = paged_work(decode, FEW_TILE);
  Cache cache = {.k = decode->k.address,
                 .v = decode->v.address,
                 .of_k = cache_strides(&pool, decode->k),
                 .of_v = cache_strides(&pool, decode->v)};
  DeviceLaunch kernel = {
      .kernel = device_kernel(device, decode->module, "few_128"),
      .grid = {BLOCKS_AT_MOST, (unsigned)shape->kv_heads, (unsigned)shape->batch},
      .block = {FEW_WARPS * WARP},
      .cluster = {BLOCKS_AT_MOST, 1, 1},
      .dynamic_shared = FEW_SHARED,
      .arguments = ARGUMENTS(&work, &cache),
  };
  return device_launch(device, &kernel);
}

static bool launch(Device *device, const Decode *decode) {
  const DecodeShape *shape = &decode->shape;
  unsigned blocks = (unsigned)blocks_of(decode, device_info(device)->sm_count);
  if (are_few(shape, blocks)) return launch_few(device, decode);
  Work work = paged_work(decode, KEYS_OF(HEAD_DIM));
  DecodeShape pool = pool_of(decode);
  Maps maps;
  DeviceLaunch kernel = {
      .kernel = decode_kernel(device, decode),
      .grid = {blocks, (unsigned)shape->kv_heads, (unsigned)shape->batch},
      .block = {THREADS},
      .cluster = {blocks, 1, 1},
      .dynamic_shared = DECODE_SHARED + EXCHANGE_BYTES,
      .arguments = ARGUMENTS(&maps, &work),
  };
  return decode_tensor_map(device, &pool, decode->k, KEYS_OF(HEAD_DIM), &maps.k) &&
         decode_tensor_map(device, &pool, decode->v, KEYS_OF(HEAD_DIM), &maps.v) && device_launch(device, &kernel);
}

const Stage stage = {
    .name = "22-paged-cluster",
    .title = "decode for a server in one launch: a cluster shares a sequence's pages, and combines what it has read",
    .decode = launch,
    .splits = blocks_of,
    .ragged = true,
    .head_dim = 128,
};
