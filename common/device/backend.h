// What a device has to provide. Only the files of this folder include it.
#pragma once

#include "device.h"

// Each function does its part of the device_... function of the same name, and calls device_fail when it cannot.
// device.c has already checked the arguments that it can check for both devices.
typedef struct DeviceOperations {
  void (*close)(Device *device);
  DeviceAddress (*alloc)(Device *device, size_t size);
  bool (*free)(Device *device, DeviceAddress address);
  bool (*upload)(Device *device, DeviceAddress destination, const void *source, size_t size);
  bool (*download)(Device *device, void *destination, DeviceAddress source, size_t size);
  bool (*fill)(Device *device, DeviceAddress address, uint8_t byte, size_t size);
  void *(*load)(Device *device, const DeviceImage *image);
  void *(*kernel)(Device *device, void *module, const char *name);
  // The launch comes with its zeros in grid and block replaced by ones.
  bool (*launch)(Device *device, const DeviceLaunch *launch, int argument_count);
  bool (*synchronise)(Device *device);
  bool (*tensor_map)(Device *device, const TensorMapSpec *spec, TensorMap *map);
  bool (*time)(Device *device, DeviceWork *work, void *context, double *milliseconds);
  const Hazard *(*hazards)(const Device *device, int *count);
  bool (*counters)(const Device *device, EmulatorCounters *counters);
  const LineCounters *(*line_counters)(const Device *device, int *count);
  void (*clear_counters)(Device *device);
  // Only the emulator has them; else NULL.
  const EmulatorStep *(*steps)(const Device *device, int *count, bool *complete);
  const char *(*step_file)(const Device *device, int number);
} DeviceOperations;

struct Device {
  const DeviceOperations *operations;
  void *state;  // the back end's own
  DeviceInfo info;
  DeviceError error;
  DeviceModule *modules;  // a list, newest first
  uint64_t downloads;     // a checksum: device_downloads
};

struct DeviceModule {
  void *handle;           // the back end's own
  DeviceKernel *kernels;  // a list, newest first
  DeviceModule *next;
};

struct DeviceKernel {
  void *handle;  // the back end's own
  char *name;
  DeviceModule *module;
  size_t shared_limit;  // bytes of dynamic shared memory opted into so far (gpu.c)
  bool large_clusters;  // clusters of more than 8 blocks opted into (gpu.c)
  DeviceKernel *next;
};

// Fills device->operations, state and info. False and *error when there is no such device.
bool gpu_open(Device *device, DeviceError *error);
bool gpu_attach(Device *device, DeviceError *error);
bool emulator_device_open(Device *device, const DeviceOptions *options, DeviceError *error);

// Writes an error as one line: control characters in the text become spaces. Always returns false.
bool device_set_error(DeviceError *error, DeviceErrorCode code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
