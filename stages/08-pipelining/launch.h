// The launch of stages 08 and 08b, which is that of stage 07c: one kernel. A block does 64 queries of one head for each
// of its consumers.
#pragma once

#include "harness/stage.h"

#include "../07c-last-tile-first/tiles.h"

static bool launch(Device *device, const Attention *a) {
  const Shape *shape = &a->shape;
  int head_dim = shape->head_dim, rows = ROWS_OF(head_dim);
  const char *kernel_64 = shape->causal ? "attention_64_causal" : "attention_64";
  const char *kernel_128 = shape->causal ? "attention_128_causal" : "attention_128";
  Problem problem = {
      .seqlen = shape->seqlen,
      .head_tiles = (shape->seqlen + rows - 1) / rows,
      .scale = a->scale * 1.44269504f,
      .o = a->o.address,
  };
  Tensors tensors;
  attention_tensor_map(device, shape, a->q, rows, &tensors.q);
  attention_tensor_map(device, shape, a->k, KEYS, &tensors.k);
  attention_tensor_map(device, shape, a->v, KEYS, &tensors.v);
  DeviceLaunch attention = {
      .kernel = device_kernel(device, a->module, head_dim == 64 ? kernel_64 : kernel_128),
      .grid = {(unsigned)(shape->batch * shape->heads * problem.head_tiles)},
      .block = {THREADS_OF(head_dim)},
      .dynamic_shared = SHARED_BYTES(head_dim),
      .arguments = ARGUMENTS(&tensors, &problem),
  };
  return device_launch(device, &attention);
}
