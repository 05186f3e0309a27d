// What the blocks of a split leave for the second kernel. Both kernel.cu and stage.c include this.
#pragma once

#include "../13-decode/tiles.h"

enum { SPLITS_AT_MOST = 256 };

// Of each query of each sequence, and of each of `splits` parts of the keys: O over these keys, [query][split]
// [head_dim], and the logarithm to base 2 of the sum of 2^score, [query][split].
typedef struct Parts {
  FloatOutput o, lse;
  int splits;
} Parts;
