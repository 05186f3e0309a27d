// How stage 12e cuts the problem into tiles: as 12d. kernel.cu and stage.c both include this.
#pragma once
#include "../12d-late-dk/tiles.h"

// Of a thread, in the place of 12c's: 72 are enough for the query warpgroup at both head dimensions.
#undef KEY_REGISTERS_OF
#undef QUERY_REGISTERS_OF
#define KEY_REGISTERS_OF(HEAD_DIM) 216
#define QUERY_REGISTERS_OF(HEAD_DIM) 72
