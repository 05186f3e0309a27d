// Stage 12d.
#include "../12b-one-pass/launch.h"
#include "tiles.h"

static bool launch(Device *device, const Attention *a) {
  size_t shared = ONE_PASS_SHARED_BYTES(a->shape.head_dim, PAIR_SLOTS, DS_SLOTS);
  return launch_one_pass(device, a, BLOCK_THREADS, shared, WEIGHT_EXPONENT);
}

const Stage stage = {
    .name = "12d-late-dk",
    .title = "the key warpgroups compute weights and dS while the tensor cores have dK and dV",
    .launch = launch,
    .strided = true,
    .workspace = workspace,
    .backward = true,
    .forward = forward,
};
