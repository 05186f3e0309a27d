// The parts of stage 04's host side.
//
//   stage.c     options, and what happens in which order
//   check.c     launches every kernel once and compares each bit with the model (model.h)
//   measure.c   on a GPU: latency, one launch, the busy machine
//   explain.c   --explain: what a descriptor says, and where things lie
#pragma once

#include "harness/harness.h"

// As in kernel.cu.
enum { WARPGROUP = 128, LINES = 64, LINE_BYTES = 128, SLICES = 4, TRIES = 4, MAX_N = 256, CHAIN = 256 };

enum { SWIZZLES = 4 };

typedef struct SwizzleMode {
  int code;  // in a descriptor
  const char *name;
} SwizzleMode;

extern const SwizzleMode swizzle_modes[SWIZZLES];

// A kernel of many wgmmas: m64nNk16, A from shared memory or registers.
typedef struct Form {
  int n;
  bool a_in_registers;
  int warpgroups;  // that a block can have at most
} Form;

enum { FORMS = 6 };

extern const Form forms[FORMS];

// Inputs on the host and on the device: A is 64 lines of 64 numbers, B 256 (columns of B). The first 64 columns of B
// also the other way round, as lines along N.
typedef struct Inputs {
  const Half *a, *b;
  Half b_across[LINES * LINES];
  float c[SLICES * LINES * LINES];  // what D is before D += A B
  DeviceAddress a_device, b_device, b_across_device;
} Inputs;

// The descriptors that the kernels have made: [B MN-major][swizzle][slice][A, B].
typedef uint64_t Descriptors[2][SWIZZLES][SLICES][2];

// "throughput_shared_64", the kernel of this form.
DeviceKernel *form_kernel(const Session *session, const Form *form, const char *what);
// Bytes of shared memory for A and for B of n columns.
size_t tiles_size(int n);

// ---- check.c ----

enum { SHOWN = 4 };

typedef struct Mismatch {
  char place[160];  // which kernel, which element
  float got, expected;
} Mismatch;

typedef struct Comparison {
  uint64_t products, compared, wrong;  // wgmmas of one kernel each; numbers
  uint64_t wrong_of[2][2][SWIZZLES];   // of those: [A in registers][B MN-major][swizzle]
  uint64_t chained, chain_wrong;       // numbers that many wgmmas have made
  double max_error, sum_error;         // of single wgmmas, against fp64
  uint64_t conflicts[SWIZZLES];        // bank conflicts of the stores that fill tiles, on the emulator
  Mismatch shown[SHOWN];
  int shown_count;
} Comparison;

// Launches every form of product, all slices, D = A B and D += A B. False when a call of the device failed.
bool check_products(const Session *session, const Inputs *inputs, Descriptors descriptors, Comparison *result);
// Launches every kernel of latency, and of throughput for a few rounds.
bool check_chains(const Session *session, const Inputs *inputs, Comparison *result);

// ---- measure.c ----

// Measures, reports, and writes the CSV when there is one. Returns the exit code.
int measure_all(const Session *session, const Inputs *inputs);

// ---- explain.c ----

void explain_descriptors(FILE *out, Descriptors descriptors);
// Tells what a descriptor says, in both readings. False when neither can be right.
bool explain_bits(FILE *out, uint64_t bits);
