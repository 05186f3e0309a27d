#include "tensor_copies.h"

#include "emulator/emulator.h"

// The emulator's name of an element type of CUtensorMapDataType.
static EmulatorTensorType type_of(int type) {
  static const EmulatorTensorType types[] = {
      EMULATOR_TENSOR_U8,      EMULATOR_TENSOR_U16,  EMULATOR_TENSOR_U32,     EMULATOR_TENSOR_S32, EMULATOR_TENSOR_U64,
      EMULATOR_TENSOR_S64,     EMULATOR_TENSOR_F16,  EMULATOR_TENSOR_F32,     EMULATOR_TENSOR_F64, EMULATOR_TENSOR_BF16,
      EMULATOR_TENSOR_F32_FTZ, EMULATOR_TENSOR_TF32, EMULATOR_TENSOR_TF32_FTZ};
  return types[type];
}

static EmulatorTensorSpec spec_of(const TensorCase *c, uint64_t memory) {
  EmulatorTensorSpec spec = {.type = type_of(c->type),
                             .rank = c->rank,
                             .address = memory + c->base,
                             .swizzle = (EmulatorTensorSwizzle)c->swizzle,
                             .interleave = 16 * c->interleave,
                             .fill_nan = c->fill_nan,
                             .pixels = c->pixels};
  for (int d = 0; d < c->rank; d++) {
    spec.size[d] = c->size[d];
    spec.stride[d] = c->stride[d];
    spec.box[d] = c->box[d];
    spec.element_stride[d] = c->step[d] ? c->step[d] : UINT32_MAX;  // 0 is wrong to the driver, and 1 to the emulator
  }
  if (c->im2col) spec.box[0] = c->channels;
  for (int d = 0; d < c->rank - 2; d++) {
    spec.lower[d] = c->lower[d];
    spec.upper[d] = c->upper[d];
  }
  return spec;
}

// Runs the kernel with the map and leaves what it gave.
static void execute(Emulator *emulator, const TensorCase *c, uint64_t memory, const uint8_t *map, TensorInput *input,
                    TensorResult *result, char why[400]) {
  static TensorOutput output;
  static char text[8192];
  EmulatorError error = {0};
  uint64_t in = emulator_alloc(emulator, sizeof *input), out = emulator_alloc(emulator, sizeof output);
  emulator_write(emulator, in, input, sizeof *input);
  emulator_fill(emulator, out, 0, sizeof output);
  tensor_kernel(c, text, sizeof text);
  EmulatorModule *module = emulator_load(emulator, text, strlen(text), &error);
  EmulatorLaunch launch = {.kernel = "copy",
                           .grid = {1, 1, 1},
                           .block = {32, 1, 1},
                           .dynamic_shared = TENSOR_TILE,
                           .arguments = (const void *const[]){map, &in, &out},
                           .argument_count = 3};
  EmulatorStatus status = module ? emulator_launch(emulator, module, &launch, &error) : EMULATOR_INVALID;
  snprintf(why, 400, "%s", error.message);
  emulator_read(emulator, &output, out, sizeof output);
  result->state = status != EMULATOR_OK ? TENSOR_STOPPED : output.completed ? TENSOR_DONE : TENSOR_HUNG;
  result->bytes -= output.missing;
  if (c->store)
    emulator_read(emulator, result->after, memory, TENSOR_MEMORY);
  else
    memcpy(result->after, output.tile, TENSOR_TILE);
}

void tensor_copy_run(const TensorCase *c, uint32_t bytes, TensorResult *result, char why[400]) {
  static TensorInput input;
  static uint8_t before[TENSOR_MEMORY];
  _Alignas(64) uint8_t map[EMULATOR_TENSOR_MAP_BYTES];
  EmulatorError error = {0};
  memset(result, 0, sizeof *result);
  tensor_prepare(c, before, &input);
  input.bytes = result->bytes = c->store ? 0 : bytes;
  Emulator *emulator = emulator_open(&(EmulatorOptions){.threads = 1});
  uint64_t memory = emulator_alloc(emulator, sizeof before);
  emulator_write(emulator, memory, before, sizeof before);
  EmulatorTensorSpec spec = spec_of(c, memory);
  result->state = TENSOR_REFUSED;
  if (emulator_tensor_map(&spec, map, &error)) execute(emulator, c, memory, map, &input, result, why);
  if (result->state == TENSOR_REFUSED) snprintf(why, 400, "%s", error.message);
  emulator_close(emulator);
}

void tensor_copy_record(const TensorCase *c, TensorResult *result, char why[400]) {
  tensor_copy_run(c, tensor_likely_bytes(c), result, why);
}
