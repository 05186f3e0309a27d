// How stages 12c and up cut the problem into tiles. kernel.cu and stage.c both include this.
#pragma once
#include "../12b-one-pass/tiles.h"

enum { BLOCK_THREADS = THREADS + WARPGROUP, DS_SLOTS = 2, K_FREE = 5 };  // slots for dS, and a named barrier

// Of a thread. Together at most 504, three times what the launch gives to each.
#define KEY_REGISTERS_OF(HEAD_DIM) ((HEAD_DIM) == 64 ? 216 : 208)
#define QUERY_REGISTERS_OF(HEAD_DIM) ((HEAD_DIM) == 64 ? 72 : 88)
