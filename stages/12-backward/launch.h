// What the launches of the backward pass's stages have in common: the kernel before the passes, a pass, and the forward
// pass.
#pragma once

#include <stdio.h>

#include "harness/stage.h"

#include "tiles.h"

// Floats in each of shift and delta.
static size_t padded_rows(const Shape *shape) {
  return (size_t)shape->batch * shape->heads * ((shape->seqlen + ROWS - 1) / ROWS) * ROWS;
}

static Problem describe(const Attention *a) {
  DeviceTensor o = tensor_with_strides(&a->shape, a->o), d_o = tensor_with_strides(&a->shape, a->d_o);
  return (Problem){
      .seqlen = a->shape.seqlen,
      .head_tiles = (a->shape.seqlen + ROWS - 1) / ROWS,
      .scale = a->scale,
      .log2e_scale = a->scale * 1.44269504f,
      .o = o.address,
      .d_o = d_o.address,
      .lse = a->lse,
      .shift = a->workspace,
      .delta = a->workspace + sizeof(float) * padded_rows(&a->shape),
      .o_head = o.head,
      .o_row = o.row,
      .d_o_head = d_o.head,
      .d_o_row = d_o.row,
  };
}

// The maps of two tensors.
static void make_maps(Device *device, const Attention *a, DeviceTensor first, DeviceTensor second, int rows,
                      TensorMap maps[2]) {
  attention_tensor_map(device, &a->shape, first, rows, &maps[0]);
  attention_tensor_map(device, &a->shape, second, rows, &maps[1]);
}

static DeviceKernel *find_kernel(Device *device, const Attention *a, const char *name) {
  char full[40];
  snprintf(full, sizeof full, "%s_%d%s", name, a->shape.head_dim, a->shape.causal ? "_causal" : "");
  return device_kernel(device, a->module, full);
}

static bool launch_terms(Device *device, const Attention *a, const Problem *problem) {
  DeviceLaunch terms = {
      .kernel = device_kernel(device, a->module, a->shape.head_dim == 64 ? "backward_terms_64" : "backward_terms_128"),
      .grid = {(unsigned)(a->shape.batch * a->shape.heads * problem->head_tiles)},
      .block = {THREADS},
      .arguments = ARGUMENTS(problem),
  };
  return device_launch(device, &terms);
}

static bool launch_pass(Device *device, const Attention *a, const char *name, const Tensors *tensors,
                        const Problem *problem) {
  DeviceLaunch pass = {
      .kernel = find_kernel(device, a, name),
      .grid = {(unsigned)(a->shape.batch * a->shape.heads * problem->head_tiles)},
      .block = {THREADS},
      .dynamic_shared = SHARED_BYTES(a->shape.head_dim, SLOTS),
      .arguments = ARGUMENTS(tensors, problem),
  };
  return device_launch(device, &pass);
}

// forward_pass.h's kernel. Its output is O, not multiplied by scale, and it uses the first tensor of own and of out.
static bool forward(Device *device, const Attention *a) {
  Problem problem = describe(a);
  Tensors tensors;
  problem.scale = 1;
  make_maps(device, a, a->q, a->q, ROWS, tensors.own);
  make_maps(device, a, a->k, a->v, COLUMNS_OF(a->shape.head_dim), tensors.streamed);
  make_maps(device, a, a->o, a->o, STORE_ROWS, tensors.out);
  return launch_pass(device, a, "forward", &tensors, &problem);
}
