// How stage 05 cuts the problem into tiles. kernel.cu and stage.c both include this.
#pragma once

enum { WARPGROUP = 128, WARPGROUP_ROWS = 64, WARPGROUPS = 2, THREADS = WARPGROUPS * WARPGROUP };
enum { ROWS = WARPGROUPS * WARPGROUP_ROWS };  // queries of a block
enum { SLOTS = 2 };                           // for tiles of K, and for tiles of V

// Keys of a tile. For D = 64 they are few enough that the registers of two blocks fit on an SM.
#define KEYS_OF(HEAD_DIM) ((HEAD_DIM) == 64 ? 64 : 128)

// Bytes of a block's shared memory: struct Shared in kernel.cu.
#define SHARED_BYTES(HEAD_DIM) (2 * (HEAD_DIM) * (ROWS + 2 * SLOTS * KEYS_OF(HEAD_DIM)))
