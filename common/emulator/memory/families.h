// The decode functions of this room, for the table of instructions: run/instructions.c.
#pragma once

#include "../warp/decoder.h"

// load_store.c
DecodeFunction decode_ld;
DecodeFunction decode_st;
DecodeFunction decode_cache_hint;

// atomic.c
DecodeFunction decode_atom;
DecodeFunction decode_red;
