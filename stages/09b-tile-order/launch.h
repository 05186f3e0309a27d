// The launch of stages 09 and 10, which differ inside the kernel alone: one kernel, as many blocks as SMs; they share the
// tiles among themselves.
#pragma once

#include "harness/stage.h"

enum { KEYS = 128, WARPGROUP = 128, WARPGROUP_ROWS = 64, STORE_ROWS = 16 };  // as in kernel.cu

// What differs between head dimensions: Config in kernel.cu.
typedef struct Config {
  int workers, tiles, stages;
  const char *kernel, *causal_kernel;
} Config;

static const Config config_64 = {3, 3, 4, "attention_64", "attention_64_causal"};
static const Config config_128 = {2, 3, 2, "attention_128", "attention_128_causal"};

// The kernel's parameters.
typedef struct Tensors {
  TensorMap q, k, v, o;
  DeviceAddress asked;
} Tensors;

typedef struct Problem {
  int seqlen, heads, head_tiles, group, lead;
  float scale;
} Problem;

static int minimum(int a, int b) { return a < b ? a : b; }

// How many heads are worked on together: as many as keep their K and V in the L2 cache.
static int head_group(const Shape *shape, int heads) {
  long head_bytes = 4L * shape->seqlen * shape->head_dim, budget = (shape->seqlen <= 1024 ? 8L : 32L) << 20;
  int group = 1;
  while (group < heads && 2 * group * head_bytes <= budget) group *= 2;
  return minimum(group, heads);
}

// By how many rows a head's first tile begins before the first row, so that its last one is full. Only warpgroups whose
// rows begin in the middle of a block of keys can be left out at a tile's begin.
static int lead(int seqlen, int rows, int tiles) {
  int step = rows % KEYS ? WARPGROUP_ROWS : rows;
  return tiles * rows - (seqlen + step - 1) / step * step;
}

static bool launch(Device *device, const Attention *a) {
  const Shape *shape = &a->shape;
  Config config = shape->head_dim == 64 ? config_64 : config_128;
  int rows = config.workers * WARPGROUP_ROWS, heads = shape->batch * shape->heads;
  int head_tiles = (shape->seqlen + rows - 1) / rows;
  Problem problem = {
      .seqlen = shape->seqlen,
      .heads = heads,
      .head_tiles = head_tiles,
      .group = head_group(shape, heads),
      .lead = lead(shape->seqlen, rows, head_tiles),
      .scale = a->scale * 1.44269504f,
  };
  Tensors tensors = {.asked = a->counter};
  attention_tensor_map(device, shape, a->q, rows, &tensors.q);
  attention_tensor_map(device, shape, a->k, KEYS, &tensors.k);
  attention_tensor_map(device, shape, a->v, KEYS, &tensors.v);
  attention_tensor_map(device, shape, a->o, STORE_ROWS, &tensors.o);
  DeviceLaunch attention = {
      .kernel = device_kernel(device, a->module, shape->causal ? config.causal_kernel : config.kernel),
      .grid = {(unsigned)minimum(heads * head_tiles, device_info(device)->sm_count)},
      .block = {(unsigned)((config.workers + 1) * WARPGROUP)},
      .dynamic_shared = sizeof(uint16_t) * shape->head_dim * (config.tiles * rows + 2 * config.stages * KEYS) +
                        2 * sizeof(uint64_t) * (config.tiles + 2 * config.stages) + sizeof(uint32_t) * config.tiles,
      .arguments = ARGUMENTS(&tensors, &problem),
  };
  return device_launch(device, &attention);
}
