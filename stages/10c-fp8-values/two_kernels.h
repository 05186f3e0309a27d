// The launch of stages 10c and 11: two kernels, of which the first transposes V into the workspace.
#pragma once

#include "launch.h"

// Keys of a row of V^T.
static int pitch(const Shape *shape) {
  return (shape->seqlen + TRANSPOSED_KEYS - 1) / TRANSPOSED_KEYS * TRANSPOSED_KEYS;
}

static size_t workspace(const Shape *shape) {
  return (size_t)shape->batch * shape->heads * shape->head_dim * pitch(shape);
}

static bool transpose_values(Device *device, const Attention *a) {
  const Shape *shape = &a->shape;
  int seqlen = shape->seqlen, row = pitch(shape);
  DeviceLaunch launch = {
      .kernel =
          device_kernel(device, a->module, shape->head_dim == 64 ? "transpose_values_64" : "transpose_values_128"),
      .grid = {(unsigned)(row / TRANSPOSED_KEYS * shape->batch * shape->heads)},
      .block = {256},
      .arguments = ARGUMENTS(&a->v, &a->workspace, &seqlen, &row),
  };
  return device_launch(device, &launch);
}

static bool launch(Device *device, const Attention *a) {
  const Shape *shape = &a->shape;
  uint64_t row = (uint64_t)pitch(shape), columns = (uint64_t)shape->head_dim;
  TensorMapSpec spec = {
      .type = TENSOR_MAP_U8,
      .rank = 3,
      .address = a->workspace,
      .size = {row, columns, (uint64_t)shape->batch * (uint64_t)shape->heads},
      .stride = {0, row, row * columns},
      .box = {KEYS, (uint32_t)columns, 1},
      .swizzle = TENSOR_SWIZZLE_128B,
      .l2_promotion = TENSOR_L2_256B,
  };
  TensorMap values;
  return transpose_values(device, a) && device_tensor_map(device, &spec, &values) && launch_e4m3(device, a, &values);
}
