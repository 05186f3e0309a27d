// What kernel.cu and stage.c both need: tile sizes, threads, slots, and the bytes of shared memory.
#pragma once

enum { ROWS = 128, KEYS = 64, THREADS = 128, SLOTS = 2 };

// A row of a tile, of fp16. A slot: one tile of K and one of V. The block: its queries, and the slots.
#define ROW_BYTES(HEAD_DIM) (2 * (HEAD_DIM))
#define SLOT_BYTES(HEAD_DIM) (2 * KEYS * ROW_BYTES(HEAD_DIM))
#define SHARED_BYTES(HEAD_DIM) (ROWS * ROW_BYTES(HEAD_DIM) + SLOTS * SLOT_BYTES(HEAD_DIM))
