// Stage 07b's launch: one kernel; a block does 64 queries of one head for each of its consumers.
#include "harness/stage.h"

#include "tiles.h"

static bool launch(Device *device, const Attention *a) {
  const Shape *shape = &a->shape;
  int head_dim = shape->head_dim, rows = ROWS_OF(head_dim);
  Problem problem = {
      .seqlen = shape->seqlen,
      .causal = shape->causal,
      .head_tiles = (shape->seqlen + rows - 1) / rows,
      .scale = a->scale * 1.44269504f,
      .o = a->o.address,
  };
  Tensors tensors;
  attention_tensor_map(device, shape, a->q, rows, &tensors.q);
  attention_tensor_map(device, shape, a->k, KEYS, &tensors.k);
  attention_tensor_map(device, shape, a->v, KEYS, &tensors.v);
  DeviceLaunch attention = {
      .kernel = device_kernel(device, a->module, head_dim == 64 ? "attention_64" : "attention_128"),
      .grid = {(unsigned)(shape->batch * shape->heads * problem.head_tiles)},
      .block = {THREADS_OF(head_dim)},
      .dynamic_shared = SHARED_BYTES(head_dim),
      .arguments = ARGUMENTS(&tensors, &problem),
  };
  return device_launch(device, &attention);
}

const Stage stage = {
    .name = "07b-register-reallocation",
    .title = "the producer's registers go to the consumers, which use larger tiles",
    .launch = launch,
};
