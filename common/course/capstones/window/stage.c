// The launch: one kernel, a block for each tile of queries. All of it is yours to change, but for the name `stage`.
#include "harness/stage.h"

#include "tiles.h"

static bool launch_window(Device *device, const Attention *a) {
  const Shape *shape = &a->shape;
  int heads = shape->batch * shape->heads, head_tiles = (shape->seqlen + ROWS - 1) / ROWS;
  Problem problem = {shape->seqlen, heads, a->window, a->scale * 1.44269504f};
  Tensors tensors;
  attention_tensor_map_columns(device, shape, a->q, ROWS, COLUMNS, &tensors.q);
  attention_tensor_map_columns(device, shape, a->k, KEYS, COLUMNS, &tensors.k);
  attention_tensor_map_columns(device, shape, a->v, KEYS, COLUMNS, &tensors.v);
  attention_tensor_map_columns(device, shape, a->o, STORE_ROWS, COLUMNS, &tensors.o);
  DeviceLaunch attention = {
      .kernel = device_kernel(device, a->module, "attention"),
      .grid = {(unsigned)(heads * head_tiles)},
      .block = {THREADS},
      .dynamic_shared = SHARED_BYTES,
      .arguments = ARGUMENTS(&tensors, &problem),
  };
  return device_launch(device, &attention);
}

const Stage stage = {
    .name = "capstone",
    .title = "attention with a sliding window, mine",
    .windowed = launch_window,
};
