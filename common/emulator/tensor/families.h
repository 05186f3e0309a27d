// The decode functions of this room, for the table of instructions: run/instructions.c.
#pragma once

#include "../warp/decoder.h"

// matrix_memory.c
DecodeFunction decode_ldmatrix;
DecodeFunction decode_stmatrix;
DecodeFunction decode_movmatrix;

// mma.c, wmma.c
DecodeFunction decode_mma;
DecodeFunction decode_wmma_load;
DecodeFunction decode_wmma_mma;
DecodeFunction decode_wmma_store;

// wgmma.c
DecodeFunction decode_wgmma;
DecodeFunction decode_wgmma_group;

// setmaxnreg.c
DecodeFunction decode_setmaxnreg;
