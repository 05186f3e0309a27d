// Kernels written by the tests of the matrix instructions, and the numbers they compute with.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "emulator/emulator.h"

// ---- kernels ----

enum { TILE_BYTES = 16384, TEXT_SIZE = 8192, WARP = 32 };

// A kernel's body, run as one: it finds the addresses of in and out in %rd0 and %rd1, the thread's index in %r0, and
// the address of 16 KiB of shared memory in %r1 (generic: %rd2).
typedef struct KernelRun {
  const char *body;
  int threads, blocks;  // 0: 32 and 1
  const void *in;
  size_t in_size;
  bool shared;  // shared memory is filled with the last 16 KiB of in
  void *out;    // receives out_size bytes, zero where the kernel writes nothing
  size_t out_size;
  EmulatorStatus status;  // results, from here
  int hazard_count;
  Hazard hazard;  // the first
  EmulatorCounters counters;
} KernelRun;

void run_kernel(KernelRun *run);
// Expects no hazard.
void run_kernel_clean(KernelRun *run);

typedef struct HazardTest {
  const char *body;
  HazardKind kind;  // HAZARD_KIND_COUNT: none
  int threads, blocks;
  bool stops;
  const char *detail;  // words of its report, or NULL
} HazardTest;

#define EXPECT_HAZARDS(tests) expect_hazards(tests, (int)(sizeof(tests) / sizeof *(tests)))
void expect_hazards(const HazardTest *tests, int count);

// ---- their text ----

typedef struct KernelText {
  char text[TEXT_SIZE];
  size_t used;
} KernelText;

void append_text(KernelText *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
// "{%r8, %r9}": count registers from the first on.
void append_vector(KernelText *text, char kind, int first, int count);
// Loads or stores count registers of each lane at [address + 4 * count * tid].
void append_registers(KernelText *text, bool load, const char *address, char kind, int first, int count);

// ---- numbers ----

typedef enum Type { F16, BF16, F32 } Type;
extern const char *const type_names[];

// The bits of an integer of magnitude below 256, which every type holds exactly, and the value of any bits.
uint32_t bits_of(Type type, double value);
double value_of(Type type, uint32_t bits);

enum { MAX_M = 32, MAX_N = 32, MAX_K = 16 };

// D = A * B + C with integers small enough for every type.
typedef struct Problem {
  int m, n, k;
  double a[MAX_M][MAX_K], b[MAX_K][MAX_N], c[MAX_M][MAX_N], d[MAX_M][MAX_N];
} Problem;

Problem make_problem(int m, int n, int k);
