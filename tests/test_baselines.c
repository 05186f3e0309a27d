// baseline-cublas where there is no GPU: what it says, and its softmax on the emulator. Its products are cuBLAS's; the
// suite gpu_baselines runs it whole (make test-gpu).
#include <criterion/criterion.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/harness.h"
#include "support/program.h"

static const char PROGRAM[] = "baseline-cublas";

static void expect_absent(const char *options, const char *words) {
  Output *output = run_line(PROGRAM, options);
  cr_expect_eq(output->code, EXIT_ABSENT, "%s: exit code %d", options, output->code);
  cr_expect_str_empty(output->out);
  cr_expect(strstr(output->err, words), "%s: %s", options, output->err);
  cr_expect_eq(strchr(output->err, '\n') - output->err, (long)strlen(output->err) - 1, "one line: %s", output->err);
  free(output);
}

Test(baselines, needs_a_gpu) {
  setenv("CUDA_VISIBLE_DEVICES", "", 1);
  expect_absent("--seqlen=64", "cuBLAS runs on a GPU alone, and here is none (");
  expect_absent("--device=emulator", "cuBLAS runs on a GPU alone: there is no emulator of it");
}

// With a driver that says it has a GPU, and with files that are no libraries where the linker looks for cuBLAS first.
Test(baselines, needs_cublas) {
  char folder[] = "/tmp/hopper-ladder-cublas-XXXXXX", driver[PATH_MAX], command[PATH_MAX + 200];
  cr_assert(mkdtemp(folder));
  snprintf(command, sizeof command, "cd %s && ln -s '%s' . && echo no >libcublas.so.12 && echo no >libcublas.so.13",
           folder, realpath(getenv("FAKE_DRIVER"), driver));
  cr_assert_eq(system(command), 0);
  setenv("LD_LIBRARY_PATH", folder, 1);
  setenv("CUDA_HOME", "/no/such/folder", 1);
  expect_absent("", "no cuBLAS: neither libcublas.so.13 nor .12 can be loaded");
  snprintf(command, sizeof command, "rm -r %s", folder);
  cr_expect_eq(system(command), 0);
}

Test(baselines, has_the_stages_command_line) {
  Output *output = run_line(PROGRAM, "--help");
  cr_expect_eq(output->code, 0);
  cr_expect(strstr(output->out, "cuBLAS: two matrix products") && strstr(output->out, "--seqlen"), "%s", output->out);
  free(output);
  output = run_line(PROGRAM, "--seqlen=0");
  cr_expect_eq(output->code, EXIT_USAGE);
  free(output);
}

// ---- the softmax ----

enum { HEADS = 2, WEIGHT_SCALE = 32768 };

static float score(int head, int i, int j) { return 8 * sinf((float)(head * 1000 + i * 37 + j * j % 101)); }

static double weight(const float *row, int j, int keys) {
  double max = -INFINITY, sum = 0;
  for (int key = 0; key < keys; key++) max = fmax(max, row[key]);
  for (int key = 0; key < keys; key++) sum += exp(row[key] - max);
  return j < keys ? exp(row[j] - max) / sum : 0;
}

static void expect_weights(const float *scores, const Half *weights, int seqlen, bool causal) {
  for (int row = 0; row < HEADS * seqlen; row++) {
    int keys = causal ? row % seqlen + 1 : seqlen;
    for (int j = 0; j < seqlen; j++) {
      double expected = weight(scores + row * seqlen, j, keys);
      double got = (double)half_to_float(weights[row * seqlen + j]) / WEIGHT_SCALE;
      cr_assert(fabs(got - expected) <= expected * 0x1p-10, "seqlen %d, row %d, key %d: got %g, expected %g", seqlen,
                row, j, got, expected);
    }
  }
}

static DeviceModule *load_kernel(Device *device) {
  char path[1000];
  snprintf(path, sizeof path, "%s/kernels/baseline-cublas.ptx", getenv("BUILT") ? getenv("BUILT") : "build");
  DeviceImage image = {0};
  char *ptx = read_whole(path, &image.ptx_size);
  cr_assert(ptx, "cannot read %s", path);
  image.ptx = ptx;
  DeviceModule *module = device_load(device, &image);
  free(ptx);
  return module;
}

static void run_softmax(int seqlen, int causal) {
  DeviceError error;
  Device *device = device_open(&(DeviceOptions){.kind = DEVICE_EMULATOR, .hazards = true}, &error);
  size_t count = (size_t)HEADS * seqlen * seqlen;
  float *scores = malloc(count * sizeof *scores);
  Half *weights = malloc(count * sizeof *weights);
  for (size_t i = 0; i < count; i++)
    scores[i] = score((int)(i / seqlen / seqlen), (int)(i / seqlen % seqlen), (int)(i % seqlen));
  DeviceAddress s = device_alloc(device, count * sizeof *scores), p = device_alloc(device, count * sizeof *weights);
  device_upload(device, s, scores, count * sizeof *scores);
  DeviceLaunch launch = {
      .kernel = device_kernel(device, load_kernel(device), "softmax"),
      .grid = {(unsigned)seqlen, HEADS},
      .block = {256},
      .arguments = ARGUMENTS(&s, &p, &seqlen, &causal),
  };
  device_launch(device, &launch);
  cr_assert(device_download(device, weights, p, count * sizeof *weights), "%s", device_error(device)->text);
  int hazards;
  device_hazards(device, &hazards);
  cr_expect_eq(hazards, 0);
  expect_weights(scores, weights, seqlen, causal);
  free(scores);
  free(weights);
  device_close(device);
}

Test(baselines, softmax) {
  static const int seqlens[] = {1, 31, 33, 256, 300};
  for (size_t i = 0; i < sizeof seqlens / sizeof *seqlens; i++)
    for (int causal = 0; causal < 2; causal++) run_softmax(seqlens[i], causal);
}

// ---- on a GPU ----

Test(gpu_baselines, cublas_is_right, .timeout = 300) {
  if (!getenv("HL_GPU")) cr_skip_test("no GPU: make test-gpu runs this");
  static const char *const problems[] = {"--seqlen=1",
                                         "--seqlen=97 --causal",
                                         "--seqlen=1000 --head-dim=128",
                                         "--seqlen=2048 --head-dim=128 --causal",
                                         "--input=ones --seqlen=300",
                                         "--input=large --seqlen=513 --causal"};
  for (size_t i = 0; i < sizeof problems / sizeof *problems; i++) {
    char line[200];
    snprintf(line, sizeof line, "--device=gpu --repeat=0 --batch=2 --heads=3 %s", problems[i]);
    Output *output = run_line(PROGRAM, line);
    if (strstr(output->err, "no cuBLAS")) cr_skip_test("%s", output->err);
    cr_expect_eq(output->code, 0, "%s: exit code %d\n%s%s", line, output->code, output->out, output->err);
    free(output);
  }
}
