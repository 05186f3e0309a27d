// The launch of stages 07 and 08, which differ inside the kernel alone: one kernel; a block does 64 queries of one head for
// each of its computing warpgroups.
#pragma once

#include "harness/stage.h"

enum { KEYS = 128, WARPGROUP = 128, WARPGROUP_ROWS = 64 };  // as in kernel.cu

// What differs between head dimensions: Config in kernel.cu.
typedef struct Config {
  int workers, stages;
  const char *kernel, *causal_kernel;
} Config;

static const Config config_64 = {3, 4, "attention_64", "attention_64_causal"};
static const Config config_128 = {2, 2, "attention_128", "attention_128_causal"};

// The kernel's parameters.
typedef struct Tensors {
  TensorMap q, k, v;
} Tensors;

typedef struct Problem {
  int seqlen, head_tiles;
  float scale;
  DeviceAddress o;
} Problem;

static bool launch(Device *device, const Attention *a) {
  const Shape *shape = &a->shape;
  Config config = shape->head_dim == 64 ? config_64 : config_128;
  int rows = config.workers * WARPGROUP_ROWS;
  Tensors tensors;
  Problem problem = {
      .seqlen = shape->seqlen,
      .head_tiles = (shape->seqlen + rows - 1) / rows,
      .scale = a->scale * 1.44269504f,
      .o = a->o,
  };
  attention_tensor_map(device, shape, a->q, rows, &tensors.q);
  attention_tensor_map(device, shape, a->k, KEYS, &tensors.k);
  attention_tensor_map(device, shape, a->v, KEYS, &tensors.v);
  DeviceLaunch attention = {
      .kernel = device_kernel(device, a->module, shape->causal ? config.causal_kernel : config.kernel),
      .grid = {(unsigned)(shape->batch * shape->heads * problem.head_tiles)},
      .block = {(unsigned)((1 + config.workers) * WARPGROUP)},
      // Q; rings of K and of V; a barrier for Q, two for each place of a ring.
      .dynamic_shared = sizeof(uint16_t) * shape->head_dim * (rows + 2 * config.stages * KEYS) +
                        sizeof(uint64_t) * (1 + 4 * config.stages),
      .arguments = ARGUMENTS(&tensors, &problem),
  };
  return device_launch(device, &attention);
}
