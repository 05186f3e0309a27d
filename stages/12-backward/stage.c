// Stage 12's launch: a small kernel, then the two passes, each with a block for 128 of its own rows of one head.
#include "launch.h"

static size_t workspace(const Shape *shape) { return 2 * sizeof(float) * padded_rows(shape); }

static bool launch(Device *device, const Attention *a) {
  Problem problem = describe(a);
  Tensors queries, keys;
  int columns = COLUMNS_OF(a->shape.head_dim);
  make_maps(device, a, a->q, a->d_o, ROWS, queries.own);
  make_maps(device, a, a->k, a->v, columns, queries.streamed);
  make_maps(device, a, a->d_q, a->d_q, STORE_ROWS, queries.out);
  make_maps(device, a, a->k, a->v, ROWS, keys.own);
  make_maps(device, a, a->q, a->d_o, columns, keys.streamed);
  make_maps(device, a, a->d_k, a->d_v, STORE_ROWS, keys.out);
  return launch_terms(device, a, &problem) && launch_pass(device, a, "backward_queries", &queries, &problem) &&
         launch_pass(device, a, "backward_keys", &keys, &problem);
}

const Stage stage = {
    .name = "12-backward",
    .title = "the gradients of Q, K and V: weights computed again, and two passes instead of atomics",
    .launch = launch,
    .strided = true,
    .workspace = workspace,
    .backward = true,
    .forward = forward,
};
