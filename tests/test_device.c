// The device interface, on the emulator: memory, kernels, errors that stay, and what the emulator refuses.
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <math.h>
#include <string.h>

#include "device/backend.h"
#include "device/device.h"
#include "emulator/emulator.h"
#include "emulator/tensor/tensor_core.h"  // to see that a program can include both: a model of a kernel needs them

TestSuite(device, .timeout = 60);

// add: y[i] += a for i < n, one thread an element. spill: writes y[n].
static const char ptx[] = ".version 8.0\n"
                          ".target sm_90a\n"
                          ".address_size 64\n"
                          ".visible .entry add(.param .u64 y, .param .u32 n, .param .u32 a) {\n"
                          "  .reg .pred %p; .reg .b32 %r<8>; .reg .b64 %rd<4>;\n"
                          "  mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ntid.x; mov.u32 %r2, %tid.x;\n"
                          "  mad.lo.s32 %r3, %r0, %r1, %r2;\n"
                          "  ld.param.u32 %r4, [n];\n"
                          "  setp.ge.u32 %p, %r3, %r4;\n"
                          "  @%p ret;\n"
                          "  ld.param.u64 %rd0, [y];\n"
                          "  ld.param.u32 %r5, [a];\n"
                          "  mul.wide.u32 %rd1, %r3, 4;\n"
                          "  add.u64 %rd2, %rd0, %rd1;\n"
                          "  ld.global.u32 %r6, [%rd2];\n"
                          "  add.u32 %r7, %r6, %r5;\n"
                          "  st.global.u32 [%rd2], %r7;\n"
                          "  ret;\n"
                          "}\n"
                          ".visible .entry spill(.param .u64 y, .param .u32 n) {\n"
                          "  .reg .b32 %r<2>; .reg .b64 %rd<3>;\n"
                          "  ld.param.u64 %rd0, [y];\n"
                          "  ld.param.u32 %r0, [n];\n"
                          "  mul.wide.u32 %rd1, %r0, 4;\n"
                          "  add.u64 %rd2, %rd0, %rd1;\n"
                          "  st.global.u32 [%rd2], %r0;\n"
                          "  ret;\n"
                          "}\n";
static const DeviceImage image = {.ptx = ptx, .ptx_size = sizeof ptx - 1};

static Device *open_emulator(void) {
  DeviceError error;
  Device *device = device_open(&(DeviceOptions){.kind = DEVICE_EMULATOR, .hazards = true}, &error);
  cr_assert(device, "%s", error.text);
  return device;
}

// Expects the device's error to have this code and this in its text, one line; and clears it.
static void expect_error(Device *device, DeviceErrorCode code, const char *text) {
  const DeviceError *error = device_error(device);
  cr_expect_eq(error->code, code, "code %d: %s", error->code, error->text);
  cr_expect(strstr(error->text, text), "no '%s' in: %s", text, error->text);
  cr_expect(!strchr(error->text, '\n'));
  device_clear_error(device);
}

Test(device, memory_comes_back) {
  Device *device = open_emulator();
  uint8_t bytes[1000], back[1000];
  for (int i = 0; i < 1000; i++) bytes[i] = (uint8_t)(i * 7);
  DeviceAddress a = device_alloc(device, 1000), b = device_alloc(device, 1);
  cr_assert(a && b && a != b);
  cr_expect(a % 256 == 0 && b % 256 == 0);
  cr_expect(device_upload(device, a, bytes, 1000) && device_download(device, back, a, 1000));
  cr_expect(!memcmp(bytes, back, 1000));
  cr_expect(device_fill(device, a + 100, 0xff, 200) && device_download(device, back, a, 1000));
  cr_expect(!memcmp(bytes, back, 100) && back[100] == 0xff && back[299] == 0xff &&
            !memcmp(bytes + 300, back + 300, 700));
  cr_expect(device_free(device, a) && device_free(device, b));
  cr_expect_eq(device_error(device)->code, DEVICE_OK);
  device_close(device);
}

Test(device, memory_misuse_is_an_error) {
  Device *device = open_emulator();
  char bytes[64] = {0};
  DeviceAddress a = device_alloc(device, 64);
  cr_expect_eq(device_alloc(device, 0), 0);
  expect_error(device, DEVICE_INVALID, "0 bytes");
  cr_expect(!device_upload(device, a + 1, bytes, 64));
  expect_error(device, DEVICE_INVALID, "upload of 64 bytes");
  cr_expect(!device_download(device, bytes, a + 64, 1));
  expect_error(device, DEVICE_INVALID, "download of 1 byte ");
  cr_expect(!device_fill(device, 12345, 0, 10));
  expect_error(device, DEVICE_INVALID, "fill of 10 bytes");
  cr_expect(!device_free(device, a + 1));
  expect_error(device, DEVICE_INVALID, "not an allocation");
  cr_expect(device_free(device, a));
  cr_expect(!device_free(device, a));
  expect_error(device, DEVICE_INVALID, "not an allocation");
  cr_expect_eq(device_alloc(device, (size_t)1 << 62), 0);
  expect_error(device, DEVICE_OUT_OF_MEMORY, "4611686018427387904");
  device_close(device);
}

// After a failure nothing more happens, and the first error stays.
Test(device, the_first_error_stays) {
  Device *device = open_emulator();
  char byte = 1;
  DeviceAddress a = device_alloc(device, 1);
  cr_expect(device_upload(device, a, &byte, 1));
  cr_expect(!device_fill(device, 12345, 0, 10));
  cr_expect_eq(device_alloc(device, 4), 0);
  cr_expect(!device_fill(device, a, 9, 1) && !device_synchronise(device) && !device_load(device, &image));
  expect_error(device, DEVICE_INVALID, "fill of 10 bytes");
  byte = 0;
  cr_expect(device_download(device, &byte, a, 1));
  cr_expect_eq(byte, 1, "a call after the failure had an effect");
  device_close(device);
}

Test(device, kernels_run) {
  Device *device = open_emulator();
  DeviceModule *module = device_load(device, &image);
  DeviceKernel *add = device_kernel(device, module, "add");
  cr_assert(module && add);
  cr_expect_eq(device_kernel(device, module, "add"), add, "asking again gives the same");
  uint32_t values[100], n = 90, one = 1000;
  for (uint32_t i = 0; i < 100; i++) values[i] = i;
  DeviceAddress y = device_alloc(device, sizeof values);
  device_upload(device, y, values, sizeof values);
  DeviceLaunch launch = {.kernel = add, .grid = {3}, .block = {32}, .arguments = ARGUMENTS(&y, &n, &one)};
  cr_expect(device_launch(device, &launch) && device_synchronise(device), "%s", device_error(device)->text);
  cr_expect(device_download(device, values, y, sizeof values));
  for (uint32_t i = 0; i < 100; i++) cr_expect_eq(values[i], i < n ? i + 1000 : i, "element %u is %u", i, values[i]);
  int count;
  device_hazards(device, &count);
  cr_expect_eq(count, 0);
  device_close(device);
}

Test(device, launch_misuse_is_an_error) {
  Device *device = open_emulator();
  DeviceModule *module = device_load(device, &image);
  DeviceAddress y = device_alloc(device, 4);
  uint32_t n = 0;
  DeviceLaunch launch = {
      .kernel = device_kernel(device, module, "add"), .grid = {1}, .block = {32}, .arguments = ARGUMENTS(&y, &n)};
  cr_expect(!device_launch(device, &launch));
  expect_error(device, DEVICE_INVALID, "add");
  launch = (DeviceLaunch){.kernel = device_kernel(device, module, "nobody"), .grid = {1}, .block = {32}};
  cr_expect(!device_launch(device, &launch));
  expect_error(device, DEVICE_INVALID, "nobody");
  launch.kernel = NULL;
  cr_expect(!device_launch(device, &launch));
  expect_error(device, DEVICE_INVALID, "without a kernel");
  launch = (DeviceLaunch){
      .kernel = device_kernel(device, module, "spill"), .grid = {1}, .block = {2048}, .arguments = ARGUMENTS(&y, &n)};
  cr_expect(!device_launch(device, &launch));
  expect_error(device, DEVICE_INVALID, "2048");
  device_close(device);
}

Test(device, a_fault_is_a_hazard) {
  Device *device = open_emulator();
  DeviceModule *module = device_load(device, &image);
  DeviceAddress y = device_alloc(device, 40);
  uint32_t n = 10;
  DeviceLaunch launch = {.kernel = device_kernel(device, module, "spill"), .arguments = ARGUMENTS(&y, &n)};
  cr_expect(!device_launch(device, &launch));
  expect_error(device, DEVICE_FAULT, "");
  int count;
  const Hazard *hazards = device_hazards(device, &count);
  cr_assert_eq(count, 1);
  cr_expect_eq(hazards[0].kind, HAZARD_OUT_OF_BOUNDS);
  cr_expect_eq(hazards[0].address, y + 40);
  cr_expect_eq(hazards[0].here.ptx_line, 26);
  device_close(device);
}

Test(device, counters_count) {
  Device *device = open_emulator();
  DeviceModule *module = device_load(device, &image);
  DeviceAddress y = device_alloc(device, 4 * 64);
  device_fill(device, y, 0, 4 * 64);
  uint32_t n = 64, a = 1;
  DeviceLaunch launch = {
      .kernel = device_kernel(device, module, "add"), .grid = {2}, .block = {32}, .arguments = ARGUMENTS(&y, &n, &a)};
  cr_expect(device_launch(device, &launch), "%s", device_error(device)->text);
  EmulatorCounters counters;
  cr_assert(device_counters(device, &counters));
  cr_expect_eq(counters.value[COUNTER_GLOBAL_LOAD_REQUESTS], 2);
  cr_expect_eq(counters.value[COUNTER_GLOBAL_LOAD_SECTORS], 8);
  cr_expect_eq(counters.value[COUNTER_GLOBAL_STORE_BYTES], 256);
  device_close(device);
}

Test(device, bad_modules_are_refused) {
  static const char bad[] = ".version 8.0\n.target sm_90a\n.address_size 64\n.entry k() {\n  frobnicate.u32 %r0;\n}\n";
  Device *device = open_emulator();
  cr_expect(!device_load(device, &(DeviceImage){.ptx = bad, .ptx_size = sizeof bad - 1}));
  expect_error(device, DEVICE_INVALID, "PTX line 5:");
  cr_expect(!device_load(device, &(DeviceImage){.cubin = "", .cubin_size = 1}));
  expect_error(device, DEVICE_INVALID, "PTX");
  device_close(device);
}

static bool count_calls(Device *device, void *context) {
  (void)device;
  ++*(int *)context;
  return true;
}

// There is no way to seconds: the work is not even called, and nothing is written.
Test(device, the_emulator_has_no_clock) {
  Device *device = open_emulator();
  int calls = 0;
  double milliseconds = -1;
  cr_expect(!device_time(device, count_calls, &calls, &milliseconds));
  expect_error(device, DEVICE_UNSUPPORTED, "no clock");
  cr_expect_eq(calls, 0);
  cr_expect_eq(milliseconds, -1);
  device_close(device);
}

Test(device, tensor_maps_are_checked) {
  Device *device = open_emulator();
  TensorMap map;
  cr_expect_eq((uintptr_t)&map % 64, 0, "the hardware wants 64-byte alignment");
  TensorMapSpec spec = {.type = TENSOR_MAP_F16, .rank = 6};
  cr_expect(!device_tensor_map(device, &spec, &map));
  expect_error(device, DEVICE_INVALID, "rank 6");
  spec = (TensorMapSpec){.type = TENSOR_MAP_U32, .rank = 1, .address = 1 << 20, .size = {64}, .box = {64}};
  cr_expect(device_tensor_map(device, &spec, &map), "%s", device_error(device)->text);
  spec.fill_nan = true;
  cr_expect(!device_tensor_map(device, &spec, &map));
  expect_error(device, DEVICE_INVALID, "cannot be filled with NaN");
  device_close(device);
}

Test(device, without_a_driver) {
  void *library = dlopen("libcuda.so.1", RTLD_LAZY);
  if (library) cr_skip_test("this machine has a CUDA driver");
  DeviceError error;
  cr_expect(!device_open(&(DeviceOptions){.kind = DEVICE_GPU}, &error));
  cr_expect_eq(error.code, DEVICE_ABSENT);
  cr_expect(strstr(error.text, "libcuda.so.1"));
  Device *device = device_open(&(DeviceOptions){.kind = DEVICE_AUTO}, &error);
  cr_assert(device);
  const DeviceInfo *info = device_info(device);
  cr_expect_eq(info->kind, DEVICE_EMULATOR);
  cr_expect(strstr(info->note, "libcuda.so.1"), "it does not say why it is the emulator: %s", info->note);
  cr_expect_eq(info->sm_clock_mhz, 0);
  device_close(device);
}

// ---- times ----

static double told_time;

static bool tell_time(Device *device, DeviceWork *work, void *context, double *milliseconds) {
  (void)device, (void)work, (void)context;
  *milliseconds = told_time;
  return true;
}

Test(device, a_time_that_is_no_number_is_an_error) {
  static const double no_times[] = {NAN, -1};
  static const DeviceOperations operations = {.time = tell_time};
  for (int i = 0; i < 2; i++) {
    Device device = {.operations = &operations};
    double milliseconds;
    told_time = 1.5;
    cr_expect(device_time(&device, NULL, NULL, &milliseconds));
    told_time = no_times[i];
    cr_expect_not(device_time(&device, NULL, NULL, &milliseconds));
    cr_expect_eq(device_error(&device)->code, DEVICE_FAULT);
  }
}
