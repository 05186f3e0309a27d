// Stage 13b's launch: a block for each part of a key head's keys, then the kernel that combines the parts.
#include "splits.h"

#include "parts.h"

// A block keeps 96 KiB in flight, so device memory is busy with half as many blocks as there are SMs.
static int splits_of(const DecodeShape *shape, int wanted, int sm_count) {
  return splits_for(shape, wanted, sm_count, SPLITS_AT_MOST, sm_count / 2);
}

static int splits_for_problem(const Decode *decode, int sm_count) {
  return splits_of(&decode->shape, decode->splits, sm_count);
}

static size_t queries_of(const DecodeShape *shape) { return (size_t)shape->batch * (size_t)shape->heads; }

static size_t workspace(const DecodeShape *shape, int wanted, int sm_count) {
  int splits = splits_of(shape, wanted, sm_count);
  return splits == 1 ? 0 : queries_of(shape) * (size_t)splits * ((size_t)shape->head_dim + 1) * sizeof(float);
}

static bool launch(Device *device, const Decode *decode) {
  const DecodeShape *shape = &decode->shape;
  Problem problem = decode_problem(decode);
  int splits = splits_for_problem(decode, device_info(device)->sm_count);
  size_t part_bytes = queries_of(shape) * (size_t)splits * (size_t)shape->head_dim * sizeof(float);
  Parts parts = {.o = decode->workspace, .lse = decode->workspace + part_bytes, .splits = splits};
  Maps maps;
  DeviceLaunch read = {
      .kernel = decode_kernel(device, decode),
      .grid = {(unsigned)splits, (unsigned)shape->kv_heads, (unsigned)shape->batch},
      .block = {THREADS},
      .dynamic_shared = DECODE_SHARED,
      .arguments = ARGUMENTS(&maps, &problem, &parts),
  };
  DeviceLaunch combine = {
      .kernel = device_kernel(device, decode->module, shape->head_dim == 64 ? "combine_64" : "combine_128"),
      .grid = {(unsigned)queries_of(shape)},
      .block = {THREADS},
      .early = true,
      .arguments = ARGUMENTS(&problem, &parts),
  };
  if (!decode_maps(device, decode, &maps) || !device_launch(device, &read)) return false;
  return splits == 1 || device_launch(device, &combine);
}

const Stage stage = {
    .name = "13b-split-kv",
    .title = "the keys of a head shared out among the SMs, and a second kernel that combines the parts",
    .decode = launch,
    .decode_workspace = workspace,
    .splits = splits_for_problem,
};
