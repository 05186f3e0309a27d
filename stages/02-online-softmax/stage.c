// Stage 02's launch: one kernel, a block for every 64 queries of every head. No workspace.
#include "harness/stage.h"

enum { TILE = 64, PAD = 8, THREADS = 128 };  // as in kernel.cu

// The size of kernel.cu's struct Shared: tiles of Q, K and V (fp16), weights (fp16) and scores (fp32).
static size_t shared_size(int head_dim) {
  size_t half = 2, tile = half * TILE * (head_dim + PAD);
  return 3 * tile + (half + sizeof(float)) * TILE * (TILE + PAD);
}

static bool launch(Device *device, const Attention *a) {
  int seqlen = a->shape.seqlen, head_dim = a->shape.head_dim, causal = a->shape.causal;
  unsigned tiles = (seqlen + TILE - 1) / TILE;
  DeviceLaunch attention = {
      .kernel = device_kernel(device, a->module, head_dim == 64 ? "attention_64" : "attention_128"),
      .grid = {tiles * a->shape.batch * a->shape.heads},
      .block = {THREADS},
      .dynamic_shared = shared_size(head_dim),
      .arguments = ARGUMENTS(&a->q, &a->k, &a->v, &a->o, &seqlen, &a->scale, &causal),
  };
  return device_launch(device, &attention);
}

const Stage stage = {
    .name = "02-online-softmax",
    .title = "one kernel with a running maximum and sum; the scores never leave the SM",
    .launch = launch,
};
