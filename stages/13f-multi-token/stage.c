// Stage 13f's launch: that of 13d, with 8, 16 or 32 rows for each block.
#include "../13d-ragged/paged.h"

#include "halves.h"

enum { ROWS_AT_MOST = 32 };

static int rows_of_block(const DecodeShape *shape) {
  int rows = rows_of_head(shape);
  return rows <= 8 ? 8 : rows <= 16 ? 16 : ROWS_AT_MOST;
}

static int chunks_of(const DecodeShape *shape) {
  return (rows_of_head(shape) + rows_of_block(shape) - 1) / rows_of_block(shape);
}

static int blocks_of(const DecodeShape *shape, int wanted, int sm_count) {
  return paged_blocks(shape, wanted, sm_count, KEYS_OF(shape->head_dim), chunks_of(shape));
}

static size_t workspace(const DecodeShape *shape, int wanted, int sm_count) {
  return leftover_bytes(shape, blocks_of(shape, wanted, sm_count));
}

static unsigned shared_of_q(const DecodeShape *shape) {
  return HALF_OF_Q_SHARED(shape->head_dim, rows_of_block(shape)) ? WARPS * HALF_OF_Q_BYTES : 0;
}

static bool launch(Device *device, const Decode *decode) {
  const DecodeShape *shape = &decode->shape;
  int blocks = blocks_of(shape, decode->splits, device_info(device)->sm_count);
  Work work = paged_work(decode, KEYS_OF(shape->head_dim));
  Leftovers leftovers = paged_leftovers(decode, blocks);
  DecodeShape pool = pool_of(decode);
  int rows = KEYS_OF(shape->head_dim) / work.boxes;
  char name[32];
  snprintf(name, sizeof name, "decode_%d_%d%s", shape->head_dim, rows_of_block(shape), decode->lse ? "_lse" : "");
  Maps maps;
  DeviceLaunch read = {
      .kernel = device_kernel(device, decode->module, name),
      .grid = {(unsigned)blocks, (unsigned)chunks_of(shape)},
      .block = {THREADS},
      .dynamic_shared = RINGS_BYTES + shared_of_q(shape),
      .arguments =
          decode->lse ? ARGUMENTS(&maps, &work, &leftovers, &decode->lse) : ARGUMENTS(&maps, &work, &leftovers),
  };
  return decode_tensor_map(device, &pool, decode->k, rows, &maps.k) &&
         decode_tensor_map(device, &pool, decode->v, rows, &maps.v) && device_launch(device, &read) &&
         launch_combine(device, decode, &work, &leftovers);
}

const Stage stage = {
    .name = "13f-multi-token",
    .title = "several queries a sequence, causal among themselves: from bytes to FLOP",
    .decode = launch,
    .decode_workspace = workspace,
    .ragged = true,
    .strided = true,
    .queries = 8,
    .lse = true,
};
