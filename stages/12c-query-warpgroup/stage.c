// Stage 12c.
#include "../12b-one-pass/launch.h"
#include "tiles.h"

static bool launch(Device *device, const Attention *a) {
  return launch_one_pass(device, a, BLOCK_THREADS, BLOCK_SHARED_BYTES(a->shape.head_dim), WEIGHT_EXPONENT);
}

const Stage stage = {
    .name = "12c-query-warpgroup",
    .title = "a warpgroup of its own computes dQ, while two others go on with the next tile",
    .launch = launch,
    .workspace = workspace,
    .backward = true,
    .forward = forward,
};
