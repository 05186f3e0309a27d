// baseline-cublas where there is no GPU: what it says, and its softmax on the emulator. Its products are cuBLAS's; the
// suite gpu_baselines runs it whole (make test-gpu). baseline-machine on the emulator: its kernels, but not their
// times.
#include <criterion/criterion.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/harness.h"
#include "support/program.h"
#include "support/sanitized.h"

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

// ---- baseline-machine ----

static const char MACHINE[] = "baseline-machine";

Test(machine, every_kernel_is_right) {
  for (int schedule = 0; schedule <= (SANITIZED ? 0 : 3); schedule++) {
    char line[100];
    snprintf(line, sizeof line, "--device=emulator --schedule=%d", schedule);
    Output *output = run_line(MACHINE, line);
    cr_expect_eq(output->code, 0, "%s: exit code %d\n%s%s", line, output->code, output->out, output->err);
    cr_expect(strstr(output->out, "\nresult    right: all 37 measurements compute what they should\n"), "%s",
              output->out);
    cr_expect(strstr(output->out, "\nhazards   none\n"), "%s", output->out);
    cr_expect(strstr(output->out, "\ntimes     none: the emulator has no clock\n"), "%s", output->out);
    free(output);
  }
}

Test(machine, measures_on_a_gpu_alone) {
  Output *output = run_line(MACHINE, "--device=emulator --csv=/no/such/folder/machine.csv");
  cr_expect_eq(output->code, EXIT_USAGE);
  cr_expect(strstr(output->err, "the emulator has no clock"), "%s", output->err);
  free(output);
}

// Runs the program on its own PTX without the first `count` lines of each kernel that have the instruction.
static Output *run_without(const char *instruction, int count) {
  char path[] = "/tmp/hopper-ladder-ptx-XXXXXX", command[3000], line[200];
  int file = mkstemp(path);
  cr_assert(file >= 0);
  close(file);
  snprintf(command, sizeof command,
           "awk '/^.visible/ { n = 0 } !/^\\.|^\\/\\// && index($0, \"%s\") && n++ < %d { next } 1' "
           "'%s/kernels/baseline-machine.ptx' >%s",
           instruction, count, getenv("BUILT") ? getenv("BUILT") : "build", path);
  cr_assert_eq(system(command), 0);
  snprintf(line, sizeof line, "--ptx=%s", path);
  Output *output = run_line(MACHINE, line);
  unlink(path);
  return output;
}

// A kernel that does less than it says is WRONG: for most, one instruction less is enough. Exponentials and maxima come
// to rest, so only all of them are missed.
Test(machine, missing_instructions_are_seen) {
  static const struct {
    const char *instruction;
    int count;
    const char *kernel;
  } cases[] = {
      {"fma.rn.f32", 1, "multiply_add_latency"},
      {"add.u32 ", 1, "add_latency"},
      {"max.f32", 999, "maximum_latency"},
      {"ex2.approx", 999, "exponential_rate"},
      {"cvt.rn.f16x2", 999, "convert_latency"},
      {"shfl.sync", 1, "shuffle_rate"},
      {"mma.sync", 1, "mma_rate"},
      {"m64n64k16", 1, "wgmma_64_latency"},
      {"m64n256k16", 1, "wgmma_256_registers_rate"},
      {"ld.shared.u32 %", 1, "shared_latency"},
      {"ld.shared.v4.u32", 1, "shared_rate"},
      {"ld.global.u64 %", 1, "l1_latency"},
      {"ld.global.cg.u64", 1, "l2_latency"},
      {"ld.global.v4.u32", 1, "l1_rate"},
      {"ld.global.cg.v4.u32", 1, "read_all"},
      {"st.global.v4", 1, "copy_all"},
      {"atom.global.add", 1, "atomic_latency"},
  };
  // One of them runs all the C code that the others do.
  for (size_t i = 0; i < (SANITIZED ? 1 : sizeof cases / sizeof *cases); i++) {
    char wrong[100];
    snprintf(wrong, sizeof wrong, "\nresult    WRONG: %s, thread ", cases[i].kernel);
    Output *output = run_without(cases[i].instruction, cases[i].count);
    cr_expect_eq(output->code, EXIT_WRONG, "%s: exit code %d\n%s", cases[i].instruction, output->code, output->err);
    cr_expect(strstr(output->out, wrong), "%s: no %s in\n%s%s", cases[i].instruction, wrong, output->out, output->err);
    free(output);
  }
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
