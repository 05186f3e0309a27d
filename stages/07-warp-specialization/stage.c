// Stage 07's launch: one kernel; a block does 128 queries of one head, 64 in each of its two consumer warpgroups.
#include "harness/stage.h"

#include "tiles.h"

static bool launch(Device *device, const Attention *a) {
  const Shape *shape = &a->shape;
  int head_dim = shape->head_dim;
  Problem problem = {
      .seqlen = shape->seqlen,
      .causal = shape->causal,
      .head_tiles = (shape->seqlen + ROWS - 1) / ROWS,
      .scale = a->scale * 1.44269504f,
      .o = a->o.address,
  };
  Tensors tensors;
  attention_tensor_map(device, shape, a->q, ROWS, &tensors.q);
  attention_tensor_map(device, shape, a->k, KEYS_OF(head_dim), &tensors.k);
  attention_tensor_map(device, shape, a->v, KEYS_OF(head_dim), &tensors.v);
  DeviceLaunch attention = {
      .kernel = device_kernel(device, a->module, head_dim == 64 ? "attention_64" : "attention_128"),
      .grid = {(unsigned)(shape->batch * shape->heads * problem.head_tiles)},
      .block = {THREADS},
      .dynamic_shared = SHARED_BYTES(head_dim),
      .arguments = ARGUMENTS(&tensors, &problem),
  };
  return device_launch(device, &attention);
}

const Stage stage = {
    .name = "07-warp-specialization",
    .title = "one warp loads, two warpgroups compute",
    .launch = launch,
};
