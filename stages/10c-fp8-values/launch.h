// The launch of the attention of stages 10c to 11d. The caller has made the map of the values, as its producer loads
// them.
#pragma once

#include "harness/stage.h"

#include "../09-persistent/head_group.h"
#include "tiles.h"

#include "../09b-diagonal/lead.h"

static bool launch_e4m3(Device *device, const Attention *a, const TensorMap *values) {
  const Shape *shape = &a->shape;
  int head_dim = shape->head_dim, rows = ROWS_OF(head_dim), heads = shape->batch * shape->heads;
  int head_tiles = (shape->seqlen + rows - 1) / rows;
  const char *kernel_64 = shape->causal ? "attention_64_causal" : "attention_64";
  const char *kernel_128 = shape->causal ? "attention_128_causal" : "attention_128";
  Problem problem = {
      .seqlen = shape->seqlen,
      .heads = heads,
      .head_tiles = head_tiles,
      .group = head_group(shape, heads),
      .lead = lead(shape->seqlen, rows, head_tiles),
      .scale_stride = a->scale_stride,
      .scale = a->scale * 1.44269504f,
  };
  DeviceTensor o = tensor_with_strides(shape, a->o);
  Tensors tensors = {
      .v = *values,
      .o = o.address,
      .q_scale = a->q_scale,
      .k_scale = a->k_scale,
      .v_scale = a->v_scale,
      .asked = a->counter,
      .o_head = o.head,
      .o_row = o.row,
  };
  attention_tensor_map_e4m3(device, shape, a->q, rows, &tensors.q);
  attention_tensor_map_e4m3(device, shape, a->k, KEYS, &tensors.k);
  DeviceLaunch attention = {
      .kernel = device_kernel(device, a->module, head_dim == 64 ? kernel_64 : kernel_128),
      .grid = {(unsigned)minimum(heads * head_tiles, device_info(device)->sm_count)},
      .block = {THREADS_OF(head_dim)},
      .dynamic_shared = SHARED_BYTES(head_dim),
      .arguments = ARGUMENTS(&tensors, &problem),
  };
  return device_launch(device, &attention);
}
