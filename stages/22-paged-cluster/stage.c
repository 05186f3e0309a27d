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

static bool launch(Device *device, const Decode *decode) {
  const DecodeShape *shape = &decode->shape;
  unsigned blocks = (unsigned)blocks_of(decode, device_info(device)->sm_count);
  Work work = paged_work(decode, KEYS_OF(HEAD_DIM));
  DecodeShape pool = pool_of(decode);
  Maps maps;
  bool few = are_few(shape, blocks);
  DeviceLaunch kernel = {
      .kernel = few ? device_kernel(device, decode->module, "few") : decode_kernel(device, decode),
      .grid = {blocks, (unsigned)shape->kv_heads, (unsigned)shape->batch},
      .block = {few ? FEW_WARPS * WARP : THREADS},
      .cluster = {blocks, 1, 1},
      .dynamic_shared = few ? FEW_SHARED : DECODE_SHARED + EXCHANGE_BYTES,
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
