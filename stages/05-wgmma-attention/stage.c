// Stage 05's launch: one kernel; a block does 128 queries of one head, 64 in each of its two warpgroups.
#include "harness/stage.h"

enum { THREADS = 256, ROWS = 128, STAGES = 2 };  // as in kernel.cu

static bool launch(Device *device, const Attention *a) {
  int seqlen = a->shape.seqlen, head_dim = a->shape.head_dim, causal = a->shape.causal;
  int keys = head_dim == 64 ? 64 : 128;
  unsigned blocks = (unsigned)(seqlen + ROWS - 1) / ROWS, heads = (unsigned)(a->shape.batch * a->shape.heads);
  DeviceLaunch attention = {
      .kernel = device_kernel(device, a->module, head_dim == 64 ? "attention_64" : "attention_128"),
      .grid = {blocks * heads},
      .block = {THREADS},
      .dynamic_shared = sizeof(uint16_t) * head_dim * (ROWS + 2 * STAGES * keys),  // Q; K and V, twice
      .arguments = ARGUMENTS(&a->q, &a->k, &a->v, &a->o, &seqlen, &a->scale, &causal),
  };
  return device_launch(device, &attention);
}

const Stage stage = {
    .name = "05-wgmma-attention",
    .title = "both products on wgmma: K and V from shared memory, P from registers",
    .launch = launch,
};
