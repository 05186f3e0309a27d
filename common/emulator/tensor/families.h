// The families of instructions of this room: each is decoded by one function, in the file of its name.
#pragma once

#include "../warp/decoder.h"

DecodeFamily decode_matrix_memory;  // ldmatrix stmatrix movmatrix
DecodeFamily decode_mma;            // mma.sync
DecodeFamily decode_wmma;           // wmma.load, wmma.mma, wmma.store
DecodeFamily decode_wgmma;          // wgmma and its fence, commit and wait
DecodeFamily decode_setmaxnreg;
