// Tensor maps: those of the emulator in the 128 bytes of a CUtensorMap.
#include <string.h>

#include "driver.h"

static const int types[] = {
    [CU_TENSOR_MAP_DATA_TYPE_UINT8] = EMULATOR_TENSOR_U8,
    [CU_TENSOR_MAP_DATA_TYPE_UINT16] = EMULATOR_TENSOR_U16,
    [CU_TENSOR_MAP_DATA_TYPE_UINT32] = EMULATOR_TENSOR_U32,
    [CU_TENSOR_MAP_DATA_TYPE_INT32] = EMULATOR_TENSOR_S32,
    [CU_TENSOR_MAP_DATA_TYPE_UINT64] = EMULATOR_TENSOR_U64,
    [CU_TENSOR_MAP_DATA_TYPE_INT64] = EMULATOR_TENSOR_S64,
    [CU_TENSOR_MAP_DATA_TYPE_FLOAT16] = EMULATOR_TENSOR_F16,
    [CU_TENSOR_MAP_DATA_TYPE_FLOAT32] = EMULATOR_TENSOR_F32,
    [CU_TENSOR_MAP_DATA_TYPE_FLOAT64] = EMULATOR_TENSOR_F64,
    [CU_TENSOR_MAP_DATA_TYPE_BFLOAT16] = EMULATOR_TENSOR_BF16,
    [CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ] = EMULATOR_TENSOR_F32,
    [CU_TENSOR_MAP_DATA_TYPE_TFLOAT32] = EMULATOR_TENSOR_F32,
    [CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ] = EMULATOR_TENSOR_F32,
};

static CUresult invalid(const char *why) {
  core_say("cuTensorMapEncodeTiled: %s", why);
  return CUDA_ERROR_INVALID_VALUE;
}

API(cuTensorMapEncodeTiled,
    (CUtensorMap * map, CUtensorMapDataType type, cuuint32_t rank, void *address, const cuuint64_t *sizes,
     const cuuint64_t *strides, const cuuint32_t *box, const cuuint32_t *element_strides,
     CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
     CUtensorMapFloatOOBfill fill)) {
  (void)promotion;
  if (!map || !sizes || !box || !element_strides || (rank > 1 && !strides)) return invalid("a pointer is null");
  if (rank < 1 || rank > EMULATOR_TENSOR_RANK) return invalid("the rank is not 1 to 5");
  if ((uintptr_t)map % 64) return invalid("the CUtensorMap is not aligned to 64 bytes");
  if ((unsigned)type >= sizeof types / sizeof *types) return core_missing("cuTensorMapEncodeTiled of this data type");
  if (interleave != CU_TENSOR_MAP_INTERLEAVE_NONE) return core_missing("cuTensorMapEncodeTiled with interleave");
  if (swizzle > CU_TENSOR_MAP_SWIZZLE_128B) return core_missing("cuTensorMapEncodeTiled with this swizzle");
  EmulatorTensorSpec spec = {.type = (EmulatorTensorType)types[type],
                             .rank = (int)rank,
                             .address = (uint64_t)(uintptr_t)address,
                             .swizzle = (EmulatorTensorSwizzle)swizzle,
                             .fill_nan = fill == CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA};
  for (cuuint32_t i = 0; i < rank; i++) {
    spec.size[i] = sizes[i];
    spec.box[i] = box[i];
    spec.element_stride[i] = element_strides[i];
    if (i > 0) spec.stride[i] = strides[i - 1];
  }
  EmulatorError error = {0};
  uint8_t bytes[EMULATOR_TENSOR_MAP_BYTES];
  if (!emulator_tensor_map(&spec, bytes, &error)) return invalid(error.message);
  memcpy(map, bytes, sizeof bytes);
  return CUDA_SUCCESS;
}
