// How the work is divided into blocks. Both kernel.cu and stage.c need these numbers.
#pragma once

// In scores a thread has one key and SCORE_ROWS queries. In output it has one column of V and OUTPUT_ROWS queries.
enum { WARP = 32, KEYS = 128, SCORE_ROWS = 32, OUTPUT_ROWS = 8, SOFTMAX_WARPS = 4 };
