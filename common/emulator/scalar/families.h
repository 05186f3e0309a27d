// The decode functions of this room, for the table of instructions: run/instructions.c.
#pragma once

#include "../warp/decoder.h"

// integer.c, bits.c
DecodeFunction decode_integer;
DecodeFunction decode_bits;
DecodeFunction decode_lop3;

// float.c, half.c
DecodeFunction decode_float;
DecodeFunction decode_half;

// convert.c
DecodeFunction decode_convert;
DecodeFunction decode_convert_pack;

// compare.c
DecodeFunction decode_setp;
DecodeFunction decode_set;
DecodeFunction decode_testp;
DecodeFunction decode_selp;
DecodeFunction decode_slct;

// move.c
DecodeFunction decode_mov;
DecodeFunction decode_cvta;
DecodeFunction decode_isspacep;

// collective.c
DecodeFunction decode_shfl;
DecodeFunction decode_vote;
DecodeFunction decode_match;
DecodeFunction decode_redux;
DecodeFunction decode_elect;
DecodeFunction decode_activemask;

// video.c
DecodeFunction decode_video;

// hints.c
DecodeFunction decode_nanosleep;
DecodeFunction decode_griddepcontrol;
DecodeFunction decode_createpolicy;
DecodeFunction decode_pmevent;
