// Stage 12e.
#include "../12b-one-pass/launch.h"
#include "tiles.h"

static bool launch(Device *device, const Attention *a) {
  size_t shared = ONE_PASS_SHARED_BYTES(a->shape.head_dim, PAIR_SLOTS, DS_SLOTS);
  return launch_one_pass(device, a, BLOCK_THREADS, shared, WEIGHT_EXPONENT);
}

const Stage stage = {
    .name = "12e-lean-loop",
    .title = "no wait for a free slot, one elected lane for the loads, and registers for the keys",
    .launch = launch,
    .strided = true,
    .workspace = workspace,
    .backward = true,
    .forward = forward,
};
