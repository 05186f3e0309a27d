// Stage 12b. Its launch stands in a header, because stages above share it.
#include "launch.h"

static bool launch(Device *device, const Attention *a) {
  return launch_one_pass(device, a, THREADS, ONE_PASS_SHARED_BYTES(a->shape.head_dim, SLOTS, 1), 0);
}

const Stage stage = {
    .name = "12b-one-pass",
    .title = "five products in one pass: dS goes through shared memory, and dQ is added up in global memory",
    .launch = launch,
    .strided = true,
    .workspace = workspace,
    .backward = true,
    .forward = forward,
};
