// What an access of a warp counts as: requests, bank conflicts, sectors.
#pragma once

#include "memory.h"

enum { SECTOR_BYTES = 32 };  // what memory outside an SM is reached in

// Counts one warp access: bank conflicts of shared, sectors of global memory.
void count_access(Warp *warp, const Inst *inst, Space space, Mask mask, const uint64_t addresses[LANES], int size,
                  AccessKind kind);
// The same of an atomic operation that is a loop of compare-and-swap where it reaches the own block's shared memory.
void count_atomic_loop(Warp *warp, const Inst *inst, Space space, Mask mask, const uint64_t addresses[LANES], int size);
// The same where lane 8 * i + r gives the address of row r of matrix i, 16 bytes: shared memory serves a matrix at a
// time.
void count_matrix_rows(Warp *warp, const Inst *inst, Space space, Mask mask, const uint64_t addresses[LANES],
                       AccessKind kind);
