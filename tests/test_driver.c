// The device that is a GPU, where there is none: with a driver that only takes notes, what gpu.c asks of CUDA and what
// it makes of the answers. And what timing.c makes of a device's times.
#include <criterion/criterion.h>
#include <cuda.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "device/backend.h"
#include "driver/fake_driver.h"
#include "harness/harness.h"

static FakeDriver *driver;
static const DeviceImage image = {.cubin = "\177ELF", .cubin_size = 4};

static void load_fake_driver(void) {
  void *library = dlopen(getenv("FAKE_DRIVER"), RTLD_NOW);
  cr_assert(library, "%s", dlerror());
  driver = dlsym(library, "fake_driver");
  cr_assert(driver);
  *driver = (FakeDriver){.context = 1, .capability = 9};
}

TestSuite(driver, .init = load_fake_driver);

static Device *open_gpu(void) {
  DeviceError error;
  Device *device = device_open(&(DeviceOptions){.kind = DEVICE_GPU}, &error);
  cr_assert(device, "%s", error.text);
  return device;
}

static DeviceKernel *find_kernel(Device *device, const char *name) {
  return device_kernel(device, device_load(device, &image), name);
}

// ---- which GPU ----

Test(driver, describes_the_gpu) {
  Device *device = open_gpu();
  const DeviceInfo *info = device_info(device);
  cr_expect(info->kind == DEVICE_GPU && info->sm_count == 132 && info->l2_size == 50 << 20);
  cr_expect_eq(info->sm_clock_mhz, 1980);
  cr_expect_str_eq(info->name, "Fake GPU");
  cr_expect_str_eq(info->cuda, "13.0");
  device_close(device);
}

// Code for sm_90a runs on 9.0 alone.
Test(driver, wants_compute_capability_9_0) {
  static const int others[][2] = {{8, 0}, {9, 1}, {10, 0}};
  for (int i = 0; i < 3; i++) {
    DeviceError error;
    driver->capability = others[i][0];
    driver->minor = others[i][1];
    cr_expect_null(device_open(&(DeviceOptions){.kind = DEVICE_GPU}, &error));
    cr_expect_eq(error.code, DEVICE_ABSENT);
    cr_expect_str_eq(error.text, "this machine has 1 GPU, none of compute capability 9.0");
    Device *device = device_open(&(DeviceOptions){.kind = DEVICE_AUTO}, &error);
    cr_assert(device, "%s", error.text);
    cr_expect_eq(device_info(device)->kind, DEVICE_EMULATOR);
    cr_expect_str_eq(device_info(device)->note, "this machine has 1 GPU, none of compute capability 9.0");
    device_close(device);
  }
}

// A GPU that is there and cannot be used is an error: nobody wants the emulator in its place unasked.
Test(driver, a_gpu_that_cannot_be_used_is_an_error) {
  DeviceError error;
  driver->fails = "cuDevicePrimaryCtxRetain";
  driver->result = CUDA_ERROR_OUT_OF_MEMORY;
  cr_expect_null(device_open(&(DeviceOptions){.kind = DEVICE_AUTO}, &error));
  cr_expect_eq(error.code, DEVICE_OUT_OF_MEMORY);
  cr_expect_str_eq(error.text, "opening the GPU: CUDA_ERROR_MADE_UP, made up");
}

// ---- launches ----

Test(driver, launches_are_as_they_were_asked_for) {
  Device *device = open_gpu();
  uint64_t argument = 77;
  DeviceLaunch launch = {.kernel = find_kernel(device, "k"),
                         .grid = {2, 3, 4},
                         .block = {5, 6, 7},
                         .dynamic_shared = 1000,
                         .arguments = ARGUMENTS(&argument)};
  cr_expect(device_launch(device, &launch));
  launch.cluster[0] = 2;
  launch.grid[1] = launch.block[2] = 0;  // counts as 1
  cr_expect(device_launch(device, &launch));
  const FakeLaunch *first = &driver->launch[0], *second = &driver->launch[1];
  cr_expect_str_eq(first->kernel, "k");
  cr_expect(first->grid[0] == 2 && first->grid[1] == 3 && first->grid[2] == 4);
  cr_expect(first->block[0] == 5 && first->block[1] == 6 && first->block[2] == 7);
  cr_expect(first->shared == 1000 && first->taken == 77 && first->cluster[0] == 0);
  cr_expect(second->grid[1] == 1 && second->block[2] == 1);
  cr_expect(second->cluster[0] == 2 && second->cluster[1] == 1 && second->cluster[2] == 1, "a cluster of %u x %u x %u",
            second->cluster[0], second->cluster[1], second->cluster[2]);
  device_close(device);
}

// What CUDA gives a kernel only when it is asked: once for a size, and again for a larger one.
Test(driver, asks_for_much_shared_memory_and_for_large_clusters) {
  Device *device = open_gpu();
  uint64_t argument = 0;
  DeviceLaunch launch = {
      .kernel = find_kernel(device, "k"), .dynamic_shared = 100000, .arguments = ARGUMENTS(&argument)};
  for (int i = 0; i < 2; i++) cr_expect(device_launch(device, &launch));
  cr_expect_eq(driver->attributes, 1);
  cr_expect_eq(driver->attribute, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
  cr_expect_eq(driver->attribute_value, 100000);
  launch.dynamic_shared = 200000;
  cr_expect(device_launch(device, &launch));
  cr_expect_eq(driver->attribute_value, 200000);
  launch.cluster[0] = 8;
  cr_expect(device_launch(device, &launch));
  cr_expect_eq(driver->attributes, 2, "8 blocks need no permission");
  launch.cluster[1] = 2;
  for (int i = 0; i < 2; i++) cr_expect(device_launch(device, &launch));
  cr_expect_eq(driver->attributes, 3);
  cr_expect_eq(driver->attribute, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED);
  device_close(device);
}

// The first error of a call stays: it says more than what follows from it.
Test(driver, names_the_kernel_that_is_not_there) {
  Device *device = open_gpu();
  driver->fails = "cuModuleGetFunction";
  driver->result = CUDA_ERROR_NOT_FOUND;
  cr_expect_null(find_kernel(device, "attention_96"));
  cr_expect_eq(device_error(device)->code, DEVICE_INVALID);
  cr_expect_str_eq(device_error(device)->text, "the module has no kernel 'attention_96'");
  device_close(device);
}

// ---- tensor maps ----

Test(driver, tensor_maps_are_as_they_were_asked_for) {
  Device *device = open_gpu();
  TensorMap map;
  TensorMapSpec spec = {.type = TENSOR_MAP_BF16,
                        .rank = 3,
                        .address = 0x5000,
                        .size = {64, 100, 7},
                        .stride = {2, 128, 12800},
                        .box = {32, 16, 1},
                        .element_stride = {0, 2, 1},
                        .swizzle = TENSOR_SWIZZLE_64B,
                        .l2_promotion = TENSOR_L2_256B,
                        .fill_nan = true};
  cr_expect(device_tensor_map(device, &spec, &map), "%s", device_error(device)->text);
  const FakeTensorMap *asked = &driver->map;
  cr_expect(asked->type == CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 && asked->rank == 3 && asked->address == 0x5000);
  cr_expect(asked->size[0] == 64 && asked->size[1] == 100 && asked->size[2] == 7);
  cr_expect(asked->stride[0] == 128 && asked->stride[1] == 12800, "CUDA has no stride of the innermost dimension");
  cr_expect(asked->box[0] == 32 && asked->box[1] == 16 && asked->box[2] == 1);
  cr_expect(asked->step[0] == 1 && asked->step[1] == 2 && asked->step[2] == 1);
  cr_expect(asked->swizzle == CU_TENSOR_MAP_SWIZZLE_64B && asked->promotion == CU_TENSOR_MAP_L2_PROMOTION_L2_256B);
  cr_expect_eq(asked->fill, CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA);
  device_close(device);
}

// ---- time ----

static bool take_three_milliseconds(Device *device, void *context) {
  (void)device, (void)context;
  driver->now += 3;
  return true;
}

Test(driver, times_from_before_the_work_to_after_it) {
  Device *device = open_gpu();
  double milliseconds = 0;
  driver->now = 100;
  cr_expect(device_time(device, take_three_milliseconds, NULL, &milliseconds), "%s", device_error(device)->text);
  cr_expect_float_eq(milliseconds, 3, 1e-6);
  device_close(device);
}

// ---- timing.c, on a device whose times are made up ----

enum { MOST_TIMES = 40 };
static const double *made_up;  // of the runs after the warm-up
static double of_warm_up;      // of each run before
static size_t flushed[MOST_TIMES], allocated;
static int runs, warm_ups, flushes, freed;

static DeviceAddress note_alloc(Device *device, size_t size) {
  (void)device;
  allocated = size;
  return 0x1000;
}

static bool note_free(Device *device, DeviceAddress address) {
  (void)device;
  freed += address == 0x1000;
  return true;
}

static bool note_fill(Device *device, DeviceAddress address, uint8_t byte, size_t size) {
  (void)device, (void)byte;
  if (address == 0x1000) flushed[flushes++] = size;
  return true;
}

// Before the first flush the GPU is warmed up; then a flush comes before each run.
static bool make_up_time(Device *device, DeviceWork *work, void *context, double *milliseconds) {
  (void)device, (void)work, (void)context;
  cr_assert(runs + warm_ups < MOST_TIMES);
  if (flushes == 0) {
    warm_ups++;
    *milliseconds = of_warm_up;
    return true;
  }
  *milliseconds = made_up[runs++];
  cr_expect_eq(flushes, runs, "the cache is flushed before each run");
  return true;
}

static const DeviceOperations made_up_operations = {
    .alloc = note_alloc, .free = note_free, .fill = note_fill, .time = make_up_time};

static Timing measure(double warm_up, const double *times, int repeats, size_t l2_size) {
  Device device = {.operations = &made_up_operations, .info = {.kind = DEVICE_GPU, .l2_size = l2_size}};
  Timing timing = {0};
  made_up = times;
  of_warm_up = warm_up;
  runs = warm_ups = flushes = freed = 0;
  cr_expect(timing_measure(&device, NULL, NULL, repeats, &timing));
  cr_expect_eq(runs, repeats);
  cr_expect_eq(freed, 1, "the memory that is written to flush the cache");
  return timing;
}

Test(timing, median_and_spread) {
  static const double times[] = {4, 1, 3, 2.5, 9};
  Timing even = measure(60, times, 4, 0), odd = measure(60, times, 5, 0);
  cr_expect(even.median == 2.75 && even.min == 1 && even.max == 4 && even.repeats == 4, "%g, %g to %g", even.median,
            even.min, even.max);
  cr_expect(odd.median == 3 && odd.min == 1 && odd.max == 9, "%g, %g to %g", odd.median, odd.min, odd.max);
}

// Works that are compared take turns: a, b, a, b.
Test(timing, works_take_turns) {
  static const double times[] = {1, 10, 2, 20, 3, 30};
  Device device = {.operations = &made_up_operations, .info = {.kind = DEVICE_GPU}};
  Timing timings[2];
  made_up = times;
  of_warm_up = 60;
  runs = warm_ups = flushes = freed = 0;
  cr_expect(timing_measure_each(&device, (TimedWork[]){{NULL, NULL}, {NULL, NULL}}, 2, 3, timings));
  cr_expect_eq(warm_ups, 6, "each work is warmed up");
  cr_expect(timings[0].median == 2 && timings[0].max == 3, "%g", timings[0].median);
  cr_expect(timings[1].median == 20 && timings[1].min == 10 && timings[1].repeats == 3, "%g", timings[1].median);
}

// At least 3 runs and 50 ms, after which the clock has risen.
Test(timing, warms_up) {
  static const double times[] = {1};
  measure(10, times, 1, 0);
  cr_expect_eq(warm_ups, 5);
  measure(60, times, 1, 0);
  cr_expect_eq(warm_ups, 3);
}

// Twice the L2 cache, so that nothing of the run before is left in it.
Test(timing, flushes_the_cache) {
  static const double times[] = {1, 1};
  measure(60, times, 2, (size_t)50 << 20);
  cr_expect(allocated == (size_t)100 << 20 && flushed[0] == allocated && flushed[1] == allocated);
  measure(60, times, 1, 0);
  cr_expect_eq(flushed[0], (size_t)64 << 20, "a GPU that does not say how large its cache is");
}
