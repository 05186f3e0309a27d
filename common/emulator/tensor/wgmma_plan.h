// What a wgmma.mma_async computes and where its operands are. PTX ISA 9.7.16.5, sparse 9.7.16.6.
#pragma once

#include "product.h"

// Whatever the type, a row of A has 32 bytes, and a column of B as many or, when A is sparse, twice that. A line of it
// is cut into units of 16 bytes; the descriptor counts elements of 16 bits.
enum { ROWS = 64, WARP_ROWS = 16, A_BYTES = 32, MAX_B_BYTES = 64, UNIT = 8, MAX_N = 256, MAX_ACCUMULATORS = 128 };

typedef struct WgmmaPlan {
  int n;
  Product product;
  int b_bytes;             // of a column
  bool half_accumulators;  // fp16: two to a register
  int accumulators;        // registers
  Slot d[MAX_ACCUMULATORS];
  bool a_in_registers;
  Slot a[4];     // registers, or a[0] the descriptor
  Slot b;        // descriptor
  Slot scale_d;  // predicate
  bool scale_d_negated;
  bool a_mn_major, b_mn_major;
  Slot metadata;  // of a sparse A
  int selector;
} WgmmaPlan;

// Fills the plan. False after decoder_error.
bool wgmma_plan_decode(Decoder *decoder, const PtxInstruction *source, WgmmaPlan *plan);
