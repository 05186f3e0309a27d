// Stage 09's launch: one kernel, as many blocks as SMs; they share the tiles among themselves.
#include "harness/stage.h"

#include "head_group.h"
#include "tiles.h"

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
      .scale = a->scale * 1.44269504f,
  };
  Tensors tensors = {.asked = a->counter};
  attention_tensor_map(device, shape, a->q, rows, &tensors.q);
  attention_tensor_map(device, shape, a->k, KEYS, &tensors.k);
  attention_tensor_map(device, shape, a->v, KEYS, &tensors.v);
  attention_tensor_map(device, shape, a->o, STORE_ROWS, &tensors.o);
  DeviceLaunch attention = {
      .kernel = device_kernel(device, a->module, head_dim == 64 ? kernel_64 : kernel_128),
      .grid = {(unsigned)(minimum(heads * head_tiles, device_info(device)->sm_count))},
      .block = {THREADS_OF(head_dim)},
      .dynamic_shared = SHARED_BYTES(head_dim),
      .arguments = ARGUMENTS(&tensors, &problem),
  };
  return device_launch(device, &attention);
}

const Stage stage = {
    .name = "09-persistent",
    .title = "blocks stay on their SM and take tiles in a good order: the next begins while the previous one ends",
    .launch = launch,
    .strided = true,
    .counter = true,
};
