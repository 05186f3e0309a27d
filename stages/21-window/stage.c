// Stage 21's launch: one kernel, as many blocks as SMs; they share the tiles among themselves.
#include "harness/stage.h"

#include "tiles.h"

static bool launch(Device *device, const Attention *a) {
  const Shape *shape = &a->shape;
  int head_tiles = (shape->seqlen + ROWS - 1) / ROWS, sm_count = device_info(device)->sm_count;
  Problem problem = {
      .window = a->window,
      .tiles = shape->batch * shape->heads * head_tiles,
      .head_tiles = head_tiles,
      .scale = a->scale * 1.44269504f,
  };
  Tensors tensors;
  attention_tensor_map_columns(device, shape, a->q, ROWS, COLUMNS, &tensors.q);
  attention_tensor_map_columns(device, shape, a->k, KEYS, COLUMNS, &tensors.k);
  attention_tensor_map_columns(device, shape, a->v, KEYS, COLUMNS, &tensors.v);
  attention_tensor_map_columns(device, shape, a->o, STORE_ROWS, COLUMNS, &tensors.o);
  DeviceLaunch attention = {
      .kernel = device_kernel(device, a->module, "attention"),
      .grid = {(unsigned)(problem.tiles < sm_count ? problem.tiles : sm_count)},
      .block = {THREADS},
      .dynamic_shared = SHARED_BYTES,
      .arguments = ARGUMENTS(&tensors, &problem),
  };
  return device_launch(device, &attention);
}

const Stage stage = {
    .name = "21-window",
    .title = "head dimension 96 and a sliding window: tiles outside it are skipped, those at its edges are masked",
    .windowed = launch,
};
