// Tensor maps of an attention problem's tensors, of matrices, and of a cache.
#include "stage.h"

enum { PANEL = 64 };  // columns of fp16: 128 bytes, as many as the widest swizzle has

// How the elements of a tensor lie in shared memory.
typedef struct Layout {
  TensorType type;
  int element;  // bytes
  int columns;  // of a box
  TensorSwizzle swizzle;
} Layout;

DeviceTensor tensor_with_strides(const Shape *shape, DeviceTensor tensor) {
  if (tensor.batch || tensor.head || tensor.row) return tensor;
  int64_t row = shape->head_dim, head = row * shape->seqlen;
  return (DeviceTensor){tensor.address, head * shape->heads, head, row};
}

static bool make_map(Device *device, const Shape *shape, DeviceTensor tensor, int rows, Layout layout, TensorMap *map) {
  tensor = tensor_with_strides(shape, tensor);
  TensorMapSpec spec = {
      .type = layout.type,
      .rank = 3,
      .address = tensor.address,
      .size = {(uint64_t)shape->head_dim, (uint64_t)shape->seqlen, (uint64_t)shape->batch * (uint64_t)shape->heads},
      .stride = {0, (uint64_t)(tensor.row * layout.element), (uint64_t)(tensor.head * layout.element)},
      .box = {(uint32_t)layout.columns, (uint32_t)rows, 1},
      .swizzle = layout.swizzle,
      .l2_promotion = TENSOR_L2_256B,
  };
  return device_tensor_map(device, &spec, map);
}

bool attention_tensor_map_columns(Device *device, const Shape *shape, DeviceTensor tensor, int rows, int columns,
                                  TensorMap *map) {
  TensorSwizzle wide = columns == 64 ? TENSOR_SWIZZLE_128B : TENSOR_SWIZZLE_64B;
  TensorSwizzle swizzle = columns == 16 ? TENSOR_SWIZZLE_32B : wide;
  return make_map(device, shape, tensor, rows, (Layout){TENSOR_MAP_F16, 2, columns, swizzle}, map);
}

bool attention_tensor_map(Device *device, const Shape *shape, DeviceTensor tensor, int rows, TensorMap *map) {
  return attention_tensor_map_columns(device, shape, tensor, rows, PANEL, map);
}

bool attention_tensor_map_e4m3(Device *device, const Shape *shape, DeviceTensor tensor, int rows, TensorMap *map) {
  TensorSwizzle swizzle = shape->head_dim == 64 ? TENSOR_SWIZZLE_64B : TENSOR_SWIZZLE_128B;
  return make_map(device, shape, tensor, rows, (Layout){TENSOR_MAP_U8, 1, shape->head_dim, swizzle}, map);
}

bool gemm_tensor_map(Device *device, DeviceAddress matrix, int rows, int columns, int box_rows, TensorMap *map) {
  TensorMapSpec spec = {
      .type = TENSOR_MAP_F16,
      .rank = 2,
      .address = matrix,
      .size = {(uint64_t)columns, (uint64_t)rows},
      .stride = {0, 2 * (uint64_t)columns},
      .box = {PANEL, (uint32_t)box_rows},
      .swizzle = TENSOR_SWIZZLE_128B,
      .l2_promotion = TENSOR_L2_256B,
  };
  return device_tensor_map(device, &spec, map);
}

DeviceTensor decode_tensor_with_strides(int heads, int rows, int head_dim, DeviceTensor tensor) {
  if (tensor.batch || tensor.head || tensor.row) return tensor;
  int64_t head = (int64_t)rows * head_dim;
  return (DeviceTensor){tensor.address, head * heads, head, head_dim};
}

static bool make_cache_map(Device *device, const DecodeShape *shape, DeviceTensor tensor, int rows, Layout layout,
                           TensorMap *map) {
  tensor = decode_tensor_with_strides(shape->kv_heads, shape->keys, shape->head_dim, tensor);
  uint64_t element = (uint64_t)layout.element, columns = (uint64_t)layout.columns;
  uint32_t panels = (uint32_t)(shape->head_dim / layout.columns);
  TensorMapSpec spec = {
      .type = layout.type,
      .rank = 5,
      .address = tensor.address,
      .size = {columns, (uint64_t)shape->keys, panels, (uint64_t)shape->kv_heads, (uint64_t)shape->batch},
      .stride = {0, element * (uint64_t)tensor.row, element * columns, element * (uint64_t)tensor.head,
                 element * (uint64_t)tensor.batch},
      .box = {(uint32_t)columns, (uint32_t)rows, panels, 1, 1},
      .swizzle = layout.swizzle,
      .l2_promotion = TENSOR_L2_256B,
  };
  return device_tensor_map(device, &spec, map);
}

bool decode_tensor_map(Device *device, const DecodeShape *shape, DeviceTensor tensor, int rows, TensorMap *map) {
  return make_cache_map(device, shape, tensor, rows, (Layout){TENSOR_MAP_BF16, 2, PANEL, TENSOR_SWIZZLE_128B}, map);
}

bool decode_tensor_map_e4m3(Device *device, const DecodeShape *shape, DeviceTensor tensor, int rows, TensorMap *map) {
  TensorSwizzle swizzle = shape->head_dim == 64 ? TENSOR_SWIZZLE_64B : TENSOR_SWIZZLE_128B;
  return make_cache_map(device, shape, tensor, rows, (Layout){TENSOR_MAP_U8, 1, shape->head_dim, swizzle}, map);
}
