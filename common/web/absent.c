// What a browser has not: a GPU, and so no times to compare with those recorded on one.
#include "../device/backend.h"
#include "../harness/harness.h"

bool gpu_open(Device *device, DeviceError *error) {
  (void)device;
  return device_set_error(error, DEVICE_ABSENT, "a browser has none");
}

bool recorded_find(const char *stage, const Shape *shape, Recorded *row) {
  return (void)stage, (void)shape, (void)row, false;
}
