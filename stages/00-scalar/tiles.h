// What kernel.cu and stage.c both need: how the work is divided into blocks.
#pragma once

// scores: a thread keeps one key and meets SCORE_ROWS queries. output: it keeps one column of V and meets OUTPUT_ROWS.
enum { WARP = 32, KEYS = 128, SCORE_ROWS = 32, OUTPUT_ROWS = 8, SOFTMAX_WARPS = 4 };
