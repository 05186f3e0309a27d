// The launch: one kernel, a cluster for each key head of each sequence. All of it is yours to change, but for the name
// `stage`.
#include "harness/stage.h"

#include "tiles.h"

// 0 in `splits`: the choice is yours.
static int blocks_of_cluster(const Decode *decode, int sm_count) {
  (void)sm_count;
  return decode->splits ? decode->splits : 1;
}

static bool launch_decoder(Device *device, const Decode *decode) {
  const DecodeShape *shape = &decode->shape;
  unsigned blocks = (unsigned)blocks_of_cluster(decode, device_info(device)->sm_count);
  DecodeShape pool = *shape;
  if (decode->block_table) pool.batch = decode->pages, pool.keys = shape->page;
  Problem problem = {
      .q = decode->q.address,
      .o = decode->o.address,
      .kv_heads = shape->kv_heads,
      .group = shape->heads / shape->kv_heads,
      .keys = shape->keys,
      .scale = decode->scale * 1.44269504f,
      .lengths = decode->lengths,
      .block_table = decode->block_table,
      .table_row = shape->page ? (shape->keys + shape->page - 1) / shape->page : 0,
      .page = shape->page,
  };
  Maps maps;
  decode_tensor_map(device, &pool, decode->k, KEYS, &maps.k);
  decode_tensor_map(device, &pool, decode->v, KEYS, &maps.v);
  DeviceLaunch kernel = {
      .kernel = device_kernel(device, decode->module, "decode"),
      .grid = {blocks, (unsigned)shape->kv_heads, (unsigned)shape->batch},
      .block = {THREADS},
      .cluster = {blocks, 1, 1},
      .dynamic_shared = SHARED_BYTES,
      .arguments = ARGUMENTS(&maps, &problem),
  };
  return device_launch(device, &kernel);
}

const Stage stage = {
    .name = "capstone",
    .title = "decode for a server, mine",
    .decode = launch_decoder,
    .splits = blocks_of_cluster,
    .ragged = true,
    .head_dim = HEAD_DIM,
};
