// Stage 13e's launch: that of 13d with tiles of twice as many keys, and the cache's scales.
#include "../13d-ragged/paged.h"

#include "scales.h"

static int blocks_of(const DecodeShape *shape, int wanted, int sm_count) {
  return paged_blocks(shape, wanted, sm_count, E4M3_KEYS_OF(shape->head_dim), 1);
}

static size_t workspace(const DecodeShape *shape, int wanted, int sm_count) {
  return leftover_bytes(shape, blocks_of(shape, wanted, sm_count));
}

static bool launch(Device *device, const Decode *decode) {
  const DecodeShape *shape = &decode->shape;
  int blocks = blocks_of(shape, decode->splits, device_info(device)->sm_count);
  Work work = paged_work(decode, E4M3_KEYS_OF(shape->head_dim));
  Leftovers leftovers = paged_leftovers(decode, blocks);
  Scales scales = {.k = decode->k_scale, .v = decode->v_scale, .stride = decode->scale_stride};
  DecodeShape pool = pool_of(decode);
  int rows = E4M3_KEYS_OF(shape->head_dim) / work.boxes;
  Maps maps;
  DeviceLaunch read = {
      .kernel = decode_kernel(device, decode),
      .grid = {(unsigned)blocks},
      .block = {THREADS},
      .dynamic_shared = RINGS_BYTES,
      .arguments = decode->lse ? ARGUMENTS(&maps, &work, &leftovers, &scales, &decode->lse)
                               : ARGUMENTS(&maps, &work, &leftovers, &scales),
  };
  return decode_tensor_map_e4m3(device, &pool, decode->k, rows, &maps.k) &&
         decode_tensor_map_e4m3(device, &pool, decode->v, rows, &maps.v) && device_launch(device, &read) &&
         launch_combine(device, decode, &work, &leftovers);
}

const Stage stage = {
    .name = "13e-fp8-kv",
    .title = "an e4m3 cache: half the bytes, widened to fp16 beside the loads",
    .inputs = INPUTS_E4M3,
    .decode = launch,
    .decode_workspace = workspace,
    .ragged = true,
    .strided = true,
    .lse = true,
};
