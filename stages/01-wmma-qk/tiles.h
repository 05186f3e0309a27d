// What kernel.cu and stage.c both need: how the work is divided into blocks.
#pragma once

// scores: a block makes a tile of ROWS by KEYS. output: a thread keeps one column of V and meets OUTPUT_ROWS queries.
enum { WARP = 32, ROWS = 64, KEYS = 64, THREADS = 128, OUTPUT_ROWS = 8, SOFTMAX_WARPS = 4 };
