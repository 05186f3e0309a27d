// The emulator of common/emulator behind the device interface.
#include "../emulator/emulator.h"

#include <stdio.h>
#include <string.h>

#include "backend.h"

static void close_emulator(Device *device) { emulator_close(device->state); }

static DeviceAddress emulated_alloc(Device *device, size_t size) {
  DeviceAddress address = emulator_alloc(device->state, size);
  if (!address) device_fail(device, DEVICE_OUT_OF_MEMORY, "the emulator has no room for %zu bytes", size);
  return address;
}

// Reports that the range of a copy does not lie inside one allocation. Always false.
static bool outside(Device *device, const char *what, DeviceAddress address, size_t size) {
  return device_fail(device, DEVICE_INVALID, "%s of %zu byte%s at 0x%llx: not inside one allocation", what, size,
                     size == 1 ? "" : "s", (unsigned long long)address);
}

static bool emulated_free(Device *device, DeviceAddress address) {
  return emulator_free(device->state, address) ||
         device_fail(device, DEVICE_INVALID, "free of 0x%llx: not an allocation", (unsigned long long)address);
}

static bool emulated_upload(Device *device, DeviceAddress destination, const void *source, size_t size) {
  return emulator_write(device->state, destination, source, size) || outside(device, "upload", destination, size);
}

static bool emulated_download(Device *device, void *destination, DeviceAddress source, size_t size) {
  return emulator_read(device->state, destination, source, size) || outside(device, "download", source, size);
}

static bool emulated_fill(Device *device, DeviceAddress address, uint8_t byte, size_t size) {
  return emulator_fill(device->state, address, byte, size) || outside(device, "fill", address, size);
}

// Keeps an error of the emulator. It has a line when the PTX text is wrong. Always false.
static bool fail_with_line(Device *device, DeviceErrorCode code, const EmulatorError *error) {
  if (error->line) return device_fail(device, code, "PTX line %d: %s", error->line, error->message);
  return device_fail(device, code, "%s", error->message);
}

// A text without a cubin nobody has assembled, as that of --ptx: its kernels that the emulator cannot run are reported
// here. Of the others, each is read at its first launch.
static void *emulated_load(Device *device, const DeviceImage *image) {
  if (!image->ptx) {
    device_fail(device, DEVICE_INVALID, "the emulator runs PTX, and the image has none");
    return NULL;
  }
  EmulatorError error = {0};
  bool assembled = image->cubin_size > 0;
  EmulatorModule *module = assembled ? emulator_load_assembled(device->state, image->ptx, image->ptx_size, &error)
                                     : emulator_load(device->state, image->ptx, image->ptx_size, &error);
  if (module && (assembled || emulator_check(module, NULL, &error))) return module;
  fail_with_line(device, DEVICE_INVALID, &error);
  return NULL;
}

// The emulator finds kernels by name, and the name is in the DeviceKernel already. One that it does not know fails at
// the launch.
static void *emulated_kernel(Device *device, void *module, const char *name) {
  (void)device, (void)name;
  return module;
}

static bool emulated_launch(Device *device, const DeviceLaunch *launch, int argument_count) {
  EmulatorLaunch request = {
      .kernel = launch->kernel->name,
      .dynamic_shared = launch->dynamic_shared,
      .arguments = launch->arguments,
      .argument_count = argument_count,
      .prerequisite = launch->early ? emulator_last_launch(device->state) : 0,
  };
  memcpy(request.grid, launch->grid, sizeof request.grid);
  memcpy(request.block, launch->block, sizeof request.block);
  memcpy(request.cluster, launch->cluster, sizeof request.cluster);

  EmulatorError error = {0};
  switch (emulator_launch(device->state, launch->kernel->module->handle, &request, &error)) {
  case EMULATOR_OK: return true;
  case EMULATOR_FAULT: return fail_with_line(device, DEVICE_FAULT, &error);
  default: return fail_with_line(device, DEVICE_INVALID, &error);
  }
}

// A launch has ended when it returns.
static bool emulated_synchronise(Device *device) { return (void)device, true; }

static bool emulated_tensor_map(Device *device, const TensorMapSpec *spec, TensorMap *map) {
  static const EmulatorTensorType types[] = {
      [TENSOR_MAP_U8] = EMULATOR_TENSOR_U8,     [TENSOR_MAP_U16] = EMULATOR_TENSOR_U16,
      [TENSOR_MAP_U32] = EMULATOR_TENSOR_U32,   [TENSOR_MAP_F16] = EMULATOR_TENSOR_F16,
      [TENSOR_MAP_BF16] = EMULATOR_TENSOR_BF16, [TENSOR_MAP_F32] = EMULATOR_TENSOR_F32,
  };
  bool known = (unsigned)spec->type < sizeof types / sizeof *types;
  EmulatorTensorSpec request = {.type = known ? types[spec->type] : (EmulatorTensorType)-1,
                                .rank = spec->rank,
                                .address = spec->address,
                                .swizzle = (EmulatorTensorSwizzle)spec->swizzle,
                                .fill_nan = spec->fill_nan};
  memcpy(request.size, spec->size, sizeof request.size);
  memcpy(request.stride, spec->stride, sizeof request.stride);
  memcpy(request.box, spec->box, sizeof request.box);
  memcpy(request.element_stride, spec->element_stride, sizeof request.element_stride);
  EmulatorError error = {0};
  return emulator_tensor_map(&request, map->bytes, &error) || fail_with_line(device, DEVICE_INVALID, &error);
}

static bool refuse_time(Device *device, DeviceWork *work, void *context, double *milliseconds) {
  (void)work, (void)context, (void)milliseconds;
  return device_fail(device, DEVICE_UNSUPPORTED, "the emulator has no clock: only a GPU can time a kernel");
}

static const Hazard *hazards(const Device *device, int *count) { return emulator_hazards(device->state, count); }

static bool counters(const Device *device, EmulatorCounters *result) {
  *result = emulator_counters(device->state);
  return true;
}

static const LineCounters *line_counters(const Device *device, int *count) {
  return emulator_line_counters(device->state, count);
}

static const EmulatorStep *steps(const Device *device, int *count, bool *complete) {
  return emulator_steps(device->state, count, complete);
}

static const char *step_file(const Device *device, int number) { return emulator_step_file(device->state, number); }

static void clear_counters(Device *device) { emulator_clear_counters(device->state); }

static const DeviceOperations emulated_operations = {
    .close = close_emulator,
    .alloc = emulated_alloc,
    .free = emulated_free,
    .upload = emulated_upload,
    .download = emulated_download,
    .fill = emulated_fill,
    .load = emulated_load,
    .kernel = emulated_kernel,
    .launch = emulated_launch,
    .synchronise = emulated_synchronise,
    .tensor_map = emulated_tensor_map,
    .time = refuse_time,
    .hazards = hazards,
    .counters = counters,
    .line_counters = line_counters,
    .clear_counters = clear_counters,
    .steps = steps,
    .step_file = step_file,
};

bool emulator_device_open(Device *device, const DeviceOptions *options, DeviceError *error) {
  EmulatorOptions request = {.hazards = options->hazards,
                             .schedule = options->schedule,
                             .step_limit = options->step_limit,
                             .threads = options->threads,
                             .fair = options->fair,
                             .steps = options->steps,
                             .values_of = options->values_of,
                             .tunes_malloc = true};
  device->state = emulator_open(&request);
  if (!device->state) return device_set_error(error, DEVICE_OUT_OF_MEMORY, "the host has no memory for the emulator");
  device->operations = &emulated_operations;
  // Few enough SMs that each block of a persistent kernel does several tiles, and enough that blocks share the work.
  device->info =
      (DeviceInfo){.kind = DEVICE_EMULATOR, .name = "emulator of sm_90a", .driver = "-", .cuda = "-", .sm_count = 4};
  return true;
}
