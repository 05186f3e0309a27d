// The families of instructions of this room: each is decoded by one function, in the file of its name.
#pragma once

#include "../warp/decoder.h"

DecodeFamily decode_integer;     // add sub mul mad ... of integers; asks decode_bits when it is none of them
DecodeFamily decode_bits;        // and or xor not cnot lop3, shifts, bit fields, permutations
DecodeFamily decode_float;       // f32 and f64 arithmetic and special functions
DecodeFamily decode_half;        // f16, bf16 and their x2 forms
DecodeFamily decode_convert;     // cvt
DecodeFamily decode_compare;     // setp set selp slct testp
DecodeFamily decode_move;        // mov, cvta, isspacep: moves, packing, addresses, special registers
DecodeFamily decode_collective;  // shfl vote match redux elect activemask
DecodeFamily decode_hint;        // nanosleep griddepcontrol createpolicy
