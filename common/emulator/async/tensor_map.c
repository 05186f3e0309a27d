// The encoder of tensor maps, with the rules of cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col, and their decoder:
// see tensor_map.h.
#include "tensor_map.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "../host/fnv.h"

#define TENSOR_MAP_MAGIC 0x70616d726f736e74ull

// Limits of a tensor map, CUDA driver API.
enum { MAX_BOX = 256, MAX_ELEMENT_STRIDE = 8, MAX_PIXELS = 1024, UNIT = 16 };
#define MAX_SIZE (1ull << 32)
#define MAX_STRIDE (1ull << 40)

static const struct {
  const char *name;
  int size;
  bool is_float;
} map_element_types[] = {
    [EMULATOR_TENSOR_U8] = {"u8", 1, false},           [EMULATOR_TENSOR_U16] = {"u16", 2, false},
    [EMULATOR_TENSOR_U32] = {"u32", 4, false},         [EMULATOR_TENSOR_S32] = {"s32", 4, false},
    [EMULATOR_TENSOR_U64] = {"u64", 8, false},         [EMULATOR_TENSOR_S64] = {"s64", 8, false},
    [EMULATOR_TENSOR_F16] = {"f16", 2, true},          [EMULATOR_TENSOR_BF16] = {"bf16", 2, true},
    [EMULATOR_TENSOR_F32] = {"f32", 4, true},          [EMULATOR_TENSOR_F64] = {"f64", 8, true},
    [EMULATOR_TENSOR_F32_FTZ] = {"f32ftz", 4, true},   [EMULATOR_TENSOR_TF32] = {"tf32", 4, true},
    [EMULATOR_TENSOR_TF32_FTZ] = {"tf32ftz", 4, true},
};
enum { TYPES = sizeof map_element_types / sizeof *map_element_types };

int tensor_element_size(EmulatorTensorType type) { return map_element_types[type].size; }

int tensor_swizzle_span(EmulatorTensorSwizzle swizzle) { return swizzle == EMULATOR_SWIZZLE_NONE ? 0 : 16 << swizzle; }

static bool wrong(EmulatorError *error, const char *format, ...) __attribute__((format(printf, 2, 3)));

static bool wrong(EmulatorError *error, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  error->line = 0;
  int used = snprintf(error->message, sizeof error->message, "tensor map: ");
  vsnprintf(error->message + used, sizeof error->message - (size_t)used, format, arguments);
  va_end(arguments);
  return false;
}

// The rules of one dimension.
static bool check_dimension(const EmulatorTensorSpec *spec, int d, EmulatorError *error) {
  uint64_t size = spec->size[d], stride = spec->stride[d];
  if (size == 0 || size > MAX_SIZE)
    return wrong(error, "dimension %d has %llu elements, 1 to 2^32 are allowed", d, (unsigned long long)size);
  bool has_box = d == 0 || spec->pixels == 0;
  if (has_box && (spec->box[d] == 0 || spec->box[d] > MAX_BOX))
    return wrong(error, "the box is %u elements wide in dimension %d, 1 to %d are allowed", spec->box[d], d, MAX_BOX);
  if (spec->element_stride[d] > MAX_ELEMENT_STRIDE)
    return wrong(error, "the element stride of dimension %d is %u, 1 to %d are allowed", d, spec->element_stride[d],
                 MAX_ELEMENT_STRIDE);
  // 0 too: every index of the dimension is then the same memory.
  int unit = spec->interleave > UNIT ? spec->interleave : UNIT;
  if (d > 0 && (stride % (uint64_t)unit || stride >= MAX_STRIDE))
    return wrong(error, "the stride of dimension %d is %llu bytes, a multiple of %d below 2^40 is needed", d,
                 (unsigned long long)stride, unit);
  return true;
}

// The rules of im2col mode.
static bool check_pixels(const EmulatorTensorSpec *spec, EmulatorError *error) {
  if (spec->rank < 3) return wrong(error, "%d dimensions, im2col mode needs 3 to 5", spec->rank);
  if (spec->pixels > MAX_PIXELS)
    return wrong(error, "a copy of %u pixels, 1 to %d are allowed", spec->pixels, MAX_PIXELS);
  int limit = spec->rank == 3 ? 1 << 15 : spec->rank == 4 ? 1 << 7 : 1 << 4;
  for (int i = 0; i < spec->rank - 2; i++) {
    int lower = spec->lower[i], upper = spec->upper[i];
    if (lower < -limit || lower >= limit || upper < -limit || upper >= limit)
      return wrong(error, "corners %d and %d of the pixels' box, %d to %d are allowed with %d dimensions", lower, upper,
                   -limit, limit - 1, spec->rank);
    int d = spec->interleave ? i : i + 1;  // channels stand before the pixels, slices of them behind
    int64_t last = (int64_t)spec->size[d] - 1 + upper;
    if (lower > last)
      return wrong(error, "the pixels' box from %d to %lld in dimension %d is empty", lower, (long long)last, d);
  }
  return true;
}

// The rules of interleaved layouts.
static bool check_interleave(const EmulatorTensorSpec *spec, EmulatorError *error) {
  if (spec->interleave != 16 && spec->interleave != 32)
    return wrong(error, "there are no slices of %d bytes", spec->interleave);
  if (spec->rank < 3) return wrong(error, "%d dimensions, an interleaved layout needs 3 to 5", spec->rank);
  if (spec->address % (uint64_t)spec->interleave)
    return wrong(error, "slices of %d bytes need an address that is a multiple of it", spec->interleave);
  return true;
}

// The rules of a row of the box. In interleaved layouts, too, the driver takes it for box[0] elements of the type.
static bool check_row(const EmulatorTensorSpec *spec, EmulatorError *error) {
  int row = (int)spec->box[0] * map_element_types[spec->type].size, span = tensor_swizzle_span(spec->swizzle);
  if (row % UNIT) return wrong(error, "a row of the box has %d bytes, a multiple of %d is needed", row, UNIT);
  if (span && row > span && !spec->interleave)
    return wrong(error, "a row of the box has %d bytes, a %dB swizzle allows at most %d", row, span, span);
  return true;
}

static bool check_spec(const EmulatorTensorSpec *spec, EmulatorError *error) {
  if ((unsigned)spec->type >= TYPES) return wrong(error, "there is no element type %d", (int)spec->type);
  if (spec->rank < 1 || spec->rank > EMULATOR_TENSOR_RANK)
    return wrong(error, "%d dimensions, 1 to %d are allowed", spec->rank, EMULATOR_TENSOR_RANK);
  if ((unsigned)spec->swizzle > EMULATOR_SWIZZLE_128B)
    return wrong(error, "there is no swizzle %d", (int)spec->swizzle);
  if (spec->address == 0 || spec->address % UNIT)
    return wrong(error, "the tensor's address 0x%llx is not a multiple of %d", (unsigned long long)spec->address, UNIT);
  for (int d = 0; d < spec->rank; d++)
    if (!check_dimension(spec, d, error)) return false;
  if (spec->pixels && !check_pixels(spec, error)) return false;
  if (spec->interleave && !check_interleave(spec, error)) return false;
  if (!check_row(spec, error)) return false;
  if (spec->fill_nan && !map_element_types[spec->type].is_float)
    return wrong(error, "elements of type %s cannot be filled with NaN", map_element_types[spec->type].name);
  return true;
}

// A kernel may have made the bytes itself, checksum and all: what they say is held to the same rules.
static bool check_fields(const TensorMapFields *fields) {
  EmulatorTensorSpec spec = {.type = (EmulatorTensorType)fields->type,
                             .rank = fields->rank,
                             .address = fields->address,
                             .swizzle = (EmulatorTensorSwizzle)fields->swizzle,
                             .interleave = fields->interleave,
                             .fill_nan = fields->fill_nan != 0,
                             .pixels = fields->pixels};
  for (int i = 0; i < EMULATOR_TENSOR_RANK - 2; i++) {
    spec.lower[i] = fields->lower[i];
    spec.upper[i] = fields->upper[i];
  }
  for (int d = 0; d < EMULATOR_TENSOR_RANK; d++) {
    spec.size[d] = (uint64_t)fields->last[d] + 1;
    spec.stride[d] = fields->stride[d];
    spec.box[d] = fields->box[d];
    spec.element_stride[d] = fields->element_stride[d];
    if (d < fields->rank && fields->element_stride[d] == 0) return false;
  }
  EmulatorError error;
  return check_spec(&spec, &error);
}

// Of the bytes before the checksum.
static uint64_t checksum_of(const TensorMapFields *fields) {
  return fnv1a(FNV1A_START, fields, offsetof(TensorMapFields, checksum));
}

bool emulator_tensor_map(const EmulatorTensorSpec *spec, uint8_t map[EMULATOR_TENSOR_MAP_BYTES], EmulatorError *error) {
  if (!check_spec(spec, error)) return false;
  TensorMapFields fields;
  memset(&fields, 0, sizeof fields);  // padding too: it is part of the checksum
  fields.magic = TENSOR_MAP_MAGIC;
  fields.address = spec->address;
  fields.rank = (uint8_t)spec->rank;
  fields.type = (uint8_t)spec->type;
  fields.swizzle = (uint8_t)spec->swizzle;
  fields.fill_nan = spec->fill_nan;
  fields.interleave = (uint8_t)spec->interleave;
  fields.pixels = (uint16_t)spec->pixels;
  for (int i = 0; spec->pixels && i < spec->rank - 2; i++) {
    fields.lower[i] = (int16_t)spec->lower[i];
    fields.upper[i] = (int16_t)spec->upper[i];
  }
  for (int d = 0; d < spec->rank; d++) {
    fields.stride[d] = d ? spec->stride[d] : (uint64_t)map_element_types[spec->type].size;
    fields.last[d] = (uint32_t)(spec->size[d] - 1);
    fields.box[d] = (uint16_t)spec->box[d];
    // Without interleave no copy looks at that of the innermost dimension.
    fields.element_stride[d] = spec->element_stride[d] ? (uint8_t)spec->element_stride[d] : 1;
  }
  memset(map, 0, EMULATOR_TENSOR_MAP_BYTES);
  tensor_map_write(&fields, map);
  return true;
}

static bool is_zero(const uint8_t bytes[EMULATOR_TENSOR_MAP_BYTES]) {
  int any = 0;
  for (int i = 0; i < EMULATOR_TENSOR_MAP_BYTES; i++) any |= bytes[i];
  return !any;
}

static bool is_map(const TensorMapFields *fields) {
  return fields->magic == TENSOR_MAP_MAGIC && fields->checksum == checksum_of(fields);
}

bool tensor_map_read(const uint8_t bytes[EMULATOR_TENSOR_MAP_BYTES], TensorMapFields *fields) {
  memcpy(fields, bytes, sizeof *fields);
  if (!is_zero(bytes)) return is_map(fields);
  fields->magic = TENSOR_MAP_MAGIC;
  return true;
}

void tensor_map_write(TensorMapFields *fields, uint8_t bytes[EMULATOR_TENSOR_MAP_BYTES]) {
  fields->checksum = checksum_of(fields);
  memcpy(bytes, fields, sizeof *fields);
}

bool tensor_map_decode(const uint8_t bytes[EMULATOR_TENSOR_MAP_BYTES], TensorMapFields *fields) {
  memcpy(fields, bytes, sizeof *fields);
  return is_map(fields) && check_fields(fields);
}
