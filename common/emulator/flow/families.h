// The decode functions of this room, for the table of instructions: run/instructions.c.
#pragma once

#include "../warp/decoder.h"

// barrier.c
DecodeFunction decode_barrier;
DecodeFunction decode_warp_barrier;

// cluster.c
DecodeFunction decode_cluster_barrier;
DecodeFunction decode_cluster_address;

// fence.c
DecodeFunction decode_fence;
DecodeFunction decode_proxy_fence;

// control.c
DecodeFunction decode_stack;
DecodeFunction decode_bra;
DecodeFunction decode_brx;
DecodeFunction decode_call;
DecodeFunction decode_ret;
DecodeFunction decode_exit;
DecodeFunction decode_trap;
