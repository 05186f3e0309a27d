// The work of a launch whose sequences differ in length, and where their keys lie. The stages from 13d on share this;
// their kernel.cu and stage.c both include it.
#pragma once

#include "../13-decode/tiles.h"

enum { COMBINE_WARPS = 16, COMBINE_THREADS = COMBINE_WARPS * WARP };  // of a block that combines, at most

// Elements from one sequence, head and query to the next.
typedef struct Strides {
  long long batch, head, query;
} Strides;

typedef struct Work {
  Problem problem;  // keys: of the longest sequence
  Strides q, o;
  int batch;
  int queries;             // of a sequence, in each head
  IntPointer lengths;      // [batch]: the keys of each sequence; 0: all have problem.keys
  IntPointer block_table;  // [batch][table_row]: the page that has a sequence's keys from i * page on; 0: the cache is
  int table_row;           // not in pages, and sequence b is page b
  int page_shift;          // a page has 2^page_shift keys
  int boxes;               // that make up a tile: more than one where a page is smaller
} Work;

// A worker's keys may begin in the middle of a head, and end in the middle of another. What it has of these two lies
// here, [worker][2][row], with O as [head_dim] for each row. A row is a query of a key head. lse is the logarithm to
// base 2 of the sum of 2^score.
typedef struct Leftovers {
  FloatOutput o, lse;
  int workers;
} Leftovers;
