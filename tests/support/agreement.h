// One kernel, the same inputs, two devices: a GPU and the emulator, compared bit for bit.
//
// The kernels are in tests/gpu, compiled into GPU_DIR (build/gpu when it is not set). HL_GPU=emulator takes a second
// emulator with another schedule for the GPU, which tests the tests where there is none. Each comparison gives a row:
//
//   ok       wgmma address     B K-major 128B, N = 64, step 2
//   DIFFERS  tensor load       3d f32 64B, -1 -2 5: byte 64: GPU 00000000, emulator 3f800000
//
// HL_AGREEMENT_LOG=FILE collects the rows of all tests there; without, only the rows that are not ok are printed.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device/device.h"

enum { REAL, EMULATED, SIDES };  // the GPU, the emulator

// One launch. The kernel's parameters: (const In *in, Out *out), or (tensor map, in, out).
typedef struct Trial {
  const char *module, *kernel;        // "wgmma_shared": tests/gpu/wgmma_shared.cu
  unsigned blocks, threads, cluster;  // 0 counts as 1; cluster: blocks of a cluster, 0 for none
  size_t shared;                      // bytes of dynamic shared memory
  const void *in;
  size_t in_size;
  const void *out;  // what the output holds before; NULL: bytes of 0xcd
  size_t out_size;
  const TensorMapSpec *map;  // its address counts from the start of `in`, or of `out`
  bool map_of_out;
} Trial;

// Opens both devices; skips the test without HL_GPU. agreement_end fails the test when a row was not ok.
void agreement_begin(void);
void agreement_end(void);

// Runs the trial on both devices and puts what they wrote into results, which the caller frees. False after a row that
// says which device failed and how; the GPU is opened anew after an error. A hazard counts as a failure.
bool agreement_run(const Trial *trial, const char *what, const char *name, uint8_t *results[SIDES]);

// Adds a row. difference is empty when all is well.
void agreement_row(const char *what, const char *name, const char *difference);
// A line that the log has below the next row, with what a reader needs to understand it.
void agreement_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

// Runs the trial, compares the outputs as elements of `width` bytes, and adds the row.
void agreement_compare(const Trial *trial, const char *what, const char *name, int width);

// Whether the two devices accept a tensor map: one row.
void agreement_map(const char *name, const TensorMapSpec *spec);

// Random bits, the same in each run.
uint32_t random_bits(uint64_t *state);
