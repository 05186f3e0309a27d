// Times on a GPU, by the driver's events. The emulator refuses at the first call: device_time gives no seconds there.
#include <stdlib.h>

#include "harness.h"

enum { WARM_UP_LAUNCHES = 3 };
static const double WARM_UP_MILLISECONDS = 50;  // the clock has risen by then

static int compare_times(const void *a, const void *b) {
  double left = *(const double *)a, right = *(const double *)b;
  return (left > right) - (left < right);
}

// Runs work until the GPU is warm.
static bool warm_up_gpu(Device *device, DeviceWork *work, void *context) {
  double elapsed = 0, milliseconds;
  for (int i = 0; i < WARM_UP_LAUNCHES || elapsed < WARM_UP_MILLISECONDS; i++) {
    if (!device_time(device, work, context, &milliseconds)) return false;
    elapsed += milliseconds > 1e-3 ? milliseconds : 1e-3;
  }
  return true;
}

// Writing twice the L2 cache's size leaves nothing of the last repeat in it. The write is queued, so the host has also
// queued the work before the GPU comes to it: the gap between launches is not measured. times: `repeats` for each work.
static bool measure(Device *device, const TimedWork *works, int count, int repeats, double *times) {
  size_t flush_size = 2 * device_info(device)->l2_size;
  if (flush_size < (size_t)64 << 20) flush_size = (size_t)64 << 20;
  DeviceAddress flush = device_alloc(device, flush_size);
  for (int i = 0; i < repeats; i++) {
    for (int w = 0; w < count; w++) {
      device_fill(device, flush, (uint8_t)i, flush_size);
      if (!device_time(device, works[w].work, works[w].context, &times[w * repeats + i])) return false;
    }
    progress_add(1);
  }
  return device_free(device, flush);
}

static Timing summary(double *times, int repeats) {
  qsort(times, (size_t)repeats, sizeof *times, compare_times);
  return (Timing){
      .median = (times[(repeats - 1) / 2] + times[repeats / 2]) / 2,
      .min = times[0],
      .max = times[repeats - 1],
      .repeats = repeats,
  };
}

bool timing_measure_each(Device *device, const TimedWork *works, int count, int repeats, Timing *timings) {
  double *times = malloc((size_t)count * (size_t)repeats * sizeof *times);
  progress_begin("timing", (uint64_t)repeats);
  bool done = times != NULL;
  for (int w = 0; w < count; w++) done = done && warm_up_gpu(device, works[w].work, works[w].context);
  done = done && measure(device, works, count, repeats, times);
  progress_end();
  for (int w = 0; w < count && done; w++) timings[w] = summary(times + w * repeats, repeats);
  free(times);
  return done;
}

bool timing_measure(Device *device, DeviceWork *work, void *context, int repeats, Timing *timing) {
  return timing_measure_each(device, &(TimedWork){work, context}, 1, repeats, timing);
}
