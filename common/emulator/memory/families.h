// The families of instructions of this room: each is decoded by one function, in the file of its name.
#pragma once

#include "../warp/decoder.h"

DecodeFamily decode_memory;  // ld st prefetch, and atom red through decode_atomic
DecodeFamily decode_atomic;
