// The launch of stages 11b to 11d: one kernel, which loads V as it is.
#pragma once

#include "../11-fp8/tiles.h"

#include "../10c-fp8-values/launch.h"

static bool launch(Device *device, const Attention *a) {
  TensorMap values;
  return attention_tensor_map_e4m3(device, &a->shape, a->v, KEYS, &values) && launch_e4m3(device, a, &values);
}
