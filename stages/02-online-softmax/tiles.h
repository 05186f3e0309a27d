// Tile sizes, padding, threads, and the bytes of shared memory. Both kernel.cu and stage.c need these numbers.
#pragma once

enum { ROWS = 64, KEYS = 64, PAD = 8, THREADS = 128 };

// Tiles of Q, K and V (fp16, 2 bytes), weights (fp16) and scores (fp32).
#define SHARED_BYTES(HEAD_DIM) ((ROWS + 2 * KEYS) * ((HEAD_DIM) + PAD) * 2 + ROWS * (KEYS + PAD) * (2 + 4))
