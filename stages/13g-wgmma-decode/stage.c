// Stage 13g's launch: a cluster for each key head of each sequence, and for each 64 of its rows. The lengths are on the
// GPU, so the host knows only how long the longest sequence may be.
#include "../13b-split-kv/splits.h"
#include "../13d-ragged/paged.h"

#include "block_tiles.h"

// Where lengths may differ, a block of the longest sequence has RAGGED_KEYS, if all blocks are at most WAVES waves; or
// half as many, if all blocks run at the same time.
enum { RAGGED_KEYS = 2048, WAVES = 8 };

static int chunks_of(const DecodeShape *shape) { return (rows_of_head(shape) + ROWS - 1) / ROWS; }

static int tiles_of(const DecodeShape *shape) {
  int keys = BLOCK_KEYS_OF(shape->head_dim);
  return (shape->keys + keys - 1) / keys;
}

// For sequences of one length, as in stage 13b.
static int even_blocks(const DecodeShape *shape, int sm_count) {
  Splitting splitting = {.heads = (long)shape->batch * shape->kv_heads * chunks_of(shape),
                         .tiles = tiles_of(shape),
                         .least_tiles = 1,
                         .wave_tiles = 1,
                         .most = CLUSTER_AT_MOST,
                         .enough = sm_count * 3 / 4};
  return choose_splits(&splitting, sm_count);
}

static int at_most(int blocks, long most) { return blocks < most ? blocks : (int)most; }

// More where lengths may differ: once the short sequences are read, the clusters of the longest one must keep device
// memory busy alone.
static int blocks_of(const Decode *decode, int sm_count) {
  const DecodeShape *shape = &decode->shape;
  int tiles = tiles_of(shape), most = tiles < CLUSTER_AT_MOST ? tiles : CLUSTER_AT_MOST;
  int blocks = decode->splits ? decode->splits : even_blocks(shape, sm_count);
  if (!decode->splits && decode->lengths) {
    long heads = (long)shape->batch * shape->kv_heads * chunks_of(shape), slots = (long)sm_count * BLOCKS_PER_SM;
    int ragged = at_most(shape->keys / RAGGED_KEYS, WAVES * slots / heads);
    int at_once = at_most(2 * shape->keys / RAGGED_KEYS, slots / heads);
    if (ragged > blocks) blocks = ragged;
    if (at_once > blocks) blocks = at_once;
  }
  return blocks < most ? blocks : most;
}

static bool launch(Device *device, const Decode *decode) {
  const DecodeShape *shape = &decode->shape;
  unsigned blocks = (unsigned)blocks_of(decode, device_info(device)->sm_count);
  Work work = paged_work(decode, BLOCK_KEYS_OF(shape->head_dim));
  DecodeShape pool = pool_of(decode);
  int keys = BLOCK_KEYS_OF(shape->head_dim) / work.boxes;
  char name[32];
  snprintf(name, sizeof name, "decode_%d", shape->head_dim);
  Maps maps;
  DeviceLaunch kernel = {
      .kernel = device_kernel(device, decode->module, name),
      .grid = {blocks * (unsigned)chunks_of(shape), (unsigned)shape->kv_heads, (unsigned)shape->batch},
      .block = {BLOCK_THREADS},
      .cluster = {blocks, 1, 1},
      .dynamic_shared = SLOTS_BYTES_OF(shape->head_dim),
      .arguments = ARGUMENTS(&maps, &work, &decode->lse),
  };
  return decode_tensor_map(device, &pool, decode->k, keys, &maps.k) &&
         decode_tensor_map(device, &pool, decode->v, keys, &maps.v) && device_launch(device, &kernel);
}

const Stage stage = {
    .name = "13g-wgmma-decode",
    .title = "the queries of a key head are the 64 rows of a wgmma: 8 rows and 64 take the same time",
    .decode = launch,
    .splits = blocks_of,
    .ragged = true,
    .strided = true,
    .queries = 8,
    .lse = true,
};
