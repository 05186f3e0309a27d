// Opens one of the two devices. This is not in device.c, so that the library of the stages, which needs only the GPU,
// does not link the emulator.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend.h"

// Opens the device that the options name. With DEVICE_AUTO a missing GPU is a note and not an error.
static bool open_kind(Device *device, const DeviceOptions *options, DeviceError *error) {
  if (options->kind == DEVICE_EMULATOR) return emulator_device_open(device, options, error);
  if (gpu_open(device, error)) return true;
  if (options->kind == DEVICE_GPU || error->code != DEVICE_ABSENT) return false;
  char note[sizeof device->info.note];
  snprintf(note, sizeof note, "%.*s", (int)sizeof note - 1, error->text);
  *error = (DeviceError){.code = DEVICE_OK};
  if (!emulator_device_open(device, options, error)) return false;
  memcpy(device->info.note, note, sizeof note);
  return true;
}

Device *device_open(const DeviceOptions *options, DeviceError *error) {
  *error = (DeviceError){.code = DEVICE_OK};
  Device *device = calloc(1, sizeof *device);
  if (!device) {
    device_set_error(error, DEVICE_OUT_OF_MEMORY, "out of host memory");
    return NULL;
  }
  if (open_kind(device, options, error)) return device;
  free(device);
  return NULL;
}
