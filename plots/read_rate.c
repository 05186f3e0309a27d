// Kernels that read memory and compute nothing (common/harness/read.h), as a function that plots/decode_peers.py calls,
// build/libread.so: in the context and the stream of the caller.
#include "../common/device/device.h"

extern const char stage_cubin[], stage_cubin_end[];

// The first call's device, for all later ones: the caller has one context.
static Device *attached;
static DeviceModule *loaded;
static DeviceError failure;

static bool attach_once(void) {
  if (loaded) return true;
  if (!attached && !(attached = device_attach(&failure))) return false;
  // Stage 13 has the kernels, as all decode stages have.
  DeviceImage image = {.cubin = stage_cubin, .cubin_size = (size_t)(stage_cubin_end - stage_cubin)};
  return (loaded = device_load(attached, &image));
}

// Queues a kernel that reads `bytes` of K and as many of V: with loads, or with bulk copies. `o` is 16 bytes that are
// written only if a sum comes out that never does. NULL, or in one line what went wrong.
__attribute__((visibility("default"))) const char *read_cache(const void *k, const void *v, size_t bytes, void *o,
                                                              int copies, void *stream);

const char *read_cache(const void *k, const void *v, size_t bytes, void *o, int copies, void *stream) {
  if (!attach_once()) return attached ? device_error(attached)->text : failure.text;
  device_use_stream(attached, stream);
  unsigned sm_count = (unsigned)device_info(attached)->sm_count;
  DeviceLaunch with_loads = {
      .kernel = device_kernel(attached, loaded, "read_loads"),
      .grid = {4 * sm_count, 2},
      .block = {256},
      .arguments = ARGUMENTS(&k, &v, &bytes, &o),
  };
  DeviceLaunch with_copies = {
      .kernel = device_kernel(attached, loaded, "read_copies"),
      .grid = {sm_count, 2},
      .block = {32},
      .dynamic_shared = 12 * 8192,
      .arguments = ARGUMENTS(&k, &v, &bytes),
  };
  return device_launch(attached, copies ? &with_copies : &with_loads) ? NULL : device_error(attached)->text;
}
