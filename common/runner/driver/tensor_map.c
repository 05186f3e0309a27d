// Tensor maps: those of the emulator in the 128 bytes of a CUtensorMap.
#include <stdio.h>
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
    [CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ] = EMULATOR_TENSOR_F32_FTZ,
    [CU_TENSOR_MAP_DATA_TYPE_TFLOAT32] = EMULATOR_TENSOR_TF32,
    [CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ] = EMULATOR_TENSOR_TF32_FTZ,
};

// What cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col have in common.
typedef struct Request {
  const char *function;
  CUtensorMap *map;
  CUtensorMapDataType type;
  cuuint32_t rank;
  void *address;
  const cuuint64_t *sizes, *strides;
  const cuuint32_t *element_strides;
  CUtensorMapInterleave interleave;
  CUtensorMapSwizzle swizzle;
  CUtensorMapFloatOOBfill fill;
} Request;

static CUresult invalid(const Request *request, const char *why) {
  core_say("%s: %s", request->function, why);
  return CUDA_ERROR_INVALID_VALUE;
}

static CUresult missing(const Request *request, const char *what) {
  char text[100];
  snprintf(text, sizeof text, "%s %s", request->function, what);
  return core_missing(text);
}

// Fills *spec but for the box.
static CUresult begin_map(const Request *request, EmulatorTensorSpec *spec) {
  if (!request->map || !request->sizes || !request->element_strides || (request->rank > 1 && !request->strides))
    return invalid(request, "a pointer is null");
  if (request->rank < 1 || request->rank > EMULATOR_TENSOR_RANK) return invalid(request, "the rank is not 1 to 5");
  if ((uintptr_t)request->map % 64) return invalid(request, "the CUtensorMap is not aligned to 64 bytes");
  if ((unsigned)request->type >= sizeof types / sizeof *types) return missing(request, "of this data type");
  if ((unsigned)request->interleave > CU_TENSOR_MAP_INTERLEAVE_32B)
    return invalid(request, "there is no such interleave");
  if (request->swizzle > CU_TENSOR_MAP_SWIZZLE_128B) return missing(request, "with this swizzle");
  *spec = (EmulatorTensorSpec){.type = (EmulatorTensorType)types[request->type],
                               .rank = (int)request->rank,
                               .address = (uint64_t)(uintptr_t)request->address,
                               .swizzle = (EmulatorTensorSwizzle)request->swizzle,
                               .interleave = request->interleave ? 8 << request->interleave : 0,
                               .fill_nan = request->fill == CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA};
  for (cuuint32_t i = 0; i < request->rank; i++) {
    if (request->element_strides[i] == 0) return invalid(request, "an element stride is 0");
    spec->size[i] = request->sizes[i];
    spec->element_stride[i] = request->element_strides[i];
    if (i > 0) spec->stride[i] = request->strides[i - 1];
  }
  return CUDA_SUCCESS;
}

static CUresult end_map(const Request *request, const EmulatorTensorSpec *spec) {
  EmulatorError error = {0};
  uint8_t bytes[EMULATOR_TENSOR_MAP_BYTES];
  if (!emulator_tensor_map(spec, bytes, &error)) return invalid(request, error.message);
  memcpy(request->map, bytes, sizeof bytes);
  return CUDA_SUCCESS;
}

API(cuTensorMapEncodeTiled,
    (CUtensorMap * map, CUtensorMapDataType type, cuuint32_t rank, void *address, const cuuint64_t *sizes,
     const cuuint64_t *strides, const cuuint32_t *box, const cuuint32_t *element_strides,
     CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
     CUtensorMapFloatOOBfill fill)) {
  const Request request = {"cuTensorMapEncodeTiled", map,        type,    rank, address, sizes, strides,
                           element_strides,          interleave, swizzle, fill};
  EmulatorTensorSpec spec;
  (void)promotion;
  if (!box) return invalid(&request, "a pointer is null");
  CUresult result = begin_map(&request, &spec);
  if (result != CUDA_SUCCESS) return result;
  for (cuuint32_t i = 0; i < rank; i++) spec.box[i] = box[i];
  return end_map(&request, &spec);
}

// The corners stand in the order W, H, D.
API(cuTensorMapEncodeIm2col,
    (CUtensorMap * map, CUtensorMapDataType type, cuuint32_t rank, void *address, const cuuint64_t *sizes,
     const cuuint64_t *strides, const int *lower, const int *upper, cuuint32_t channels, cuuint32_t pixels,
     const cuuint32_t *element_strides, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
     CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill)) {
  const Request request = {"cuTensorMapEncodeIm2col", map,        type,    rank, address, sizes, strides,
                           element_strides,           interleave, swizzle, fill};
  EmulatorTensorSpec spec;
  (void)promotion;
  if (!lower || !upper) return invalid(&request, "a pointer is null");
  if (pixels == 0) return invalid(&request, "a copy has no pixel");
  CUresult result = begin_map(&request, &spec);
  if (result != CUDA_SUCCESS) return result;
  spec.box[0] = channels;
  spec.pixels = pixels;
  for (cuuint32_t i = 0; i + 2 < rank; i++) {
    spec.lower[i] = lower[i];
    spec.upper[i] = upper[i];
  }
  return end_map(&request, &spec);
}
