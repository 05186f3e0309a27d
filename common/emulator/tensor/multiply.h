// The warp's matrix product, which mma.sync and wmma.mma share.
#pragma once

#include "fragment.h"
#include "tensor_core.h"

// D = C + first * second: line i of D has the products of line i of `first` with each line of `second`. first is A and
// second B; but the tensor core has at least 16 rows, so wmma's m8n32k16 is the product of B's columns with A's rows,
// and a line of its C and D is a column.
typedef struct Multiply {
  TensorFormat format;  // of first and second
  Fragment first, second, c, d;
} Multiply;

// Executes the Multiply in inst->extra.
Execute multiply_fragments;
