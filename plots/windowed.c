// Stage 21 as a function that plots/windows.py calls, build/libwindow.so: in the context and the stream of the caller.
#include <stdio.h>

#include "../common/harness/stage.h"

extern const Stage stage;
extern const char stage_ptx[], stage_ptx_end[], stage_cubin[], stage_cubin_end[];

// The first call's device, for all later ones: the caller has one context.
static Device *attached;
static DeviceModule *loaded;
static DeviceError failure;

// A GPU runs the cubin. The stand-in for the driver that hopper-run preloads takes the PTX alone.
static bool attach_once(void) {
  if (loaded) return true;
  DeviceImage image = {.cubin = stage_cubin, .cubin_size = (size_t)(stage_cubin_end - stage_cubin)};
  attached = device_attach(&failure);
  loaded = attached ? device_load(attached, &image) : NULL;
  if (loaded || !attached || device_error(attached)->code != DEVICE_UNSUPPORTED) return loaded;
  device_clear_error(attached);
  image.ptx = stage_ptx;
  image.ptx_size = (size_t)(stage_ptx_end - stage_ptx);
  return (loaded = device_load(attached, &image));
}

// Attention with a window on tensors [batch][heads][seqlen][96] of fp16 in device memory. Queues the kernel on the
// stream, a CUstream or cudaStream_t. NULL, or in one line what went wrong.
__attribute__((visibility("default"))) const char *windowed_forward(int batch, int heads, int seqlen, int window,
                                                                    const void *q, const void *k, const void *v,
                                                                    void *o, void *stream);

const char *windowed_forward(int batch, int heads, int seqlen, int window, const void *q, const void *k, const void *v,
                             void *o, void *stream) {
  if (!attach_once()) return attached ? device_error(attached)->text : failure.text;
  device_use_stream(attached, stream);
  Attention attention = {
      .shape = {.batch = batch, .heads = heads, .seqlen = seqlen, .head_dim = 96, .causal = true},
      .window = window,
      .scale = 0.102062073f,  // 1 / sqrt(96)
      .q.address = (DeviceAddress)(uintptr_t)q,
      .k.address = (DeviceAddress)(uintptr_t)k,
      .v.address = (DeviceAddress)(uintptr_t)v,
      .o.address = (DeviceAddress)(uintptr_t)o,
      .module = loaded,
  };
  return stage.windowed(attached, &attention) ? NULL : device_error(attached)->text;
}
