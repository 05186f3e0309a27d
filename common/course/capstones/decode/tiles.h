// What kernel.cu and stage.c share: the sizes of tiles, and the kernel's parameters. All of it is yours to change, but
// for read.h: the program times its kernels beside yours on a GPU.
#pragma once

#include "harness/kernel.h"

#ifdef __CUDACC__
#include <cuda_bf16.h>

#include "harness/read.h"
typedef __nv_bfloat16 *Bf16Pointer;
#else
typedef DeviceAddress Bf16Pointer;
#endif

enum { HEAD_DIM = 128 };
enum { KEYS = 16 };                // of a box: a page has as many, or a multiple
enum { THREADS = 128 };            // of a block
enum { SHARED_BYTES = 32 << 10 };  // dynamic shared memory; 227 KiB at most

// How TMA finds keys and values in global memory: [page][key head][HEAD_DIM / 64][key of the page][64]. A box has KEYS
// keys with all their columns, in panels of 64 with the 128-byte swizzle. Without pages a sequence is a single page.
typedef struct Maps {
  TensorMap k, v;
} Maps;

typedef struct Problem {
  Bf16Pointer q, o;        // [batch][key heads][group][HEAD_DIM]
  int kv_heads, group;     // group: query heads that share a key head, 1 to 16
  int keys;                // of the longest sequence that there may be
  float scale;             // log2(e) / sqrt(HEAD_DIM): exp(x) is computed as 2^(x log2 e)
  IntPointer lengths;      // [batch]: the keys of each sequence; 0: all have `keys`
  IntPointer block_table;  // [batch][table_row]: entry i is the page of a sequence's keys from i * page on; 0: no pages
  int table_row, page;     // page: its keys, a power of two
} Problem;
