// What TMA is told of the tensor, before the launch: a tensor map.
#include "parts.h"

static TensorSwizzle swizzle_of(int width) {
  return width == 128  ? TENSOR_SWIZZLE_128B
         : width == 64 ? TENSOR_SWIZZLE_64B
         : width == 32 ? TENSOR_SWIZZLE_32B
                       : TENSOR_SWIZZLE_NONE;
}

// Dimensions stand innermost first: columns, rows, matrices.
TensorMapSpec describe(DeviceAddress tensor, const Box *box, bool nan) {
  return (TensorMapSpec){
      .type = TENSOR_MAP_F16,
      .rank = 3,
      .address = tensor,
      .size = {COLUMNS, ROWS, MATRICES},
      .stride = {0, PITCH, PITCH * ROWS},
      .box = {(uint32_t)box->columns, (uint32_t)box->rows, 1},
      .swizzle = swizzle_of(box->swizzle),
      .fill_nan = nan,
  };
}
