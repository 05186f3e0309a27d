// What kernel.cu and stage.c both need: how the work is divided into blocks.
#pragma once

// scores and output: a block makes ROWS rows, KEYS keys at a time.
enum { WARP = 32, ROWS = 64, KEYS = 64, THREADS = 128, SOFTMAX_WARPS = 4 };
