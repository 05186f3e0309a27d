// What the launches of the decode stages share.
#pragma once

#include <stdio.h>

#include "harness/stage.h"

#include "tiles.h"

enum { BARRIER_BYTES = 8, QUERIES_AT_MOST = 16 };
// Of struct Shared: the rings, max and sum of each query and warp, and the mbarriers.
enum { DECODE_SHARED = WARPS * (RING_BYTES + 2 * 4 * QUERIES_AT_MOST + BARRIER_BYTES * SLOTS) };

static inline int decode_tiles(const DecodeShape *shape) {
  int keys = KEYS_OF(shape->head_dim);
  return (shape->keys + keys - 1) / keys;
}

static inline Problem decode_problem(const Decode *decode) {
  const float log2_e = 1.44269504f;
  const DecodeShape *shape = &decode->shape;
  return (Problem){
      .q = decode->q.address,
      .o = decode->o.address,
      .kv_heads = shape->kv_heads,
      .group = shape->heads / shape->kv_heads,
      .keys = shape->keys,
      .scale = decode->scale * log2_e,
  };
}

static inline bool decode_maps(Device *device, const Decode *decode, Maps *maps) {
  int rows = KEYS_OF(decode->shape.head_dim);
  return decode_tensor_map(device, &decode->shape, decode->k, rows, &maps->k) &&
         decode_tensor_map(device, &decode->shape, decode->v, rows, &maps->v);
}

// The kernel for this head dimension and group; one that also writes the log-sum-exp, where the caller wants it.
static inline DeviceKernel *decode_kernel(Device *device, const Decode *decode) {
  const DecodeShape *shape = &decode->shape;
  char name[32];
  snprintf(name, sizeof name, "decode_%d_%d%s", shape->head_dim, shape->heads / shape->kv_heads > 8 ? 16 : 8,
           decode->lse ? "_lse" : "");
  return device_kernel(device, decode->module, name);
}
