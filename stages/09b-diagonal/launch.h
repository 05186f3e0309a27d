// The launch of stages 09b and 10, which differ inside the kernel alone: one kernel, as many blocks as SMs; they share
// the tiles among themselves.
#pragma once

#include <stdio.h>

#include "harness/stage.h"

#include "../09-persistent/head_group.h"
#include "tiles.h"

#include "lead.h"

// Only stage 10 has kernels that store the log-sum-exp.
static DeviceKernel *find_kernel(Device *device, const Attention *a) {
  char name[40];
  snprintf(name, sizeof name, "attention_%d%s%s", a->shape.head_dim, a->shape.causal ? "_causal" : "",
           a->lse ? "_lse" : "");
  return device_kernel(device, a->module, name);
}

static bool launch(Device *device, const Attention *a) {
  const Shape *shape = &a->shape;
  int head_dim = shape->head_dim, rows = ROWS_OF(head_dim), heads = shape->batch * shape->heads;
  int head_tiles = (shape->seqlen + rows - 1) / rows;
  Problem problem = {
      .seqlen = shape->seqlen,
      .heads = heads,
      .head_tiles = head_tiles,
      .group = head_group(shape, heads),
      .lead = lead(shape->seqlen, rows, head_tiles),
      .scale = a->scale * 1.44269504f,
      .lse = a->lse,
  };
  Tensors tensors = {.asked = a->counter};
  attention_tensor_map(device, shape, a->q, rows, &tensors.q);
  attention_tensor_map(device, shape, a->k, KEYS, &tensors.k);
  attention_tensor_map(device, shape, a->v, KEYS, &tensors.v);
  attention_tensor_map(device, shape, a->o, STORE_ROWS, &tensors.o);
  DeviceLaunch attention = {
      .kernel = find_kernel(device, a),
      .grid = {(unsigned)minimum(heads * head_tiles, device_info(device)->sm_count)},
      .block = {THREADS_OF(head_dim)},
      .dynamic_shared = SHARED_BYTES(head_dim),
      .arguments = ARGUMENTS(&tensors, &problem),
  };
  return device_launch(device, &attention);
}
