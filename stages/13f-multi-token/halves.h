// Where registers run out: kernels with 32 rows and a head_dim of 128 keep half of Q in shared memory, after the rings.
// kernel.cu and stage.c both include this.
#pragma once

#include "../13-decode/tiles.h"

#define HALF_OF_Q_SHARED(HEAD_DIM, ROWS) ((HEAD_DIM) == 128 && (ROWS) == 32)
enum { HALF_OF_Q_BYTES = 16 * 128 * 2 };  // of a warp
