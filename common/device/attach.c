// Opens the GPU whose context the program has made. This is not in open.c, so that the library of the stages does not
// link the emulator.
#include <stdlib.h>

#include "backend.h"

Device *device_attach(DeviceError *error) {
  *error = (DeviceError){.code = DEVICE_OK};
  Device *device = calloc(1, sizeof *device);
  if (device && gpu_attach(device, error)) return device;
  if (!device) device_set_error(error, DEVICE_OUT_OF_MEMORY, "out of host memory");
  free(device);
  return NULL;
}
