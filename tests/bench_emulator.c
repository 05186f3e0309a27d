// How fast the emulator is, and how much memory its hazard checks take: `make bench-emulator` prints it. The argument
// is the PTX of tests/ptx/cuda/bench.cu; the other kernels are those of support/workloads.c. What runs on one core is
// timed in CPU time, so that other work on the machine matters little.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "support/workloads.h"

enum { BLOCKS = 64, THREADS = 256, MAX_TEXT = 1 << 20 };
#define SECONDS 0.5  // a measured launch takes at least so long

static double seconds(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
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

// ---- kernels compiled from CUDA ----

typedef struct Compiled {
  const char *ptx;
  size_t size;
} Compiled;

// What a launch did in how much time.
typedef struct Timed {
  double seconds;
  uint64_t instructions;  // of threads
} Timed;

// Launches a kernel of up to three square matrices and their size, or of an array and a number: two buffers unless it
// asks for fewer are zeros that the host wrote.
static Timed launch_compiled(Compiled compiled, const char *kernel, const unsigned grid[2], const unsigned block[2],
                             int buffers, size_t bytes, int number, int host_threads, bool hazards) {
  EmulatorError error = {0};
  Emulator *emulator =
      emulator_open(&(EmulatorOptions){.hazards = hazards, .threads = host_threads, .tunes_malloc = true});
  EmulatorModule *module = emulator ? emulator_load(emulator, compiled.ptx, compiled.size, &error) : NULL;
  if (!module) fail("bench.ptx", emulator ? error.message : "no memory");
  uint64_t addresses[3];
  const void *arguments[4];
  for (int i = 0; i < buffers; i++) {
    addresses[i] = emulator_alloc(emulator, bytes);
    arguments[i] = &addresses[i];
    if (i < buffers - 1) emulator_fill(emulator, addresses[i], 0, bytes);
  }
  arguments[buffers] = &number;
  EmulatorLaunch launch = {.kernel = kernel,
                           .grid = {grid[0], grid[1], 1},
                           .block = {block[0], block[1], 1},
                           .arguments = arguments,
                           .argument_count = buffers + 1};
  clockid_t clock = host_threads == 1 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC;
  double start = seconds(clock);
  if (emulator_launch(emulator, module, &launch, &error) != EMULATOR_OK) fail(kernel, error.message);
  Timed timed = {seconds(clock) - start, emulator_counters(emulator).value[COUNTER_THREAD_INST_EXECUTED]};
  int found;
  emulator_hazards(emulator, &found);
  if (found) fail(kernel, "a hazard in a kernel that has none");
  emulator_close(emulator);
  return timed;
}

// Millions of lane-instructions a second of fma_chains on so many host threads (0: one per core).
static double measure_fma(Compiled compiled, int host_threads, bool hazards) {
  Timed timed = {0};
  for (int steps = 64; timed.seconds < SECONDS; steps *= 2)
    timed = launch_compiled(compiled, "fma_chains", (unsigned[]){BLOCKS, 1}, (unsigned[]){THREADS, 1}, 1,
                            sizeof(float) * BLOCKS * THREADS, steps, host_threads, hazards);
  return (double)timed.instructions / timed.seconds * 1e-6;
}

// Millions of elements a second that `initialise` writes, in memory that nothing has touched.
static double measure_initialise(Compiled compiled, bool hazards) {
  Timed timed = {0};
  int size = 1 << 18;
  do {
    size *= 2;
    timed = launch_compiled(compiled, "initialise", (unsigned[]){(unsigned)size / THREADS, 1}, (unsigned[]){THREADS, 1},
                            1, sizeof(float) * (size_t)size, size, 1, hazards);
  } while (timed.seconds < SECONDS);
  return (double)size / timed.seconds * 1e-6;
}

// Millions of multiply-adds a second of `matmul` with blocks of that shape.
static double measure_matmul(Compiled compiled, unsigned columns, unsigned rows, bool hazards) {
  enum { SIZE = 192 };
  Timed timed = launch_compiled(compiled, "matmul", (unsigned[]){SIZE / columns, SIZE / rows},
                                (unsigned[]){columns, rows}, 3, sizeof(float) * SIZE * SIZE, SIZE, 1, hazards);
  return (double)SIZE * SIZE * SIZE / timed.seconds * 1e-6;
}

// ---- one kind of work after another ----

// The workload's loop so often that it takes long enough, on one core.
static WorkloadRun measure_workload(const Workload *workload, bool hazards) {
  WorkloadRun run;
  int steps = 1;
  do {
    steps *= 2;
    run = workload_run(workload, &(EmulatorOptions){.hazards = hazards, .threads = 1, .tunes_malloc = true}, steps);
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

static void print_compiled(Compiled compiled) {
  printf("compiled from CUDA, million a second\n");
  double one = measure_fma(compiled, 1, true), all = measure_fma(compiled, 0, true);
  printf("  %-46s%8s%8s\n", "hazard checks", "on", "off");
  printf("  %-46s%8.0f%8.0f\n", "lane-instructions of fp32, one core", one, measure_fma(compiled, 1, false));
  printf("  %-46s%8.0f%8s\n", "    all cores", all, "");
  printf("  %-46s%8.1f%8.1f\n", "elements initialised, one a thread, one core", measure_initialise(compiled, true),
         measure_initialise(compiled, false));
  for (unsigned columns = 16; columns <= 32; columns *= 2)
    printf("  multiply-adds of a matrix product, %2u x %2u %8s%8.1f%8.1f\n", columns, THREADS / columns, "",
           measure_matmul(compiled, columns, THREADS / columns, true),
           measure_matmul(compiled, columns, THREADS / columns, false));
  fflush(stdout);
}

int main(int argc, char **argv) {
  if (argc != 2 && argc != 3) fail("usage", "bench-emulator bench.ptx [WORKLOAD]");
  const char *only = argc == 3 ? argv[2] : NULL;
  Compiled compiled;
  char *ptx = read_file(argv[1], &compiled.size);
  compiled.ptx = ptx;
  if (!only) print_compiled(compiled);
  free(ptx);
  CounterKind unit = COUNTER_KIND_COUNT;
  for (int i = 0; i < workload_count; i++) {
    if (only && !strstr(workloads[i].name, only)) continue;
    if (workloads[i].work != unit) {
      unit = workloads[i].work;
      printf("million %s a second, one core; memory of the program and of the checks in KB\n", unit_of(unit));
      printf("  %-30s%8s%8s%10s%10s%9s%10s\n", "hazard checks", "on", "off", "program", "shadow", "a byte", "order");
    }
    print_workload(&workloads[i]);
  }
}
