// Stage 05b's tensor, and the parameters of its kernels. kernel.cu and the host's files include this.
#pragma once

#include <stdint.h>

#include "harness/kernel.h"

// The tensor: fp16, [MATRICES][ROWS][COLUMNS]. A row has 144 bytes and begins PITCH bytes after the previous row. The
// bytes between two rows belong to no element. Matrices follow each other without a gap.
enum { COLUMNS = 72, ROWS = 20, MATRICES = 2, PITCH = 160 };

enum { THREADS = 128, ELEMENT = 2, CHUNK = 16, IN_CHUNK = CHUNK / ELEMENT };  // bytes; elements in a chunk
enum { MAX_TILE = 32 * 1024 };                                                // bytes: the largest box
enum { LOOKS = 8, SHARED_BYTES = MAX_TILE + 8 };  // of the kernel phases; of a block: struct Shared in kernel.cu

// What one load moves. The tensor map has the same numbers; the kernel needs them to count and to find the bytes.
typedef struct Box {
  int columns,
      rows;     // elements; a row of the box is a multiple of 16 bytes, and as long as the swizzle if there is one
  int swizzle;  // bytes: 32, 64, 128; 0: none
} Box;

// The coordinates of a box's first element. The hardware wants x to be a multiple of 16 bytes.
typedef struct Corner {
  int x, y, z;  // column, row, matrix
} Corner;

// Whether a wait for a phase of parity 0 or of parity 1 would end at once: 1, 0, or NOT_ASKED.
enum { NOT_ASKED = -1 };

typedef struct Look {
  int ends[2];
} Look;
