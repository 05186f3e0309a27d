// What kernel.cu and stage.c share: the sizes of tiles, and the kernel's parameters. All of it is yours to change.
#pragma once

#include "harness/kernel.h"

enum { HEAD_DIM = 96 };
enum { ROWS = 64, KEYS = 64 };      // of a tile of queries, and of a tile of keys or values
enum { COLUMNS = 16 };              // of a box: 16, 32 or 64, with a swizzle of 32, 64 or 128 bytes
enum { STORE_ROWS = 16 };           // of a box of the output
enum { THREADS = 128 };             // of a block
enum { SHARED_BYTES = 100 << 10 };  // dynamic shared memory; 227 KiB at most

// How TMA finds the tensors in global memory: [heads of all batches][seqlen][HEAD_DIM].
typedef struct Tensors {
  TensorMap q, k, v, o;
} Tensors;

typedef struct Problem {
  int seqlen, heads;  // heads of all batches
  int window;         // query i sees the keys from max(0, i - window + 1) to i
  float scale;        // log2(e) / sqrt(HEAD_DIM): exp(x) is computed as 2^(x log2 e)
} Problem;
