// How stage 20 cuts the product into tiles. kernel.cu and stage.c both include this.
#pragma once

#include "harness/kernel.h"

enum { WARP = 32, WARPGROUP = 128, WARPGROUP_ROWS = 64 };
enum { CONSUMERS = 2, THREADS = (1 + CONSUMERS) * WARPGROUP };
enum { ROWS = CONSUMERS * WARPGROUP_ROWS, COLUMNS = 256 };  // of a tile of C
enum { DEPTH = 64 };                                        // of the tiles of A and B in a slot: one panel
enum { SLOTS = 4 };
enum { STORE_ROWS = 16, STORE_PANELS = 2 };  // of a box of C: a warp's rows; how many boxes each warp has room for
enum { GROUP = 16 };                         // rows of tiles that are worked on together

// Registers of a thread: of a consumer, and in the producer's warpgroup.
enum { CONSUMER_REGISTERS = 240, PRODUCER_REGISTERS = 24 };

// Bytes of a block's shared memory: struct Shared in kernel.cu.
enum {
  SLOT_BYTES = 2 * DEPTH * (ROWS + COLUMNS),
  STORE_BYTES = 2 * 64 * STORE_ROWS,
  SHARED_BYTES = SLOTS * SLOT_BYTES + CONSUMERS * 4 * STORE_PANELS * STORE_BYTES + 16 * SLOTS
};

// The kernel's parameters. Matrices: how TMA finds them in global memory, A [m][k], B [n][k], C [m][n].
typedef struct Matrices {
  TensorMap a, b, c;
} Matrices;

typedef struct Problem {
  int rows, columns;  // of tiles in C
  int depth;          // of tiles along k
} Problem;
