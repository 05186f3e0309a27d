// Tensor maps of an attention problem's tensors.
#include "stage.h"

bool attention_tensor_map(Device *device, const Shape *shape, DeviceAddress address, int rows, TensorMap *map) {
  enum { PANEL = 64 };  // columns: 128 bytes, as many as the swizzle is wide
  uint64_t row_bytes = (uint64_t)shape->head_dim * sizeof(uint16_t);
  TensorMapSpec spec = {
      .type = TENSOR_F16,
      .rank = 3,
      .address = address,
      .size = {(uint64_t)shape->head_dim, (uint64_t)shape->seqlen, (uint64_t)shape->batch * (uint64_t)shape->heads},
      .stride = {0, row_bytes, row_bytes * (uint64_t)shape->seqlen},
      .box = {PANEL, (uint32_t)rows, 1},
      .swizzle = TENSOR_SWIZZLE_128B,
      .l2_promotion = TENSOR_L2_256B,
  };
  return device_tensor_map(device, &spec, map);
}
