// How fast the emulator is, and how much memory its hazard checks take: `make bench-emulator` prints it. The argument is
// the PTX of tests/ptx/cuda/bench_fma.cu; the other kernels are those of support/workloads.c.
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "support/workloads.h"

enum { BLOCKS = 64, THREADS = 256, MAX_TEXT = 1 << 20 };
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

// Millions of lane-instructions a second of fma_chains(float *out, int steps) on so many host threads (0: one per core).
static double measure(const char *ptx, size_t size, int host_threads, bool hazards) {
  EmulatorError error = {0};
  Emulator *emulator = emulator_open(&(EmulatorOptions){.hazards = hazards, .threads = host_threads});
  EmulatorModule *module = emulator ? emulator_load(emulator, ptx, size, &error) : NULL;
  if (!module) fail("bench_fma.ptx", emulator ? error.message : "no memory");
  uint64_t out = emulator_alloc(emulator, sizeof(float) * BLOCKS * THREADS);
  double elapsed = 0;
  uint64_t instructions = 0;
  for (int steps = 64; elapsed < SECONDS; steps *= 2) {
    emulator_clear_counters(emulator);
    EmulatorLaunch launch = {
        .kernel = "fma_chains",
        .grid = {BLOCKS, 1, 1},
        .block = {THREADS, 1, 1},
        .arguments = (const void *const[]){&out, &steps},
        .argument_count = 2,
    };
    double start = seconds();
    if (emulator_launch(emulator, module, &launch, &error) != EMULATOR_OK) fail("fma_chains", error.message);
    elapsed = seconds() - start;
    instructions = emulator_counters(emulator).value[COUNTER_THREAD_INST_EXECUTED];
  }
  emulator_close(emulator);
  return (double)instructions / elapsed * 1e-6;
}

// The workload's loop so often that it takes long enough, on one core.
static WorkloadRun measure_workload(const Workload *workload, bool hazards) {
  WorkloadRun run;
  int steps = 1;
  do {
    steps *= 2;
    run = workload_run(workload, &(EmulatorOptions){.hazards = hazards, .threads = 1}, steps);
  } while (run.seconds < SECONDS);
  return run;
}

static const char *unit_of(CounterKind work) {
  switch (work) {
  case COUNTER_TENSOR_FLOPS: return "tensor FLOP";
  case COUNTER_BULK_GLOBAL_READ_BYTES: return "bytes copied";
  default: return "lane-instructions";
  }
}

static void print_workload(const Workload *workload) {
  WorkloadRun on = measure_workload(workload, true), off = measure_workload(workload, false);
  const EmulatorMemory *memory = &on.memory;
  printf("  %-30s%8.0f%8.0f%10.1f%10.1f%9.1f%10.1f\n", workload->name, (double)on.work / on.seconds * 1e-6,
         (double)off.work / off.seconds * 1e-6, (double)memory->program / 1024, (double)memory->shadow / 1024,
         (double)memory->shadow / (double)memory->program, (double)memory->order / 1024);
  fflush(stdout);
}

int main(int argc, char **argv) {
  if (argc != 2) fail("usage", "bench-emulator bench_fma.ptx");
  size_t size;
  char *ptx = read_file(argv[1], &size);
  printf("full warps of fp32, compiled from CUDA: million lane-instructions a second\n");
  double one = measure(ptx, size, 1, true), all = measure(ptx, size, 0, true);
  printf("  one core   %6.0f, without hazard checks %6.0f\n", one, measure(ptx, size, 1, false));
  printf("  all cores  %6.0f, %.2f times one\n", all, all / one);
  free(ptx);
  CounterKind unit = COUNTER_KIND_COUNT;
  for (int i = 0; i < workload_count; i++) {
    if (workloads[i].work != unit) {
      unit = workloads[i].work;
      printf("million %s a second, one core; memory of the program and of the checks in KB\n", unit_of(unit));
      printf("  %-30s%8s%8s%10s%10s%9s%10s\n", "hazard checks", "on", "off", "program", "shadow", "a byte", "order");
    }
    print_workload(&workloads[i]);
  }
}
