// The warp's matrix product, which mma.sync and wmma.mma share.
#pragma once

#include "fragment.h"
#include "product.h"

// D = C + first * second: line i of D has the products of line i of `first` with each line of `second`. first is A and
// second B; but the tensor core has at least 16 rows, so wmma's m8n32k16 is the product of B's columns with A's rows,
// and a line of its C and D is a column. The fragments of inputs count elements of 16 bits.
typedef struct Multiply {
  Product product;  // a and b are first and second
  int steps;        // along K, which follow each other
  Fragment first, second, c, d;
  Slot metadata;  // of a sparse A
  int selector;
} Multiply;

// Executes the Multiply in inst->extra.
Execute multiply_fragments;

// The same of f64, m8n8k4 or m16n8kK: mma and wmma, in multiply_f64.c. The operands are lists of registers, or one of
// them.
DecodeResult decode_multiply_f64(Decoder *decoder, const PtxInstruction *source, int m, int k, Inst *inst);
