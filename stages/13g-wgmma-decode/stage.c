// Stage 13g's launch: a block is a worker, two of them on each SM; then the kernel that combines what they have of heads
// that were shared, if there may be any.
#include "../13d-ragged/paged.h"

#include "block_tiles.h"

static int chunks_of(const DecodeShape *shape) { return (rows_of_head(shape) + ROWS - 1) / ROWS; }

static long tiles_of(const DecodeShape *shape) {
  int keys = BLOCK_KEYS_OF(shape->head_dim);
  return (long)shape->batch * shape->kv_heads * ((shape->keys + keys - 1) / keys);
}

// As many as run at a time, but no more than have a tile for each of their slots. A few less, if then no head is shared
// by two blocks that have others, too.
static int blocks_of(const DecodeShape *shape, int wanted, int sm_count) {
  if (wanted) return wanted;
  int heads = shape->batch * shape->kv_heads, fit = sm_count * BLOCKS_PER_SM / chunks_of(shape);
  fit = (int)busy_blocks(tiles_of(shape), fit > 1 ? fit : 1);
  for (int blocks = fit; blocks > fit - fit / 16; blocks--)
    if (heads % blocks == 0 || blocks % heads == 0) return blocks;
  return fit;
}

static size_t leftover_rows(const DecodeShape *shape, int blocks) { return (size_t)(2 * blocks * rows_of_head(shape)); }

static size_t workspace(const DecodeShape *shape, int wanted, int sm_count) {
  return leftover_rows(shape, blocks_of(shape, wanted, sm_count)) * (size_t)(shape->head_dim + 1) * sizeof(float);
}

// Whether each block has whole heads, and each head has keys. Lengths in device memory are unknown here.
static bool nothing_is_shared(const Decode *decode, int blocks) {
  const DecodeShape *shape = &decode->shape;
  return !decode->lengths && shape->batch * shape->kv_heads % busy_blocks(tiles_of(shape), blocks) == 0;
}

static bool launch(Device *device, const Decode *decode) {
  const DecodeShape *shape = &decode->shape;
  int blocks = blocks_of(shape, decode->splits, device_info(device)->sm_count);
  Work work = paged_work(decode, BLOCK_KEYS_OF(shape->head_dim));
  size_t o_bytes = leftover_rows(shape, blocks) * (size_t)shape->head_dim * sizeof(float);
  Leftovers leftovers = {.o = decode->workspace, .lse = decode->workspace + o_bytes, .workers = blocks};
  DecodeShape pool = pool_of(decode);
  int keys = BLOCK_KEYS_OF(shape->head_dim) / work.boxes;
  char read_name[32], combine_name[32];
  snprintf(read_name, sizeof read_name, "decode_%d", shape->head_dim);
  snprintf(combine_name, sizeof combine_name, "combine_%d", shape->head_dim);
  Maps maps;
  DeviceLaunch read = {
      .kernel = device_kernel(device, decode->module, read_name),
      .grid = {(unsigned)blocks, (unsigned)chunks_of(shape)},
      .block = {BLOCK_THREADS},
      .dynamic_shared = SLOTS_BYTES_OF(shape->head_dim),
      .arguments = ARGUMENTS(&maps, &work, &leftovers, &decode->lse),
  };
  DeviceLaunch combine = {
      .kernel = device_kernel(device, decode->module, combine_name),
      .grid = {(unsigned)(rows_of_head(shape) + WARPS - 1) / WARPS, (unsigned)shape->kv_heads, (unsigned)shape->batch},
      .block = {THREADS},
      .early = true,
      .arguments = ARGUMENTS(&work, &leftovers, &decode->lse),
  };
  return decode_tensor_map(device, &pool, decode->k, keys, &maps.k) &&
         decode_tensor_map(device, &pool, decode->v, keys, &maps.v) && device_launch(device, &read) &&
         (nothing_is_shared(decode, blocks) || device_launch(device, &combine));
}

const Stage stage = {
    .name = "13g-wgmma-decode",
    .title = "the queries of a key head are the 64 rows of a wgmma: 8 rows and 64 take the same time",
    .decode = launch,
    .decode_workspace = workspace,
    .ragged = true,
    .strided = true,
    .queries = 8,
    .lse = true,
};
