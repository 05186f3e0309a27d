// What the kernels of ./baseline-machine share with its program.
#pragma once

#include "harness/kernel.h"
#include <stdint.h>

#ifdef __CUDACC__
typedef int64_t *ClockPointer;
typedef uint32_t *WordPointer;
#else
typedef DeviceAddress ClockPointer, WordPointer;
#endif

// A kernel runs its round of steps again and again: once to warm up, `rounds` times, and then twice as many times. It
// stores the clocks of each of these runs. The second and the third differ by `rounds` rounds and by nothing else.
enum { WARM, ONCE, TWICE, RUNS, ALL_RUNS = 1 + 1 + 2 };

// The steps of a round. Long rounds hide the loop; 4 * SHUFFLES is not a multiple of 32, nor CHASES of the ring's
// length.
enum {
  CALCULATIONS = 256,
  SHUFFLES = 129,
  CHASES = 32,
  LOADS = 8,
  MEETINGS = 32,
  COPIES = 8,
  GROUPS = 32,
  PRODUCTS = 8
};

enum { RING = 15 };                              // pointers of 8 bytes that lie in one line of 128 bytes
enum { WORD_ROWS = 33 };                         // the ring in shared memory: rows of 32 words
enum { TILE_ROWS = 64, TILE_BYTES = 64 * 128 };  // of a TMA load: 64 rows of 64 numbers of 2 bytes
enum { RATE_THREADS = 1024, RATE_CHAINS = 4 };   // so many calculations are under way in an SM: 4096
enum { MMA_THREADS = 512 };
enum { READERS = 1024, READS = 8, CHUNK_BYTES = 16 * READS * READERS };  // what a block reads, 16 bytes a thread
enum { COPIERS = 512, COPY_READS = 4, PIECE_BYTES = 16 * COPY_READS * COPIERS };  // and what one copies

// The parameters of every kernel.
typedef struct Arguments {
  TensorMap tiles;          // all of memory as rows of 64 numbers of 2 bytes
  ClockPointer clocks;      // RUNS of them
  WordPointer results;      // one for each thread
  BytePointer memory;       // what the kernel reads
  BytePointer destination;  // where `copy` writes
  uint64_t size;            // bytes of memory
  uint32_t one;             // 1, which the compiler cannot know
  int rounds;
} Arguments;
