// What kernel.cu and stage.c share: the sizes of tiles, and the kernel's parameters. All of it is yours to change.
#pragma once

#include "harness/kernel.h"

enum { ROWS = 128, COLUMNS = 256 };  // of a tile of C
enum { DEPTH = 64 };                 // columns of A and B in a box: 128 bytes, as wide as the swizzle
enum { STORE_ROWS = 64 };            // of a box of C
enum { THREADS = 384 };
enum { SHARED_BYTES = 200 << 10 };  // dynamic shared memory; 227 KiB at most

// How TMA finds the matrices in global memory: A [m][k], B [n][k], C [m][n].
typedef struct Matrices {
  TensorMap a, b, c;
} Matrices;

typedef struct Problem {
  int m, n, k;
} Problem;
