// The decode functions of this room, for the table of instructions: run/instructions.c.
#pragma once

#include "../warp/decoder.h"

// integer.c, bits.c
Decode decode_integer;
Decode decode_bits;
Decode decode_lop3;

// float.c, half.c
Decode decode_float;
Decode decode_half;

// convert.c
Decode decode_convert;
Decode decode_convert_pack;

// compare.c
Decode decode_setp;
Decode decode_set;
Decode decode_testp;
Decode decode_selp;
Decode decode_slct;

// move.c
Decode decode_mov;
Decode decode_cvta;
Decode decode_isspacep;

// collective.c
Decode decode_shfl;
Decode decode_vote;
Decode decode_match;
Decode decode_redux;
Decode decode_elect;
Decode decode_activemask;

// video.c
Decode decode_video;

// hints.c
Decode decode_nanosleep;
Decode decode_griddepcontrol;
Decode decode_createpolicy;
Decode decode_pmevent;
