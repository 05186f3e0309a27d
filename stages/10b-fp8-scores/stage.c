// Stage 10b. One kernel, as in stage 09b. The tensor maps of Q and K are those of bytes.
#include "harness/stage.h"

#include "../09-persistent/head_group.h"
#include "tiles.h"

#include "../09b-diagonal/lead.h"

static bool launch(Device *device, const Attention *a) {
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
  Tensors tensors = {.q_scale = a->q_scale, .k_scale = a->k_scale, .asked = a->counter};
  attention_tensor_map_e4m3(device, shape, a->q, rows, &tensors.q);
  attention_tensor_map_e4m3(device, shape, a->k, KEYS, &tensors.k);
  attention_tensor_map(device, shape, a->v, KEYS, &tensors.v);
  attention_tensor_map(device, shape, a->o, STORE_ROWS, &tensors.o);
  DeviceLaunch attention = {
      .kernel = device_kernel(device, a->module, head_dim == 64 ? kernel_64 : kernel_128),
      .grid = {(unsigned)minimum(heads * head_tiles, device_info(device)->sm_count)},
      .block = {THREADS_OF(head_dim)},
      .dynamic_shared = SHARED_BYTES(head_dim),
      .arguments = ARGUMENTS(&tensors, &problem),
  };
  return device_launch(device, &attention);
}

const Stage stage = {
    .name = "10b-fp8-scores",
    .title = "scores from eight bits: Q and K in e4m3, V and the weights in fp16",
    .inputs = INPUTS_E4M3_SCORES,
    .launch = launch,
    .counter = true,
};
