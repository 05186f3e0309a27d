// Runs whole kernels, written as PTX text, on the emulator: for the tests of instructions that need several threads.
//
// The kernels are in tests/pairs. A kernel begins with a line "== its name", and may be two in one: a faulty one, and
// its repaired twin.
//
//   == too few: wrong expect_tx, "too few"; block 128        the hazard, words of the report, the launch's shape
//   INIT bar, 1                                              an abbreviation: run_kernel.c has them all
//   F:EXPECT bar, 256 // here                                of the faulty one; the line that the report names
//   R:EXPECT bar, 512                                        of the repaired one
//   LOAD tile, 0, 0, bar
//   WAIT bar, 0
//
// The shape is that of one block of 64 threads without a cluster where nothing is said.
//
// All kernels have %m %i %o, the addresses of a tensor map, of `in` and of `out`, each of 4096 bytes; %t, the thread;
// %p, that it is the first, %w0 and %w1, that it is of warp 0, or not. The map shows `in` as 32 x 32 elements of u32,
// in boxes of 32 x 4. In shared memory there are tile, 8 KiB, and bar, four mbarriers. %a %v %n %c, %h, %s %s1, %q %x
// are free.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "emulator/emulator.h"

enum { SCHEDULES = 7 };  // seeds 0 to 6

#define PTX_HEADER ".version 8.6\n.target sm_90a\n.address_size 64\n"

typedef struct Machine {
  Emulator *emulator;
  EmulatorModule *module;
  const char *text;
} Machine;

// An emulator with the text loaded, which must live as long; fails the test when it does not decode.
Machine machine_open(const char *text, uint64_t schedule);
void machine_close(Machine *machine);
// Global memory with the bytes in it; NULL for memory that nobody has written.
uint64_t machine_upload(Machine *machine, const void *bytes, size_t size);
void machine_download(Machine *machine, void *bytes, uint64_t address, size_t size);

typedef struct Shape {
  unsigned grid, block, cluster;  // cluster 0: none
} Shape;

// Launches the kernel "test".
EmulatorStatus machine_launch(Machine *machine, Shape shape, const void *const *arguments, int count);
// False, and the test fails, with the reports, when there is a hazard.
bool expect_clean(Machine *machine);

typedef struct Map {
  _Alignas(64) uint8_t bytes[EMULATOR_TENSOR_MAP_BYTES];
} Map;

// A tensor map; fails the test when the encoder refuses.
Map make_map(const EmulatorTensorSpec *spec);

// ---- tests/pairs ----

// Runs the pairs of a file under every schedule: the faulty ones must be reported at their lines, the repaired ones be
// silent and give the same output every time.
void run_pairs(const char *file);

// What a thread must have written to word 64 * block + thread of `out`; `in` holds input_word of each index.
typedef uint32_t OutputWord(unsigned block, unsigned thread);
uint32_t input_word(uint32_t index);

// Runs one kernel of a file that has no fault under every schedule.
void run_and_check(const char *file, const char *name, unsigned grid, unsigned cluster, OutputWord *expect);
