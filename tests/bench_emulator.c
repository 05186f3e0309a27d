// How many lane-instructions a second the emulator executes: `make bench-emulator` prints it. The argument is the PTX of
// tests/ptx/cuda/bench_fma.cu.
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "emulator/emulator.h"

enum { BLOCKS = 64, THREADS = 256 };

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
  char *text = malloc(1 << 20);
  *size = text ? fread(text, 1, 1 << 20, file) : 0;
  fclose(file);
  return text;
}

// Millions of lane-instructions a second on so many host threads (0: one per core), over a launch of at least a second.
static double measure(const char *ptx, size_t size, int host_threads) {
  EmulatorError error;
  Emulator *emulator = emulator_open(&(EmulatorOptions){.hazards = true, .threads = host_threads});
  EmulatorModule *module = emulator ? emulator_load(emulator, ptx, size, &error) : NULL;
  if (!module) fail("load", emulator ? error.message : "no memory");
  uint64_t out = emulator_alloc(emulator, sizeof(float) * BLOCKS * THREADS);
  double elapsed = 0;
  uint64_t instructions = 0;
  for (int steps = 256; elapsed < 1; steps *= 2) {
    emulator_clear_counters(emulator);
    EmulatorLaunch launch = {
        .kernel = "fma_chains",
        .grid = {BLOCKS, 1, 1},
        .block = {THREADS, 1, 1},
        .arguments = (const void *const[]){&out, &steps},
        .argument_count = 2,
    };
    double start = seconds();
    if (emulator_launch(emulator, module, &launch, &error) != EMULATOR_OK) fail("launch", error.message);
    elapsed = seconds() - start;
    instructions = emulator_counters(emulator).value[COUNTER_THREAD_INST_EXECUTED];
  }
  emulator_close(emulator);
  return (double)instructions / elapsed * 1e-6;
}

int main(int argc, char **argv) {
  if (argc != 2) fail("usage", "bench-emulator bench_fma.ptx");
  size_t size;
  char *ptx = read_file(argv[1], &size);
  printf("full-warp fp32 kernel, hazards on, million lane-instructions a second\n");
  printf("  one core   %6.0f\n", measure(ptx, size, 1));
  printf("  all cores  %6.0f\n", measure(ptx, size, 0));
  free(ptx);
}
