// How many lane-instructions a second the emulator executes: `make bench-emulator` prints it. The argument is the PTX
// of tests/ptx/cuda/bench_fma.cu; the instruction mixes after it are PTX of this file.
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "emulator/emulator.h"

enum { BLOCKS = 64, THREADS = 256, MAX_TEXT = 1 << 20, REPEATS = 8 };
#define SECONDS 0.5  // a measured launch takes at least so long

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void fail(const char *what, const char *why) {
  fprintf(stderr, "bench-emulator: %s: %s\n", what, why);
  exit(1);
}

static char *read_file(const char *path, size_t *size) {
  FILE *file = fopen(path, "rb");
  if (!file) fail(path, "cannot be read");
  char *text = malloc(MAX_TEXT);
  *size = text ? fread(text, 1, MAX_TEXT, file) : 0;
  fclose(file);
  return text;
}

// Millions of lane-instructions a second of a kernel (float *out, int steps) on so many host threads (0: one per core).
static double measure(const char *ptx, size_t size, const char *kernel, int host_threads, bool hazards) {
  EmulatorError error = {0};
  Emulator *emulator = emulator_open(&(EmulatorOptions){.hazards = hazards, .threads = host_threads});
  EmulatorModule *module = emulator ? emulator_load(emulator, ptx, size, &error) : NULL;
  if (!module) fail(kernel, emulator ? error.message : "no memory");
  uint64_t out = emulator_alloc(emulator, sizeof(float) * BLOCKS * THREADS);
  emulator_fill(emulator, out, 0, sizeof(float) * BLOCKS * THREADS);
  double elapsed = 0;
  uint64_t instructions = 0;
  for (int steps = 64; elapsed < SECONDS; steps *= 2) {
    emulator_clear_counters(emulator);
    EmulatorLaunch launch = {
        .kernel = kernel,
        .grid = {BLOCKS, 1, 1},
        .block = {THREADS, 1, 1},
        .arguments = (const void *const[]){&out, &steps},
        .argument_count = 2,
    };
    double start = seconds();
    if (emulator_launch(emulator, module, &launch, &error) != EMULATOR_OK) fail(kernel, error.message);
    elapsed = seconds() - start;
    instructions = emulator_counters(emulator).value[COUNTER_THREAD_INST_EXECUTED];
  }
  emulator_close(emulator);
  return (double)instructions / elapsed * 1e-6;
}

// ---- instruction mixes: a loop over REPEATS copies of a few instructions ----

static const struct {
  const char *name, *body;
} mixes[] = {
    {"fp32", "fma.rn.f32 %f1, %f1, %f2, %f3;\nadd.f32 %f4, %f4, %f1;\n"},
    {"integer",
     "mad.lo.s32 %r1, %r1, %r2, %r3;\nadd.s32 %r4, %r4, %r1;\nshl.b32 %r5, %r4, 3;\nxor.b32 %r2, %r2, %r5;\n"},
    {"compare", "setp.lt.s32 %p1, %r1, %r2;\nselp.b32 %r3, %r1, %r2, %p1;\n"},
    {"fp16 pairs", "fma.rn.f16x2 %r1, %r2, %r3, %r1;\n"},
    {"conversion", "cvt.rn.f16x2.f32 %r1, %f1, %f2;\ncvt.f32.f16 %f3, %h1;\n"},
    {"exponential", "ex2.approx.ftz.f32 %f1, %f2;\nfma.rn.f32 %f2, %f1, %f3, %f4;\n"},
    {"shared memory", "st.shared.f32 [%rd2], %f1;\nld.shared.f32 %f2, [%rd2];\nfma.rn.f32 %f1, %f1, %f2, %f3;\n"},
    {"global memory", "ld.global.f32 %f1, [%rd1];\nfma.rn.f32 %f1, %f1, %f2, %f3;\nst.global.f32 [%rd1], %f1;\n"},
};

// Every thread has its own element of out in %rd1 and of a shared array in %rd2.
static size_t make_mix(char *text, const char *body) {
  int used = snprintf(text, MAX_TEXT,
                      ".version 9.0\n.target sm_90a\n.address_size 64\n"
                      ".visible .entry mix(.param .u64 out, .param .u32 steps) {\n"
                      ".reg .pred %%p<4>;\n.reg .b16 %%h<4>;\n.reg .b32 %%r<8>, %%i, %%n;\n.reg .f32 %%f<8>;\n"
                      ".reg .b64 %%rd<4>;\n.shared .align 4 .b8 tile[%d];\n"
                      "mov.u32 %%i, %%tid.x;\nmov.u32 %%n, %%ctaid.x;\nmad.lo.u32 %%n, %%n, %d, %%i;\n"
                      "ld.param.u64 %%rd1, [out];\nmul.wide.u32 %%rd3, %%n, 4;\nadd.u64 %%rd1, %%rd1, %%rd3;\n"
                      "mov.u64 %%rd2, tile;\nmul.wide.u32 %%rd3, %%i, 4;\nadd.u64 %%rd2, %%rd2, %%rd3;\n"
                      "mov.u32 %%r1, %%i;\nmov.u32 %%r2, 7;\nmov.u32 %%r3, 5;\nmov.u32 %%r4, 0;\nmov.u32 %%r5, 0;\n"
                      "mov.f32 %%f1, 0f3F000000;\nmov.f32 %%f2, 0f3F000000;\nmov.f32 %%f3, 0f3E800000;\n"
                      "mov.f32 %%f4, 0f00000000;\nmov.b16 %%h1, 0x3c00;\nld.param.u32 %%n, [steps];\nloop:\n",
                      4 * THREADS, THREADS);
  for (int i = 0; i < REPEATS; i++) used += snprintf(text + used, MAX_TEXT - (size_t)used, "%s", body);
  used += snprintf(text + used, MAX_TEXT - (size_t)used,
                   "sub.u32 %%n, %%n, 1;\nsetp.ne.u32 %%p2, %%n, 0;\n@%%p2 bra loop;\nret;\n}\n");
  return (size_t)used;
}

int main(int argc, char **argv) {
  if (argc != 2) fail("usage", "bench-emulator bench_fma.ptx");
  size_t size;
  char *ptx = read_file(argv[1], &size);
  printf("full warps, million lane-instructions a second\n");
  printf("  fp32 kernel, one core   %6.0f\n", measure(ptx, size, "fma_chains", 1, true));
  printf("  fp32 kernel, all cores  %6.0f\n", measure(ptx, size, "fma_chains", 0, true));
  printf("on one core               hazards on   off\n");
  for (size_t i = 0; i < sizeof mixes / sizeof mixes[0]; i++) {
    size = make_mix(ptx, mixes[i].body);
    printf("  %-20s    %6.0f  %6.0f\n", mixes[i].name, measure(ptx, size, "mix", 1, true),
           measure(ptx, size, "mix", 1, false));
  }
  free(ptx);
}
