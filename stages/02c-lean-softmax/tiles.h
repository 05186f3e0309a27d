// What kernel.cu and stage.c both need: tile sizes, padding, threads, and the bytes of shared memory.
#pragma once

enum { ROWS = 64, KEYS = 64, PAD = 8, THREADS = 128 };

// Tiles of Q, K and V: fp16, 2 bytes.
#define SHARED_BYTES(HEAD_DIM) ((ROWS + 2 * KEYS) * ((HEAD_DIM) + PAD) * 2)
