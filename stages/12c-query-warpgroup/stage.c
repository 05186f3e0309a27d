// Stage 12c.
#include "../12b-one-pass/launch.h"
#include "tiles.h"

static bool launch(Device *device, const Attention *a) {
  size_t shared = ONE_PASS_SHARED_BYTES(a->shape.head_dim, SLOTS, DS_SLOTS);
  return launch_one_pass(device, a, BLOCK_THREADS, shared, 0);
}

const Stage stage = {
    .name = "12c-query-warpgroup",
    .title = "a warpgroup of its own computes dQ, while two others go on with the next tile",
    .launch = launch,
    .strided = true,
    .workspace = workspace,
    .backward = true,
    .forward = forward,
};
