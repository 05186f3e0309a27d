// The part of the device interface that both devices share. It keeps the first error, checks arguments, and owns
// modules and kernels.
#include "device.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../emulator/host/fnv.h"
#include "backend.h"

// ---- errors ----

static void write_error(DeviceError *error, DeviceErrorCode code, const char *format, va_list arguments) {
  error->code = code;
  vsnprintf(error->text, sizeof error->text, format, arguments);
  for (char *c = error->text; *c; c++)
    if ((unsigned char)*c < ' ') *c = ' ';
}

bool device_set_error(DeviceError *error, DeviceErrorCode code, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  write_error(error, code, format, arguments);
  va_end(arguments);
  return false;
}

bool device_fail(Device *device, DeviceErrorCode code, const char *format, ...) {
  if (device->error.code != DEVICE_OK) return false;
  va_list arguments;
  va_start(arguments, format);
  write_error(&device->error, code, format, arguments);
  va_end(arguments);
  return false;
}

const DeviceError *device_error(const Device *device) { return &device->error; }

void device_clear_error(Device *device) { device->error = (DeviceError){.code = DEVICE_OK}; }

// True while nothing has failed: the guard of every function below.
static bool healthy(const Device *device) { return device->error.code == DEVICE_OK; }

// ---- the device ----

static void free_kernels(DeviceKernel *kernel) {
  while (kernel) {
    DeviceKernel *next = kernel->next;
    free(kernel->name);
    free(kernel);
    kernel = next;
  }
}

void device_close(Device *device) {
  if (!device) return;
  device->operations->close(device);
  for (DeviceModule *module = device->modules, *next; module; module = next) {
    next = module->next;
    free_kernels(module->kernels);
    free(module);
  }
  free(device);
}

const DeviceInfo *device_info(const Device *device) { return &device->info; }

// ---- memory ----

DeviceAddress device_alloc(Device *device, size_t size) {
  if (!healthy(device)) return 0;
  if (size == 0) return device_fail(device, DEVICE_INVALID, "allocation of 0 bytes");
  return device->operations->alloc(device, size);
}

bool device_free(Device *device, DeviceAddress address) {
  if (!healthy(device)) return false;
  return address == 0 || device->operations->free(device, address);
}

bool device_upload(Device *device, DeviceAddress destination, const void *source, size_t size) {
  if (!healthy(device)) return false;
  return size == 0 || device->operations->upload(device, destination, source, size);
}

// On a GPU it would cost more than the copy.
static void add_to_downloads(Device *device, const uint8_t *bytes, size_t size) {
  device->downloads = fnv1a(device->downloads ? device->downloads : FNV1A_START, bytes, size);
}

bool device_download(Device *device, void *destination, DeviceAddress source, size_t size) {
  if (!healthy(device)) return false;
  if (size && !device->operations->download(device, destination, source, size)) return false;
  if (device->info.kind == DEVICE_EMULATOR) add_to_downloads(device, destination, size);
  return true;
}

uint64_t device_downloads(const Device *device) { return device->downloads; }

bool device_fill(Device *device, DeviceAddress address, uint8_t byte, size_t size) {
  if (!healthy(device)) return false;
  return size == 0 || device->operations->fill(device, address, byte, size);
}

// ---- kernels ----

DeviceModule *device_load(Device *device, const DeviceImage *image) {
  if (!healthy(device)) return NULL;
  void *handle = device->operations->load(device, image);
  if (!handle) return NULL;
  DeviceModule *module = calloc(1, sizeof *module);
  if (!module) {
    device_fail(device, DEVICE_OUT_OF_MEMORY, "out of host memory");
    return NULL;
  }
  *module = (DeviceModule){.handle = handle, .next = device->modules};
  device->modules = module;
  return module;
}

DeviceKernel *device_kernel(Device *device, DeviceModule *module, const char *name) {
  if (!healthy(device) || !module) return NULL;
  for (DeviceKernel *kernel = module->kernels; kernel; kernel = kernel->next)
    if (!strcmp(kernel->name, name)) return kernel;

  void *handle = device->operations->kernel(device, module->handle, name);
  if (!handle) return NULL;
  DeviceKernel *kernel = calloc(1, sizeof *kernel);
  char *copy = strdup(name);
  if (!kernel || !copy) {
    free(kernel);
    free(copy);
    device_fail(device, DEVICE_OUT_OF_MEMORY, "out of host memory");
    return NULL;
  }
  *kernel = (DeviceKernel){.handle = handle, .name = copy, .module = module, .next = module->kernels};
  module->kernels = kernel;
  return kernel;
}

static void zeros_to_ones(unsigned size[3]) {
  for (int i = 0; i < 3; i++)
    if (size[i] == 0) size[i] = 1;
}

bool device_launch(Device *device, const DeviceLaunch *launch) {
  if (!healthy(device)) return false;
  if (!launch->kernel) return device_fail(device, DEVICE_INVALID, "launch without a kernel");
  DeviceLaunch complete = *launch;
  zeros_to_ones(complete.grid);
  zeros_to_ones(complete.block);
  if (complete.cluster[0] || complete.cluster[1] || complete.cluster[2]) zeros_to_ones(complete.cluster);
  int count = 0;
  while (launch->arguments && launch->arguments[count]) count++;
  return device->operations->launch(device, &complete, count);
}

bool device_synchronise(Device *device) { return healthy(device) && device->operations->synchronise(device); }

bool device_tensor_map(Device *device, const TensorMapSpec *spec, TensorMap *map) {
  if (!healthy(device)) return false;
  if (spec->rank < 1 || spec->rank > TENSOR_MAX_RANK)
    return device_fail(device, DEVICE_INVALID, "tensor map of rank %d; 1 to %d are allowed", spec->rank,
                       TENSOR_MAX_RANK);
  return device->operations->tensor_map(device, spec, map);
}

bool device_time(Device *device, DeviceWork *work, void *context, double *milliseconds) {
  if (!healthy(device) || !device->operations->time(device, work, context, milliseconds)) return false;
  return *milliseconds >= 0 ||
         device_fail(device, DEVICE_FAULT, "the GPU's events give an impossible time: %g ms", *milliseconds);
}

// ---- what the emulator saw ----

const Hazard *device_hazards(const Device *device, int *count) { return device->operations->hazards(device, count); }

bool device_counters(const Device *device, EmulatorCounters *counters) {
  return device->operations->counters(device, counters);
}

const LineCounters *device_line_counters(const Device *device, int *count) {
  return device->operations->line_counters(device, count);
}

const EmulatorStep *device_steps(const Device *device, int *count, bool *complete) {
  *count = 0;
  *complete = true;
  return device->operations->steps ? device->operations->steps(device, count, complete) : NULL;
}

const char *device_step_file(const Device *device, int number) {
  return device->operations->step_file ? device->operations->step_file(device, number) : NULL;
}

void device_clear_counters(Device *device) { device->operations->clear_counters(device); }
