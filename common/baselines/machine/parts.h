// The parts of the program around the kernels.
//
//   quantities.c  what is measured: a table, and what each kernel's result must be
//   bench.c       memory for the kernels, and their launches
//   measure.c     on a GPU: latencies and rates
//   stage.c       checks every kernel, then measures; report and CSV
#pragma once

#include "harness/harness.h"
#include "machine.h"

// ---- quantities.c ----

// What lies in memory before a launch.
typedef enum Content {
  WORDS,      // word i is i
  NEW_WORDS,  // the same, and nothing of it is in the L2 cache
  ONE,        // word 0 is 1
  RINGS,      // in each line of 128 bytes pointers that form a ring; each launch begins in another line
  CHAIN,      // each pointer leads to another line, and none of them is in the L2 cache
  CONTENTS
} Content;

typedef struct Quantity Quantity;
// What a thread's result must be after `steps` steps of a kernel that does not follow a chain.
typedef uint32_t Expected(const Quantity *quantity, uint32_t thread, uint32_t steps);

struct Quantity {
  const char *name, *kernel;
  bool is_rate;
  const char *unit;
  int threads, steps;  // steps of a round
  double work;         // of a step: how many operations, bytes or FLOP all threads do; of a latency, how many links
  int rounds;          // on a GPU
  Content content;
  Expected *expected;
};

extern const Quantity quantities[];
extern const int quantity_count;

// Whether a result is what it must be: exactly, but for ex2, which is approximate.
bool quantity_agrees(const Quantity *quantity, uint32_t got, uint32_t expected);

// ---- bench.c ----

typedef struct Bench {
  const Session *session;
  Device *device;
  size_t size, flush_size;  // bytes of memory, and how many displace all that is in the L2 cache
  DeviceAddress memory, destination, flush, clocks, results;
  char *content;  // what lies in memory
  Content current;
} Bench;

bool bench_open(Bench *bench, const Session *session);
void bench_close(Bench *bench);
// Launches the quantity's kernel, on the memory that it wants. launches: how many times that was done before.
bool bench_launch(Bench *bench, const Quantity *quantity, int rounds, int launches);
// What a thread's result must be.
uint32_t bench_expected(const Bench *bench, const Quantity *quantity, uint32_t thread, uint32_t steps);

// A read of `size` bytes of memory, `rounds` times, by a block on each SM; or a copy to destination, by a block for
// each piece. With results of the read, one for each of its threads.
typedef struct Whole {
  DeviceAddress memory, destination;  // destination 0: a read
  size_t size;
  int rounds;
} Whole;

bool bench_launch_whole(const Bench *bench, const Whole *whole);
// A kernel of one thread that wants no memory.
bool bench_launch_one(const Bench *bench, const char *kernel, int rounds);

// ---- measure.c ----

// Measures, reports, and writes the CSV when there is one. Returns the exit code.
int measure_all(Bench *bench);
