// Stage 02's launch: one kernel, with a block for each 64 queries of each head. It needs no workspace.
#include "harness/stage.h"
#include "tiles.h"

static bool launch(Device *device, const Attention *a) {
  int seqlen = a->shape.seqlen, head_dim = a->shape.head_dim, causal = a->shape.causal;
  unsigned blocks = (unsigned)(seqlen + ROWS - 1) / ROWS, heads = (unsigned)(a->shape.batch * a->shape.heads);
  DeviceLaunch attention = {
      .kernel = device_kernel(device, a->module, head_dim == 64 ? "attention_64" : "attention_128"),
      .grid = {blocks * heads},
      .block = {THREADS},
      .dynamic_shared = SHARED_BYTES(head_dim),
      .arguments = ARGUMENTS(&a->q, &a->k, &a->v, &a->o, &seqlen, &a->scale, &causal),
  };
  return device_launch(device, &attention);
}

const Stage stage = {
    .name = "02-online-softmax",
    .title = "one kernel with a running maximum and sum; the scores never leave the SM",
    .launch = launch,
};
