// The decode functions of this room, for the table of instructions: run/instructions.c.
#pragma once

#include "../warp/decoder.h"

// matrix_memory.c
Decode decode_ldmatrix;
Decode decode_stmatrix;
Decode decode_movmatrix;

// mma.c, wmma.c
Decode decode_mma;
Decode decode_wmma_load;
Decode decode_wmma_mma;
Decode decode_wmma_store;

// wgmma.c
Decode decode_wgmma;
Decode decode_wgmma_group;

// setmaxnreg.c
Decode decode_setmaxnreg;
