// How the work is divided into blocks. Both kernel.cu and stage.c need these numbers.
#pragma once

// In scores a block computes a tile of ROWS by KEYS. In output a thread has one column of V and OUTPUT_ROWS queries.
enum { WARP = 32, ROWS = 64, KEYS = 64, THREADS = 128, OUTPUT_ROWS = 8, SOFTMAX_WARPS = 4 };
