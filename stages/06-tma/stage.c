// Stage 06's launch: one kernel; a block does 128 queries of one head, 64 in each of its two warpgroups.
#include "harness/stage.h"

enum { THREADS = 256, ROWS = 128 };  // as in kernel.cu

// What differs between head dimensions: Config in kernel.cu.
typedef struct Config {
  int keys, stages;
  const char *kernel;
} Config;

static const Config config_64 = {64, 4, "attention_64"}, config_128 = {128, 3, "attention_128"};

// The kernel's parameter of this name.
typedef struct Tensors {
  TensorMap q, k, v;
} Tensors;

static bool launch(Device *device, const Attention *a) {
  const Shape *shape = &a->shape;
  Config config = shape->head_dim == 64 ? config_64 : config_128;
  int seqlen = shape->seqlen, causal = shape->causal, tiles = (seqlen + ROWS - 1) / ROWS;
  Tensors tensors;
  attention_tensor_map(device, shape, a->q, ROWS, &tensors.q);
  attention_tensor_map(device, shape, a->k, config.keys, &tensors.k);
  attention_tensor_map(device, shape, a->v, config.keys, &tensors.v);
  DeviceLaunch attention = {
      .kernel = device_kernel(device, a->module, config.kernel),
      .grid = {(unsigned)(shape->batch * shape->heads * tiles)},
      .block = {THREADS},
      // Q; a ring of K and V; a barrier for Q, two for each place of the ring.
      .dynamic_shared = sizeof(uint16_t) * shape->head_dim * (ROWS + 2 * config.stages * config.keys) +
                        sizeof(uint64_t) * (1 + 2 * config.stages),
      .arguments = ARGUMENTS(&tensors, &a->o, &seqlen, &a->scale, &causal),
  };
  return device_launch(device, &attention);
}

const Stage stage = {
    .name = "06-tma",
    .title = "one thread asks for whole tiles of K and V; mbarriers tell what has landed",
    .launch = launch,
};
