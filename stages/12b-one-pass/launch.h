// The launch of stages 12b and up: zeros for the sums, the kernel before the pass, the pass, and the kernel after it.
#pragma once

#include "../12-backward/launch.h"
#include "tiles.h"

// The workspace: shift and delta, the sums of dQ, the turns, and the counter of blocks that have begun. All but the
// first two must be 0.
static size_t sum_bytes(const Shape *shape) { return sizeof(float) * padded_rows(shape) * (size_t)shape->head_dim; }

static size_t turn_bytes(const Shape *shape) { return sum_bytes(shape) / SUM_FLOATS * (THREADS / WARP); }

static size_t workspace(const Shape *shape) {
  return 2 * sizeof(float) * padded_rows(shape) + sum_bytes(shape) + turn_bytes(shape) + sizeof(uint32_t);
}

static QuerySums describe_sums(const Attention *a) {
  DeviceAddress sums = a->workspace + 2 * sizeof(float) * padded_rows(&a->shape), turns = sums + sum_bytes(&a->shape);
  return (QuerySums){
      .sums = sums,
      .turns = a->deterministic ? turns : 0,
      .begun = a->deterministic ? turns + turn_bytes(&a->shape) : 0,
  };
}

static bool launch_finish(Device *device, const Attention *a, const Problem *problem, const QuerySums *sums) {
  TensorMap map;
  attention_tensor_map(device, &a->shape, a->d_q, STORE_ROWS, &map);
  DeviceLaunch finish = {
      .kernel = device_kernel(device, a->module, a->shape.head_dim == 64 ? "finish_queries_64" : "finish_queries_128"),
      .grid = {(unsigned)(sum_bytes(&a->shape) / (sizeof(float) * SUM_FLOATS))},
      .block = {THREADS},
      .arguments = ARGUMENTS(&map, problem, sums),
  };
  return device_launch(device, &finish);
}

// The pass has blocks of `threads` threads, with so many bytes of shared memory. Its weights are 2^weight_exponent
// times as large as P.
static bool launch_one_pass(Device *device, const Attention *a, int threads, size_t shared, float weight_exponent) {
  Problem problem = describe(a);
  problem.weight_exponent = weight_exponent;
  QuerySums sums = describe_sums(a);
  Tensors tensors;
  make_maps(device, a, a->k, a->v, ROWS, tensors.own);
  make_maps(device, a, a->q, a->d_o, COLUMNS_OF(a->shape.head_dim), tensors.streamed);
  make_maps(device, a, a->d_k, a->d_v, STORE_ROWS, tensors.out);
  DeviceLaunch pass = {
      .kernel = find_kernel(device, a, "backward"),
      .grid = {(unsigned)(a->shape.batch * a->shape.heads * problem.head_tiles)},
      .block = {(unsigned)threads},
      .dynamic_shared = shared,
      .arguments = ARGUMENTS(&tensors, &problem, &sums),
  };
  size_t zeros = workspace(&a->shape) - 2 * sizeof(float) * padded_rows(&a->shape);
  return device_fill(device, sums.sums, 0, zeros) && launch_terms(device, a, &problem) &&
         device_launch(device, &pass) && launch_finish(device, a, &problem, &sums);
}
