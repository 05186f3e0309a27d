// What kernel.cu and stage.c both need: tile sizes, threads, and the bytes of shared memory.
#pragma once

enum { WARP_ROWS = 32, ROWS = 128, KEYS = 64, THREADS = 128, SLOTS = 2 };

// A row of a tile, of fp16. The block: its queries, and in each slot a tile of K and one of V.
#define ROW_BYTES(HEAD_DIM) (2 * (HEAD_DIM))
#define SHARED_BYTES(HEAD_DIM) (ROW_BYTES(HEAD_DIM) * (ROWS + 2 * SLOTS * KEYS))
