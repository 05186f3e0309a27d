// The decode functions of this room, for the table of instructions: run/instructions.c.
#pragma once

#include "../warp/decoder.h"

// load_store.c
Decode decode_ld;
Decode decode_st;
Decode decode_cache_hint;

// atomic.c
Decode decode_atom;
Decode decode_red;
