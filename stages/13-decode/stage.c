// Stage 13's launch: a block for each key head of each sequence.
#include "launch.h"

static bool launch(Device *device, const Decode *decode) {
  const DecodeShape *shape = &decode->shape;
  Problem problem = decode_problem(decode);
  Maps maps;
  DeviceLaunch kernel = {
      .kernel = decode_kernel(device, decode),
      .grid = {(unsigned)shape->kv_heads, (unsigned)shape->batch},
      .block = {THREADS},
      .dynamic_shared = DECODE_SHARED,
      .arguments = ARGUMENTS(&maps, &problem),
  };
  return decode_maps(device, decode, &maps) && device_launch(device, &kernel);
}

const Stage stage = {
    .name = "13-decode",
    .title = "one query a sequence, bf16: as many bytes in flight as device memory needs",
    .decode = launch,
};
