// Stage 13d's launch: a block for each SM, which share out all tiles; then the kernel that combines what
// they have of heads that were shared.
#include "paged.h"

static int blocks_of(const DecodeShape *shape, int wanted, int sm_count) {
  return paged_blocks(shape, wanted, sm_count, KEYS_OF(shape->head_dim), 1);
}

static size_t workspace(const DecodeShape *shape, int wanted, int sm_count) {
  return leftover_bytes(shape, blocks_of(shape, wanted, sm_count));
}

static bool launch(Device *device, const Decode *decode) {
  const DecodeShape *shape = &decode->shape;
  int blocks = blocks_of(shape, decode->splits, device_info(device)->sm_count);
  Work work = paged_work(decode, KEYS_OF(shape->head_dim));
  Leftovers leftovers = paged_leftovers(decode, blocks);
  DecodeShape pool = pool_of(decode);
  int rows = KEYS_OF(shape->head_dim) / work.boxes;
  Maps maps;
  DeviceLaunch read = {
      .kernel = decode_kernel(device, decode),
      .grid = {(unsigned)blocks},
      .block = {THREADS},
      .dynamic_shared = RINGS_BYTES,
      .arguments = ARGUMENTS(&maps, &work, &leftovers),
  };
  return decode_tensor_map(device, &pool, decode->k, rows, &maps.k) &&
         decode_tensor_map(device, &pool, decode->v, rows, &maps.v) && device_launch(device, &read) &&
         launch_combine(device, decode, &work, &leftovers);
}

const Stage stage = {
    .name = "13d-ragged",
    .title = "lengths that differ, keys in pages: one list of tiles, shared out evenly among all warps",
    .decode = launch,
    .decode_workspace = workspace,
    .ragged = true,
    .strided = true,
};
